"""Checks that each rank makes by itself, and whose errors all ranks raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import _core
from ..errors import AsterismError, FileError, InputError

__all__ = ["agreed"]

T = TypeVar("T")


def agreed(comm: _core.Communicator, f: Callable[[], T]) -> T:
    """Return f(), which does not communicate; if it fails on any rank, raise on all. Collective."""
    try:
        out = f()
    except Exception as error:
        error.shared = True  # type: ignore[attr-defined]  # all ranks raise
        try:
            kind = (
                type(error)
                if isinstance(error, AsterismError)
                else FileError
                if isinstance(error, OSError)
                else InputError
            )
            comm.agree(str(error), kind.__name__)
        except AsterismError:
            raise error from None
        raise
    comm.agree(None)
    return out
