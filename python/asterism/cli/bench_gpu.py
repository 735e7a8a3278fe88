"""``asterism bench spmv|vectors --device cuda``: products and vector operations on a GPU, beside its own copies and cuSPARSE."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from .. import _core, gallery
from ..la import Matrix
from ..queue import Queue
from ..vector import Vector

__all__ = ["print_spmv", "print_vectors", "spmv_on_device", "vectors_on_device"]


def _seconds(queue: Queue, operation: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of one of many operations that stream by, `repeats` times; what came before is done."""
    operation()
    queue.wait()
    start = time.perf_counter()
    operation()
    queue.wait()
    inner = max(2, min(1000, int(0.02 / max(time.perf_counter() - start, 1e-7))))
    out = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            operation()
        queue.wait()
        out.append((time.perf_counter() - start) / inner)
    return out


def _on_a_line(n: int) -> Matrix:
    """A matrix whose rows lay out vectors of n entries."""
    side = max(1, int(np.sqrt(n)))
    return gallery.poisson((side, side))


def vectors_on_device(device: str, n: int, repeats: int) -> dict[str, Any]:
    """Vector operations of about n entries, float64: seconds, bytes a second, and their ratio to a copy's."""
    queue = Queue(device)
    x, y, z = (Vector(_on_a_line(n), queue, fill=float(k)) for k in (1, 2, 3))
    entries = x.shape[0]
    operations: dict[str, tuple[Callable[[], Any], float]] = {
        "copy": (lambda: y.copy_from(x), 2),
        "fill": (lambda: y.fill(1.5), 1),
        "axpy": (lambda: y.axpy(1e-9, x), 3),
        "axpby": (lambda: y.axpby(0.5, x, 0.5), 3),
        "dot": (lambda: x.dot(y), 2),
        "norm": (lambda: x.norm(), 1),
        "update_and_norm2": (lambda: x.update_and_norm2(1e-9, y, y, z), 6),
    }
    out: dict[str, Any] = {"device": _core.gpu_state()["device"], "entries": entries, "operations": {}}
    for name, (operation, passes) in operations.items():
        seconds = _seconds(queue, operation, repeats)
        out["operations"][name] = {
            "seconds": seconds,
            "GB_per_s": passes * 8 * entries / statistics.median(seconds) / 1e9,
        }
    copy = out["operations"]["copy"]["GB_per_s"]
    for o in out["operations"].values():
        o["over_copy"] = o["GB_per_s"] / copy
    return out


def print_vectors(r: dict[str, Any]) -> None:
    """Print what vectors_on_device() measured."""
    print(f"vectors of {r['entries']} entries on {r['device']}")
    for name, o in r["operations"].items():
        print(
            f"{name:17s} {1e6 * statistics.median(o['seconds']):9.2f} us, {o['GB_per_s']:7.1f} GB/s, {o['over_copy']:.2f} of a copy"
        )


def spmv_on_device(device: str, A: Matrix, repeats: int) -> dict[str, Any]:
    """Products on a device, interleaved with copies and, where CuPy is installed, cuSPARSE's products."""
    queue = Queue(device)
    x, y = Vector(A, queue, fill=1.0), Vector(A, queue, fill=0.0)
    big = _on_a_line(40_000_000 if A.shape[0] > 100_000 else 400_000)
    c, d = Vector(big, queue, fill=1.0), Vector(big, queue, fill=0.0)
    theirs = _cupy_product(A) if device == "cuda" else None
    seconds, copies, cusparse = [], [], []
    for _ in range(repeats):
        copies += _seconds(queue, lambda: d.copy_from(c), 1)
        seconds += _seconds(queue, lambda: y.product(A, x), 1)
        if theirs is not None:
            cusparse.append(theirs())
    t, copy = statistics.median(seconds), 16 * c.shape[0] / statistics.median(copies)
    least = float(A._h.product_bytes)
    return {
        "device": _core.gpu_state()["device"],
        "rows": A.shape[0],
        "nnz": A.nnz,
        "storage": A.storage,
        "seconds": seconds,
        "cusparse_seconds": cusparse,
        "copy_GB_per_s": copy / 1e9,
        "least_bytes": least,
        "fraction_of_copy": least / t / copy,
        "cusparse_over_ours": statistics.median(cusparse) / t if cusparse else None,
    }


def print_spmv(r: dict[str, Any]) -> None:
    """Print what spmv_on_device() measured."""
    peer = (
        f"; cuSPARSE takes {r['cusparse_over_ours']:.2f} times as long"
        if r["cusparse_over_ours"]
        else "; no CuPy to compare with"
    )
    print(
        f"spmv {r['rows']} rows, {r['nnz']} entries, {r['storage']}, {r['device']}: {1e6 * statistics.median(r['seconds']):.1f} us, "
        f"{r['fraction_of_copy']:.2f} of a copy's {r['copy_GB_per_s']:.0f} GB/s by least bytes{peer}"
    )


def _cupy_product(A: Matrix) -> Callable[[], float] | None:
    try:
        cupy, sparse = import_module("cupy"), import_module("cupyx.scipy.sparse")
    except ImportError:
        return None
    a = A.to_scipy()
    there = sparse.csr_matrix((cupy.asarray(a.data), cupy.asarray(a.indices), cupy.asarray(a.indptr)), shape=A.shape)
    x = cupy.ones(A.shape[1], dtype=A.dtype)

    def measure() -> float:
        there @ x
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(50):
            there @ x
        cupy.cuda.Device().synchronize()
        return (time.perf_counter() - start) / 50

    return measure
