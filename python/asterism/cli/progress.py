"""How far a solve has come: a live line on a terminal; now and then a line in a log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..base.live import LiveLine, set_up_text

__all__ = ["Progress", "steps"]

Item = TypeVar("Item")

_LIVE_SECONDS, _LOG_SECONDS = 0.1, 10.0


class Progress:
    """Shows norms, how fast they fall, and how many iterations that leaves.

    Parameters
    ----------
    target : float, optional
        Where the norm that is judged is to arrive, if that is known.
    """

    def __init__(self, target: float | None) -> None:
        self.target = target
        self._line = LiveLine()
        self._past: list[tuple[int, float]] = []  # (iteration, logarithm of the norm)
        self._shown_at = -math.inf
        self._next = 0

    def __call__(self, it: int, norm: float, text: str) -> None:
        """Show an iteration; `norm` is the one that is judged, `text` what to print."""
        if norm > 0 and math.isfinite(norm):
            self._past.append((it, math.log10(norm)))
            del self._past[: len(self._past) - 1000 if len(self._past) > 2000 else 0]
        now = time.monotonic()
        if self._line.possible:
            if now - self._shown_at > _LIVE_SECONDS:
                self._line.show(f"  iteration {it:6d}   {text}{self._rate()}")
                self._shown_at = now
        elif it >= self._next or now - self._shown_at > _LOG_SECONDS:
            print(f"  iteration {it:6d}   {text}{self._rate()}", file=sys.stderr, flush=True)
            self._shown_at = now
            if it >= self._next:
                self._next = _after(it)

    def _rate(self) -> str:
        """Digits an iteration over the last half of what is known, and the iterations that are left at that rate."""
        if len(self._past) < 3:
            return ""
        (then, before), (now, after) = self._past[len(self._past) // 2], self._past[-1]
        rate = (before - after) / max(now - then, 1)
        if rate <= 1e-6:
            return "   not falling"
        text = f"   {rate:.2g} digits an iteration"
        left = after - math.log10(self.target) if self.target else 0.0
        return text + (f", some {math.ceil(left / rate)} left" if left > 0 else "")

    def finish(self) -> None:
        """Wipe the live line."""
        self._line.wipe()


def steps(what: str, items: Iterable[Item], comm: Any = None) -> Iterator[Item]:
    """Go through the items, and show on rank 0 how many are done and how long the rest may take; in a log every 10 s."""
    listed = list(items)
    talk = comm is None or comm.rank == 0
    line, start = LiveLine(), time.monotonic()
    logged = start
    for done, item in enumerate(listed):
        now = time.monotonic()
        text = set_up_text(f"{what}: {done} of {len(listed)} done", done / len(listed), now - start)
        if talk and line.possible:
            line.show(text)
        elif talk and now - logged > _LOG_SECONDS:
            print(text, file=sys.stderr, flush=True)
            logged = now
        yield item
    line.wipe()


def _after(it: int) -> int:
    """Next of 1, 2, 5, 10, 20, 50, ... after it."""
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power > it:
                return step * power
        power *= 10
