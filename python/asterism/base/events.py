"""The table of events: where the time of a run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["events_table"]


def events_table(events: Sequence[Mapping[str, Any]], triad: float = 0.0, most: int = 40) -> list[str]:
    """Return its lines, the longest event first.

    Parameters
    ----------
    events : sequence of mapping
        With name, calls, self_seconds (without the events within), bytes and messages.
    triad : float, optional
        Bytes per second of the machine, for the share of it; 0: not known.
    most : int
        Events that are shown.
    """
    share = f"{'of triad':>10}" if triad else ""
    lines = [f"{'where time went':<22}{'calls':>8}{'seconds':>10}{'GB/s':>8}{share}{'messages':>10}"]
    for e in sorted(events, key=lambda e: -float(e["self_seconds"]))[:most]:
        rate = e["bytes"] / e["self_seconds"] if e["self_seconds"] > 0 else 0
        shown = f"{rate / 1e9:8.1f}" if e["bytes"] else " " * 8
        if triad:
            shown += f"{100 * rate / triad:9.0f}%" if e["bytes"] else " " * 10
        lines.append(f"{e['name']:<22}{e['calls']:>8}{e['self_seconds']:>10.4f}{shown}{e['messages'] or '':>10}")
    return lines
