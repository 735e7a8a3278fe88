"""``asterism bench stencil``: products of stencils on bricks, beside a copy of a vector. On a GPU with ``--device cuda``."""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from .. import _core, stencil
from ..device.queue import Queue
from ..errors import UnsupportedError
from ..la.vector import Vector
from ..solvers.solver import Solver
from .bench_gpu import seconds_of
from .table import microseconds, print_table

__all__ = ["add_stencil_arguments", "print_stencil", "stencil_case"]

POINTS = (7, 13, 27, 125)


def _is_in(points: int, o: tuple[int, ...]) -> bool:
    """Whether a stencil of so many points has an offset."""
    star = sum(x != 0 for x in o) <= 1
    return {7: star and max(map(abs, o)) <= 1, 13: star, 27: max(map(abs, o)) <= 1, 125: True}[points]


def _list(text: str, known: list[str]) -> list[str]:
    words = text.split(",")
    for word in words:
        if word not in known:
            raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(known)}")
    return words


def _points(text: str) -> list[int]:
    return [int(word) for word in _list(text, list(map(str, POINTS)))]


def _dtypes(text: str) -> list[str]:
    return _list(text, ["float32", "float64", "complex64", "complex128"])


def _brick(text: str) -> tuple[int, ...]:
    sizes = tuple(int(word) for word in text.split(",") if word.isdecimal())
    if len(sizes) != 3 or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not three numbers of points, as 8,8,8")
    return sizes


def add_stencil_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which stencils, dtypes and bricks."""
    parser.add_argument("--points", type=_points, default=[7, 27], help="of 7, 13, 27 and 125 (7,27)")
    parser.add_argument("--dtypes", type=_dtypes, default=["float64", "float32"], help="(float64,float32)")
    parser.add_argument("--brick", type=_brick, default=(8, 8, 8), help="points of a brick (8,8,8)")
    parser.add_argument("--cycles", action="store_true", help="V cycles of geometric multigrid too; n is even")


def _stencil(points: int) -> stencil.Stencil:
    """Return one of constant coefficients, the same at offsets of one distance."""
    at = stencil.indices(3)
    u, out = stencil.grid("u", 3), stencil.grid("out", 3)
    reach = range(-1, 2) if points in (7, 27) else range(-2, 3)
    offsets = [(i, j, k) for i in reach for j in reach for k in reach if _is_in(points, (i, j, k))]
    terms = [1.0 / (1 + sum(x * x for x in o)) * u(*(a + x for a, x in zip(at, o, strict=True))) for o in offsets]
    return stencil.assign(out(*at), sum(terms[1:], terms[0]))


def _product(args: argparse.Namespace, queue: Queue, dtype: str, points: int) -> dict[str, Any]:
    """Measure products, each round beside a copy of a vector of as many entries."""
    on_gpu = args.device != "host"
    L = stencil.operator(_stencil(points), (args.n,) * 3, brick=args.brick, dtype=dtype)
    values = np.random.default_rng(1).standard_normal(L.local_grid_shape, np.float32).astype(dtype)
    x, y = L.make_vector(values, queue), Vector(L, queue, fill=0.0)
    c, d = Vector(L, queue, fill=1.0), Vector(L, queue, fill=0.0)
    y.product(L, x)
    error = None
    if on_gpu:
        want = L @ values
        error = float(np.abs(L.from_bricks(y) - want).max() / np.abs(want).max())
        if missing := _core.gpu_state()["stencils"]["missing"]:
            raise UnsupportedError(f"bench stencil: the product runs on the host: {missing}")
    seconds: list[float] = []
    copies: list[float] = []
    for _ in range(args.repeats):
        copies += seconds_of(queue, lambda: d.copy_from(c), 1)
        seconds += seconds_of(queue, lambda: y.product(L, x), 1)
    size = 2 * np.dtype(dtype).itemsize
    t, speed = statistics.median(seconds), size * int(L._h.rows.local_size) / statistics.median(copies)
    return {
        "dtype": dtype,
        "points": points,
        "seconds": seconds,
        "copy_seconds": copies,
        "least_bytes": size * args.n**3,
        "GB_per_s": size * args.n**3 / t / 1e9,
        "copy_GB_per_s": speed / 1e9,
        "of_copy": size * args.n**3 / t / speed,
        "GStencil_per_s": args.n**3 / t / 1e9,
        "error": error,
    }


def _cycle(args: argparse.Namespace, dtype: str) -> dict[str, Any]:
    """Measure V cycles of multigrid for Poisson's equation on a periodic cube of cells."""
    at = stencil.indices(3)
    u, out, h = stencil.grid("u", 3), stencil.grid("out", 3), stencil.constant("h")
    around = [u(*(i + step * (n == axis) for n, i in enumerate(at))) for axis in range(3) for step in (-1, 1)]
    poisson = stencil.assign(out(*at), (6 * u(*at) - sum(around[1:], around[0])) / (h * h))
    L = stencil.operator(
        poisson,
        (args.n,) * 3,
        True,
        brick=args.brick,
        dtype=dtype,
        h=1 / args.n,
        points="cells",
        interpolation="linear",
    )
    wave = np.sin(2 * np.pi * (np.arange(args.n) + 0.5) / args.n)
    b = (wave[:, None, None] * wave[None, :, None] * wave[None, None, :]).astype(dtype)
    times: dict[int, list[float]] = {2: [], 12: []}
    notes: list[str] = []
    residuals: list[float] = []
    for cycles, seconds in times.items():
        options = f"-pc_type gmg -device {args.device}" if args.device != "host" else "-pc_type gmg"
        s = Solver(L, options, ksp="richardson", rtol=1e-300, maxiter=cycles, ksp_error_if_not_converged=False)
        for _ in range(1 + min(3, args.repeats)):  # each copies x and b
            begun = time.perf_counter()
            s.solve(b)
            seconds.append(time.perf_counter() - begun)
        if s.info is not None:
            notes, residuals = list(s.info.notes), [float(r) for r in np.ravel(s.info.residual_norms)[:4]]
    a_cycle = (statistics.median(times[12][1:]) - statistics.median(times[2][1:])) / 10
    return {"dtype": dtype, "seconds": a_cycle, "residuals": residuals, "notes": notes}


def stencil_case(args: argparse.Namespace) -> dict[str, Any]:
    """Measure products of n^3 points, and V cycles if they are asked for.

    On a GPU answers are compared with the host's; a product that does not run there is an error.
    """
    queue = Queue("inline" if args.device == "host" else args.device)
    products = [_product(args, queue, dtype, points) for dtype in args.dtypes for points in args.points]
    return {
        "device": "host" if args.device == "host" else _core.gpu_state()["device"],
        "n": args.n,
        "brick": list(args.brick),
        "products": products,
        "cycles": [_cycle(args, dtype) for dtype in args.dtypes] if args.cycles else [],
    }


def print_stencil(r: dict[str, Any]) -> None:
    """Print what stencil_case() measured."""
    n, brick = r["n"], " x ".join(map(str, r["brick"]))
    print_table(
        f"products of stencils on {n} x {n} x {n} points in bricks of {brick}, {r['device']}",
        ["dtype", "points", "us", "GStencil/s", "GB/s of least bytes", "of a copy", "copy GB/s", "error"],
        [
            [
                p["dtype"],
                p["points"],
                microseconds(p["seconds"]),
                f"{p['GStencil_per_s']:.2f}",
                f"{p['GB_per_s']:.0f}",
                f"{p['of_copy']:.2f}",
                f"{p['copy_GB_per_s']:.0f}",
                "-" if p["error"] is None else f"{p['error']:.0e}",
            ]
            for p in r["products"]
        ],
    )
    for c in r["cycles"]:
        said = "; ".join(note for note in c["notes"] if "form" in note)
        print(f"  a V cycle, {c['dtype']}: {1e3 * c['seconds']:.3f} ms" + (f" ({said})" if said else ""))
