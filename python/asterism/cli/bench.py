"""``asterism bench``: compiled timing loops on this machine."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from .. import _core, gallery
from ..comm import as_communicator
from ..errors import OptionError
from ..forest import StarForest
from ..formats import read_matrix
from ..grid import Grid
from ..la import Matrix
from ..solve import Solver
from . import bench_assembly, bench_forest_gpu, bench_gpu, bench_queues, launch

__all__ = [
    "add_arguments",
    "halo_cases",
    "pingpong_cases",
    "run",
    "setup_cases",
    "spmv_case",
    "transport_cases",
    "unpack_cases",
]


_BETWEEN_RANKS = ("pingpong", "unpack", "transports", "sfsetup", "halo")
_ON_DEVICES = ("spmv", "vectors", "assembly", "launch", "async", "pingpong", "unpack")


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    p = sub.add_parser(
        "bench",
        help="measure on this machine: spmv, vectors, assembly, amg, launch, async, pingpong, unpack, transports, sfsetup, halo",
    )
    p.add_argument("name", choices=["spmv", "vectors", "assembly", "amg", "launch", "async", *_BETWEEN_RANKS])
    p.add_argument(
        "--device",
        default="host",
        choices=["host", "cuda", "hip"],
        help="spmv, vectors, assembly, launch, async, pingpong, unpack: where",
    )
    p.add_argument("--ranks", type=int, help="processes; between ranks 2 if nothing is said")
    p.add_argument("--n", type=int, default=96, help="grid points in each direction; assembly: cells")
    p.add_argument("--file", help="spmv: a Matrix Market file instead")
    p.add_argument("--most", type=float, default=1e6, help="async: matrices of up to so many nonzeros")
    p.add_argument("--repeats", type=int, default=9)
    p.add_argument("--json", action="store_true")


def spmv_case(A: Matrix, repeats: int) -> dict[str, Any]:
    """Median time of one product, interleaved with STREAM triads, and the ratio of their bandwidths.

    Bytes are those that plain CSR must move: 12 (or 8) per entry, offsets, x and y once.
    """
    x = np.random.default_rng(0).standard_normal(A.local_shape[1]).astype(A.dtype)
    y = np.empty(A.local_shape[0], dtype=A.dtype)
    A._h.apply(x, y)
    inner = max(1, int(0.02 / max(_time(A, x, y, 1), 1e-7)))
    seconds, triads = [], []
    for _ in range(repeats):
        triads.append(24.0 * 8_000_000 / min(_core.stream_triad(8_000_000, 3)))
        _time(
            A, x, y, inner
        )  # the triad has emptied the caches, in which peers measured by themselves find their matrix
        seconds.append(_time(A, x, y, inner))
    return spmv_summary(A, seconds, triads)


def spmv_summary(A: Matrix, seconds: list[float], triads: list[float]) -> dict[str, Any]:
    """Bandwidths of products that took `seconds` beside triads of so many bytes a second."""
    size = A.dtype.itemsize
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
    if args.device != "host" and args.name not in _ON_DEVICES:
        raise OptionError(
            f"--device {args.device}: {args.name} runs on the host; {', '.join(_ON_DEVICES)} take a device."
        )
    if args.name in _BETWEEN_RANKS:
        return _forests(args)
    if args.ranks is not None:
        raise OptionError(
            f"--ranks {args.ranks}: {args.name} runs on one process; {', '.join(_BETWEEN_RANKS)} take several."
        )
    if args.name == "vectors":
        if args.device == "host":
            raise OptionError(
                "vectors: measured on a device, --device cuda; on the host `bench launch` has axpy and dot."
            )
        measured = bench_gpu.vectors_on_device(args.device, args.n**3, args.repeats)
        print(json.dumps(measured)) if args.json else bench_gpu.print_vectors(measured)
        return 0
    if args.name == "assembly":
        assembled = bench_assembly.assembly_case(args.device, args.n, args.repeats)
        print(json.dumps(assembled)) if args.json else bench_assembly.print_assembly(assembled)
        return 0
    if args.name == "spmv" and args.device != "host":
        A = read_matrix(args.file) if args.file else gallery.poisson((args.n,) * 3)
        product = bench_gpu.spmv_on_device(args.device, A, args.repeats)
        print(json.dumps(product)) if args.json else bench_gpu.print_spmv(product)
        return 0
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
    if args.name == "launch":
        launched = bench_queues.launch_cases(args.repeats, args.device)
        print(json.dumps(launched)) if args.json else bench_queues.print_launch(launched)
        return 0
    if args.name == "async":
        cases = bench_queues.async_cases(args.repeats, args.most, device=args.device)
        print(json.dumps(cases)) if args.json else bench_queues.print_async(cases)
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


def _forests(args: argparse.Namespace) -> int:
    """Measure star forests between ranks 0 and 1, beside raw MPI."""
    if args.ranks is not None and args.ranks < 2:
        raise OptionError(f"--ranks {args.ranks}: {args.name} is between two ranks.")
    if not launch.under_mpi():
        command = ["bench", args.name, "--repeats", str(args.repeats), "--n", str(args.n), "--device", args.device]
        return launch.run(args.ranks or 2, command + (["--json"] if args.json else []))
    comm = launch.communicator()
    if comm is None:
        raise OptionError(f"{args.name} is between two ranks; one was started.")
    if args.device != "host":
        on_device = (
            bench_forest_gpu.pingpong_on_device if args.name == "pingpong" else bench_forest_gpu.unpack_on_device
        )
        show = bench_forest_gpu.print_pingpong if args.name == "pingpong" else bench_forest_gpu.print_unpack
        measured = on_device(comm, args.device, args.repeats)
        if comm.rank == 0:
            print(json.dumps(measured)) if args.json else show(measured)
        return 0
    if args.name == "halo":
        results = halo_cases(comm, args.repeats, args.n)
    else:
        cases = {
            "pingpong": pingpong_cases,
            "unpack": unpack_cases,
            "transports": transport_cases,
            "sfsetup": setup_cases,
        }
        results = cases[args.name](comm, args.repeats)
    if comm.rank == 0:
        if args.json:
            print(json.dumps(results))
        else:
            for r in results:
                times = ", ".join(
                    f"{k} {1e6 * statistics.median(v):.3f} us" for k, v in r.items() if isinstance(v, list)
                )
                if args.name == "halo":
                    times += f": raw MPI's best takes {r['raw_over_best']:.2f} times as long as our best; overlapped "
                    times += ", ".join(f"{k} {v:.2f}" for k, v in r["overlap"].items())
                if args.name == "unpack":
                    times += f": a sum takes {r['sum_over_replace']:.2f} times as long as a replace"
                if args.name == "transports":
                    times += f": auto takes {r['auto_over_best']:.2f} times as long as {r['best']}"
                print(f"{args.name} {r.get('case', '')}{r['bytes']:>8d} bytes: {times}")
    return 0


def pingpong_cases(comm: Any, rounds: int) -> list[dict[str, Any]]:
    """One-way seconds for messages of 8 B to 4 MiB: roots on rank 0, leaves on rank 1; MPI_Send/Recv interleaved.

    For each transport: contiguous; the same with sums on the way back; random roots and strided leaves (pack and unpack); those with sums.
    """
    core = as_communicator(comm)
    replace, total = _core.reduce_op("replace"), _core.reduce_op("sum")
    rng = np.random.default_rng(0)
    transports = ("p2p", "shm") if _core.node_shares_memory(core) else ("p2p",)
    out = []
    for size in (8, 64, 512, 4096, 32768, 262144, 1048576, 4194304):
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
        repeats = max(3, int(2e-3 / (2e-6 + size / 4e9)))
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
    for bytes_ in (8, 512, 4096, 32768, 262144, 2097152):
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
            repeats = max(3, int(2e-3 / (2e-6 + bytes_ / 4e9)))
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
    for bytes_ in (4096, 65536, 1048576, 4194304):
        n = bytes_ // 8
        here = comm.rank == 1
        places = {"block": np.arange(n), "strided": 2 * np.arange(n), "random": np.random.default_rng(0).permutation(n)}
        for pattern, leaves in places.items():
            for t in transports:
                remote: Any = np.column_stack([0 * leaves, np.arange(n)]) if here else []
                forest = StarForest(comm, n if comm.rank == 0 else 0, leaves if here else [], remote, transport=t)
                repeats = max(3, int(2e-3 / (2e-6 + bytes_ / 4e9)))
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
    for stencil, width in (("star", 1), ("box", 1), ("star", 5), ("box", 5)):
        for cut in ((comm.size, 1, 1), (1, 1, comm.size)):
            grids = {t: Grid((n, n, n), comm, stencil, width=width, ranks=cut, transport=t) for t in transports}
            any_grid = next(iter(grids.values()))
            repeats = max(3, int(2e-3 / (2e-6 + 8 * width * n * n / 2e9)))
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
    for n in (1, 128, 16384, 131072):
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
