"""``asterism bench assembly``: values of finite elements summed again and again, on the host or a GPU, beside a copy."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from .. import _core
from ..base.options import use_argv
from ..device.queue import Queue
from ..la.assembly import Assembly
from ..la.vector import Vector
from .bench_gpu import seconds_of, vector_of
from .table import microseconds, print_table

__all__ = ["assembly_case", "print_assembly", "trilinear_entries", "trilinear_nodes"]


def trilinear_nodes(cells: int, first: int = 0, last: int | None = None) -> tuple[int, Any]:
    """Return how many nodes cells^3 trilinear elements have, and the eight of each element in layers first to last."""
    n = cells + 1
    layers = np.arange(first, cells if last is None else last)
    z, y, x = np.meshgrid(layers, np.arange(cells), np.arange(cells), indexing="ij")
    corner = np.array([(a * n + b) * n + c for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    return n**3, ((z * n + y) * n + x).reshape(-1, 1) + corner


def trilinear_entries(cells: int, first: int = 0, last: int | None = None) -> tuple[int, Any, Any]:
    """Return how many nodes there are, and rows and columns of the entries of those elements."""
    count, nodes = trilinear_nodes(cells, first, last)
    return count, np.repeat(nodes, 8, axis=1).ravel(), np.tile(nodes, (1, 8)).ravel()


def assembly_case(device: str, cells: int, repeats: int) -> dict[str, Any]:
    """Trilinear elements on cells^3; on a GPU also the products of what comes, by our kernel and, where it is there, cuSPARSE."""
    nodes, i, j = trilinear_entries(cells)
    start = time.perf_counter()
    plan = Assembly((nodes, nodes), i, j)
    pattern = time.perf_counter() - start
    queue = Queue("inline" if device == "host" else device)
    values = Vector(plan, queue, fill=1.0)
    entries = max(len(i), 1000)
    c, d = vector_of(entries, queue, 1.0), vector_of(entries, queue, 0.0)
    kept = [plan.matrix(values)]

    def assemble() -> None:
        kept[0] = plan.matrix(values)

    seconds, copies = [], []
    for _ in range(repeats):
        copies += seconds_of(queue, lambda: d.copy_from(c), 1)
        seconds += seconds_of(queue, assemble, 1)
    copy = 16 * entries / statistics.median(copies)
    least = len(i) * (8.0 + 4.0) + plan.nnz * (8.0 + 4.0)  # values and sources; entries and offsets
    products: dict[str, Any] = {}
    if device != "host":
        v, w = Vector(kept[0], queue, fill=1.0), Vector(kept[0], queue, fill=0.0)
        w.product(kept[0], v)
        queue.wait()
        found = _core.gpu_state()["products"]
        use_argv(["-mat_gpu_product", "own"])
        products = {"seconds": seconds_of(queue, lambda: w.product(kept[0], v), repeats), "measured": found[-1:]}
        use_argv(["-mat_gpu_product", "auto"])
    return {
        "device": _core.gpu_state()["device"] if device != "host" else "host",
        "cells": cells,
        "entries": len(i),
        "nnz": plan.nnz,
        "pattern_seconds": pattern,
        "seconds": seconds,
        "copy_GB_per_s": copy / 1e9,
        "fraction_of_copy": least / statistics.median(seconds) / copy,
        "products": products,
    }


def print_assembly(r: dict[str, Any]) -> None:
    """Print what assembly_case() measured."""
    print_table(
        f"assembly of trilinear elements, {r['device']}",
        ["entries given", "of the matrix", "pattern s (host)", "values ms", "of a copy by least bytes", "copy GB/s"],
        [
            [
                r["entries"],
                r["nnz"],
                f"{r['pattern_seconds']:.3f}",
                f"{1e3 * statistics.median(r['seconds']):.3f}",
                f"{r['fraction_of_copy']:.2f}",
                f"{r['copy_GB_per_s']:.1f}",
            ]
        ],
    )
    if p := r["products"]:
        found = p["measured"][0] if p["measured"] else None
        print_table(
            "its product in csr",
            ["ours us", "cuSPARSE us", "taken"],
            [
                [
                    microseconds(p["seconds"]),
                    f"{1e6 * found['cusparse_seconds']:.2f}" if found else "-",
                    found["taken"] if found else "no cuSPARSE to compare with",
                ]
            ],
        )
