"""Entry point: arguments, ranks, exit codes."""

from __future__ import annotations

import argparse
import errno
import sys

from .. import _core
from ..base.files import is_text
from ..errors import AsterismError, ConvergenceError
from . import advise, bench, files, launch, model, output, problems, solve

__all__ = ["main"]

EXIT_NOT_CONVERGED = 3


def _split_options(argv: list[str]) -> tuple[list[str], list[str]]:
    """Part our arguments (--x) from PETSc-style options (-ksp_type cg)."""
    ours: list[str] = []
    theirs: list[str] = []
    i = 0
    while i < len(argv):
        a = argv[i]
        if a.startswith("-") and not a.startswith("--") and len(a) > 2 and a[1].isalpha():
            theirs.append(a)
            if i + 1 < len(argv) and not (argv[i + 1].startswith("-") and argv[i + 1][1:2].isalpha()) and "=" not in a:
                if not argv[i + 1].startswith("--"):
                    theirs.append(argv[i + 1])
                    i += 1
        else:
            ours.append(a)
        i += 1
    return ours, theirs


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="asterism",
        description="Solve large sparse systems, and be told what limited the speed.",
        epilog="examples:\n"
        "  asterism solve K.mtx.gz --ksp cg --pc amg --rtol 1e-8 --ranks 2 --report out.html\n"
        "  asterism solve poisson3d --n 128\n"
        "  asterism solve A.mtx --rhs b.mtx --save x.mtx -ksp_gmres_restart 100 -ksp_monitor\n"
        "  asterism advise K.mtx.gz --budget 30\n"
        "  asterism inspect K.mtx.gz\n"
        "  asterism convert K.mtx.gz K.ast\n"
        "  asterism info\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--version", action="version", version=f"asterism {_core.version()}")
    sub = p.add_subparsers(dest="command", metavar="solve | advise | inspect | convert | info | bench | model")
    solve.add_arguments(sub)
    advise.add_arguments(sub)
    info = sub.add_parser(
        "info",
        help="what this build and machine can do",
        description="Print the version, the compiler, the processor, MPI and the GPUs that this build and machine have.",
        epilog="examples:\n  asterism info\n  asterism info --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    info.add_argument("--json", action="store_true", help="as JSON")
    files.add_arguments(sub)
    bench.add_arguments(sub)
    model.add_arguments(sub)
    return p


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 done, 1 an error, 2 wrong usage, 3 not converged."""
    with output.streams_of_a_program():
        try:
            try:
                return _run(sys.argv[1:] if argv is None else argv)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:  # nobody reads any more
            output.drop(sys.stdout)
            output.drop(sys.stderr)
            return output.BROKEN_PIPE
        except OSError as error:
            output.drop(sys.stdout)
            unwritten = error.filename is None and error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EBADF)
            _say(f"{'standard output cannot be written: ' if unwritten else ''}{error}")
            return 1


def _run(given: list[str]) -> int:
    ours, theirs = (given, []) if bench.has_short_options(given) else _split_options(given)
    parser = _parser()
    args = parser.parse_args(ours)
    if args.command is None:
        parser.print_help()
        return 2
    for name, value in vars(args).items():
        if value == "" and name != "options":  # of bench gmg
            parser.error(f"{name.replace('_', '-')} is empty, as of a variable of the shell that is not set")
    if wrong := [word for word in given if not is_text(word)]:
        parser.error(f"{ascii(wrong[0])} is no UTF-8: rename the file")
    if theirs and args.command != "solve":
        parser.error(f"{args.command} takes no options like {theirs[0]}")
    try:
        ranks = launch.check_ranks(args) if hasattr(args, "ranks") else 1
        if args.command == "solve":
            solve.check(args, theirs, ranks)
        elif args.command == "advise":
            advise.check(args)
        elif args.command in ("convert", "inspect"):
            files.check(args, ranks)
        elif args.command == "bench":
            ranks = bench.check(args) or 1
        if ranks > 1 and not launch.under_mpi():
            return launch.run(ranks, given)
        if args.command == "info":
            return _info(args)
        if args.command == "advise":
            return advise.run(args)
        if args.command == "bench":
            return bench.run(args)
        if args.command == "model":
            return model.run(args)
        if args.command == "convert":
            return files.convert(args)
        if args.command == "inspect":
            return files.inspect(args)
        if args.help_options:
            return problems.print_options()
        return solve.run(args, theirs)
    except ConvergenceError as error:
        _say(f"not converged. {error}")
        return launch.end_together(EXIT_NOT_CONVERGED)
    except AsterismError as error:
        _say(f"{type(error).__name__}: {error}")
        return launch.end_together(1) if error.shared else 1
    except ImportError as error:  # of SciPy, matplotlib: what is needed for this command alone
        _say(f"{error}" + (f": pip install {error.name.partition('.')[0]}" if error.name else ""))
        return 1
    except KeyboardInterrupt as error:
        _say(f"interrupted. {error}")
        return 130


def _say(text: str) -> None:
    if launch.world_rank() == 0:
        print(f"asterism: {text}", file=sys.stderr, flush=True)


def _info(args: argparse.Namespace) -> int:
    from ..base.machine import describe

    d = describe()
    if args.json:
        output.print_json(d)
        return 0
    width = max(map(len, d))
    for key, value in d.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"{key:<{width}}  {shown if shown != '' else 'none'}")
    return 0
