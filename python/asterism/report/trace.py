"""What each thread of each rank did, and when: traces for Perfetto, and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import _core
from ..base.files import replacing
from ..comm.communicator import as_communicator

__all__ = ["Trace"]


class Trace:
    """Records every event of the library within a ``with`` block, on all threads of all ranks.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        Whose ranks' spans are joined on rank 0. Leaving the block is collective.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> A = am.gallery.poisson((20, 20))
    >>> with am.Trace() as trace:
    ...     x = am.solve(A, np.ones(400), options="-ksp_type cg -pc_type jacobi -ksp_asynchronous")
    >>> "MatMult" in {span["name"] for span in trace.spans}
    True

    Notes
    -----
    Costs two reads of the cycle counter and some 30 bytes an event. `save` writes Chrome's trace format, which
    https://ui.perfetto.dev shows; `plot` draws the same.
    """

    def __init__(self, comm: Any = None) -> None:
        self._comm = comm
        self.spans: list[dict[str, Any]] = []
        """On rank 0 afterwards: Chrome's trace events (ts and dur in microseconds, pid the rank, tid the thread)."""
        as_communicator(comm)

    def __repr__(self) -> str:
        return f"<asterism.Trace of {len(self.spans)} spans>"

    def __enter__(self) -> Trace:
        if self._comm is not None:
            self._comm.Barrier()  # the ranks' clocks start together
        _core.start_trace()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        rank = 0 if self._comm is None else self._comm.Get_rank()
        mine = json.loads(_core.trace_json(rank))["traceEvents"]
        if kind is not None:  # the others may not come
            self.spans = mine
            return
        everybody = [mine] if self._comm is None else self._comm.gather(mine)
        self.spans = [span for part in everybody or [] for span in part]

    def save(self, path: str | Path) -> None:
        """Write the spans as a ``.json`` for Perfetto.

        Parameters
        ----------
        path : path-like
            Written beside, then renamed.

        Raises
        ------
        FileError
            The file cannot be written.

        Notes
        -----
        Not collective: rank 0 writes, the others do nothing.
        """
        if self._comm is not None and self._comm.Get_rank() != 0:
            return
        with replacing(path) as out:
            json.dump({"traceEvents": self.spans}, out)

    def plot(self, ax: Any, start: float = 0.0, seconds: float | None = None, most_names: int = 8) -> None:
        """Draw a line of spans for each thread.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            Is drawn into.
        start, seconds : float, optional
            When the picture begins, in seconds since the block began, and how long it is; to the last span by default.
        most_names : int
            Events that are shown: those that took most time.

        Notes
        -----
        Not collective. Only rank 0 has the spans of all.
        """
        lines: dict[tuple[int, int], str] = {}
        spans = []
        for s in self.spans:
            where = (s["pid"], s["tid"])
            if s["ph"] == "M":
                lines[where] = f"rank {s['pid']}, {s['args']['name']}"
            elif s["name"] not in ("KSPSolve", "PCSetUp"):  # they enclose the others
                spans.append((where, s["name"], s["ts"] * 1e-6 - start, s["dur"] * 1e-6))
        end = seconds if seconds is not None else max((t + d for _, _, t, d in spans), default=1.0)
        spans = [s for s in spans if s[2] < end and s[2] + s[3] > 0]
        total: dict[str, float] = {}
        for _, name, _, d in spans:
            total[name] = total.get(name, 0.0) + d
        names = sorted(total, key=lambda n: -total[n])[:most_names]
        rows = sorted({where for where, *_ in spans})
        for i, name in enumerate(names):
            color = "0.85" if name == "wait" else f"C{i % 10}"
            label: str | None = name
            for row, where in enumerate(rows):
                bars = [(1e6 * t, 1e6 * d) for w, n, t, d in spans if w == where and n == name]
                if bars:
                    ax.broken_barh(bars, (row - 0.4, 0.8), color=color, label=label, linewidth=0)
                    label = None
        ax.set_yticks(range(len(rows)), [lines.get(w, str(w)) for w in rows])
        ax.set_xlim(0, 1e6 * end)
        ax.set_xlabel("microseconds")
