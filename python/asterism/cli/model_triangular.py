"""``asterism model sptrsv``: triangular solves of a matrix on many ranks, predicted."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
from collections.abc import Sequence
from typing import Any

from ..base.machine import machine_key, remember, remembered
from ..errors import AsterismError, InputError
from ..models import plots
from ..models.records import read_json
from ..models.triangular import (
    SUMMIT,
    FactorPattern,
    Link,
    TriangularMachine,
    TriangularPrediction,
    layouts,
    read_triangular_machine,
)
from . import bench_triangular, launch, problems
from .output import print_json
from .progress import steps
from .table import print_table

__all__ = ["add_arguments", "run"]

Args = argparse.Namespace
_CACHE = "triangular.json"
_TABLE_2 = (2, 6, 12, 18)


def _counts(text: str) -> list[int]:
    """Return 1, 2, 4, ... 1024 of 1-1024, and numbers as they are."""
    out: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            n, end = int(first), int(last if dash else first)
        except ValueError:
            n = end = 0
        if n < 1 or end < n:
            raise argparse.ArgumentTypeError(f"{part!r}: numbers of ranks such as 1-64 or 1,6,12 are needed")
        while n <= end:
            out.append(n)
            n *= 2
    return list(dict.fromkeys(out))


def add_arguments(q: Any) -> None:
    """Declare the arguments."""
    bench_triangular.add_problem(q)
    q.add_argument(
        "--ranks", dest="counts", type=_counts, metavar="N-M|N,M", help="N, 2 N, 4 N to M, or numbers (1-1024)"
    )
    q.add_argument(
        "--machine",
        metavar="FILE",
        help="JSON of asterism bench channels, or summit (the paper's GPUs); this one if nothing is said, measured once",
    )
    q.add_argument("--network", metavar="FILE", help="JSON of asterism bench channels between ranks of two nodes")
    q.add_argument("--ranks-per-node", type=problems.count, metavar="N", help="all on one node if nothing is said")
    q.add_argument("--bandwidth", type=problems.number, metavar="GB/S", help="of a rank's memory")
    q.add_argument("--task", type=problems.number, metavar="NS", help="what a run of blocks without numbers takes")
    q.add_argument(
        "--latency",
        type=problems.number,
        metavar="US",
        help="of a message; within nodes alone where --network is given",
    )
    q.add_argument("--message-bandwidth", type=problems.number, metavar="MB/S", help="of messages of every size")
    q.add_argument("--table", action="store_true", help="the columns of the paper's Table 2")
    q.add_argument(
        "--measured", action="append", default=[], metavar="FILE", help="JSON of asterism bench sptrsv, to draw beside"
    )


def run(args: Args) -> None:
    """Predict, and print or draw."""
    if args.problem is None:
        raise InputError("which problem? Give a file or one of: " + ", ".join(problems.BUILT_IN))
    problems.check(args.problem, args.n, args.which)
    if args.measured and not args.plot:
        raise InputError("--measured is drawn beside the model: give --plot FILE too.")
    measured = _measured(args.measured)
    grids = {p: layouts(p, [args.layout]) for p in _ranks(args)}
    A, text = problems.load(args.problem, args.n, None, 1, args.which)
    pattern = FactorPattern(A, args.ordering, args.widest)
    machine = _machine(args)  # measured last, as that takes longest
    found = {
        p: [pattern.predict(p, layout, machine) for layout in grids[p]] for p in steps("numbers of ranks", list(grids))
    }
    alone = pattern.predict(1, "1x1", machine)
    best = {p: min(those, key=lambda t: t.seconds) for p, those in found.items()}
    if args.plot:
        plots.plot_triangular(args.plot, text, list(best.values()), measured)
    if args.json:
        print_json(_as_json(text, pattern, machine, found, alone))
    elif args.table:
        _print_table_2(args.problem, pattern, best, alone)
    else:
        _print(text, pattern, machine, found, best, alone)


def _ranks(args: Args) -> list[int]:
    """Return the numbers of ranks; of a layout such as 2x3 those that are its own."""
    rows, _, columns = args.layout.partition("x")
    if rows.isdigit() and columns.isdigit():
        own = int(rows) * int(columns)
        if args.counts and own not in args.counts:
            raise InputError(
                f"--layout {args.layout} is {own} ranks, and --ranks are {', '.join(map(str, args.counts))}."
            )
        return [own]
    return args.counts or (list(_TABLE_2) if args.table else _counts("1-1024"))


def _machine(args: Args) -> TriangularMachine:
    changes: dict[str, Any] = {}
    if args.bandwidth is not None:
        changes["bandwidth"] = 1e9 * args.bandwidth
    if args.task is not None:
        changes["task_seconds"] = 1e-9 * args.task
    link: dict[str, Any] = {}
    if args.latency is not None:
        link["latency"] = 1e-6 * args.latency
    if args.message_bandwidth is not None:
        link |= {"sizes": (1,), "bandwidths": (1e6 * args.message_bandwidth,)}
    if args.machine == "summit":
        machine = SUMMIT
    elif args.machine is not None:
        machine = read_triangular_machine(args.machine)
    elif len(changes) == 2 and len(link) == 3:
        machine = TriangularMachine("given", near=Link(**link), **changes)
    else:
        machine = _measured_here()
    if link:
        changes["near"] = dataclasses.replace(machine.near, **link)
        if machine.far is not None:
            changes["far"] = dataclasses.replace(machine.far, **link)
    if args.network is not None:
        changes["far"] = read_triangular_machine(args.network).near
    if args.ranks_per_node is not None:
        changes["ranks_per_node"] = args.ranks_per_node
    machine = dataclasses.replace(machine, **changes)
    if args.network is not None and machine.ranks_per_node is None:
        raise InputError("--network is between nodes: give --ranks-per-node too.")
    return machine


def _measured_here() -> TriangularMachine:
    """Return this machine with as many ranks as cores: what asterism bench channels finds, once."""
    ranks = max(2, min(64, len(os.sched_getaffinity(0))))
    key = machine_key(ranks)
    known = remembered(_CACHE).get(key)
    if known is not None:
        try:
            return TriangularMachine(**known)
        except (TypeError, InputError):
            pass  # of another version
    words = ["bench", "channels", "--repeats", "3", "--json"]
    try:
        found = json.loads(launch.output_of(ranks, words, {"ASTERISM_NUM_THREADS": "1"}).splitlines()[-1])
    except AsterismError as error:
        raise InputError(
            f"this machine could not be measured ({error}). Give --machine FILE, or --bandwidth, --task, --latency and "
            "--message-bandwidth."
        ) from error
    if found["waited"] <= bench_triangular.CALM:
        remember(_CACHE, key, found["machine"])
    else:
        print("asterism: other programs were busy while this machine was measured", file=sys.stderr)
    return TriangularMachine(**found["machine"])


def _measured(files: Sequence[str]) -> dict[int, float]:
    """Return the least seconds of both sweeps for each number of ranks, of files of asterism bench sptrsv."""
    out: dict[int, float] = {}
    for file in files:
        try:
            both: dict[tuple[int, str], float] = {}
            for c in read_json(file)["cases"]:
                where = (int(c["ranks"]), str(c["layout"]))
                both[where] = both.get(where, 0.0) + statistics.median(c["measured"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file} is not what asterism bench sptrsv --json writes.") from error
        for (ranks, _), seconds in both.items():
            out[ranks] = min(seconds, out.get(ranks, seconds))
    return out


def _as_json(
    text: str,
    pattern: FactorPattern,
    machine: TriangularMachine,
    found: dict[int, list[TriangularPrediction]],
    alone: TriangularPrediction,
) -> dict[str, Any]:
    cases = []
    for those in found.values():
        best = min(those, key=lambda t: t.seconds)
        for p in those:
            cases.append(
                {
                    "ranks": p.ranks,
                    "layout": p.layout,
                    "best": p is best,
                    "seconds": p.seconds,
                    "speedup": alone.seconds / p.seconds if p.seconds else 1.0,
                    "forward": {**dataclasses.asdict(p.forward), "modelled": p.forward.modelled},
                    "backward": {**dataclasses.asdict(p.backward), "modelled": p.backward.modelled},
                }
            )
    return {
        "problem": text,
        "ordering": pattern.ordering,
        "supernodes": pattern.supernodes,
        "entries": pattern.entries,
        "levels": pattern.levels,
        "machine": dataclasses.asdict(machine),
        "cases": cases,
    }


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.3f}"


def _print(
    text: str,
    pattern: FactorPattern,
    machine: TriangularMachine,
    found: dict[int, list[TriangularPrediction]],
    best: dict[int, TriangularPrediction],
    alone: TriangularPrediction,
) -> None:
    rows = []
    for ranks, those in found.items():
        for p in those:
            f = p.forward
            sent = f.broadcasts + f.reductions + p.backward.broadcasts + p.backward.reductions
            rows.append(
                [
                    ranks,
                    p.layout,
                    f.levels,
                    f.nodes,
                    f.messages,
                    _ms(f.modelled),
                    _ms(p.backward.modelled),
                    _ms(f.simulated),
                    _ms(p.backward.simulated),
                    sent,
                    f"{(f.bytes + p.backward.bytes) / 1e6:.2f}",
                    f"{alone.seconds / p.seconds:.2f}" if p.seconds else "-",
                    "best" if p is best[ranks] and len(those) > 1 else "",
                ]
            )
    print_table(
        f"{text}: {pattern.ordering} order, {pattern.supernodes} supernodes, {pattern.entries} entries, {pattern.levels} levels",
        ["ranks", "layout", "levels", "supernodes", "messages", "forward ms", "backward ms"]
        + ["forward simulated", "backward simulated", "all messages", "MB", "speed-up", ""],
        rows,
    )
    latency = f"{1e6 * machine.near.latency:.2f} us" if machine.near.latency > 0 else "messages by their size alone"
    print(f"machine: {machine.name}, {machine.bandwidth / 1e9:.1f} GB/s a rank, {latency}")
    simulated = any(p.forward.simulated is not None for those in found.values() for p in those)
    print(
        "levels, supernodes, messages: on the critical path forward; "
        + ("simulated: ranks wait for messages, speed-up of that" if simulated else "speed-up: of the critical path")
    )
    if len({p for p in best}) > 1:
        fastest = min(best.values(), key=lambda t: t.seconds)
        print(f"fastest: {fastest.ranks} rank(s), {fastest.layout}")


def _print_table_2(
    name: str, pattern: FactorPattern, best: dict[int, TriangularPrediction], alone: TriangularPrediction
) -> None:
    row = [os.path.basename(name).partition(".")[0], pattern.supernodes, f"{pattern.entries:.2E}", pattern.levels]
    row += [f"{alone.seconds / p.seconds:.1f}x" if p.seconds else "-" for p in best.values()]
    head = ["matrix", "#supernodes", "nnz in L", "levels", *(f"{p} ranks" for p in best)]
    print_table("speed-ups over one rank, predicted; the best layout of each number of ranks", head, [row])
