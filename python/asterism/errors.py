"""Exceptions: their type says whose fault it is, their text carries the values and a hint."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .solvers.info import SolveInfo

__all__ = [
    "AsterismError",
    "BreakdownError",
    "CommError",
    "ConvergenceError",
    "DtypeError",
    "FileError",
    "FormatError",
    "InputError",
    "InternalError",
    "OptionError",
    "OutOfMemoryError",
    "ShapeError",
    "TimeLimitError",
    "UnsupportedError",
]


def __dir__() -> list[str]:
    return __all__


class AsterismError(Exception):
    """Base of all errors of this library. They can be pickled, so worker processes can raise them.

    Attributes
    ----------
    shared : bool
        All ranks raise it: what each rank found, or what one rank found and the others were told, in the same call. A rank that had
        left that call before gets it in its next one.
    """

    shared = False

    def __reduce__(self) -> tuple[Any, ...]:
        # not by calling the class: its arguments are not always the text, and a pool waits for ever for an error that it cannot read
        return _unpickled, (type(self), self.args, self.__dict__)


class ShapeError(AsterismError, ValueError):
    """Sizes or layouts do not fit together."""


class DtypeError(AsterismError, TypeError):
    """A scalar type that cannot be used here."""


class InputError(AsterismError, ValueError):
    """Numbers in the input: NaN, an index out of range, singular where it must not be."""


class OptionError(AsterismError, ValueError):
    """An option's name, type or value."""


class FileError(AsterismError, OSError):
    """A file cannot be opened, read or written."""


class FormatError(AsterismError, ValueError):
    """The contents of a file."""


class CommError(AsterismError, RuntimeError):
    """Communicators and MPI."""


class BreakdownError(AsterismError, ArithmeticError):
    """A numerical method cannot go on."""


class UnsupportedError(AsterismError, NotImplementedError):
    """A combination that is not there."""


class OutOfMemoryError(AsterismError, MemoryError):
    """Out of memory, or a size that overflows."""


class InternalError(AsterismError, RuntimeError):
    """Our fault."""


class ConvergenceError(AsterismError, ArithmeticError):
    """A solve did not converge.

    Attributes
    ----------
    x : array
        The iterate with the smallest residual of those that were kept; with ``-ksp_keep_best false`` the last one.
    info : SolveInfo
        What happened; ``info.why`` names the option to try.
    """

    shared = True

    def __init__(self, message: str, x: Any, info: SolveInfo) -> None:
        super().__init__(message)
        self.x = x
        self.info = info


class TimeLimitError(AsterismError, TimeoutError):
    """The time of a trial of `advise` was over, in a set-up. `advise` itself catches it."""


def _unpickled(cls: type[AsterismError], args: tuple[Any, ...], state: dict[str, Any]) -> AsterismError:
    make: Any = (
        OSError if issubclass(cls, OSError) else Exception
    )  # which memory the object has; cls.__new__ may be another's
    error: AsterismError = make.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def by_name(name: str) -> type[Exception]:
    """Return the class that the compiled core means by a name."""
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, Exception) else InternalError


def refuse_pickles(core: Any) -> None:
    """Let the compiled core's classes say what to do instead: what they hold is memory of this process."""

    def refuse(self: object) -> Any:
        raise UnsupportedError(
            f"{type(self).__name__} cannot be pickled or copied: what it holds is memory of this process. Pickle what it was made of, and "
            "make another one there."
        )

    for cls in vars(core).values():
        if isinstance(cls, type) and not issubclass(cls, (Exception, enum.Enum)):  # which can be
            cls.__reduce__ = refuse  # type: ignore[method-assign]
