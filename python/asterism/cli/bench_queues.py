"""``asterism bench launch`` and ``asterism bench async``: what queues cost, and what it gains not to wait."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from .. import _core, gallery
from ..solvers.solver import Solver
from .bench_cupy import cupy_cg
from .progress import steps
from .table import microseconds, print_table

__all__ = ["async_cases", "launch_cases", "print_async", "print_launch"]


def launch_cases(rounds: int, device: str = "host") -> dict[str, Any]:
    """Seconds of empty tasks on each queue, of the pipeline of PetscSF's figure 5, and of short vector operations.

    With a device: empty kernels there, as in table 2 of the first paper, streamed and each waited for.
    """
    out: dict[str, Any] = {"queues": {}, "pipeline": {"streamed": [], "interrupted": []}, "operations": {}}
    for _ in range(rounds):
        for queue in ("inline", "thread", *([] if device == "host" else [device])):
            submit, streamed, waited = _core.time_launch(queue, 20000 if queue == "inline" else 5000)
            times = out["queues"].setdefault(queue, {"submit": [], "streamed": [], "waited": []})
            for name, value in (("submit", submit), ("streamed", streamed), ("waited", waited)):
                times[name].append(value)
        work, launch = (20e-6, 5e-6, 5e-6), 10e-6
        for name, waits in (("streamed", False), ("interrupted", True)):
            one = [_core.time_pipeline("thread", work, launch, waits) for _ in range(50)]
            out["pipeline"][name].append(statistics.median(one))
        for n in (1000, 100000):
            axpy, dot = _core.time_vector_operations(n, max(3, 2_000_000 // n))
            for name, (operation, loop) in (("axpy", axpy), ("dot", dot)):
                case = out["operations"].setdefault(f"{name}, n = {n}", {"operation": [], "loop": []})
                case["operation"].append(operation)
                case["loop"].append(loop)
    return out


def print_launch(r: dict[str, Any]) -> None:
    """Print what launch_cases() measured."""

    def nanoseconds(times: list[float]) -> str:
        return f"{1e9 * statistics.median(times):.0f}"

    print_table(
        "an empty task, nanoseconds",
        ["queue", "submit", "streamed", "waited for"],
        [[queue, *(nanoseconds(t[k]) for k in ("submit", "streamed", "waited"))] for queue, t in r["queues"].items()],
    )
    print_table(
        "a pipeline of 20, 5 and 5 us, each 10 us to launch (PetscSF, fig. 5: 40 and 55), microseconds",
        ["streamed", "with a wait after the first"],
        [[microseconds(r["pipeline"][k]) for k in ("streamed", "interrupted")]],
    )
    print_table(
        "short vector operations, nanoseconds",
        ["operation", "ours", "a vectorised loop"],
        [[name, nanoseconds(t["operation"]), nanoseconds(t["loop"])] for name, t in r["operations"].items()],
    )


def async_cases(rounds: int, most: float, iterations: int = 200, device: str = "host") -> list[dict[str, Any]]:
    """Seconds per iteration of CG and TFQMR, at once, on the worker's queue and asynchronously, interleaved.

    Grids of 2 and 3 dimensions, 5-, 9-, 7- and 27-point, with up to `most` nonzeros; a fixed number of iterations with jacobi. With a
    device: both forms there, the asynchronous one also without graphs, and CuPy's cg where it is installed.
    """
    theirs = cupy_cg() if device == "cuda" else None
    out = []
    for dimension, stencil, points in steps("async", ((2, "star", 5), (2, "box", 9), (3, "star", 7), (3, "box", 27))):
        for target in (1e4, 1e5, 1e6, 1e7, 1e8):
            if target > most:
                continue
            n = max(4, round((target / points) ** (1 / dimension)))
            A = gallery.poisson((n,) * dimension, stencil=stencil)
            b = np.ones(A.local_shape[0])
            its = max(10, min(iterations, int(2e9 / target)))
            for ksp in ("cg", "tfqmr"):
                forms = {"inline": "", "synchronous": "-queue thread", "asynchronous": "-ksp_asynchronous"}
                if device != "host":
                    forms = {"synchronous": f"-device {device}", "asynchronous": f"-device {device} -ksp_asynchronous"}
                    forms["without graphs"] = forms["asynchronous"] + " -ksp_graphs false"
                common = f"-ksp_type {ksp} -pc_type jacobi -ksp_rtol 1e-300 -ksp_max_it {its} -ksp_error_if_not_converged false"
                solvers = {k: Solver(A, f"{common} {v}") for k, v in forms.items()}
                times: dict[str, list[float]] = {k: [] for k in forms}
                waits = {}
                for turn in range(rounds + 1):
                    for k, s in solvers.items():
                        s.solve(b, raise_on_failure=False)
                        assert s.info is not None
                        waits[k] = s.info.host_waits
                        if turn > 0:
                            times[k].append(s.info.solve_seconds / max(s.info.iterations, 1))
                if theirs is not None and ksp == "cg":
                    times["cupy"] = theirs(A, b, its, rounds)
                middle = {k: statistics.median(v) for k, v in times.items()}
                out.append(
                    {
                        "case": f"{ksp}, {dimension}-D {points}-point",
                        "nonzeros": A.nnz,
                        "iterations": its,
                        "seconds_per_iteration": times,
                        "host_waits": waits,
                        "synchronous_over_asynchronous": middle["synchronous"] / middle["asynchronous"],
                    }
                )
    return out


def print_async(cases: list[dict[str, Any]]) -> None:
    """Print what async_cases() measured."""
    forms = list(dict.fromkeys(k for c in cases for k in c["seconds_per_iteration"]))
    print_table(
        "microseconds an iteration; times that the host waited",
        ["case", "nonzeros", "iterations", *forms, "waits sync.", "waits async.", "sync. / async."],
        [
            [
                c["case"],
                c["nonzeros"],
                c["iterations"],
                *(
                    microseconds(c["seconds_per_iteration"][k]) if k in c["seconds_per_iteration"] else "-"
                    for k in forms
                ),
                c["host_waits"]["synchronous"],
                c["host_waits"]["asynchronous"],
                f"{c['synchronous_over_asynchronous']:.2f}",
            ]
            for c in cases
        ],
    )
