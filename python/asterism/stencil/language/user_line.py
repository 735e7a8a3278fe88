"""The line of the user's program that a stencil, and an error in it, come from."""

from __future__ import annotations

import linecache
import sys
from typing import NoReturn

from ...errors import InputError

Line = tuple[str, int]


def line_of_user() -> Line:
    """Return file and line of the nearest caller outside of this package."""
    frame, room = sys._getframe(1), __name__.rsplit(".", 2)[0]  # this package's room: asterism.stencil
    while frame.f_globals.get("__name__", "").startswith(room) and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def fail(line: Line, problem: str) -> NoReturn:
    """Raise an `InputError` that shows the line of the user's program."""
    text = linecache.getline(*line).strip()
    raise InputError(f"{problem}\n  {line[0]}:{line[1]}" + (f": {text}" if text else ""))


def fail_here(problem: str) -> NoReturn:
    """Raise an `InputError` that shows the line of the user's program that is at work."""
    fail(line_of_user(), problem)
