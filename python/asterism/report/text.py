"""The summary at the end of a run, as text."""

from __future__ import annotations

from ..base.events import events_table
from .collect import Findings

__all__ = ["summary"]


def summary(f: Findings, events: int = 8) -> str:
    """Return some twenty lines for a terminal.

    Parameters
    ----------
    f : Findings
        Of `collect`.
    events : int
        Lines of the table of events at most.

    Returns
    -------
    str
    """
    i = f.info
    true, rhs = max_of(i.true_residual), max_of(i.rhs_norm)
    relative = true / rhs if rhs > 0 else true
    lines = [
        f"problem         {f.problem}",
        f"solver          {i.method} + {i.preconditioner}, {f.ranks} rank(s) x {f.threads} thread(s)",
        f"result          {i.reason} after {i.iterations} iterations",
        f"||b - A x||     {true:.3e}  ({relative:.2e} of ||b||), computed from the answer",
    ]
    if f.error is not None:
        lines.append(f"error           {f.error:.2e}  relative, against the known solution")
    lines += [
        f"time            set-up {i.setup_seconds:.3f} s, solve {i.solve_seconds:.3f} s",
        f"memory          {i.memory_bytes / 1e6:.1f} MB for matrix and preconditioner on rank 0",
    ]
    for note in i.notes:
        lines.append(f"note            {note}")
    lines += ["", *events_table(f.events, f.triad, events)]
    lines.append("")
    lines += [f"- {a}" for a in f.advice]
    return "\n".join(lines)


def max_of(value: object) -> float:
    """Largest of a number or an array of them."""
    import numpy as np

    array = np.asarray(value, dtype=float)
    return float(array.max()) if array.size else 0.0
