"""``asterism solve``."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import os
import time
from typing import Any

import numpy as np

from .. import _core, gallery
from ..base.files import check_apart, check_target
from ..base.live import show_set_ups
from ..base.machine import WaitsForCores
from ..base.options import use_argv, use_file
from ..comm.report import comm_report
from ..errors import AsterismError, ConvergenceError, InputError, OptionError, UnsupportedError
from ..la.file_formats import check_vector_name
from ..la.io import write_vector
from ..la.operator import as_values
from ..report.trace import Trace
from ..solvers.input import check_checkpoint
from ..solvers.least_squares import least_squares
from ..solvers.solver import Solver
from . import launch, output, problems
from .progress import Progress

__all__ = ["add_arguments", "run"]

_EVERY = 200  # iterations from one checkpoint to the next
_OURS = {"ksp": "ksp_type", "pc": "pc_type", "rtol": "ksp_rtol", "atol": "ksp_atol", "max_it": "ksp_max_it"}


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    methods, preconditioners = _core.component_names()
    p = sub.add_parser(
        "solve",
        help="solve a system from a file or a built-in problem",
        description="Solve A x = b and verify the answer.",
        epilog=f"built-in problems:\n{problems.list_built_in()}\n\n"
        "Any option of the solver may follow in PETSc's form, e.g. -ksp_gmres_restart 50 -pc_amg_threshold 0.1;\n"
        "--help-options lists them.\n\nexamples:\n"
        "  asterism solve poisson3d --n 128 --ranks 2\n"
        "  asterism solve K.mtx.gz --ksp cg --pc amg --block-size 3 --report out.html\n"
        "  asterism solve A.mtx --rhs b.mtx --save x.mtx --rtol 1e-10\n\n"
        "exit code: 0 converged, 1 an error, 2 wrong usage, 3 not converged",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    problems.add_description(p)
    p.add_argument("--x0", metavar="FILE[:NAME]", help="initial guess, e.g. a checkpoint or what --save wrote")
    p.add_argument("--checkpoint", metavar="FILE.ast", help="keep the iterate there, also of a solve that is stopped")
    p.add_argument("--checkpoint-every", type=problems.count, metavar="K", help="iterations from one to the next (200)")
    p.add_argument("--ksp", metavar="NAME", help="method: auto, " + ", ".join(methods))
    p.add_argument("--pc", metavar="NAME", help="preconditioner: auto, " + ", ".join(preconditioners))
    p.add_argument("--rtol", type=problems.number, help="stop when ||b - A x|| <= rtol ||b|| (default 1e-5)")
    p.add_argument("--atol", type=problems.number, help="or when ||b - A x|| <= atol")
    p.add_argument("--max-it", type=problems.whole, help="most iterations")
    p.add_argument("--fallback", action="store_true", help="if the iteration fails, solve directly, by lu")
    p.add_argument(
        "--storage",
        choices=("auto", "symmetric", "hermitian"),
        default="auto",
        help="hold half of a symmetric matrix: less memory; preconditioners other than jacobi and chebyshev make the rest",
    )
    launch.add_ranks(p)
    p.add_argument("--report", metavar="FILE.html", help="write one self-contained page about the run")
    p.add_argument("--comm-report", action="store_true", help="say what the ranks sent each other, and how")
    p.add_argument("--trace", metavar="FILE.json", help="write what each thread did when, for https://ui.perfetto.dev")
    p.add_argument("--options-file", metavar="FILE", help="read options from it, as asterism advise --tune writes them")
    p.add_argument("--save", metavar="FILE", help="write the solution: .mtx, .petsc, .npy or .ast")
    p.add_argument("--quiet", action="store_true", help="only the exit code, errors and what was asked for by options")
    p.add_argument("--help-options", action="store_true", help="list every solver option and stop")


def check(args: argparse.Namespace, petsc_options: list[str], ranks: int) -> None:
    """Raise for all that can be known to fail before the work: files that cannot be read or written, missing packages, options."""
    if args.help_options:
        return
    if args.problem is None:
        _look_for_the_problem(petsc_options)
    problems.check_description(args)
    _check_both(args, petsc_options)
    if args.rtol is not None and not 0 <= args.rtol < 1:
        raise InputError(f"--rtol {args.rtol:g}: a number from 0 to below 1 is needed, as 1e-8.")
    written = {f"--{name}": getattr(args, name) for name in ("report", "save", "trace", "checkpoint")}
    for name, path in written.items():
        if path:
            check_target(path, name)
    # not --x0, from which a solve goes on
    check_apart(written, {**problems.files_of(args), "--options-file": args.options_file})
    if args.save:
        check_vector_name(args.save, ranks)
    if args.x0:
        problems.check_vector("--x0", args.x0)
    if args.report and importlib.util.find_spec("matplotlib") is None:
        raise InputError("--report needs matplotlib: pip install 'asterism-sparse[report]'")
    if args.ksp in ("lsmr", "lsqr"):  # no methods of a Solver
        return
    use_file(args.options_file)
    use_argv(petsc_options)
    logger = logging.getLogger("asterism")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # warnings come once, from the system itself
    try:  # names and values of options, on a system of four unknowns; what else it cannot be set up for is that system's
        tried = _solver(gallery.poisson((4,)), args)
    except (OptionError, UnsupportedError) as error:
        text = str(error)
        for ours, option in _OURS.items():
            text = text.replace(f"option -{option} (call):", f"--{ours.replace('_', '-')}:")
        raise type(error)(text) from None
    except AsterismError:
        return
    finally:
        logger.setLevel(level)
        use_argv([])
        use_file(None)
        _core.profile_reset()
    if args.checkpoint_every and not args.checkpoint:
        raise InputError(f"--checkpoint-every {args.checkpoint_every} goes with --checkpoint FILE.ast.")
    if args.checkpoint:
        check_checkpoint(args.checkpoint, args.checkpoint_every or _EVERY, tried._flag("ksp_asynchronous"))


def _look_for_the_problem(petsc_options: list[str]) -> None:
    """Raise where it stands behind an option, whose value it seems to be."""
    for option, word in zip(petsc_options, petsc_options[1:], strict=False):
        if option.startswith("-") and (word in problems.BUILT_IN or os.path.isfile(word)):
            raise InputError(f"which problem? '{word}' is read as the value of {option}. Name the problem first.")


def _check_both(args: argparse.Namespace, petsc_options: list[str]) -> None:
    for ours, option in _OURS.items():
        if getattr(args, ours) is not None and f"-{option}" in petsc_options:
            raise InputError(f"--{ours.replace('_', '-')} and -{option} are the same option. Give one of them.")


def _solver(A: Any, args: argparse.Namespace) -> Solver:
    return Solver(A, ksp=args.ksp, pc=args.pc, rtol=args.rtol, atol=args.atol, maxiter=args.max_it)


def run(args: argparse.Namespace, petsc_options: list[str]) -> int:
    """Solve what the arguments say. Returns 0, or raises."""
    comm = launch.communicator()
    rank = 0 if comm is None else comm.Get_rank()
    talk = rank == 0 and not args.quiet
    logging.basicConfig(level=logging.WARNING, format="asterism: %(message)s")
    if any((args.save, args.report, args.trace, args.checkpoint)):
        output.go_on_without_readers()
    use_file(args.options_file)
    # with --fallback a second solver may read what the first does not
    use_argv(
        petsc_options,
        read_elsewhere=[name for table, name, *_ in _core.option_tables() if args.fallback and table == "lu"],
    )
    started = time.perf_counter()
    A, described = problems.load(args.problem, args.n, comm, args.block_size, args.name)
    if A.shape[0] != A.shape[1]:
        return _least_squares(A, described, args, petsc_options, talk)
    A = problems.described(A, args)
    if args.dtype:
        described += f", as {A.dtype}"
    if args.storage != "auto":
        A = A.with_storage(args.storage)
        described += f", {args.storage} storage"
    layout = A._h.rows
    known = None
    b, known = problems.rhs(A, args)
    x0 = None if args.x0 is None else problems.vector(args.x0, A)
    if talk:
        print(f"{described}; read or made in {time.perf_counter() - started:.2f} s", flush=True)

    waits = WaitsForCores()
    if talk:
        show_set_ups(in_logs=True)
    solver = _solver(A, args)
    use_argv([])
    use_file(None)
    if talk:
        print(f"set-up {solver._h.setup_seconds:.2f} s: {solver._h.method} + {solver._h.preconditioner}", flush=True)
    progress, monitor = _watch(solver, b, talk and not solver._flag("ksp_monitor"))
    failure: ConvergenceError | None = None
    trace = Trace(comm) if args.trace else None
    try:
        with trace or contextlib.nullcontext():
            x = solver.solve(
                b, x0, monitor=monitor, checkpoint=args.checkpoint, checkpoint_every=args.checkpoint_every or _EVERY
            )
    except ConvergenceError as error:
        failure, x = error, error.x
    finally:
        if progress:
            progress.finish()
    if failure is not None and args.fallback and solver.factors is None:
        use_file(args.options_file)
        use_argv(petsc_options, read_elsewhere=[name for _, name, *_ in _core.option_tables()])  # the first has warned
        solver, x, failure = _directly(A, b, args, failure, talk)
        use_argv([])
        use_file(None)
    waited = waits.share()
    info = solver.info
    assert info is not None
    error_norm = None
    if known is not None and not info.notes_of_projection():
        top, bottom = _core.norms(layout, as_values(x - known, "x")), _core.norms(layout, known)
        error_norm = top[0] / bottom[0] if bottom[0] > 0 else 0.0
    if args.save and failure is None:
        write_vector(args.save, x, A)
    if not args.quiet or args.report:  # collective: all ranks or none
        from ..report import collect, summary, write_html

        findings = collect(described, solver, info, comm, error_norm, waited)
        if talk:
            print("\n" + summary(findings), flush=True)
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


def _directly(
    A: Any, b: Any, args: argparse.Namespace, failed: ConvergenceError, talk: bool
) -> tuple[Solver, Any, ConvergenceError | None]:
    """Solve by lu after an iteration that failed, and say so in the notes. Collective."""
    before = failed.info
    note = f"{before.method} + {before.preconditioner} ended with {before.reason}; solved directly instead (--fallback)"
    if talk:
        print(note, flush=True)
    solver = Solver(A, ksp="preonly", pc="lu", rtol=args.rtol, atol=args.atol)
    failure: ConvergenceError | None = None
    try:
        x = solver.solve(b, checkpoint=args.checkpoint)
    except ConvergenceError as error:
        failure, x = error, error.x
    assert solver.info is not None
    solver.info.notes.insert(0, note)
    return solver, x, failure


def _watch(solver: Solver, b: Any, talk: bool) -> tuple[Progress | None, Any]:
    """Return what shows the iterations of a solve, and the monitor that calls it. Collective."""
    norms = np.asarray(_core.norms(solver.A._h.rows, b))
    if not talk:
        return None, None
    said = {o["name"]: float(o["value"]) for o in solver.options_in_force() if o["name"] in ("ksp_rtol", "ksp_atol")}
    size = float(norms.max(initial=0.0)) or 1.0
    progress = Progress(max(said["ksp_rtol"], said["ksp_atol"] / size))

    def monitor(it: int, norm: Any) -> None:
        worst = float(np.max(norm)) / size
        progress(it, worst, f"||r||/||b|| {worst:.2e}")

    return progress, monitor


def _least_squares(A: Any, described: str, args: argparse.Namespace, petsc_options: list[str], talk: bool) -> int:
    """Solve with a matrix that is not square."""
    taken = (
        "atol",
        "checkpoint",
        "coordinates",
        "near_null_space",
        "report",
        "comm_report",
        "trace",
        "x0",
        "options_file",
        "fallback",
    )
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
        b = problems.vector(args.rhs, A, "b").astype(A.dtype)
    else:
        known = np.empty(A.local_shape[1], dtype=A.dtype)
        _core.fill_hashed(A._h.cols, known, 3)
        b = A @ known
    if talk:
        print(f"{described}: least squares by {method}", flush=True)
    rtol = 1e-6 if args.rtol is None else args.rtol
    progress = Progress(None) if talk else None
    size = _core.norms(A._h.rows, b)[0]

    def monitor(it: int, r: float, normal: float) -> None:
        assert progress is not None
        progress(it, normal, f"||b - A x||/||b|| {r / (size or 1.0):.2e}   ||A^H (b - A x)|| {normal:.2e}")

    try:
        x, info = least_squares(
            A, b, method=method, atol=rtol, btol=rtol, maxiter=args.max_it, monitor=monitor if talk else None
        )
    finally:
        if progress:
            progress.finish()
    if args.save:
        write_vector(args.save, x)
    if talk:
        cond = f"at least {info.cond_A:.1e}: the estimate of lsmr is a lower bound"
        if method == "lsqr":
            cond = f"about {info.cond_A:.1e}, estimated by Frobenius norms"
        print(
            f"\nresult             {info.reason}, after {info.iterations} iterations\n"
            f"||b - A x||        {info.residual_norm:.3e}, {info.relative_residual:.2e} of ||b||. "
            f"A x = b to {rtol:g} needs {info.residual_limit:.3e}, {rtol:g} (||b|| + ||A|| ||x||)\n"
            f"||A^H (b - A x)||  {info.normal_norm:.3e}. "
            f"Least squares to {rtol:g} needs {info.normal_limit:.3e}, {rtol:g} ||A|| ||b - A x||\n"
            f"cond(A)            {cond}"
        )
        if args.save:
            print(f"solution: {args.save}")
    return 0 if info.converged else launch.end_together(3)
