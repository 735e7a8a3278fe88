"""What star forests and channels have sent: between whom, how much, in messages of which sizes, by which transport and why."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.files import write_figure
from ..errors import UnsupportedError
from .communicator import as_communicator

__all__ = ["CommReport", "comm_report"]


@dataclass(frozen=True, repr=False)
class CommReport:
    """The same on all ranks. ``str(report)`` is the text.

    Attributes
    ----------
    ranks : int
    messages, bytes : arrays of int64, shape (ranks, ranks)
        What rank i sent to rank j, self edges and MPI's own traffic (reductions, set-up) left out.
    sizes : dict of str to array of int64
        For each transport the number of messages of 2^i to 2^(i+1) - 1 bytes.
    forests : list of dict
        For each name: kind ("forest" or "channels"), how many members have it, operations, messages and bytes of all ranks,
        transports, patterns. An operation of channels is a message.
    under_way : list of (int, str)
        Rank and forest of each operation that was begun and not ended.
    """

    ranks: int
    messages: NDArray[np.int64]
    bytes: NDArray[np.int64]
    sizes: dict[str, NDArray[np.int64]]
    forests: list[dict[str, Any]] = field(default_factory=list)
    under_way: list[tuple[int, str]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<asterism.CommReport of {self.ranks} ranks: {int(self.messages.sum())} messages, {_size(int(self.bytes.sum()))}>"

    def __str__(self) -> str:
        total = int(self.messages.sum())
        lines = [
            f"communication of {self.ranks} rank(s): {total} messages, {_size(int(self.bytes.sum()))} between ranks"
        ]
        for f in self.forests:
            plural = "" if f["members"] == 1 or f["kind"] == "channels" else "s"
            many = f"{f['members']} {f['kind']}{plural}"
            lines.append(
                f"  '{f['name']}': {many}, {f['operations']} operations, {f['messages']} messages, {_size(f['bytes'])}"
            )
            for by in f["transports"]:
                positions = f"; positions {', '.join(by['patterns'])}" if by["patterns"] else ""
                lines.append(f"    by {by['transport']}: {by['messages']} messages{positions}")
        if total:
            lines.append("message sizes:")
            widest = max(int(s.max()) for s in self.sizes.values())
            for name, counts in self.sizes.items():
                for i in np.flatnonzero(counts):
                    bar = "#" * max(1, round(30 * int(counts[i]) / widest))
                    lines.append(f"  {_size(2 ** int(i)):>10} and more, {name:<14} {int(counts[i]):>10} {bar}")
            if self.ranks <= 16:
                lines.append("bytes from (row) to (column):")
                lines += ["  " + " ".join(f"{_size(int(b)):>10}" for b in row) for row in self.bytes]
        lines += [
            f"under way: rank {r}: an operation on '{name}' was begun and not ended" for r, name in self.under_way
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the report as JSON: the attributes, arrays as lists."""
        return json.dumps(
            {
                "ranks": self.ranks,
                "messages": self.messages.tolist(),
                "bytes": self.bytes.tolist(),
                "sizes": {k: v.tolist() for k, v in self.sizes.items()},
                "forests": self.forests,
                "under_way": self.under_way,
            }
        )

    def picture(self, path: str | Path) -> None:
        """Write an image of the communication matrix beside the sizes of messages.

        Parameters
        ----------
        path : path-like
            Its ending says the format, ``.png`` or another one of Matplotlib's. Written beside, then renamed.

        Raises
        ------
        UnsupportedError
            Matplotlib is missing.
        FileError
            The file cannot be written.
        InputError
            Matplotlib has no such format.

        Notes
        -----
        Not collective: one rank calls it, since all have the same report.
        """
        try:
            from matplotlib.colors import LogNorm
            from matplotlib.figure import Figure
        except ImportError as error:
            raise UnsupportedError("a picture needs matplotlib: pip install 'asterism-sparse[report]'") from error
        figure = Figure(figsize=(11, 4.5))
        left, right = figure.subplots(1, 2)
        shown = np.ma.masked_equal(self.bytes, 0)
        norm = LogNorm(vmin=max(1, int(shown.min())), vmax=int(shown.max())) if shown.count() else None
        image = left.imshow(shown, cmap="viridis", norm=norm, interpolation="nearest")
        left.set(title="bytes sent", xlabel="to rank", ylabel="from rank")
        left.xaxis.get_major_locator().set_params(integer=True)
        left.yaxis.get_major_locator().set_params(integer=True)
        if shown.count():
            figure.colorbar(image, ax=left)
        width = 0.8 / max(1, len(self.sizes))
        for i, (name, counts) in enumerate(self.sizes.items()):
            used = np.flatnonzero(counts)
            right.bar(used + i * width, counts[used], width=width, label=name)
        right.set(title="messages by size", xlabel="bytes", ylabel="messages", yscale="log" if self.sizes else "linear")
        ticks = np.arange(0, 31, 5)
        right.set_xticks(ticks, [_size(2 ** int(t)) for t in ticks])
        if self.sizes:
            right.legend()
        figure.tight_layout()
        write_figure(path, figure)


def comm_report(comm: Any = None, *, reset: bool = False) -> CommReport:
    """Gather what star forests and channels have sent on a communicator since the start or the last reset.

    Parameters
    ----------
    comm : None or mpi4py.MPI.Comm
    reset : bool
        Count from zero afterwards (on all communicators).

    Returns
    -------
    CommReport
        The same on all ranks.

    Notes
    -----
    Collective. Counting costs an operation one comparison; everything else is worked out here. Forests are told apart by
    their name, channels too.

    Examples
    --------
    >>> import asterism as am
    >>> before = am.comm_report(reset=True)  # counts begin anew
    >>> print(am.comm_report())
    communication of 1 rank(s): 0 messages, 0 B between ranks
    """
    core = as_communicator(comm)
    everybody = [json.loads(text) for text in core.all_gather_text(json.dumps(_core.traffic(core)))]
    if reset:
        _core.reset_traffic()
    n = len(everybody)
    messages, volume = np.zeros((n, n), dtype=np.int64), np.zeros((n, n), dtype=np.int64)
    sizes: dict[str, NDArray[np.int64]] = {}
    forests: dict[str, dict[str, Any]] = {}
    transports: dict[str, dict[str, dict[str, Any]]] = {}
    under_way: list[tuple[int, str]] = []
    for rank, theirs in enumerate(everybody):
        for f in theirs:
            under_way += [(rank, f["name"])] * f["under_way"]
            if not f["operations"]:
                continue
            empty = {"name": f["name"], "kind": f["kind"], "members": 0, "operations": 0, "messages": 0, "bytes": 0}
            sums = forests.setdefault(f["name"], empty)
            sums["members"] = max(sums["members"], f["members"])
            # an operation of a forest is one on all ranks, a message of channels is one of its own
            both = max if f["kind"] == "forest" else sum
            sums["operations"] = both((sums["operations"], f["operations"]))
            for p in f["sent"]:
                messages[rank, p["rank"]] += p["messages"]
                volume[rank, p["rank"]] += p["bytes"]
                sums["messages"] += p["messages"]
                sums["bytes"] += p["bytes"]
                sizes.setdefault(p["transport"], np.zeros(len(p["sizes"]), dtype=np.int64))
                sizes[p["transport"]] += np.asarray(p["sizes"], dtype=np.int64)
                start: dict[str, Any] = {"transport": p["transport"], "messages": 0, "patterns": []}
                by = transports.setdefault(f["name"], {}).setdefault(p["transport"], start)
                by["messages"] += p["messages"]
                if p["pattern"] and p["pattern"] not in by["patterns"] and len(by["patterns"]) < 6:
                    by["patterns"].append(p["pattern"])
    for name, sums in forests.items():
        sums["transports"] = list(transports.get(name, {}).values())
    listed = sorted(forests.values(), key=lambda f: -int(f["bytes"]))
    return CommReport(n, messages, volume, sizes, listed, under_way)


def _size(n: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n} B" if unit == "B" else f"{n:.4g} {unit}"
        n = n / 1024  # type: ignore[assignment]
    raise AssertionError
