"""What the program writes: JSON; standard output and error whose reader may go away, as in ``asterism solve ... | head -1``."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["BROKEN_PIPE", "drop", "go_on_without_readers", "print_json", "streams_of_a_program"]

BROKEN_PIPE = 141  # what a shell reports of a program that SIGPIPE ended


def print_json(value: Any, indent: int | None = 1) -> None:
    """Print a value as JSON, which has no NaN and no infinity: null stands for them."""
    print(json.dumps(_finite(value), indent=indent, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def drop(stream: Any) -> None:
    """Let what is still written to a stream, at exit too, vanish."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, io.UnsupportedOperation):
        pass


@contextlib.contextmanager
def streams_of_a_program() -> Iterator[None]:
    """Change standard output, error and the log for the time of a command. A Python program that runs one has its own again after it."""
    out, error = sys.stdout, sys.stderr
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    strict = out.errors if isinstance(out, io.TextIOWrapper) else None
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # of a terminal that has no Greek letters
    with contextlib.ExitStack() as opened:
        # None is a stream that the shell has closed
        sys.stdout = out or opened.enter_context(open(os.devnull, "w"))
        sys.stderr = _Unread(error or opened.enter_context(open(os.devnull, "w")))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, error
            if isinstance(out, io.TextIOWrapper):
                out.reconfigure(errors=strict)
            root.handlers[:] = handlers
            root.setLevel(level)


class _Unread:
    """A stream that vanishes with its reader, or when the disk is full, while the work goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except OSError:
            drop(self._stream)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            drop(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def go_on_without_readers() -> None:
    """From now on nobody needs to read what is printed: files are to be written."""
    sys.stdout = _Unread(sys.stdout)
