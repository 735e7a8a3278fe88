"""``asterism bench pingpong|unpack|transports|sfsetup|halo``: star forests and ghost points between ranks, beside raw MPI."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from .. import _core
from ..comm.communicator import as_communicator
from ..comm.forest import StarForest
from ..grid import Grid
from .progress import steps
from .table import in_bytes, microseconds, print_table

__all__ = [
    "halo_cases",
    "pingpong_cases",
    "print_halo",
    "print_pingpong",
    "print_setup",
    "print_transports",
    "print_unpack",
    "setup_cases",
    "transport_cases",
    "unpack_cases",
]


#: Bytes of the messages of each benchmark; of sfsetup, leaves.
SIZES = {
    "pingpong": (8, 64, 512, 4096, 32768, 262144, 1048576, 4194304),
    "transports": (8, 512, 4096, 32768, 262144, 2097152),
    "unpack": (4096, 65536, 1048576, 4194304),
    "sfsetup": (1, 128, 16384, 131072),
}
LOOP = 2e-3  # seconds that one timing is to take


def _repeats(seconds: float) -> int:
    return max(3, int(LOOP / seconds))


def pingpong_cases(comm: Any, rounds: int) -> list[dict[str, Any]]:
    """One-way seconds for messages of 8 B to 4 MiB: roots on rank 0, leaves on rank 1; MPI_Send/Recv interleaved.

    For each transport: contiguous; the same with sums on the way back; random roots and strided leaves (pack and unpack); those with sums.
    """
    core = as_communicator(comm)
    replace, total = _core.reduce_op("replace"), _core.reduce_op("sum")
    rng = np.random.default_rng(0)
    transports = ("p2p", "shm") if _core.node_shares_memory(core) else ("p2p",)
    out = []
    for size in steps("pingpong", SIZES["pingpong"], comm):
        n = size // 8
        order = rng.permutation(n)
        here = comm.rank == 1
        roots = n if comm.rank == 0 else 0
        cases: dict[str, tuple[StarForest, int]] = {}
        for t in transports:
            plain = StarForest(comm, roots, None, [(0, i) for i in range(n)] if here else [], transport=t)
            leaves: Any = 2 * np.arange(n) if here else []
            mixed = StarForest(comm, roots, leaves, np.column_stack([0 * order, order]) if here else [], transport=t)
            cases |= {f"{t} contiguous": (plain, replace), f"{t} contiguous sum": (plain, total)}
            cases |= {f"{t} permuted": (mixed, replace), f"{t} permuted sum": (mixed, total)}
        repeats = _repeats(2e-6 + size / 4e9)
        times: dict[str, list[float]] = {}
        for _ in range(rounds + 1):
            times.setdefault("raw_mpi", []).append(_core.time_raw_pingpong(core, size, repeats))
            for name, (forest, op) in cases.items():
                for arrays in ("", " shared") if name.startswith("shm") else ("",):
                    seconds = _core.time_forest_pingpong(forest._sf, 1, op, bool(arrays), repeats)
                    times.setdefault(name.replace("shm", "shm" + arrays), []).append(seconds)
            times.setdefault("python_call", []).append(call_seconds())
        out.append({"bytes": size, "repeats": repeats, **{k: v[1:] for k, v in times.items()}})
    return out


def call_seconds(repeats: int = 2000) -> float:
    """Return what a broadcast called from Python costs more than one in a compiled loop: 8 bytes, one process."""
    sf = StarForest(None, 1, None, [[0, 0]])
    root, leaf = np.zeros(1), np.zeros(1)
    start = time.perf_counter()
    for _ in range(repeats):
        sf.bcast(root, leaf)
    called = (time.perf_counter() - start) / repeats
    return called - float(_core.time_forest_exchange(sf._sf, 1, _core.reduce_op("replace"), False, repeats))


def transport_cases(comm: Any, rounds: int) -> list[dict[str, Any]]:
    """Seconds of a broadcast by every transport and by auto, interleaved, for patterns and sizes.

    One way (rank 0 to 1 and back), around (to both neighbours in a ring, all at once) in blocks or at random, an all-gather;
    these three of values that were just written, which is in the time. Ratios are of the same round.
    """
    core = as_communicator(comm)
    rank, size = comm.rank, comm.size
    between_gpus = ("nccl", "ipc", "nvshmem")
    names = [
        t for t in _core.transport_names() if t not in between_gpus and (t != "shm" or _core.node_shares_memory(core))
    ]
    out = []
    for bytes_ in steps("transports", SIZES["transports"], comm):
        n = bytes_ // 8
        order = np.random.default_rng(0).permutation(n)
        block = np.arange(n)
        sides = [(rank + d) % size for d in ((1, -1) if size > 2 else (1,))]
        graphs: dict[str, tuple[int, Any, Any]] = {
            "one way": (n if rank == 0 else 0, None, [(0, i) for i in range(n)] if rank == 1 else []),
            "around": (n, None, np.concatenate([np.column_stack([0 * block + s, block]) for s in sides])),
            "around, permuted": (n, None, np.concatenate([np.column_stack([0 * order + s, order]) for s in sides])),
            "all-gather": (n, None, np.concatenate([np.column_stack([0 * block + s, block]) for s in range(size)])),
        }
        for pattern, graph in graphs.items():
            forests = {t: StarForest(comm, *graph, transport=t) for t in names}
            repeats = _repeats(2e-6 + bytes_ / 4e9)
            times: dict[str, list[float]] = {t: [] for t in names}
            for turn in range(rounds + 1):
                # in another order each time, the same on all ranks: each leaves the caches to the next
                for t in np.random.default_rng(turn).permutation(names):
                    forest = forests[t]
                    one_way = pattern == "one way"
                    seconds = (
                        _core.time_forest_pingpong(forest._sf, 1, _core.reduce_op("replace"), False, repeats)
                        if one_way
                        else _core.time_forest_exchange(forest._sf, 1, _core.reduce_op("replace"), True, repeats)
                    )
                    times[t].append(comm.allreduce(seconds) / size)
            kept = {k: v[1:] for k, v in times.items()}
            least = [min(kept[t][i] for t in names) for i in range(rounds)]
            middle = {t: statistics.median(x / y for x, y in zip(kept[t], least, strict=True)) for t in names}
            best = min((t for t in names if t != "auto"), key=lambda t: middle[t])
            case = f"{pattern}, {size} ranks, "
            out.append(
                {
                    "case": case,
                    "bytes": bytes_,
                    "best": best,
                    "auto_over_best": statistics.median(x / y for x, y in zip(kept["auto"], kept[best], strict=True)),
                    **kept,
                }
            )
    return out


def unpack_cases(comm: Any, rounds: int) -> list[dict[str, Any]]:
    """Seconds of a broadcast from rank 0 to rank 1 that replaces, and of one that adds or takes the maximum, interleaved.

    Leaves in a block, every second place, and at random places.
    """
    core = as_communicator(comm)
    transports = ("p2p", "shm") if _core.node_shares_memory(core) else ("p2p",)
    out = []
    for bytes_ in steps("unpack", SIZES["unpack"], comm):
        n = bytes_ // 8
        here = comm.rank == 1
        places = {"block": np.arange(n), "strided": 2 * np.arange(n), "random": np.random.default_rng(0).permutation(n)}
        for pattern, leaves in places.items():
            for t in transports:
                remote: Any = np.column_stack([0 * leaves, np.arange(n)]) if here else []
                forest = StarForest(comm, n if comm.rank == 0 else 0, leaves if here else [], remote, transport=t)
                repeats = _repeats(2e-6 + bytes_ / 4e9)
                times: dict[str, list[float]] = {}
                for _ in range(rounds + 1):
                    for op in ("replace", "sum", "max"):
                        seconds = _core.time_forest_exchange(forest._sf, 1, _core.reduce_op(op), False, repeats)
                        times.setdefault(op, []).append(comm.bcast(seconds, root=1))
                kept = {k: v[1:] for k, v in times.items()}
                ratio = statistics.median(s / r for s, r in zip(kept["sum"], kept["replace"], strict=True))
                out.append({"case": f"{t}, {pattern}, ", "bytes": bytes_, "sum_over_replace": ratio, **kept})
    return out


def halo_cases(comm: Any, rounds: int, n: int) -> list[dict[str, Any]]:
    """Seconds of a ghost exchange of float64 on an n^3 grid, beside MPI's subarray types and packed buffers, interleaved.

    7- and 27-point stencils, 1 and 5 points deep, cut across the slowest and across the fastest direction.
    """
    core = as_communicator(comm)
    transports = ("p2p", "shm") if _core.node_shares_memory(core) else ("p2p",)
    out = []
    for stencil, width in steps("halo", (("star", 1), ("box", 1), ("star", 5), ("box", 5)), comm):
        for cut in ((comm.size, 1, 1), (1, 1, comm.size)):
            grids = {t: Grid((n, n, n), comm, stencil, width=width, ranks=cut, transport=t) for t in transports}
            any_grid = next(iter(grids.values()))
            repeats = _repeats(2e-6 + 8 * width * n * n / 2e9)
            times: dict[str, list[float]] = {}
            for _ in range(rounds + 1):
                times.setdefault("raw subarray types", []).append(_core.time_raw_halo(any_grid._h, False, repeats))
                times.setdefault("raw packed", []).append(_core.time_raw_halo(any_grid._h, True, repeats))
                for t, g in grids.items():
                    times.setdefault(t, []).append(_core.time_grid_halo(g._h, False, repeats))
                    if t == "shm":
                        times.setdefault("shm, shared arrays", []).append(_core.time_grid_halo(g._h, True, repeats))
            overlap = {t: _overlap(g, rounds, False) for t, g in grids.items()}
            overlap["p2p, progress thread"] = _overlap(grids["p2p"], rounds, True)
            kept = {k: v[1:] for k, v in times.items()}
            ratio = statistics.median(
                min(kept[k][i] for k in kept if k.startswith("raw"))
                / min(kept[k][i] for k in kept if not k.startswith("raw"))
                for i in range(rounds)
            )
            points = 7 if stencil == "star" else 27
            name = f"{points}-point, {width} deep, {n}^3 cut {'x'.join(map(str, cut))}, "
            out.append({"case": name, "bytes": 8 * width * n * n, "raw_over_best": ratio, "overlap": overlap, **kept})
    return out


def _overlap(grid: Grid, rounds: int, helper: bool) -> float:
    """Median part of an exchange, or of as long a computation, that took no time beside the other: 1 is all, 0 nothing."""
    _core.set_progress_thread(helper)
    found: list[float] = []
    for _ in range(rounds):
        exchange, work, both = _core.time_grid_overlap(grid._h, 20)
        found.append((exchange + work - both) / min(exchange, work))
    _core.set_progress_thread(False)
    return statistics.median(found)


def setup_cases(comm: Any, rounds: int) -> list[dict[str, Any]]:
    """Seconds of a set-up with leaves on rank 1 and roots on rank 0, contiguous and permuted."""
    core = as_communicator(comm)
    rng = np.random.default_rng(0)
    out = []
    for n in steps("sfsetup", SIZES["sfsetup"], comm):
        here = comm.rank == 1
        order = rng.permutation(n)
        times: dict[str, list[float]] = {}
        for name, roots in (("contiguous", np.arange(n)), ("permuted", order)):
            remote = np.column_stack([0 * roots, roots]) if here else np.zeros((0, 2), int)
            local = None if name == "contiguous" else np.arange(0, 2 * n, 2) if here else np.zeros(0, int)
            for _ in range(rounds):
                times.setdefault(name, []).append(
                    _core.time_forest_setup(core, n if comm.rank == 0 else 0, local, remote, max(2, 20000 // n))
                )
        out.append({"bytes": 8 * n, **times})
    return out


def _by_size(title: str, cases: list[dict[str, Any]]) -> None:
    """Print what was measured of each size: a row for each kind, a column for each size."""
    kinds = list(dict.fromkeys(k for c in cases for k, v in c.items() if isinstance(v, list)))
    print_table(
        title,
        ["microseconds", *(in_bytes(c["bytes"]) for c in cases)],
        [[kind.replace("_", " "), *(microseconds(c[kind]) if kind in c else "-" for c in cases)] for kind in kinds],
    )


def print_pingpong(cases: list[dict[str, Any]]) -> None:
    """Print what pingpong_cases() measured."""
    _by_size("one way between two ranks", cases)


def print_setup(cases: list[dict[str, Any]]) -> None:
    """Print what setup_cases() measured."""
    print_table(
        "set-up of a star forest between two ranks, microseconds",
        ["leaves", "contiguous", "permuted"],
        [[c["bytes"] // 8, microseconds(c["contiguous"]), microseconds(c["permuted"])] for c in cases],
    )


def print_unpack(cases: list[dict[str, Any]]) -> None:
    """Print what unpack_cases() measured."""
    print_table(
        "a broadcast that replaces, adds, or takes the maximum, microseconds",
        ["case", "size", "replace", "sum", "max", "sum / replace"],
        [
            [
                c["case"].rstrip(", "),
                in_bytes(c["bytes"]),
                *(microseconds(c[k]) for k in ("replace", "sum", "max")),
                f"{c['sum_over_replace']:.2f}",
            ]
            for c in cases
        ],
    )


def print_transports(cases: list[dict[str, Any]]) -> None:
    """Print what transport_cases() measured."""
    names = [k for k, v in cases[0].items() if isinstance(v, list)]
    print_table(
        "a broadcast by each transport, microseconds",
        ["case", "size", *names, "best", "auto / best"],
        [
            [
                c["case"].rstrip(", "),
                in_bytes(c["bytes"]),
                *(microseconds(c[k]) for k in names),
                c["best"],
                f"{c['auto_over_best']:.2f}",
            ]
            for c in cases
        ],
    )


def print_halo(cases: list[dict[str, Any]]) -> None:
    """Print what halo_cases() measured."""
    names = list(dict.fromkeys(k for c in cases for k, v in c.items() if isinstance(v, list)))
    overlapped = list(dict.fromkeys(k for c in cases for k in c["overlap"]))
    print_table(
        "a ghost exchange, microseconds; raw MPI's best over our best; the part that took no time beside a computation",
        ["case", *names, "raw / ours", *(f"overlap {k}" for k in overlapped)],
        [
            [
                c["case"].rstrip(", "),
                *(microseconds(c[k]) for k in names),
                f"{c['raw_over_best']:.2f}",
                *(f"{c['overlap'][k]:.2f}" for k in overlapped),
            ]
            for c in cases
        ],
    )
