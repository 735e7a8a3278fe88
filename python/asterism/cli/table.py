"""Aligned tables for a terminal."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

__all__ = ["in_bytes", "microseconds", "print_table"]


def microseconds(seconds: Sequence[float]) -> str:
    """Return the median of times, in microseconds."""
    return f"{1e6 * statistics.median(seconds):.2f}"


def in_bytes(n: int) -> str:
    """Return a number of bytes with its binary unit, as sizes of messages are: 4096 is 4 KiB."""
    for unit in ("B", "KiB", "MiB"):
        if n < 1024 or n % 1024 or unit == "MiB":
            return f"{n} {unit}"
        n //= 1024
    raise AssertionError


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).lstrip("+-").removesuffix(" %").isdigit() or cell in ("", "-")


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a title, a head and rows; columns of numbers are right-aligned."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(map(_is_number, column[1:])) for column in columns]
    print(title)
    for line in cells:
        text = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True))
        print("  " + "  ".join(text).rstrip())
