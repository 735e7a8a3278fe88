"""How objects show themselves: one line for ``repr``, a table for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["html_table", "si_bytes"]


def html_table(
    title: str, facts: Mapping[str, object], head: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()
) -> str:
    """Return a table of facts and, where it has a head, one of rows below. Without styles: a notebook brings its own."""
    out = f"<div><b>{html.escape(title)}</b><table>"
    for name, value in facts.items():
        out += f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
    if head:
        out += "</table><table><tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in head) + "</tr>"
        for row in rows:
            out += "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
    return out + "</table></div>"


def si_bytes(n: float) -> str:
    """Return a number of bytes with its unit: 1500 is 1.5 kB."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"
