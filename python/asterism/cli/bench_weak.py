"""``asterism bench weak``: weak scaling of multigrid, as Fig. 9 and 10 of Mills, Adams and others (2025)."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any

from .. import _core, gallery
from ..base.indices import near_cube
from ..errors import InputError
from ..la.matrix import Matrix
from ..solvers.solver import Solver
from . import launch
from .progress import steps
from .table import print_table

__all__ = ["RANKS", "SIZES", "check_weak", "print_weak", "weak_cases"]

OPTIONS = "-ksp_type cg -pc_type amg -mg_levels_ksp_type chebyshev -ksp_rtol 1e-12"
SIZES, RANKS = (8, 16, 24), (1, 2, 4, 8)
# the phases of Fig. 10 by the events of the set-up
_MATRIX = ("AMGTranspose", "AMGProductRAP")


def check_weak(args: argparse.Namespace) -> None:
    """Raise for numbers of ranks that cannot be started."""
    if launch.under_mpi() and not args.here:
        raise InputError("weak starts its ranks itself. Start it without mpiexec; --ranks 1,2,4 says how many.")
    if not args.here:
        if args.nodes and (others := [n for n in args.counts if n % args.nodes]):
            listed = ", ".join(map(str, others))
            raise InputError(f"--nodes {args.nodes}: {listed} ranks are no multiple of it. Choose other --ranks.")
        for ranks in args.counts:
            launch.check_ranks(argparse.Namespace(ranks=ranks, oversubscribe=args.oversubscribe))


def weak_cases(args: argparse.Namespace, comm: Any) -> dict[str, Any]:
    """Measure each number of ranks with each size, in processes of their own with one thread each."""
    if args.here:
        return {"cases": [_case(cells, args.repeats, args.nodes, comm) for cells in args.sizes]}
    cases = []
    for ranks in steps("weak scaling, numbers of ranks", args.counts):
        words = ["bench", "weak", "--here", "--json", "--repeats", str(args.repeats)]
        words += ["--sizes", ",".join(map(str, args.sizes))]
        words += ["--nodes", str(args.nodes)] if args.nodes else []
        cases += json.loads(launch.output_of(ranks, words, {"ASTERISM_NUM_THREADS": "1"}))["cases"]
    return {"options": OPTIONS, "cores": len(os.sched_getaffinity(0)), "cases": cases}


def machines(comm: Any) -> int:
    """Return on how many machines the ranks are, if each has as many of them in a row; else 1."""
    if comm is None:
        return 1
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    first, size = here.bcast(comm.rank, root=0), here.size
    alike = comm.allreduce(comm.rank - first == here.rank and comm.size % size == 0 and first % size == 0, op=MPI.LAND)
    here.Free()
    return comm.size // size if alike and comm.allreduce(size, op=MPI.MIN) == size else 1


def _case(cells: int, repeats: int, nodes: int | None, comm: Any) -> dict[str, Any]:
    ranks = 1 if comm is None else comm.size
    count = nodes or machines(comm)
    node_grid, process_grid = near_cube(count), near_cube(ranks // count)
    shape = [cells * a * b for a, b in zip(node_grid, process_grid, strict=True)]
    out: dict[str, Any] = {"ranks": ranks, "cells_of_a_rank": cells, "nodes": node_grid, "processes": process_grid}
    times: dict[str, list[float]] = {k: [] for k in ("assembly", "setup", "mesh", "matrix", "rest", "again", "solve")}
    A: Any = None
    solver: Any = None
    for _ in range(repeats):
        A = solver = None
        begun = _start(comm)
        A = gallery.laplace_q2(shape, comm, processes=process_grid, nodes=node_grid)
        times["assembly"].append(_longest(comm, time.perf_counter() - begun))
        b = A.make_vector(fill=1.0)
        _core.profile_reset()
        _start(comm)
        solver = Solver(A, OPTIONS)
        for phase, seconds in _phases(solver._h.setup_seconds).items():
            times[phase].append(_longest(comm, seconds))
        solver.solve(b)
        times["solve"].append(_longest(comm, solver.info.solve_seconds))
    for _ in range(1 + repeats):  # the first keeps the interpolation, which the others use
        solver.update(_same_values(A))
        times["again"].append(_longest(comm, solver._h.setup_seconds))
    del times["again"][0]
    info = solver.info
    return {
        **out,
        "unknowns": A.shape[0],
        "entries": A.nnz,
        "iterations": info.iterations,
        "relative_residual": info.relative_residual,
        "levels": solver._h.levels(),
        "threads": _core.team_size(),
        **times,
    }


def _same_values(A: Matrix) -> Matrix:
    return A.with_values(A.to_scipy().data)


def _start(comm: Any) -> float:
    if comm is not None:
        comm.Barrier()
    return time.perf_counter()


def _longest(comm: Any, seconds: float) -> float:
    if comm is None:
        return seconds
    from mpi4py import MPI

    return float(comm.allreduce(seconds, op=MPI.MAX))


def _phases(setup: float) -> dict[str, float]:
    """Part the set-up as the paper does: the coarse spaces, the coarse matrices, and what is left."""
    out = {"setup": setup, "mesh": 0.0, "matrix": 0.0}
    for e in _core.profile_snapshot():
        if e["name"] in _MATRIX:
            out["matrix"] += e["self_seconds"]
        elif e["name"].startswith("AMG") and e["name"] != "AMGStore":
            out["mesh"] += e["self_seconds"]
    return {**out, "rest": max(setup - out["mesh"] - out["matrix"], 0.0)}


def print_weak(r: dict[str, Any]) -> None:
    """Print what weak_cases() measured."""
    rows = []
    for c in r["cases"]:
        middle = {k: f"{statistics.median(c[k]):.3f}" for k in ("assembly", "mesh", "matrix", "rest", "again", "solve")}
        boxes = " x ".join(map(str, c["processes"]))
        rows.append(
            [
                f"{c['cells_of_a_rank']}^3",
                str(c["ranks"]) + "*" * (c["ranks"] > r["cores"]),
                f"{' x '.join(map(str, c['nodes']))} of {boxes}",
                c["unknowns"],
                *middle.values(),
                c["iterations"],
            ]
        )
    rows.sort(key=lambda row: (int(row[0].split("^")[0]), int(row[1].rstrip("*"))))
    head = ["cells a rank", "ranks", "nodes of processes", "unknowns", "assembly s", "mesh s", "matrix s", "rest s"]
    print_table(
        "weak scaling: 3-D Laplacian, triquadratic elements, cg + amg, rtol 1e-12, 1 thread a rank",
        [*head, "again s", "solve s", "iterations"],
        rows,
    )
    print(f"options: {r['options']}")
    print("mesh, matrix, rest: of the set-up; again: the set-up for new values, which keeps the mesh phase")
    if any(c["ranks"] > r["cores"] for c in r["cases"]):
        print(f"*: more ranks than the {r['cores']} core(s) here. They take turns, so their times are no scaling.")
