"""``asterism model``: fits, rooflines, performance portability and predictions from the JSON of benchmarks."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base.files import check_target
from ..errors import InputError
from ..models import machines, paper, plots, portability, records, vcycle
from ..models.latency import fit
from ..models.operations import costs
from ..models.roofline import Roofline
from . import model_triangular
from .output import print_json
from .problems import count, number
from .table import print_table

__all__ = ["add_arguments", "run"]

Args = argparse.Namespace


def _numbers(text: str) -> list[int]:
    return [count(word) for word in text.split(",")]


def _rates(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers, as 1420,3000") from None


EXAMPLES = (
    "asterism bench pingpong --ranks 2 --json > pingpong.json",
    "asterism model fit pingpong.json --plot pingpong.svg",
    "asterism bench gmg -s 128,128,128 --json > gmg.json",
    "asterism model levels gmg.json --plot levels.svg",
    "asterism model fit gmg.json --series applyOp --plot applyop.svg",
    "asterism model roofline --bandwidth 1420",
    "asterism model portability a100.csv --bandwidth 1420 --plot speedup.svg",
    "asterism model portability --paper",
    "asterism model scaling --machine frontier --kind weak --nodes 2,16,128",
    "asterism model sptrsv poisson3d --n 30 --ranks 1-64",
)


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    p = sub.add_parser(
        "model",
        help="fit and predict times: fit, levels, roofline, portability, scaling, sptrsv",
        description="Compare measured times with models, and predict those of other machines.",
        epilog=_examples(EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    each = p.add_subparsers(dest="model", required=True, metavar="NAME")
    q = _add(each, "fit", "latency and throughput of every series of a benchmark's JSON")
    q.add_argument("file", nargs="+", help="what asterism bench NAME --json has written")
    q.add_argument("--series", metavar="TEXT", help="only series with this text in their names")
    q.add_argument("--ceiling", type=number, metavar="G/S", help="a limit to draw, in 10^9 bytes or points per second")
    _common(q)
    q = _add(each, "levels", "seconds of each level of multigrid, from asterism bench gmg --json")
    q.add_argument("file", nargs="+", help="what asterism bench gmg --json has written, for each machine")
    _common(q)
    q = _add(each, "roofline", "most points per second of the operations of multigrid, and of measured stencils")
    q.add_argument("file", nargs="?", help="a record of stencils, or a CSV of Nsight Compute")
    _bandwidth(q)
    q.add_argument("--json", action="store_true", help="as JSON")
    q = _add(each, "portability", "harmonic mean of efficiencies over platforms, and potential speed-up")
    q.add_argument("file", nargs="*", help="a CSV of Nsight Compute, or JSON of efficiencies, for each platform")
    q.add_argument("--paper", action="store_true", help="take the tables of the paper on brick multigrid too")
    q.add_argument("--bandwidth", type=_rates, metavar="GB/S,...", help="of the memory, for each CSV file in turn")
    _peak(q)
    _common(q)
    q = _add(each, "scaling", "predicted weak or strong scaling of multigrid on bricks, beside the paper's")
    q.add_argument(
        "--machine",
        action="append",
        metavar="NAME|FILE",
        help=f"{', '.join(machines.MACHINES)}, or a JSON file; all three if nothing is said",
    )
    q.add_argument("--kind", choices=["weak", "strong"], default="weak", help="weak")
    q.add_argument("--nodes", type=_numbers, default=[2, 16, 128], help="2,16,128 if nothing is said")
    q.add_argument("--local", type=_numbers, default=[512, 512, 512], help="points of a rank: 512,512,512")
    q.add_argument(
        "--staged", action=argparse.BooleanOptionalAction, help="messages go by the host; as the machine says"
    )
    q.add_argument("--far-nic", action="store_true", help="ranks use NICs of another socket")
    q.add_argument(
        "--shares", action="store_true", help="shares of the finest level, of 8 nodes with one rank each (Table II)"
    )
    _common(q)
    q = _add(each, "sptrsv", "triangular solves of a matrix on many ranks: critical path, time, best layout")
    model_triangular.add_arguments(q)
    _common(q)


def _examples(lines: Sequence[str]) -> str:
    return "examples:\n" + "\n".join(f"  {line}" for line in lines)


def _add(each: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = each.add_parser(
        name,
        help=about,
        description=f"Print {about}.",
        epilog=_examples([line for line in EXAMPLES if f" model {name} " in line]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _common(q: argparse.ArgumentParser) -> None:
    q.add_argument("--plot", metavar="FILE", help="draw it: .svg, .png or .pdf")
    q.add_argument("--json", action="store_true", help="as JSON")


def _bandwidth(q: argparse.ArgumentParser) -> None:
    q.add_argument(
        "--bandwidth", type=number, metavar="GB/S", help="of the memory; this machine's triad if nothing is said"
    )
    _peak(q)


def _peak(q: argparse.ArgumentParser) -> None:
    q.add_argument(
        "--peak", type=number, default=math.inf, metavar="GFLOP/S", help="flops per second; no limit if nothing is said"
    )


def run(args: Args) -> int:
    """Run one model."""
    if getattr(args, "plot", None):
        check_target(args.plot, "--plot")
    models = {"fit": _fit, "levels": _levels, "roofline": _roofline, "portability": _portability, "scaling": _scaling}
    {**models, "sptrsv": model_triangular.run}[args.model](args)
    return 0


def _line(args: Args) -> Roofline:
    if args.bandwidth is None:
        measured = Roofline.measured().bandwidth
        return Roofline(measured, args.peak * 1e9)
    return Roofline(args.bandwidth * 1e9, args.peak * 1e9)


def _fit(args: Args) -> None:
    if args.ceiling is not None and not 0 < args.ceiling < math.inf:
        raise InputError(f"--ceiling {args.ceiling:g}: a positive number is needed.")
    known = [(f, s) for f in args.file for s in records.read_series(f)]
    if len(args.file) > 1:
        known = [(f, dataclasses.replace(s, name=f"{Path(f).stem} {s.name}")) for f, s in known]
    files = " and ".join(args.file)
    series = [s for _, s in known if not args.series or args.series in s.name]
    if not series:
        names = ", ".join(s.name for _, s in known[:20])
        raise InputError(f"{files}: no series with '{args.series}' in its name; there are {names}.")
    fits = [(s, fit(s.sizes, s.seconds)) for s in series]
    if args.plot:
        units = {s.unit for s, _ in fits}
        if len(units) > 1:
            raise InputError(f"{files}: series over {' and '.join(sorted(units))}: choose some with --series.")
        plots.plot_fits(args.plot, fits, args.ceiling * 1e9 if args.ceiling else None)
    if args.json:
        print_json([{"series": s.name, "unit": s.unit, **dataclasses.asdict(f)} for s, f in fits])
        return
    rows = [
        (
            s.name,
            s.unit,
            len(s.sizes),
            f"{1e6 * f.alpha:.3g} ± {1e6 * f.alpha_error:.1g}",
            f"{f.beta / 1e9:.3g} ± {f.beta_error / 1e9:.1g}",
            f"{f.half_size:.3g}",
            f"{100 * f.fit_error:.0f} %",
            "" if math.isnan(f.holdout_error) else f"{100 * f.holdout_error:.0f} %",
        )
        for s, f in fits
    ]
    head = ["series", "unit", "sizes", "latency (us)", "throughput (10^9/s)", "half at", "fit error", "left out"]
    print_table("seconds = latency + size / throughput", head, rows)


def _levels(args: Args) -> None:
    found = [records.read_levels(f) for f in args.file]
    if args.plot:
        plots.plot_levels(args.plot, found)
    if args.json:
        print_json([dataclasses.asdict(f) for f in found])
        return
    for f in found:
        operations = list(dict.fromkeys(op for level in f.levels for op in level))
        total = sum(f.totals) or 1.0
        rows = [
            (n, *(f"{level[op]:.3e}" if op in level else "" for op in operations), f"{t:.3e}", _percent(t / total))
            for n, (level, t) in enumerate(zip(f.levels, f.totals, strict=True))
        ]
        print_table(f"{f.name}: seconds of a solve", ["level", *operations, "all", "of all levels"], rows)


def _roofline(args: Args) -> None:
    line = _line(args)
    ceilings = {op: line.points_per_second(c) for op, c in costs().items()}
    platform = records.read_platform(args.file, line) if args.file else None
    if args.json:
        found = {"bandwidth": line.bandwidth, "ceilings": ceilings}
        if platform:
            found |= {"roofline": dict(platform.roofline), "intensity": dict(platform.intensity)}
        print_json(found)
        return
    rows = [(op, c.bytes, f"{c.intensity:.3f}", f"{ceilings[op] / 1e9:.2f}") for op, c in costs().items()]
    head = ["operation", "bytes", "flops/byte", "10^9 points/s"]
    print_table(f"ceilings at {line.bandwidth / 1e9:.1f} GB/s; coarse points for the last two", head, rows)
    if platform:
        shown = [(k, _percent(e), _percent(platform.intensity.get(k))) for k, e in platform.roofline.items()]
        print_table(f"\n{platform.name}", ["kernel", "of roofline", "of theoretical intensity"], shown)


def _percent(e: float | None) -> str:
    return "" if e is None else f"{100 * e:.0f} %"


def _portability(args: Args) -> None:
    counters = [f for f in args.file if f.endswith(".csv")]
    if len(args.bandwidth or counters) != len(counters):
        raise InputError(
            f"--bandwidth has {len(args.bandwidth)} numbers for {len(counters)} CSV files: one for each is needed."
        )
    lines = {f: Roofline(b * 1e9, args.peak * 1e9) for f, b in zip(counters, args.bandwidth or [], strict=False)}
    platforms = [records.read_platform(f, lines.get(f)) for f in args.file]
    if args.paper:
        for column, name in enumerate(paper.PLATFORMS):
            efficiencies = ({op: row[column] for op, row in t.items()} for t in (paper.TABLE_III, paper.TABLE_V))
            platforms.append(records.Platform(name, *efficiencies))
    if not platforms:
        raise InputError("portability of no platform: name files, or give --paper.")
    if args.plot:
        both = {
            p.name: {k: (e, p.intensity[k]) for k, e in p.roofline.items() if e and p.intensity.get(k)}
            for p in platforms
        }
        plots.plot_speedup(args.plot, {name: kernels for name, kernels in both.items() if kernels})
    out: dict[str, Any] = {}
    for what in ("roofline", "intensity"):
        tables = [getattr(p, what) for p in platforms]
        kernels = list(dict.fromkeys(k for t in tables for k in t))
        if not kernels:
            continue
        phi = {k: portability.performance_portability(t.get(k) for t in tables) for k in kernels}
        total = portability.performance_portability(t.get(k) for k in kernels for t in tables)
        out[what] = {"kernels": phi, "all": total}
        if not args.json:
            rows = [(k, *(_percent(t.get(k)) for t in tables), _percent(phi[k])) for k in kernels]
            rows.append(("all", *("" for _ in tables), _percent(total)))
            title = f"{'' if what == 'roofline' else chr(10)}fractions of the {'roofline' if what == 'roofline' else 'theoretical intensity'}"
            print_table(title, ["kernel", *(p.name for p in platforms), "portability"], rows)
    out["speedup"] = {
        p.name: {
            k: portability.potential_speedup(e, p.intensity[k])
            for k, e in p.roofline.items()
            if e and p.intensity.get(k)
        }
        for p in platforms
    }
    if args.json:
        print_json(out)
    elif any(out["speedup"].values()):
        kernels = list(dict.fromkeys(k for t in out["speedup"].values() for k in t))
        rows = [(k, *(f"{t[k]:.2f}" if k in t else "" for t in out["speedup"].values())) for k in kernels]
        print_table("\npotential speed-up", ["kernel", *out["speedup"]], rows)


def _machine(name: str, args: Args) -> machines.Machine:
    known = machines.MACHINES.get(name)
    if known is None and not Path(name).exists():
        raise InputError(f"machine '{name}' is not one of {', '.join(machines.MACHINES)}, and no file.")
    found = known or machines.read_machine(name)
    changes = {} if args.staged is None else {"staged": args.staged}
    return dataclasses.replace(found, **changes, far_nic=args.far_nic or found.far_nic)


def _scaling(args: Args) -> None:
    if len(args.local) != 3:
        raise InputError(f"--local {','.join(map(str, args.local))}: three numbers are needed, such as 512,512,512.")
    cycle = vcycle.Cycle(tuple(args.local))
    chosen = [_machine(name, args) for name in args.machine or machines.MACHINES]
    if args.shares and args.plot:
        raise InputError("--shares is a table: --plot draws the scaling, without it.")
    if args.shares:
        _shares(args, chosen, cycle)
        return
    found = {m.name: vcycle.scaling(m, args.nodes, cycle, args.kind) for m in chosen}
    if args.plot:
        plots.plot_scaling(args.plot, args.kind, found)
    if args.json:
        cases = [
            {
                "machine": dataclasses.asdict(p.machine),
                "nodes": math.prod(p.placement.nodes),
                "ranks": p.placement.size,
                "local": p.cycle.local,
                "seconds": p.seconds,
                "points_per_s": p.points_per_second,
                "efficiency": e,
            }
            for those in found.values()
            for p, e in those
        ]
        print_json({"kind": args.kind, "cases": cases})
        return
    rows = [
        (
            name,
            math.prod(p.placement.nodes),
            p.placement.size,
            " x ".join(map(str, p.cycle.local)),
            f"{p.seconds:.3f}",
            f"{p.points_per_second / 1e9:.2f}",
            _percent(e),
        )
        for name, those in found.items()
        for p, e in those
    ]
    head = ["machine", "nodes", "ranks", "points of a rank", "seconds", "10^9 points/s", "efficiency"]
    print_table(f"{args.kind} scaling, predicted: {cycle.cycles} V cycles", head, rows)
    if args.kind == "weak":
        limit, rate = 100 * paper.WEAK_EFFICIENCY, paper.FRONTIER_WEAK / 1e9
        print(f"the paper, on 128 nodes: at least {limit:.0f} %; Frontier close to {rate:.0f}")
    else:
        print(f"the paper, on 128 nodes: Frontier close to {paper.FRONTIER_STRONG / 1e9:.0f}")


def _shares(args: Args, chosen: list[machines.Machine], cycle: vcycle.Cycle) -> None:
    shares = {m.name: vcycle.predict(m, vcycle.Placement((2, 2, 2), (1, 1, 1)), cycle).shares() for m in chosen}
    if args.json:
        print_json(shares)
        return
    published = {name: {op: row[c] for op, row in paper.TABLE_II.items()} for c, name in enumerate(machines.MACHINES)}
    head, rows = ["operation"], [[op] for op in paper.TABLE_II]
    for name, mine in shares.items():
        head += [name, *["paper"] * (name in published)]
        for row in rows:
            row += [f"{100 * mine[row[0]]:.1f} %"]
            row += [f"{100 * published[name][row[0]]:.1f} %"] if name in published else []
    print_table("shares of the finest level, predicted: 8 nodes with one rank each", head, rows)
