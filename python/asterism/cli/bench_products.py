"""``asterism bench spmv|amg``: products and solves on the host."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from .. import _core, gallery
from ..la.matrix import Matrix
from ..solvers.solver import Solver
from .table import print_table

__all__ = ["amg_case", "print_amg", "print_spmv", "spmv_case", "spmv_summary"]


def spmv_case(A: Matrix, repeats: int) -> dict[str, Any]:
    """Median time of one product, interleaved with STREAM triads, and the ratio of their bandwidths.

    Bytes are those that plain CSR must move: 12 (or 8) per entry, offsets, x and y once.
    """
    x = np.random.default_rng(0).standard_normal(A.local_shape[1]).astype(A.dtype)
    y = np.empty(A.local_shape[0], dtype=A.dtype)
    A._h.apply(x, y)
    inner = max(1, int(0.02 / max(_time(A, x, y, 1), 1e-7)))
    seconds, triads = [], []
    for _ in range(repeats):
        triads.append(24.0 * 8_000_000 / min(_core.stream_triad(8_000_000, 3)))
        _time(
            A, x, y, inner
        )  # the triad has emptied the caches, in which peers measured by themselves find their matrix
        seconds.append(_time(A, x, y, inner))
    return spmv_summary(A, seconds, triads)


def spmv_summary(A: Matrix, seconds: list[float], triads: list[float]) -> dict[str, Any]:
    """Bandwidths of products that took `seconds` beside triads of so many bytes a second."""
    size = A.dtype.itemsize
    bytes_csr = A.nnz * (size + 4) + (A.shape[0] + 1) * 8 + (A.shape[0] + A.shape[1]) * size
    t, triad = statistics.median(seconds), statistics.median(triads)
    return {
        "rows": A.shape[0],
        "nnz": A.nnz,
        "storage": A.storage,
        "seconds": seconds,
        "GB_per_s": bytes_csr / t / 1e9,
        "triad_GB_per_s": triad / 1e9,
        "fraction_of_triad": bytes_csr / t / triad,
    }


def _time(A: Matrix, x: Any, y: Any, times: int) -> float:
    start = time.perf_counter()
    A._h.apply_repeatedly(x, y, times)
    return (time.perf_counter() - start) / times


def print_spmv(r: dict[str, Any]) -> None:
    """Print what spmv_case() measured."""
    print_table(
        f"a product, 1 rank x {_core.team_size()} thread(s)",
        ["rows", "entries", "storage", "ms", "GB/s by plain CSR's bytes", "triad GB/s", "of the triad"],
        [
            [
                r["rows"],
                r["nnz"],
                r["storage"],
                f"{1e3 * statistics.median(r['seconds']):.3f}",
                f"{r['GB_per_s']:.1f}",
                f"{r['triad_GB_per_s']:.1f}",
                f"{r['fraction_of_triad']:.2f}",
            ]
        ],
    )


def amg_case(n: int, repeats: int, comm: Any = None) -> dict[str, Any]:
    """Seconds of set-ups and solves: cg with amg on 7-point Poisson, to 1e-8."""
    A = gallery.poisson((n,) * 3, comm)
    setups, solves, its = [], [], 0
    b = np.ones(A.local_shape[0])
    for _ in range(repeats):
        s = Solver(A, ksp="cg", pc="amg", rtol=1e-8)
        s.solve(b)
        assert s.info is not None
        setups.append(s.info.setup_seconds)
        solves.append(s.info.solve_seconds)
        its = s.info.iterations
    threads = _core.team_size()
    return {"n": n, "iterations": its, "setup": setups, "solve": solves, "threads": threads, "ranks": A.comm_size}


def print_amg(r: dict[str, Any]) -> None:
    """Print what amg_case() measured."""
    print_table(
        f"cg + amg, {r['n']}^3 7-point Poisson, rtol 1e-8, {r['ranks']} rank(s) x {r['threads']} thread(s)",
        ["set-up s", "solve s", "iterations"],
        [[f"{statistics.median(r['setup']):.3f}", f"{statistics.median(r['solve']):.3f}", r["iterations"]]],
    )
