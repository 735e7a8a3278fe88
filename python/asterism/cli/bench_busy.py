"""``asterism bench busy``: what solves and exchanges take beside processes that keep the cores busy."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _core, gallery
from ..comm.forest import StarForest
from ..solvers.solver import Solver
from .progress import steps
from .table import print_table

__all__ = ["busy_cases", "print_busy"]

_MOST = 4
SETTLE = 0.15  # seconds until the system has dealt the cores anew
LOOP = 0.5  # seconds of exchanges in each case
POINTS = (600, 600)
#: Busy processes, and whether they are bound to one core.
_CASES = [(0, False), (1, False), (2, False), (4, False), (1, True), (2, True), (4, True)]


class _Crowd:
    """Processes that use as much of the cores as they get."""

    def __init__(self, cores: list[int]) -> None:
        self._cores = cores
        # each ends with this process, however that ends
        command = [sys.executable, "-S", "-c", f"import os\nwhile os.getppid() == {os.getpid()}: sum(range(10000))"]
        self._all = [subprocess.Popen(command) for _ in range(_MOST)]
        self.run(0, False)

    def run(self, k: int, bound: bool) -> None:
        """Let k of them run."""
        for i, p in enumerate(self._all):
            os.sched_setaffinity(p.pid, self._cores[-1:] if bound else self._cores)
            p.send_signal(signal.SIGCONT if i < k else signal.SIGSTOP)

    def end(self) -> None:
        """End them."""
        for p in self._all:
            p.kill()
            p.wait()


@contextmanager
def _crowd(first: bool, cores: list[int]) -> Iterator[_Crowd | None]:
    crowd = _Crowd(cores) if first else None
    try:
        yield crowd
    finally:
        if crowd:
            crowd.end()


def fair_share(k: int, bound: bool, threads: int, cores: int) -> float:
    """What the idle time is multiplied with if cores are dealt evenly between our threads and k others, or k on one core."""
    if k == 0:
        return 1.0
    return cores / (cores - 1 + 1 / (1 + k)) if bound else max(1.0, (threads + k) / cores)


def busy_cases(comm: Any, repeats: int) -> dict[str, Any]:
    """Seconds of solves and of single exchanges beside k = 0, 1, 2 and 4 busy processes, free or bound to one core.

    Poisson's equation on 600^2 points, cg with amg, synchronous and asynchronous; on several ranks also an exchange with two
    neighbours in a ring, and a sum over the ranks. Cases are interleaved; the slowest rank counts.
    """
    size = 1 if comm is None else comm.Get_size()
    rank = 0 if comm is None else comm.Get_rank()
    mine = os.sched_getaffinity(0)
    cores = sorted(mine if comm is None else set().union(*comm.allgather(mine)))
    A = gallery.poisson(POINTS, comm)
    b = np.ones(A.local_shape[0])
    solvers = {
        "synchronous": Solver(A, ksp="cg", pc="amg", rtol=1e-8),
        "asynchronous": Solver(A, "-ksp_asynchronous", ksp="cg", pc="amg", rtol=1e-8, queue="thread"),
    }
    operations: dict[str, Callable[[], object]] = {}
    if comm is not None and size > 1:
        n = 2048
        edges = [[(rank + s) % size, i] for s in (1, size - 1) for i in range(n // 2)]
        forest = StarForest(comm, n, None, edges)
        roots, leaves = np.ones(n), np.zeros(n)
        operations = {
            "exchange of 2 x 8 kB": lambda: forest.bcast(roots, leaves),
            "sum of 8 bytes": lambda: A._comm.sum(1),
        }
    out: dict[str, Any] = {
        "ranks": size,
        "threads": size * _core.team_size(),
        "cores": len(cores),
        "solves": {name: [] for name in solvers},
        "exchanges": {name: [] for name in operations},
    }
    for name in solvers:
        out["solves"][name] = [{"busy": k, "bound": bound, "seconds": []} for k, bound in _CASES]
    for name in operations:
        out["exchanges"][name] = [{"busy": k, "bound": bound, "seconds": []} for k, bound in _CASES]
    with _crowd(rank == 0, cores) as crowd:
        for at, (k, bound) in steps("busy", [case for _ in range(repeats) for case in enumerate(_CASES)], comm):
            if crowd:
                crowd.run(k, bound)
                time.sleep(SETTLE)
            for name, solver in solvers.items():
                for _ in range(3):
                    _meet(comm)
                    start = time.perf_counter()
                    solver.solve(b)
                    out["solves"][name][at]["seconds"].append(_slowest(comm, time.perf_counter() - start))
            for name, operation in operations.items():
                out["exchanges"][name][at]["seconds"] += _each(comm, operation)
    return _summary(out)


def _meet(comm: Any) -> None:
    if comm is not None:
        comm.Barrier()


def _slowest(comm: Any, seconds: float) -> float:
    if comm is None:
        return seconds
    from mpi4py import MPI

    return float(comm.allreduce(seconds, op=MPI.MAX))


def _each(comm: Any, operation: Callable[[], object]) -> list[float]:
    """Seconds of each of many in a row, as many on all ranks."""
    out: list[float] = []
    end = time.perf_counter() + LOOP
    while True:
        for _ in range(50):
            start = time.perf_counter()
            operation()
            out.append(time.perf_counter() - start)
        if comm.bcast(time.perf_counter() > end, root=0):
            return out


def _summary(r: dict[str, Any]) -> dict[str, Any]:
    for cases in r["solves"].values():
        idle = statistics.median(cases[0]["seconds"])
        for c in cases:
            share = idle * fair_share(c["busy"], c["bound"], r["threads"], r["cores"])
            c["median"] = statistics.median(c["seconds"])
            c["fair_share"], c["of_fair_share"] = share, c["median"] / share
    for cases in r["exchanges"].values():
        for c in cases:
            seconds = sorted(c.pop("seconds"))
            c["count"], c["median"] = len(seconds), statistics.median(seconds)
            c["percentile_99"], c["largest"] = seconds[int(0.99 * len(seconds))], seconds[-1]
    return r


def print_busy(r: dict[str, Any]) -> None:
    """Print what busy_cases() measured."""

    def crowd(c: dict[str, Any]) -> str:
        return f"{c['busy']}{' on one core' if c['bound'] else ''}"

    about = f"{r['ranks']} rank(s), {r['threads']} threads in all, {r['cores']} cores"
    for name, cases in r["solves"].items():
        print_table(
            f"{name} solve, {about}, milliseconds",
            ["busy processes", "median", "longest", "fair share", "of fair share"],
            [
                [
                    crowd(c),
                    f"{1e3 * c['median']:.1f}",
                    f"{1e3 * max(c['seconds']):.1f}",
                    f"{1e3 * c['fair_share']:.1f}",
                    f"{c['of_fair_share']:.2f}",
                ]
                for c in cases
            ],
        )
    for name, cases in r["exchanges"].items():
        print_table(
            f"{name}, {about}, microseconds",
            ["busy processes", "median", "99 %", "longest"],
            [[crowd(c), *(f"{1e6 * c[k]:.1f}" for k in ("median", "percentile_99", "largest"))] for c in cases],
        )
