"""``asterism solve``."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..comm_report import comm_report
from ..errors import ConvergenceError, FileError, InputError, ShapeError
from ..formats import check_vector_name, format_of, read_vector, write_vector
from ..least_squares import least_squares
from ..operator import as_values
from ..options import use_argv
from ..solve import Solver
from ..trace import Trace
from . import launch, problems

__all__ = ["add_arguments", "run"]


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    built_in = "\n".join(f"  {k:<15} {v[1]} (n = {v[0]})" for k, v in problems.BUILT_IN.items())
    methods, preconditioners = _core.component_names()
    p = sub.add_parser(
        "solve",
        help="solve a system from a file or a built-in problem",
        description="Solve A x = b and verify the answer.",
        epilog=f"built-in problems:\n{built_in}\n\n"
        "Any option of the solver may follow in PETSc's form, e.g. -ksp_gmres_restart 50 -pc_amg_threshold 0.1;\n"
        "--help-options lists them.\n\nexamples:\n"
        "  asterism solve poisson3d --n 128 --ranks 2\n"
        "  asterism solve K.mtx.gz --ksp cg --pc amg --block-size 3 --report out.html\n"
        "  asterism solve A.mtx --rhs b.mtx --save x.mtx --rtol 1e-10\n\n"
        "exit code: 0 converged, 1 an error, 2 wrong usage, 3 not converged",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "problem",
        nargs="?",
        help="a file (.mtx, .mtx.gz, PETSc, .npz, .mat, .rb, .tar.gz, .ast, ...) or a built-in problem",
    )
    p.add_argument("--n", type=int, help="size of a built-in problem")
    p.add_argument(
        "--rhs", metavar="FILE", help="right-hand side; default: A x* with a known x*, and the error is reported"
    )
    p.add_argument("--x0", metavar="FILE", help="initial guess, e.g. a checkpoint or what --save wrote")
    p.add_argument("--checkpoint", metavar="FILE.ast", help="keep the iterate there, also of a solve that is stopped")
    p.add_argument("--checkpoint-every", type=int, default=200, metavar="K", help="iterations (200)")
    p.add_argument("--ksp", metavar="NAME", help="method: auto, " + ", ".join(methods))
    p.add_argument("--pc", metavar="NAME", help="preconditioner: auto, " + ", ".join(preconditioners))
    p.add_argument("--rtol", type=float, help="stop when ||b - A x|| <= rtol ||b|| (default 1e-5)")
    p.add_argument("--atol", type=float, help="or when ||b - A x|| <= atol")
    p.add_argument("--max-it", type=int, help="most iterations")
    p.add_argument("--block-size", type=int, default=1, help="unknowns per node of a vector problem in a file")
    p.add_argument("--near-null-space", metavar="FILE", help="Matrix Market array (n, k): e.g. rigid-body modes")
    p.add_argument(
        "--coordinates", metavar="FILE", help="Matrix Market array (nodes, d): rigid-body modes are made from it"
    )
    p.add_argument("--dtype", help="convert to float32, float64, complex64 or complex128 first")
    p.add_argument(
        "--storage",
        choices=("auto", "symmetric", "hermitian"),
        default="auto",
        help="hold half of a symmetric matrix: less memory; preconditioners other than jacobi and chebyshev make the rest",
    )
    p.add_argument("--ranks", type=int, default=1, metavar="N", help="run on N processes (needs mpi4py)")
    p.add_argument("--report", metavar="FILE.html", help="write one self-contained page about the run")
    p.add_argument("--comm-report", action="store_true", help="say what the ranks sent each other, and how")
    p.add_argument("--trace", metavar="FILE.json", help="write what each thread did when, for https://ui.perfetto.dev")
    p.add_argument("--save", metavar="FILE", help="write the solution: .mtx, .petsc, .npy or .ast")
    p.add_argument("--quiet", action="store_true", help="only the exit code, errors and what was asked for by options")
    p.add_argument("--help-options", action="store_true", help="list every solver option and stop")


class _Progress:
    """A live line on a terminal; now and then a line in a log."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.last = 0.0
        self.next_line = 1

    def __call__(self, it: int, norm: Any) -> None:
        value = float(np.max(norm))
        if self.live:
            now = time.monotonic()
            if now - self.last > 0.1:
                self.last = now
                print(f"\r  iteration {it:6d}   ||r|| {value:.3e} ", end="", file=sys.stderr, flush=True)
        elif it == self.next_line or it == 0:
            print(f"  iteration {it:6d}   ||r|| {value:.3e}", file=sys.stderr, flush=True)
            self.next_line = max(1, self.next_line * (2 if it else 1))

    def finish(self) -> None:
        if self.live:
            print("\r" + " " * 50 + "\r", end="", file=sys.stderr, flush=True)


def _check_writable(path: str, what: str) -> None:
    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise FileError(f"{what} '{path}': the folder '{folder}' does not exist or cannot be written to.")


def run(args: argparse.Namespace, petsc_options: list[str]) -> int:
    """Solve what the arguments say. Returns 0, or raises."""
    if args.problem is None:
        raise InputError("which problem? Give a file or one of: " + ", ".join(problems.BUILT_IN))
    comm = launch.communicator()
    rank = 0 if comm is None else comm.Get_rank()
    talk = rank == 0 and not args.quiet
    logging.basicConfig(level=logging.WARNING, format="asterism: %(message)s")
    for path, what in (
        (args.report, "--report"),
        (args.save, "--save"),
        (args.trace, "--trace"),
        (args.checkpoint, "--checkpoint"),
    ):
        if path:
            _check_writable(path, what)
    if args.save:
        check_vector_name(args.save)
    if args.report:
        import importlib.util

        if importlib.util.find_spec("matplotlib") is None:
            raise InputError("--report needs matplotlib: pip install 'asterism[report]'")

    use_argv(petsc_options)
    started = time.perf_counter()
    A, described = problems.load(args.problem, args.n, comm, args.block_size)
    if A.shape[0] != A.shape[1]:
        return _least_squares(A, described, args, petsc_options, talk)
    if args.dtype:
        A = A.astype(args.dtype)
    if args.near_null_space:
        A.near_null_space = read_vector(args.near_null_space, A)
    if args.coordinates:
        nodes = read_vector(args.coordinates)
        _attach_modes(A, nodes)
    if args.storage != "auto":
        A = A.with_storage(args.storage)
        described += f", {args.storage} storage"
    layout = A._h.rows
    known = None
    if args.rhs:
        b = read_vector(args.rhs, A)
        if np.iscomplexobj(b) and A.dtype.kind != "c":
            raise ShapeError(f"'{args.rhs}' is complex, the matrix real; use --dtype complex128.")
        b = b.astype(A.dtype)
    else:
        # x* depends on the global index alone, so every number of ranks solves the same problem
        known = np.empty(A.local_shape[1], dtype=A.dtype)
        _core.fill_hashed(layout, known, 3)
        b = A @ known
    if talk:
        print(f"{described}; read or made in {time.perf_counter() - started:.2f} s", flush=True)

    solver = Solver(A, ksp=args.ksp, pc=args.pc, rtol=args.rtol, atol=args.atol, maxiter=args.max_it)
    use_argv([])
    if talk:
        print(f"set-up {solver._h.setup_seconds:.2f} s: {solver._h.method} + {solver._h.preconditioner}", flush=True)
    monitors = solver._options.get("ksp_monitor")
    progress = _Progress() if talk and not monitors else None
    failure: ConvergenceError | None = None
    trace = Trace(comm) if args.trace else None
    x0 = None if args.x0 is None else read_vector(args.x0, A, name="x" if format_of(args.x0) == "archive" else None)
    try:
        with trace or contextlib.nullcontext():
            x = solver.solve(
                b, x0, monitor=progress, checkpoint=args.checkpoint, checkpoint_every=args.checkpoint_every
            )
    except ConvergenceError as error:
        failure, x = error, error.x
    finally:
        if progress:
            progress.finish()
    info = solver.info
    assert info is not None
    error_norm = None
    if known is not None and not info.notes_of_projection():
        top, bottom = _core.norms(layout, as_values(x - known, "x")), _core.norms(layout, known)
        error_norm = top[0] / bottom[0] if bottom[0] > 0 else 0.0
    if args.save and failure is None:
        write_vector(args.save, x, A)
    if not args.quiet or args.report or solver._options.get("log_view"):  # collective: all ranks or none
        from ..report import collect, summary, write_html

        findings = collect(described, solver, info, comm, error_norm)
        if talk or (rank == 0 and solver._options.get("log_view")):
            print("\n" + summary(findings, 40 if solver._options.get("log_view") else 8), flush=True)
        if args.report and rank == 0:
            write_html(args.report, findings)
            if talk:
                print(f"report: {args.report}")
    if args.comm_report:
        traffic = comm_report(comm)
        if rank == 0:
            print(f"\n{traffic}", flush=True)
    if trace:
        trace.save(args.trace)
        if talk:
            print(f"trace: {args.trace}")
    if args.save and talk and failure is None:
        print(f"solution: {args.save}")
    if failure is not None:
        raise failure
    return 0


def _least_squares(A: Any, described: str, args: argparse.Namespace, petsc_options: list[str], talk: bool) -> int:
    """Solve with a matrix that is not square."""
    taken = ("atol", "checkpoint", "coordinates", "near_null_space", "report", "comm_report", "trace", "x0")
    refused = [f"--{name.replace('_', '-')}" for name in taken if getattr(args, name)]
    refused += ["--storage"] if args.storage != "auto" else []
    refused += [o for o in petsc_options if o.startswith("-")]
    if refused:
        raise InputError(f"{described}: not square; {', '.join(refused)} is not offered for least squares.")
    if args.save and A.comm_size > 1:
        raise InputError("--save of a least-squares solution is offered on one rank.")
    if args.dtype:
        A = A.astype(args.dtype)
    if args.ksp not in (None, "auto", "lsmr", "lsqr") or args.pc not in (None, "auto", "none"):
        raise InputError(
            f"{described}: not square; --ksp lsmr or lsqr, without a preconditioner, is what solves least squares."
        )
    method = "lsqr" if args.ksp == "lsqr" else "lsmr"
    if args.rhs:
        b = read_vector(args.rhs, A).astype(A.dtype)
    else:
        known = np.empty(A.local_shape[1], dtype=A.dtype)
        _core.fill_hashed(A._h.cols, known, 3)
        b = A @ known
    if talk:
        print(f"{described}: least squares by {method}", flush=True)
    progress = _Progress() if talk else None
    rtol = 1e-6 if args.rtol is None else args.rtol
    try:
        x, info = least_squares(
            A,
            b,
            method=method,
            atol=rtol,
            btol=rtol,
            maxiter=args.max_it,
            monitor=None if progress is None else lambda it, r, _: progress(it, r),
        )
    finally:
        if progress:
            progress.finish()
    if args.save:
        write_vector(args.save, x)
    if talk:
        print(f"\nresult          {info.reason}, after {info.iterations} iterations")
        print(f"||b - A x||     {info.residual_norm:.3e}")
        print(f"||A^H (b - Ax)|| {info.normal_norm:.3e}")
        print(f"cond(A)         {info.cond_A:.1e}, estimated")
    return 0 if info.converged else 3


def _attach_modes(A: Any, nodes: Any) -> None:
    """Rigid-body modes from the coordinates of all nodes (every rank has them all)."""
    if nodes.ndim != 2 or nodes.shape[1] not in (2, 3):
        raise ShapeError(f"--coordinates: shape {nodes.shape}; (nodes, 2) or (nodes, 3) is needed.")
    d = nodes.shape[1]
    if A.shape[0] % d or nodes.shape[0] < A.shape[0] // d:
        raise ShapeError(
            f"--coordinates: {nodes.shape[0]} nodes do not fit a matrix of {A.shape[0]} rows in {d} dimensions."
        )
    lo, hi = A.row_range
    if lo % d or hi % d:
        raise ShapeError(f"--coordinates: a node's rows are on two ranks; add --block-size {d}.")
    mine = np.ascontiguousarray(nodes[lo // d : hi // d].real)
    modes = np.asarray(_core.rigid_body_modes(mine.ravel().tolist(), d)).reshape(hi - lo, -1)
    A.block_size = d
    A.near_null_space = modes
