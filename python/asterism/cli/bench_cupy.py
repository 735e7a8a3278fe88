"""CuPy's products (cuSPARSE) and conjugate gradients, for benchmarks on a GPU where it is installed."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["cupy_cg", "cupy_product"]


class _CuPy:
    """A matrix of ours as CuPy's, and seconds of what it does."""

    def __init__(self, A: Any) -> None:
        self.cupy = import_module("cupy")
        sparse = import_module("cupyx.scipy.sparse")
        a = A.to_scipy()
        self.A = sparse.csr_matrix(tuple(map(self.cupy.asarray, (a.data, a.indices, a.indptr))), shape=A.shape)

    def seconds(self, operation: Callable[[], object]) -> float:
        self.cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        operation()
        self.cupy.cuda.Device().synchronize()
        return time.perf_counter() - start


def cupy_product(A: Any) -> Callable[[], float] | None:
    """Return what measures seconds of one product, or None where there is no CuPy."""
    try:
        there = _CuPy(A)
    except ImportError:
        return None
    x = there.cupy.ones(A.shape[1], dtype=A.dtype)

    def fifty() -> None:
        for _ in range(50):
            _ = there.A @ x

    there.seconds(fifty)
    return lambda: there.seconds(fifty) / 50


def cupy_cg() -> Callable[[Any, Any, int, int], list[float]] | None:
    """Return what measures seconds of an iteration for (matrix, right-hand side, iterations, rounds), or None without CuPy."""
    try:
        cg = import_module("cupyx.scipy.sparse.linalg").cg
    except ImportError:
        return None
    never = {"rtol" if "rtol" in inspect.signature(cg).parameters else "tol": 1e-300}  # its name changed

    def measure(A: Any, b: Any, iterations: int, rounds: int) -> list[float]:
        there = _CuPy(A)
        rhs = there.cupy.asarray(b)
        run = [there.seconds(lambda: cg(there.A, rhs, maxiter=iterations, **never)) for _ in range(rounds + 1)]
        return [t / iterations for t in run[1:]]  # the first compiles its kernels

    return measure
