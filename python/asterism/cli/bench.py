"""``asterism bench``: compiled timing loops on this machine."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import gallery
from ..errors import OptionError
from ..la.io import read_matrix
from ..la.matrix import Matrix
from . import (
    bench_assembly,
    bench_busy,
    bench_forest,
    bench_forest_gpu,
    bench_gmg,
    bench_gpu,
    bench_products,
    bench_queues,
    bench_stencil,
    bench_triangular,
    bench_weak,
    launch,
)
from .output import print_json
from .problems import count

__all__ = ["add_arguments", "check", "has_short_options", "run"]

Args = argparse.Namespace


@dataclass(frozen=True)
class Benchmark:
    """What is measured, by whom, and what prints it.

    Attributes
    ----------
    measure : callable(arguments, communicator)
        On all ranks; what rank 0 returns is printed, or is the JSON.
    ranks : (int, int or None)
        The fewest ranks that it runs on, and the most.
    takes : tuple of str
        Its options besides --repeats and --json.
    rounds : int
        Of --repeats, if nothing is said.
    on_device : pair, optional
        What measures and prints instead on a GPU, where that is another.
    example : str
        Arguments to show, if not --n and --ranks alone.
    """

    about: str
    measure: Callable[[Args, Any], Any]
    show: Callable[[Any], None]
    ranks: tuple[int, int | None] = (1, 1)
    takes: tuple[str, ...] = ()
    rounds: int = 9
    on_device: tuple[Callable[[Args, Any], Any], Callable[[Any], None]] | None = None
    example: str = ""


def _matrix(args: Args) -> Matrix:
    return read_matrix(args.file) if args.file else gallery.poisson((args.n,) * 3)


BENCHMARKS = {
    "spmv": Benchmark(
        "products of a matrix, beside the memory's bandwidth",
        lambda a, comm: bench_products.spmv_case(_matrix(a), a.repeats),
        bench_products.print_spmv,
        takes=("n", "file", "device"),
        on_device=(lambda a, comm: bench_gpu.spmv_on_device(a.device, _matrix(a), a.repeats), bench_gpu.print_spmv),
    ),
    "vectors": Benchmark(
        "operations on vectors of n^3 entries, beside a copy",
        lambda a, comm: bench_gpu.vectors_on_device(a.device, a.n**3, a.repeats),
        bench_gpu.print_vectors,
        takes=("n", "device"),
    ),
    "assembly": Benchmark(
        "values of n^3 finite elements summed to a matrix, beside a copy",
        lambda a, comm: bench_assembly.assembly_case(a.device, a.n, a.repeats),
        bench_assembly.print_assembly,
        takes=("n", "device"),
    ),
    "amg": Benchmark(
        "set-up and solve: cg with amg, Poisson on n^3 points",
        lambda a, comm: bench_products.amg_case(a.n, a.repeats, comm),
        bench_products.print_amg,
        ranks=(1, None),
        takes=("n",),
    ),
    "gmg": Benchmark(
        "V cycles of geometric multigrid on bricks, level by level",
        bench_gmg.gmg_case,
        bench_gmg.print_gmg,
        ranks=(1, None),
        takes=("gmg",),
        rounds=10,
        example="-s 32,32,32 --ranks 2",
    ),
    "stencil": Benchmark(
        "products of stencils on n^3 points in bricks, beside a copy",
        lambda a, comm: bench_stencil.stencil_case(a),
        bench_stencil.print_stencil,
        takes=("n", "device", "stencil"),
        example="--n 64 --points 7",
    ),
    "launch": Benchmark(
        "what tasks of queues cost",
        lambda a, comm: bench_queues.launch_cases(a.repeats, a.device),
        bench_queues.print_launch,
        takes=("device",),
    ),
    "async": Benchmark(
        "iterations at once, on a queue, and asynchronously",
        lambda a, comm: bench_queues.async_cases(a.repeats, a.most, device=a.device),
        bench_queues.print_async,
        takes=("most", "device"),
        example="--most 1e5",
    ),
    "busy": Benchmark(
        "solves and exchanges beside busy processes, against a fair share of the cores",
        lambda a, comm: bench_busy.busy_cases(comm, a.repeats),
        bench_busy.print_busy,
        ranks=(1, None),
    ),
    "pingpong": Benchmark(
        "messages from rank 0 to rank 1, beside raw MPI",
        lambda a, comm: bench_forest.pingpong_cases(comm, a.repeats),
        bench_forest.print_pingpong,
        ranks=(2, None),
        takes=("device",),
        on_device=(
            lambda a, comm: bench_forest_gpu.pingpong_on_device(comm, a.device, a.repeats),
            bench_forest_gpu.print_pingpong,
        ),
    ),
    "unpack": Benchmark(
        "what taking in with sums costs over replacing",
        lambda a, comm: bench_forest.unpack_cases(comm, a.repeats),
        bench_forest.print_unpack,
        ranks=(2, None),
        takes=("device",),
        on_device=(
            lambda a, comm: bench_forest_gpu.unpack_on_device(comm, a.device, a.repeats),
            bench_forest_gpu.print_unpack,
        ),
    ),
    "transports": Benchmark(
        "a broadcast by every transport",
        lambda a, comm: bench_forest.transport_cases(comm, a.repeats),
        bench_forest.print_transports,
        ranks=(2, None),
    ),
    "sfsetup": Benchmark(
        "set-up of star forests",
        lambda a, comm: bench_forest.setup_cases(comm, a.repeats),
        bench_forest.print_setup,
        ranks=(2, None),
    ),
    "channels": Benchmark(
        "messages by channels from rank 0 to rank 1, by size",
        lambda a, comm: bench_triangular.channel_cases(comm, a.repeats),
        bench_triangular.print_channels,
        ranks=(2, None),
    ),
    "sptrsv": Benchmark(
        "solves with triangles in the pattern of a matrix's factors, driven by messages, beside their model",
        bench_triangular.sptrsv_cases,
        bench_triangular.print_sptrsv,
        ranks=(1, None),
        takes=("problem", "device"),
        example="poisson3d --n 20 --ranks 2",
        on_device=(bench_triangular.sptrsv_on_device, bench_triangular.print_sptrsv_on_device),
    ),
    "halo": Benchmark(
        "ghost points of an n^3 grid, beside MPI's subarray types",
        lambda a, comm: bench_forest.halo_cases(comm, a.repeats, a.n),
        bench_forest.print_halo,
        ranks=(2, None),
        takes=("n",),
    ),
    "weak": Benchmark(
        "weak scaling: 3-D Laplacian of triquadratic elements, cg with amg to 1e-12",
        bench_weak.weak_cases,
        bench_weak.print_weak,
        takes=("sizes", "counts", "nodes"),
        example="--sizes 8 --ranks 1,2",
        rounds=3,
    ),
}


def _numbers(text: str) -> list[int]:
    return [count(word) for word in text.split(",")]


def _nonzeros(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1e4 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 1e4, as the smallest grids have nonzeros")
    return value


def _where(b: Benchmark) -> str:
    least, most = b.ranks
    if "counts" in b.takes:
        return "on the numbers of processes that it is given"
    ranks = "on one process" if most == 1 else f"on {least} ranks or more" if least > 1 else "on any number of ranks"
    return f"{ranks}; on a GPU too" if "device" in b.takes else ranks


def has_short_options(words: list[str]) -> bool:
    """Tell whether a command line is of a benchmark whose own options look like a solver's: -smooth."""
    return words[:1] == ["bench"] and any("gmg" in b.takes for n, b in BENCHMARKS.items() if [n] == words[1:2])


def add_arguments(sub: Any) -> None:
    """Declare the arguments: each benchmark has those that it takes."""
    p = sub.add_parser(
        "bench",
        help="measure on this machine: " + ", ".join(BENCHMARKS),
        description="Time loops of the library on this machine, and print tables.",
        epilog="asterism bench NAME --help lists the options of one.\n\n"
        "examples:\n  asterism bench spmv --n 128\n  asterism bench pingpong --ranks 2 --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    each = p.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, b in BENCHMARKS.items():
        usual = " --n 64" * ("n" in b.takes) + f" --ranks {b.ranks[0]}" * (b.ranks[0] > 1)
        q = each.add_parser(
            name,
            help=f"{b.about} ({_where(b)})",
            description=f"Measure {b.about}.\nRuns {_where(b)}.",
            epilog=f"example:\n  asterism bench {name} {b.example or usual.strip()}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if "n" in b.takes:
            q.add_argument("--n", type=count, default=96, help="points or cells in each direction (96)")
        if "file" in b.takes:
            q.add_argument("--file", help="a matrix in a file instead")
        if "most" in b.takes:
            q.add_argument("--most", type=_nonzeros, default=1e6, help="matrices of up to so many nonzeros (1e6)")
        if "device" in b.takes:
            q.add_argument("--device", default="host", choices=["host", "cuda", "hip"], help="where (host)")
        if "sizes" in b.takes:
            q.add_argument(
                "--sizes",
                type=_numbers,
                default=list(bench_weak.SIZES),
                help="cells in each direction of a rank's box: 8,16,24 if nothing is said",
            )
        if "counts" in b.takes:
            q.add_argument(
                "--ranks",
                dest="counts",
                type=_numbers,
                default=list(bench_weak.RANKS),
                help="numbers of processes, one after the other (needs mpi4py): 1,2,4,8 if nothing is said",
            )
            q.add_argument("--oversubscribe", action="store_true", help="also more than 8 processes a core")
            q.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # on the ranks that were started
        if "nodes" in b.takes:
            q.add_argument(
                "--nodes", type=count, help="cut the cells as if the ranks were on so many machines; as they are"
            )
        if "gmg" in b.takes:
            bench_gmg.add_gmg_arguments(q)
        if "stencil" in b.takes:
            bench_stencil.add_stencil_arguments(q)
        if "problem" in b.takes:
            bench_triangular.add_problem(q)
        if b.ranks[1] != 1:
            launch.add_ranks(q, None, f"run on N processes (needs mpi4py); {b.ranks[0]} if nothing is said")
        q.add_argument(
            *(["-I"] if "gmg" in b.takes else []),
            "--repeats",
            type=count,
            default=b.rounds,
            help=f"rounds, of which medians are printed ({b.rounds})",
        )
        q.add_argument("--json", action="store_true", help="all that was measured, as JSON")


def check(args: Args) -> int | None:
    """Return on how many ranks it is to be started, if not on this one alone; raise where it cannot run."""
    (least, most), size = BENCHMARKS[args.name].ranks, None
    if args.name == "weak":
        bench_weak.check_weak(args)
        return None
    if launch.under_mpi():
        comm = launch.communicator()
        size = 1 if comm is None else comm.Get_size()
    elif most != 1:
        size = args.ranks or least
    if size is not None and size < least:
        raise OptionError(f"{args.name} is between two ranks, and {size} is started. Use --ranks 2.")
    if size is not None and most is not None and size > most:
        raise OptionError(f"{args.name} runs on one process, and mpiexec has started {size}. Start it without.")
    if args.name == "sptrsv":
        bench_triangular.check_sptrsv(args, size or 1)
    return size


def run(args: Args) -> int:
    """Run one benchmark and print its table."""
    b, comm = BENCHMARKS[args.name], launch.communicator()
    measure, show = b.measure, b.show
    if b.on_device and args.device != "host":
        measure, show = b.on_device
    measured = measure(args, comm)
    if comm is None or comm.rank == 0:
        print_json(measured, None) if args.json else show(measured)
    return 0
