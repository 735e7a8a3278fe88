"""``asterism bench``: compiled timing loops on this machine."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from .. import _core, gallery
from ..errors import OptionError
from ..la import Matrix, read_matrix
from ..solve import Solver

__all__ = ["add_arguments", "run", "spmv_case"]


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    p = sub.add_parser("bench", help="measure on this machine: spmv, amg")
    p.add_argument("name", choices=["spmv", "amg"])
    p.add_argument("--n", type=int, default=96, help="grid points in each direction")
    p.add_argument("--file", help="spmv: a Matrix Market file instead")
    p.add_argument("--repeats", type=int, default=9)
    p.add_argument("--json", action="store_true")


def spmv_case(A: Matrix, repeats: int) -> dict[str, Any]:
    """Median time of one product, interleaved with STREAM triads, and the ratio of their bandwidths.

    Bytes are those that plain CSR must move: 12 (or 8) per entry, offsets, x and y once.
    """
    size = A.dtype.itemsize
    x = np.random.default_rng(0).standard_normal(A.local_shape[1]).astype(A.dtype)
    y = np.empty(A.local_shape[0], dtype=A.dtype)
    A._h.apply(x, y)
    inner = max(1, int(0.02 / max(_time(A, x, y, 1), 1e-7)))
    seconds, triads = [], []
    for _ in range(repeats):
        triads.append(24.0 * 8_000_000 / min(_core.stream_triad(8_000_000, 3)))
        seconds.append(_time(A, x, y, inner))
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


def run(args: argparse.Namespace) -> int:
    """Run one benchmark and print its ratio."""
    if args.repeats < 1 or args.n < 1:
        raise OptionError("--repeats and --n must be at least 1.")
    if args.name == "spmv":
        A = read_matrix(args.file) if args.file else gallery.poisson((args.n,) * 3)
        r = spmv_case(A, args.repeats)
        if args.json:
            print(json.dumps(r))
        else:
            print(
                f"spmv {r['rows']} rows, {r['nnz']} entries, {r['storage']}: {1e3 * statistics.median(r['seconds']):.3f} ms, "
                f"{r['GB_per_s']:.1f} GB/s by plain CSR's bytes, {r['fraction_of_triad']:.2f} of the triad "
                f"({r['triad_GB_per_s']:.1f} GB/s), 1 rank x {_core.team_size()} thread(s)"
            )
        return 0
    A = gallery.poisson((args.n,) * 3)
    setups, solves, its = [], [], 0
    b = np.ones(A.local_shape[0])
    for _ in range(args.repeats):
        s = Solver(A, ksp="cg", pc="amg", rtol=1e-8)
        s.solve(b)
        assert s.info is not None
        setups.append(s.info.setup_seconds)
        solves.append(s.info.solve_seconds)
        its = s.info.iterations
    out = {"n": args.n, "iterations": its, "setup": setups, "solve": solves, "threads": _core.team_size()}
    print(
        json.dumps(out)
        if args.json
        else f"cg + amg, poisson {args.n}^3: set-up {statistics.median(setups):.3f} s, solve {statistics.median(solves):.3f} s, "
        f"{its} iterations, 1 rank x {_core.team_size()} thread(s)"
    )
    return 0
