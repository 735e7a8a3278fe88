"""``asterism bench channels|sptrsv``: messages between two ranks by size, and triangular solves driven by them, beside their model."""

from __future__ import annotations

import argparse
import dataclasses
import platform
import statistics
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..base.machine import WaitsForCores
from ..comm.communicator import as_communicator
from ..errors import InputError, UnsupportedError
from ..models.triangular import FactorPattern, Link, TriangularMachine, layouts
from . import problems
from .progress import steps
from .table import in_bytes, microseconds, print_table

__all__ = [
    "CALM",
    "add_problem",
    "channel_cases",
    "check_sptrsv",
    "print_channels",
    "print_sptrsv",
    "print_sptrsv_on_device",
    "sptrsv_cases",
    "sptrsv_on_device",
]

SIZES = tuple(8 * 2**i for i in range(18))  # 8 B to 1 MiB
CALM = 0.05  # the share of the time in which ranks may wait for a core, where a measurement is kept
TYPICAL = (256, 1024)  # of triangular solves: the band of Fig. 6


def channel_cases(comm: Any, rounds: int, transports: Sequence[str] = ()) -> dict[str, Any]:
    """Seconds of messages of 8 B to 1 MiB from rank 0 to rank 1, by these or all transports: one way, and each of many in a row.

    And the machine that the model of triangular solves makes of it, with the rates of all ranks at once.
    """
    core = as_communicator(comm)
    names = transports or ("auto", "p2p", *(["shm"] if _core.node_shares_memory(core) else []))
    waits = WaitsForCores()
    cases = []
    for size in steps("channels", SIZES, comm):
        repeats = max(5, int(1e-3 / (2e-6 + size / 4e9)))
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name in names:
                one_way, each = _core.channel_times(core, size, repeats, name)
                times.setdefault(f"{name} one way", []).append(one_way)
                times.setdefault(f"{name} each", []).append(each)
        cases.append({"bytes": size, "repeats": repeats, **times})
    machine = dataclasses.asdict(_machine(comm, cases))
    return {"machine": machine, "waited": _waited(waits, comm), "cases": cases}


def _waited(waits: WaitsForCores, comm: Any) -> float:
    """Return the share of the time in which a rank waited for a core, the mean of all ranks."""
    return waits.share() if comm is None else float(comm.allreduce(waits.share()) / comm.size)


def _print_waited(share: float) -> None:
    if share > CALM:
        print(f"the ranks waited for a core for {100 * share:.0f} % of the time: other programs were busy")


def _machine(comm: Any, cases: list[dict[str, Any]]) -> TriangularMachine:
    """Return the best of what was measured. The latency is what a message of 8 bytes takes beyond its share of many in a row."""
    task_seconds, bandwidth = _core.sweep_rates(as_communicator(comm))
    one_way, each = ({c["bytes"]: min(c[f"auto {k}"]) for c in cases} for k in ("one way", "each"))
    least = min(SIZES)
    link = Link(max(0.0, one_way[least] - each[least]), SIZES, tuple(s / each[s] for s in SIZES))
    return TriangularMachine(platform.node(), bandwidth, task_seconds, link)


def print_channels(r: dict[str, Any]) -> None:
    """Print what channel_cases() measured."""
    names = [k.removesuffix(" each") for k in r["cases"][0] if k.endswith(" each")]
    head = ["size", *(f"{n} {unit}" for n in names for unit in ("one way us", "MB/s"))]
    rows = []
    for c in r["cases"]:
        row = [in_bytes(c["bytes"]) + "*" * (TYPICAL[0] <= c["bytes"] <= TYPICAL[1])]
        for n in names:
            row += [microseconds(c[f"{n} one way"]), f"{c['bytes'] / statistics.median(c[f'{n} each']) / 1e6:.1f}"]
        rows.append(row)
    print_table("messages by channels from rank 0 to rank 1; MB/s of many in a row", head, rows)
    print("*: typical of triangular solves")
    m = r["machine"]
    print(
        f"a rank in a triangular solve, all at once: {m['bandwidth'] / 1e9:.1f} GB/s, "
        f"{1e9 * m['task_seconds']:.0f} ns for a run of blocks"
    )
    _print_waited(r["waited"])


def add_problem(q: Any) -> None:
    """Declare the matrix and what is made of it."""
    q.add_argument("problem", nargs="?", help="a file, or a built-in problem as those of asterism solve")
    q.add_argument("--n", type=problems.whole, help="size of a built-in problem")
    q.add_argument("--name", dest="which", help="which matrix, in a file that holds several")
    q.add_argument(
        "--ordering",
        default="auto",
        choices=["auto", "nd", "amd", "rcm", "natural"],
        help="of rows and columns; auto: nd where METIS is found, else amd",
    )
    q.add_argument(
        "--widest", type=problems.count, default=128, metavar="N", help="cut supernodes of more columns (128)"
    )
    q.add_argument(
        "--layout", default="all", help="square, Px1, 1xP, rows x columns as in 2x3, or all that there are (all)"
    )


def check_sptrsv(args: argparse.Namespace, ranks: int) -> None:
    """Raise for what cannot be run."""
    if args.problem is None:
        raise InputError("which problem? Give a file or one of: " + ", ".join(problems.BUILT_IN))
    problems.check(args.problem, args.n, args.which)
    layouts(ranks, [args.layout])


def sptrsv_cases(args: argparse.Namespace, comm: Any) -> dict[str, Any]:
    """Seconds of solves with L and L^T, with numbers of a well-conditioned triangle in the pattern of the factor, beside the model."""
    ranks = 1 if comm is None else comm.size
    core = as_communicator(comm)
    A, text = problems.load(args.problem, args.n, None, 1, args.which)
    pattern = FactorPattern(A, args.ordering, args.widest)
    machine = _here(comm)
    waits = WaitsForCores()
    cases = []
    for layout in steps("layouts", layouts(ranks, [args.layout]), comm):
        predicted = pattern.predict(ranks, layout, machine)
        rows, columns = predicted.grid
        timed = _core.TimedTriangle(core, pattern._h, rows, columns, A.dtype.name, "")
        for sweep in ("forward", "backward"):
            model = getattr(predicted, sweep)
            seconds, error, sent = timed.time(sweep == "backward", 1, args.repeats)
            cases.append(
                {
                    "ranks": ranks,
                    "layout": layout,
                    "sweep": sweep,
                    "measured": seconds,
                    "modelled": model.modelled,
                    "simulated": model.simulated,
                    "messages": model.broadcasts + model.reductions,
                    "sent": sent,
                    "bytes": model.bytes,
                    "error": error,
                }
            )
    return {
        "problem": text,
        "ordering": pattern.ordering,
        "supernodes": pattern.supernodes,
        "entries": pattern.entries,
        "levels": pattern.levels,
        "cores": _core.allowed_cores(),
        "threads": _core.team_size(),
        "waited": _waited(waits, comm),
        "machine": dataclasses.asdict(machine),
        "cases": cases,
    }


def sptrsv_on_device(args: argparse.Namespace, comm: Any) -> dict[str, Any]:
    """Seconds of solves with L and L^T on GPUs, beside cuSPARSE's SpSV on one rank."""
    ranks = 1 if comm is None else comm.size
    core = as_communicator(comm)
    A, text = problems.load(args.problem, args.n, None, 1, args.which)
    pattern = FactorPattern(A, args.ordering, args.widest)
    cases = []
    for layout in steps("layouts", layouts(ranks, [args.layout]), comm):
        rows, columns = _core.process_grid(layout, ranks)
        timed = _core.TimedTriangle(core, pattern._h, rows, columns, A.dtype.name, args.device)
        for sweep in ("forward", "backward"):
            seconds, error, _ = timed.time(sweep == "backward", 1, args.repeats)
            case = {"ranks": ranks, "layout": layout, "sweep": sweep, "measured": seconds, "error": error}
            if ranks == 1:
                try:
                    theirs, wrong = timed.time_cusparse(sweep == "backward", args.repeats)
                    case |= {"cusparse": theirs, "cusparse_error": wrong}
                except UnsupportedError as e:
                    case["no_cusparse"] = str(e)
            cases.append(case)
    return {
        "problem": text,
        "device": _core.gpu_state()["device"],
        "ordering": pattern.ordering,
        "supernodes": pattern.supernodes,
        "entries": pattern.entries,
        "levels": pattern.levels,
        "bytes": pattern.entries * A.dtype.itemsize,
        "cases": cases,
    }


def print_sptrsv_on_device(r: dict[str, Any]) -> None:
    """Print what sptrsv_on_device() measured."""
    rows, why = [], ""
    for c in r["cases"]:
        ours = statistics.median(c["measured"])
        row = [
            c["ranks"],
            c["layout"],
            c["sweep"],
            f"{1e3 * ours:.3f}",
            f"{r['bytes'] / ours / 1e9:.1f}",
            f"{c['error']:.0e}",
        ]
        if "cusparse" in c:
            theirs = statistics.median(c["cusparse"])
            row += [f"{1e3 * theirs:.3f}", f"{ours / theirs:.2f}", f"{c['cusparse_error']:.0e}"]
        else:
            row += ["-", "-", "-"]
            why = c.get("no_cusparse", why)
        rows.append(row)
    print_table(
        f"{r['problem']} on {r['device']}: {r['ordering']} order, {r['supernodes']} supernodes, {r['entries']} entries, "
        f"{r['levels']} levels",
        ["ranks", "layout", "sweep", "ms", "GB/s", "error", "cuSPARSE ms", "ours / cuSPARSE", "its error"],
        rows,
    )
    if why:
        print(why)


def _here(comm: Any) -> TriangularMachine:
    """Measure this machine with these ranks, now."""
    if comm is not None:
        return TriangularMachine(**channel_cases(comm, 3, ["auto"])["machine"])
    task_seconds, bandwidth = _core.sweep_rates(as_communicator(None))
    return TriangularMachine(platform.node(), bandwidth, task_seconds, Link(0.0, (8,), (1e12,)))  # no message is sent


def print_sptrsv(r: dict[str, Any]) -> None:
    """Print what sptrsv_cases() measured."""
    rows = []
    for c in r["cases"]:
        measured = statistics.median(c["measured"])
        rows.append(
            [
                str(c["ranks"]) + "*" * (c["ranks"] > r["cores"]),
                c["layout"],
                c["sweep"],
                f"{1e3 * measured:.3f}",
                f"{1e3 * c['simulated']:.3f}",
                f"{1e3 * c['modelled']:.3f}",
                f"{c['simulated'] / measured:.2f}",
                c["messages"],
                c["sent"],
                f"{c['bytes'] / 1e6:.3f}",
                f"{c['error']:.0e}",
            ]
        )
    print_table(
        f"{r['problem']}: {r['ordering']} order, {r['supernodes']} supernodes, {r['entries']} entries, {r['levels']} levels",
        ["ranks", "layout", "sweep", "measured ms", "simulated ms", "critical path ms", "simulated / measured"]
        + ["messages predicted", "sent", "MB", "error"],
        rows,
    )
    if r["threads"] > 1:
        print(f"{r['threads']} threads a rank; the model and the simulation have one")
    if any(c["ranks"] > r["cores"] for c in r["cases"]):
        print(f"*: more ranks than the {r['cores']} core(s) here. They take turns.")
    else:
        _print_waited(r["waited"])
