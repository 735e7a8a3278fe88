"""What people see: long work on one line of a terminal, written over again and again, and the library's messages in Python's log."""

from __future__ import annotations

import logging
import os
import sys
import time

from .. import _core

__all__ = ["LiveLine", "show_set_ups"]

_LOG_SECONDS = 10.0


class LiveLine:
    """A line at the bottom of a terminal; nothing where ``stderr`` is not one."""

    def __init__(self) -> None:
        self._width = 0

    @property
    def possible(self) -> bool:
        """Whether ``stderr`` is a terminal."""
        return sys.stderr is not None and sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Write the text over the one before; what does not fit the terminal is left out, since a second line would stay."""
        if self.possible:
            most = _columns() - 1
            print("\r" + text.ljust(self._width)[:most], end="", file=sys.stderr, flush=True)
            self._width = min(len(text), most)

    def wipe(self) -> None:
        """Leave no trace."""
        if self._width and self.possible:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
        self._width = 0


def _columns() -> int:
    """Return the width of the terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # a terminal that Python imitates
        return 80


def set_up_text(what: str, fraction: float, seconds: float) -> str:
    """Return what is shown of a set-up: how much of it is done, for how long it has gone on, and how long it may take yet."""
    if not 0.01 <= fraction <= 1:
        return f"  {what}   {seconds:.0f} s"
    left = seconds * (1 - fraction) / fraction
    return f"  {what}   {100 * fraction:.0f} %, {seconds:.0f} s, some {left:.0f} s left"


def show_set_ups(in_logs: bool = False) -> None:
    """Show set-ups that take longer than a second on a terminal, with an estimate; in logs every 10 s, if that is wanted."""
    line, logged = LiveLine(), 0.0

    def shown(what: str, fraction: float, seconds: float, ended: bool) -> None:
        nonlocal logged
        if ended:
            line.wipe()
        elif line.possible:
            line.show(set_up_text(what, fraction, seconds))
        elif in_logs and time.monotonic() - logged > _LOG_SECONDS:
            logged = time.monotonic()
            print(set_up_text(what, fraction, seconds), file=sys.stderr, flush=True)

    _core.set_progress_sink(shown)


def connect() -> None:
    """Show set-ups, and hand the compiled library's messages to the logger ``asterism``."""
    logger = logging.getLogger("asterism")
    show_set_ups()
    _core.set_log_sink(lambda level, text: logger.log((10, 20, 30)[level], "%s", text))
