"""``asterism bench launch`` and ``asterism bench async``: what queues cost, and what it gains not to wait."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from .. import _core, gallery
from ..solve import Solver
from .bench_cupy import cupy_cg

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
    for queue, t in r["queues"].items():
        submit, streamed, waited = (1e9 * statistics.median(t[k]) for k in ("submit", "streamed", "waited"))
        print(
            f"launch {queue:7s} an empty task: {submit:.0f} ns to submit, {streamed:.0f} ns streamed, {waited:.0f} ns waited for"
        )
    streamed, interrupted = (1e6 * statistics.median(r["pipeline"][k]) for k in ("streamed", "interrupted"))
    print(
        f"pipeline of 20, 5 and 5 us, each 10 us to launch: {streamed:.1f} us streamed, {interrupted:.1f} us with a wait after the "
        "first (PetscSF, fig. 5: 40 and 55)"
    )
    for name, t in r["operations"].items():
        operation, loop = (1e9 * statistics.median(t[k]) for k in ("operation", "loop"))
        print(f"{name}: {operation:.0f} ns, a vectorised loop {loop:.0f} ns, {operation - loop:+.0f} ns")


def async_cases(rounds: int, most: float, iterations: int = 200, device: str = "host") -> list[dict[str, Any]]:
    """Seconds per iteration of CG and TFQMR, at once, on the worker's queue and asynchronously, interleaved.

    Grids of 2 and 3 dimensions, 5-, 9-, 7- and 27-point, with up to `most` nonzeros; a fixed number of iterations with jacobi. With a
    device: both forms there, the asynchronous one also without graphs, and CuPy's cg where it is installed.
    """
    theirs = cupy_cg() if device == "cuda" else None
    out = []
    for dimension, stencil, points in ((2, "star", 5), (2, "box", 9), (3, "star", 7), (3, "box", 27)):
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
    for c in cases:
        us = {k: 1e6 * statistics.median(v) for k, v in c["seconds_per_iteration"].items()}
        print(
            f"{c['case']:20s} {c['nonzeros']:>9d} nonzeros, {c['iterations']} iterations: "
            + ", ".join(f"{k} {v:.1f} us" for k, v in us.items())
            + f" an iteration; waits {c['host_waits']['synchronous']} and {c['host_waits']['asynchronous']}; "
            f"synchronous takes {c['synchronous_over_asynchronous']:.2f} times as long"
        )
