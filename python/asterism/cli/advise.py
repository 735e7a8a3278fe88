"""``asterism advise``: which solver, and which options."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from typing import Any

from ..base.files import check_apart, check_target
from ..base.live import show_set_ups
from ..errors import InputError
from ..solvers.advise import Advice, advise
from . import launch, output, problems
from .table import print_table

__all__ = ["add_arguments", "check", "run"]

_TUNED = "asterism.options"


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    p = sub.add_parser(
        "advise",
        help="try solvers on a system, and say which options are best",
        description="Look at a matrix, try a short list of solvers that the look allows, and rank them.",
        epilog=f"built-in problems:\n{problems.list_built_in()}\n\n"
        "Ranked by set-up and solve together. Trials under 0.3 s are repeated, and the least time counts. A trial ends where it takes 0.3 of\n"
        "what is left of the budget, or 3 times as long as the best so far.\n\nexamples:\n"
        "  asterism advise K.mtx.gz --budget 30\n"
        "  asterism advise K.mtx.gz --block-size 3 --rtol 1e-10 --ranks 2\n"
        "  asterism advise A.mtx --rhs b.mtx --tune --save A.options\n"
        "  asterism solve A.mtx --rhs b.mtx --options-file A.options\n\n"
        "exit code: 0 one or more converged, 1 an error, 2 wrong usage, 3 none converged",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    problems.add_description(p)
    p.add_argument("--rtol", type=problems.number, default=1e-8, help="converged is ||b - A x|| <= rtol ||b|| (1e-8)")
    p.add_argument(
        "--budget", type=problems.number, default=60.0, metavar="SECONDS", help="for all trials together (60)"
    )
    p.add_argument("--tune", action="store_true", help="then vary the options of the best, and save them")
    p.add_argument(
        "--save", metavar="FILE", help=f"write the options of the best for asterism solve ({_TUNED} with --tune)"
    )
    p.add_argument("--json", action="store_true", help="all that was measured, as JSON")
    launch.add_ranks(p)


def check(args: argparse.Namespace) -> None:
    """Raise for what can be known to fail before the work."""
    problems.check_description(args)
    if args.tune and args.save is None:
        args.save = _TUNED
    if args.save:
        check_target(args.save, "--save")
        check_apart({"--save": args.save}, problems.files_of(args))
    if not 0 < args.budget < float("inf"):
        raise InputError(f"--budget {args.budget:g}: a positive number of seconds is needed.")
    if not 0 < args.rtol < 1:
        raise InputError(f"--rtol {args.rtol:g}: a number between 0 and 1 is needed.")


def run(args: argparse.Namespace) -> int:
    """Try, print and save; the exit code of a solve that did not converge where nothing did."""
    comm = launch.communicator()
    rank = 0 if comm is None else comm.Get_rank()
    logging.basicConfig(level=logging.ERROR, format="asterism: %(message)s")
    if args.save:
        output.go_on_without_readers()
    A, described = problems.load(args.problem, args.n, comm, args.block_size, args.name)
    if A.shape[0] != A.shape[1]:
        raise InputError(f"{described}: not square. asterism solve takes least squares for it, by lsmr or lsqr.")
    A = problems.described(A, args)
    if args.dtype:
        described += f", as {A.dtype}"
    b, _ = problems.rhs(A, args)
    if rank == 0:
        show_set_ups()
        if not args.json:
            print(described, flush=True)
    found = advise(A, b, budget=args.budget, rtol=args.rtol, tune=args.tune, what=described, in_logs=True)
    if rank == 0:
        if args.save and found.best is not None:
            found.save(args.save)
        if args.json:
            output.print_json({**found.as_dict(), "saved": args.save if found.best else None})
        else:
            _show(found, args)
        if found.best is None:
            print(f"asterism: not converged. {found.why()}", file=sys.stderr, flush=True)
    return 0 if found.best is not None else launch.end_together(3)


def _show(found: Advice, args: argparse.Namespace) -> None:
    print(f"seen: {', '.join(found.look.words())}")
    method, first = found.look.auto
    print(f"auto takes {method} and {first.removeprefix('-pc_type ')}\n")
    head, *rows = found.rows()
    ranks = f", {found.look.ranks} ranks" if found.look.ranks > 1 else ""
    print_table(f"{len(rows)} trial(s) to {found.rtol:g}{ranks}", head, rows)
    if found.best is None:
        return
    given = "".join(
        f" --{name.replace('_', '-')} {shlex.quote(str(value))}"
        for name in ("n", "name", "rhs", "near_null_space", "coordinates", "dtype")
        if (value := getattr(args, name)) is not None
    )
    given += f" --block-size {args.block_size}" * (args.block_size > 1) + f" --ranks {args.ranks}" * (args.ranks > 1)
    given += " --oversubscribe" * args.oversubscribe
    options = f"--options-file {shlex.quote(args.save)}" if args.save else found.options
    print(f"\nto solve with the best:\n  asterism solve {shlex.quote(args.problem)}{given} {options}")
    if args.save:
        print(f"options: {args.save}: {found.options}")
