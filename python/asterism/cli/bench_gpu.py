"""``asterism bench spmv|vectors --device cuda``: products and vector operations on a GPU, beside its own copies and cuSPARSE."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from .. import _core
from ..device.queue import Queue
from ..la.matrix import Matrix
from ..la.vector import Vector
from .bench_cupy import cupy_product
from .table import microseconds, print_table

__all__ = ["print_spmv", "print_vectors", "seconds_of", "spmv_on_device", "vector_of", "vectors_on_device"]


def seconds_of(queue: Queue, operation: Callable[[], Any], repeats: int) -> list[float]:
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


def vector_of(n: int, queue: Queue, fill: float) -> Vector:
    """Without the matrix whose rows lay vectors out elsewhere."""
    layout = _core.Layout.even(_core.Communicator(), n)
    v = Vector._of(_core.QueueVector.make(layout, "float64", 1, queue._h), queue, True)
    v.fill(fill)
    return v


def vectors_on_device(device: str, n: int, repeats: int) -> dict[str, Any]:
    """Vector operations of n entries, float64, on a GPU or the host: seconds, bytes a second, and their ratio to a copy's."""
    queue = Queue("inline" if device == "host" else device)
    x, y, z = (vector_of(n, queue, float(k)) for k in (1, 2, 3))
    operations: dict[str, tuple[Callable[[], Any], float]] = {
        "copy": (lambda: y.copy_from(x), 2),
        "fill": (lambda: y.fill(1.5), 1),
        "axpy": (lambda: y.axpy(1e-9, x), 3),
        "axpby": (lambda: y.axpby(0.5, x, 0.5), 3),
        "dot": (lambda: x.dot(y), 2),
        "norm": (lambda: x.norm(), 1),
        "update_and_norm2": (lambda: x.update_and_norm2(1e-9, y, y, z), 6),
    }
    where = "host" if device == "host" else _core.gpu_state()["device"]
    out: dict[str, Any] = {"device": where, "entries": n, "operations": {}}
    for name, (operation, passes) in operations.items():
        seconds = seconds_of(queue, operation, repeats)
        out["operations"][name] = {
            "seconds": seconds,
            "GB_per_s": passes * 8 * n / statistics.median(seconds) / 1e9,
        }
    copy = out["operations"]["copy"]["GB_per_s"]
    for o in out["operations"].values():
        o["over_copy"] = o["GB_per_s"] / copy
    return out


def print_vectors(r: dict[str, Any]) -> None:
    """Print what vectors_on_device() measured."""
    print_table(
        f"vectors of {r['entries']} entries on {r['device']}",
        ["operation", "us", "GB/s", "of a copy"],
        [
            [name, microseconds(o["seconds"]), f"{o['GB_per_s']:.1f}", f"{o['over_copy']:.2f}"]
            for name, o in r["operations"].items()
        ],
    )


def spmv_on_device(device: str, A: Matrix, repeats: int) -> dict[str, Any]:
    """Products on a device, interleaved with copies and, where CuPy is installed, cuSPARSE's products."""
    queue = Queue(device)
    x, y = Vector(A, queue, fill=1.0), Vector(A, queue, fill=0.0)
    entries = 40_000_000 if A.shape[0] > 100_000 else 400_000
    c, d = vector_of(entries, queue, 1.0), vector_of(entries, queue, 0.0)
    theirs = cupy_product(A) if device == "cuda" else None
    seconds, copies, cusparse = [], [], []
    for _ in range(repeats):
        copies += seconds_of(queue, lambda: d.copy_from(c), 1)
        seconds += seconds_of(queue, lambda: y.product(A, x), 1)
        if theirs is not None:
            cusparse.append(theirs())
    t, copy = statistics.median(seconds), 16 * entries / statistics.median(copies)
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
    print_table(
        f"a product, {r['device']}",
        ["rows", "entries", "storage", "us", "of a copy by least bytes", "copy GB/s", "cuSPARSE / ours"],
        [
            [
                r["rows"],
                r["nnz"],
                r["storage"],
                microseconds(r["seconds"]),
                f"{r['fraction_of_copy']:.2f}",
                f"{r['copy_GB_per_s']:.0f}",
                f"{r['cusparse_over_ours']:.2f}" if r["cusparse_over_ours"] else "no CuPy",
            ]
        ],
    )
