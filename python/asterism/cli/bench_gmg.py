"""``asterism bench gmg``: multigrid on bricks, with the command line and the report of the artifact of the brick paper.

Poisson's equation on a periodic unit cube, b = sin(2 pi x) sin(2 pi y) sin(2 pi z), to 1e-10 in the maximum norm.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, bricks, stencil
from ..base.aligned import aligned
from ..base.indices import near_cube
from ..comm.forest import StarForest
from ..errors import OptionError
from ..solvers.solver import Solver

__all__ = ["PAST_CACHES", "add_gmg_arguments", "gmg_case", "print_gmg"]

TOLERANCE = 1e-10
#: The share of its stores that an operation makes past the caches, on large grids.
PAST_CACHES = {"applyOp": 1.0, "smooth": 1.0, "smooth + residual": 0.5}
#: Names of the artifact's operations, and the events that they are here.
OPERATIONS = {
    "smooth": "MGSmooth",
    "smooth + residual": "MGSmoothResid",
    "residual": "MGResid",
    "restriction": "MGRestrict",
    "interpolation + increment": "MGInterp",
    "bottom": "MGSolve",
}


def _numbers(text: str, count: int, what: str, least: int = 1, most: int = 10**9) -> tuple[int, ...]:
    """Return so many whole numbers; one stands for all."""
    words = text.split(",")
    numbers = tuple(int(word) for word in words if word.isdecimal())
    if len(numbers) != len(words) or len(words) not in (1, count) or min(numbers) < least or max(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    if max(numbers) > most:
        raise argparse.ArgumentTypeError(f"{max(numbers)} is too many; at most {most}")
    return numbers * count if len(numbers) == 1 else numbers


def _three(text: str) -> tuple[int, ...]:
    return _numbers(text, 3, "three numbers of points, as 64,64,64")


def _pair(text: str) -> tuple[int, ...]:
    return _numbers(text, 2, "two numbers of steps, as 6,6", 0, most=1000)


def _positive(text: str) -> int:
    return _numbers(text, 1, "a whole number above 0")[0]


def _cycles(text: str) -> int:
    return _numbers(text, 1, "a whole number above 0", most=10_000)[0]


def _halvings(text: str) -> int:
    return _numbers(text, 1, "a whole number above 0", most=99)[0]


def _omega(text: str) -> float:
    try:
        omega = float(text)
    except ValueError:
        omega = 0.0
    if not 0 < omega <= 1.99:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, and at most 1.99")
    return omega


def _bottom(text: str) -> str:
    return text if text == "direct" else str(_numbers(text, 1, "a number of steps, or 'direct'", most=100_000)[0])


def add_gmg_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the artifact's options, and more."""
    size = parser.add_mutually_exclusive_group()
    size.add_argument("-s", dest="size", type=_three, metavar="NX,NY,NZ", help="points of each rank")
    size.add_argument("-d", dest="domain", type=_three, metavar="NX,NY,NZ", help="points of all ranks (64,64,64)")
    parser.add_argument("-b", dest="binary", action="store_true", help="on the largest power of two of ranks alone")
    parser.add_argument(
        "-l", dest="levels", type=_halvings, default=6, help="how often the grid is halved, if it can be (6)"
    )
    parser.add_argument("-n", dest="cycles", type=_cycles, default=20, help="most V cycles (20)")
    parser.add_argument("-smooth", type=_pair, default=(6, 6), metavar="PRE,POST", help="smoothing steps (6,6)")
    parser.add_argument("-omega", type=_omega, default=2 / 3, help="relaxation factor of Jacobi (2/3: gamma = h^2 / 9)")
    parser.add_argument(
        "-bottom", type=_bottom, default="100", metavar="N", help="steps of Jacobi on the last level, or 'direct' (100)"
    )
    parser.add_argument("-brick", type=_positive, default=8, metavar="B", help="bricks of B x B x B points (8)")
    parser.add_argument(
        "-ghost",
        type=_positive,
        metavar="D",
        help="depth of ghosts in points: at most so many steps in one pass and for one exchange (8, or the brick's points if fewer)",
    )
    parser.add_argument(
        "-transfer",
        choices=["constant", "linear"],
        default="constant",
        help="interpolation; averages or full weighting go back (constant, as in the paper)",
    )
    parser.add_argument(
        "-options",
        default="",
        help="more options of the solver; with -mg_levels_ksp_type among them they choose the smoother",
    )


def _depth(args: argparse.Namespace) -> int:
    """Return the depth of ghosts in points."""
    return int(args.ghost or min(8, args.brick))


def _operator(args: argparse.Namespace, comm: Any) -> Any:
    ranks = near_cube(1 if comm is None else comm.size)
    if args.size:
        shape = tuple(n * p for n, p in zip(args.size, ranks, strict=True))
    else:
        shape = args.domain or (64, 64, 64)
    if any(n % args.brick for n in shape):
        raise OptionError(f"gmg: {shape} points are no multiple of bricks of {args.brick}. Choose another -brick.")
    if _depth(args) > args.brick:
        raise OptionError(
            f"gmg: ghosts of depth {args.ghost} are deeper than a brick of {args.brick} points. Choose a smaller -ghost."
        )
    if len(set(shape)) > 1 and args.domain:
        least = min(shape)
        if any(n % least for n in shape):
            raise OptionError(
                f"gmg: the spacing is the same along all axes; {shape} points are no cube, and no row of cubes."
            )
    at = stencil.indices(3)
    u, out, h = stencil.grid("u", 3), stencil.grid("out", 3), stencil.constant("h")
    around = [u(*(i + step * (n == axis) for n, i in enumerate(at))) for axis in range(3) for step in (-1, 1)]
    poisson = stencil.assign(out(*at), (6 * u(*at) - sum(around[1:], around[0])) / (h * h))
    return stencil.operator(
        poisson,
        shape,
        True,
        comm,
        brick=(args.brick,) * 3,
        ranks=ranks,
        h=1 / min(shape),
        points="cells",
        interpolation=args.transfer,
    )


def _options(args: argparse.Namespace) -> str:
    before, after = args.smooth
    if outer := re.search(r"(?:^|\s)-(?:ksp_\w+|pc_type)\b", args.options):
        raise OptionError(
            f"gmg: {outer[0].strip()} in -options has no effect: the cycles are those of richardson with gmg. Give options of gmg and "
            "of its levels."
        )
    words = [
        "-pc_type gmg -pc_gmg_log -pc_gmg_coarse_size 1 -pc_gmg_galerkin none",
        f"-pc_gmg_max_levels {args.levels + 1}",
        f"-mg_levels_ksp_max_it {before} -mg_levels_up_ksp_max_it {after}",
        f"-pc_gmg_steps_at_once {_depth(args)}",
    ]
    if "mg_levels_ksp_type" not in args.options:
        words.append(f"-mg_levels_pc_type jacobi -pc_gmg_omega {args.omega:.17g}")
    if args.bottom == "direct":
        words.append("-pc_gmg_coarse_type direct")
    else:
        words.append("-pc_gmg_coarse_type ksp -mg_coarse_ksp_type richardson -mg_coarse_pc_type jacobi")
        words.append(f"-mg_coarse_ksp_max_it {args.bottom} -mg_coarse_ksp_richardson_scale {args.omega:.17g}")
    return " ".join([*words, args.options])


def gmg_case(args: argparse.Namespace, comm: Any) -> dict[str, Any]:
    """Measure; rank 0 returns all ranks' times."""
    if args.binary and comm is not None:
        most = 1 << (comm.size.bit_length() - 1)
        part = comm.Split(int(comm.rank >= most), comm.rank)
        if comm.rank >= most:
            return {}
        comm = part
    L = _operator(args, comm)
    axes = [np.sin(2 * np.pi * (np.arange(s.start, s.stop) + 0.5) / min(L.grid_shape)) for s in L.owned]
    b = axes[0][:, None, None] * axes[1][None, :, None] * axes[2][None, None, :]
    begun = time.perf_counter()
    trial = _richardson(L, args, args.cycles, TOLERANCE)  # a 2-norm is at least the max-norm
    setup = time.perf_counter() - begun
    norms = _residuals_of_cycles(trial, L, b, comm)
    cycles = max(1, len(norms) - 1)
    many = _richardson(L, args, cycles)
    many.solve(b)  # warm
    seconds = []
    _core.profile_reset()
    for _ in range(args.repeats):
        if comm is not None:
            comm.Barrier()
        begun = time.perf_counter()
        many.solve(b)
        seconds.append(_largest(comm, np.array([time.perf_counter() - begun])))
    points = int(np.prod(L.grid_shape))
    operations = _operations(comm, args.repeats * cycles)
    return {
        "points": list(L.grid_shape),
        "ranks": list(L.ranks),
        "threads": _core.team_size(),
        "options": _options(args),
        "setup_seconds": setup,
        "cycles": cycles,
        "converged": norms[-1] <= TOLERANCE,
        "residuals": norms,
        "seconds": seconds,
        "GStencil_per_s": points / statistics.median(seconds) / 1e9,
        "operations": operations,
        "finest": _finest(L, args, comm),
        "levels": _levels(L, args, comm),
        "solver": many.view(),
    }


def _richardson(L: Any, args: argparse.Namespace, cycles: int, atol: float = 0) -> Solver:
    return Solver(
        L, _options(args), ksp="richardson", rtol=1e-300, atol=atol, maxiter=cycles, ksp_error_if_not_converged=False
    )


def _residuals_of_cycles(solver: Solver, L: Any, b: NDArray[Any], comm: Any) -> list[float]:
    """Return the max-norm of the residual at the start and after each cycle, to the first within the tolerance.

    The solver itself returns the iterate of the least 2-norm, and the first cycle may raise that.
    """
    norms: list[float] = []
    entries = L.to_bricks(b)
    x, product = (aligned(entries.shape, entries.dtype, zero=True) for _ in range(2))

    def look(_: int, __: list[float]) -> None:
        if not norms or norms[-1] > TOLERANCE:  # the same on all ranks
            L._h.apply(x, product)
            norms.append(_largest(comm, entries - product))

    solver._h.solve(entries, x, look, True, "N", True)
    return norms


def _operations(comm: Any, cycles: int) -> list[dict[str, Any]]:
    """Return the time of a V cycle in each operation of each level, for each rank."""
    names = {event: name for name, event in OPERATIONS.items()}
    mine = {}
    for s in _core.profile_snapshot():
        if found := re.fullmatch(r"(MG\w+) Level (\d+)", s["name"]):
            mine[int(found[2]), names[found[1]]] = (s["seconds"] / cycles, s["calls"] / cycles)
    all_ranks = [mine] if comm is None else comm.allgather(mine)
    return [
        {
            "level": level,
            "operation": name,
            "calls": mine[level, name][1],
            "seconds": [r[level, name][0] for r in all_ranks],
        }
        for level, name in sorted(mine, key=lambda k: (k[0], list(OPERATIONS).index(k[1])))
    ]


def _finest(L: Any, args: argparse.Namespace, comm: Any) -> list[dict[str, Any]]:
    """Return times of the operations of the finest level, and the share of the least time: each vector once at the speed of STREAM triads
    of the same run, of vectors that are as long or longer, with the same kind of stores.
    """
    transfers = bricks.coarse_level(bricks.make, L._how, L._h, L._domain, "again", 0)
    b, x, y, r = (aligned((int(L._h.rows.local_size),), L.dtype) for _ in range(4))
    for v in (b, x, y, r):
        v[...] = 1
    weight = np.full(b.shape, args.omega * L._how.constants["h"] ** 2 / 6, L.dtype)
    depth = _depth(args)
    one, several = (L._h.steps([(weight, 1.0)] * n, n) for n in (1, depth))
    fused = L._h.steps([(weight, 1.0)], 2)
    points = int(np.prod(L.grid_shape))
    streams, length = L._domain.is_past_caches(L.dtype.name), max(8_000_000, b.size)
    calls: list[tuple[str, int, Callable[[], Any]]] = [
        ("applyOp", 16 * points, lambda: L._h.apply(x, y)),
        ("smooth", 24 * points, lambda: one.run(L._h, b, x, y, False, None)),
        ("smooth + residual", 32 * points, lambda: fused.run(L._h, b, x, y, False, r)),
    ]
    if depth > 1:
        name = f"{depth} smooths, some at once"
        calls.append((name, 24 * depth * points, lambda: several.run(L._h, b, x, y, False, None)))
    if transfers is not None:
        coarse, P, R, _ = transfers
        c = aligned((int(coarse._h.rows.local_size),), L.dtype)
        c[...] = 1
        calls.append(("restriction", 72 * points // 8, lambda: R.apply(x, c)))
        calls.append(("interpolation + increment", 136 * points // 8, lambda: P.apply_add(c, y)))
    rows = []
    for name, least, call in calls:
        call()
        seconds, triads, past = [], [], PAST_CACHES.get(name, 0.0) if streams else 0.0
        for _ in range(args.repeats):
            usual, other = (min(_core.stream_triad(length, 2, p)) for p in (False, True))
            mine = 24.0 * length / (past * other + (1 - past) * usual)
            triads.append(mine if comm is None else float(comm.allreduce(mine)))
            begun = time.perf_counter()
            call()
            seconds.append(_largest(comm, np.array([time.perf_counter() - begun])))
        triad = statistics.median(triads)
        share = least / statistics.median(seconds) / triad
        rows.append(
            {"operation": name, "seconds": seconds, "least_bytes": least, "triad_bytes_per_s": triad, "of_triad": share}
        )
    return rows


def _levels(L: Any, args: argparse.Namespace, comm: Any) -> list[dict[str, Any]]:
    """Return the time of one call on each level, by the points of a rank, and that of an exchange by its bytes. All ranks take part in all."""
    rows, A = [], L
    for level in range(args.levels + 1):
        b, x, y, r = (aligned((int(A._h.rows.local_size),), A.dtype) for _ in range(4))
        for v in (b, x, y, r):
            v[...] = 1
        steps = A._h.steps([(np.full(b.shape, args.omega * A._how.constants["h"] ** 2 / 6, A.dtype), 1.0)], 2)
        points = _largest(comm, np.array([A.local_shape[0]]))
        calls: list[tuple[str, str, float, Callable[[], Any]]] = [
            ("applyOp", "points", points, partial(A._h.apply, x, y)),
            ("smooth + residual", "points", points, partial(steps.run, A._h, b, x, y, False, r)),
        ]
        if _largest(comm, np.array([A._domain.ghost_bricks])):
            forest = StarForest._of(A._domain.ghosts)
            received = _largest(comm, np.array([forest.nleaves * b.itemsize]))
            ghosts = np.zeros(forest.nleafspace, b.dtype)
            calls.append(("exchange", "bytes", received, partial(forest.bcast, b, ghosts)))
        for name, unit, size, call in calls:
            rows.append(
                {"case": name, "level": level, unit: int(size), "seconds": _of_one_call(call, args.repeats, comm)}
            )
        coarse = bricks.coarse_level(bricks.make, A._how, A._h, A._domain, "again", 0)
        if coarse is None:
            break
        A = coarse[0]
    return rows


def _of_one_call(call: Callable[[], Any], repeats: int, comm: Any) -> list[float]:
    """Return the slowest rank's seconds of one call, of so many rounds of a millisecond or more."""
    call()
    begun = time.perf_counter()
    call()
    count = max(1, int(1e-3 / _largest(comm, np.array([time.perf_counter() - begun]))))
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        for _ in range(count):
            call()
        seconds.append(_largest(comm, np.array([(time.perf_counter() - begun) / count])))
    return seconds


def _largest(comm: Any, values: NDArray[Any]) -> float:
    mine = float(np.abs(values).max(initial=0.0))
    if comm is None:
        return mine
    from mpi4py import MPI

    return float(comm.allreduce(mine, op=MPI.MAX))


def print_gmg(r: dict[str, Any]) -> None:
    """Print it as the artifact does; times are those of one V cycle."""
    n, p = (" x ".join(map(str, r[k])) for k in ("points", "ranks"))
    print(f"multigrid on {n} points, {p} ranks x {r['threads']} threads")
    for cycle, norm in enumerate(r["residuals"]):
        print(f"  cycle {cycle:2d}: max-norm of the residual {norm:.3e}")
    print(f"  {'converged' if r['converged'] else 'NOT converged'} to {TOLERANCE:g} in {r['cycles']} V cycles")
    level, total = None, 0.0
    for o in [*r["operations"], None]:
        if o is None or o["level"] != level:
            if level is not None:
                print(f"  level {level} total {total:.3e} s")
            if o is None:
                break
            level, total = o["level"], 0.0
        s = o["seconds"]
        mean = statistics.mean(s)
        total += mean
        print(
            f"  level {level} {o['operation']} [{min(s):.3e}, {mean:.3e}, {max(s):.3e}] (\u03c3: {statistics.pstdev(s):.1e})"
            f"  {o['calls']:g} a cycle"
        )
    for f in r["finest"]:
        print(
            f"  level 0 {f['operation']} {statistics.median(f['seconds']):.3e} s: {f['of_triad']:.2f} of "
            f"{f['least_bytes'] / 1e6:.1f} MB at a triad's {f['triad_bytes_per_s'] / 1e9:.1f} GB/s"
        )
    for c in r["levels"]:
        unit = "bytes" if "bytes" in c else "points"
        mid = statistics.median(c["seconds"])
        print(f"  level {c['level']} one {c['case']} {mid:.3e} s: {c[unit] / mid / 1e9:.4g} G{unit}/s of a rank")
    print(f"  total solve {statistics.median(r['seconds']):.4e} s; set-up {r['setup_seconds']:.2e} s")
    print(f"  Perf {r['GStencil_per_s']:.4f} GStencil/s")
