"""Time of a distributed sparse triangular solve: the critical-path model of Ding, Liu, Williams and Li (2021), and a simulation.

Input: a `FactorPattern`, a number of ranks with their layout, a `TriangularMachine`. Output: `TriangularPrediction`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from ..base.indices import as_count
from ..base.values import is_number
from ..errors import FileError, InputError, OptionError

if TYPE_CHECKING:
    from ..la.matrix import Matrix

__all__ = [
    "SUMMIT",
    "FactorPattern",
    "Link",
    "SweepPrediction",
    "TriangularMachine",
    "TriangularPrediction",
    "layouts",
    "read_triangular_machine",
]


def _check(what: str, value: object, *, least: float = 0.0, above: bool = True) -> None:
    if (
        not is_number(value) or not (value > least if above else value >= least)  # type: ignore[operator]
    ):
        raise InputError(f"{what} is {value!r}; a number {'above' if above else 'of at least'} {least:g} is needed.")


_ALL = 2**31 - 1  # rows, ranks or workers: as many as there are
_MOST_RANKS = 2**20  # which take 0.3 s and 136 MB; no machine runs more


def _checked_ranks(ranks: object) -> int:
    _check("ranks", ranks, least=1, above=False)
    count = as_count(ranks, "ranks")
    if count > _MOST_RANKS:
        raise InputError(f"ranks is {count}; the model takes at most {_MOST_RANKS}. Predict for fewer.")
    return count


def _grid(layout: object, ranks: int) -> tuple[int, int]:
    if not isinstance(layout, str):
        raise OptionError(f"process grid {layout!r}: write rows x columns as in '2x3', 'Px1' or '1xP', or 'square'.")
    rows, columns = _core.process_grid(layout, ranks)
    return rows, columns


@dataclass(frozen=True)
class Link:
    """Messages between two ranks: n of one size take latency + n size / bandwidth(size).

    Attributes
    ----------
    latency : float
        Seconds.
    sizes : tuple of int
        Bytes of a message, ascending. One between two of them counts as the larger.
    bandwidths : tuple of float
        Bytes per second of many messages of each size, one after the other.
    """

    latency: float
    sizes: tuple[int, ...]
    bandwidths: tuple[float, ...]

    def __post_init__(self) -> None:
        for key in ("sizes", "bandwidths"):
            given = getattr(self, key)
            if not isinstance(given, Iterable):
                raise InputError(f"the {key} of a link are {given!r}; a list is needed, such as [8, 1024].")
            object.__setattr__(self, key, tuple(given))
        object.__setattr__(self, "sizes", tuple(as_count(n, "a size of a link, in bytes,") for n in self.sizes))
        _check("the latency of a link", self.latency, above=False)
        if len(self.sizes) != len(self.bandwidths) or not self.sizes:
            raise InputError(f"a link has {len(self.sizes)} sizes and {len(self.bandwidths)} bandwidths; one for each.")
        if list(self.sizes) != sorted(set(self.sizes)) or self.sizes[0] < 1:
            raise InputError(f"the sizes of a link are {list(self.sizes)}; they must ascend from 1 or more.")
        for b in self.bandwidths:
            _check("a bandwidth of a link", b)

    def _core_form(self) -> tuple[float, list[tuple[int, float]]]:
        return float(self.latency), list(zip(self.sizes, map(float, self.bandwidths), strict=True))


@dataclass(frozen=True)
class TriangularMachine:
    """What the model knows of a machine. Bytes and seconds.

    Attributes
    ----------
    name : str
    bandwidth : float
        Of a rank's memory.
    task_seconds : float
        What a rank needs for a supernode, or a run of blocks, without numbers.
    near : Link
        Within a node.
    far : Link, optional
        Between nodes; as near, if nothing is said.
    ranks_per_node : int, optional
        All on one node, if nothing is said.
    workers : int
        Blocks of threads of a GPU that reach the bandwidth together, MAX_TB of the paper. 1: a rank does one task at a time.
    least_bandwidth, most_bandwidth : float
        Of one of these blocks; None: no limit.
    """

    name: str
    bandwidth: float
    task_seconds: float
    near: Link
    far: Link | None = None
    ranks_per_node: int | None = None
    workers: int = 1
    least_bandwidth: float = 0.0
    most_bandwidth: float | None = None

    def __post_init__(self) -> None:
        who = f"machine '{self.name}': "
        for key in ("near", "far"):
            link = getattr(self, key)
            if isinstance(link, Mapping):
                object.__setattr__(self, key, _from_mapping(Link, link, f"{who}{key}"))
            elif not isinstance(link, Link) and not (key == "far" and link is None):
                raise InputError(f"{who}{key} is {link!r}; a link is needed.")
        _check(f"{who}bandwidth", self.bandwidth)
        _check(f"{who}task_seconds", self.task_seconds, above=False)
        _check(f"{who}least_bandwidth", self.least_bandwidth, above=False)
        if self.most_bandwidth is not None:
            _check(f"{who}most_bandwidth", self.most_bandwidth, least=self.least_bandwidth, above=False)
        for key in ("workers", "ranks_per_node"):
            value = getattr(self, key)
            if not (key == "ranks_per_node" and value is None):
                _check(f"{who}{key}", value, least=1, above=False)
                as_count(value, f"{who}{key}")

    def _core_form(self) -> Any:
        far = self.far or self.near
        return _core.SweepMachine(
            float(self.bandwidth),
            float(self.task_seconds),
            self.near._core_form(),
            far._core_form(),
            min(self.ranks_per_node or _ALL, _ALL),
            min(self.workers, _ALL),
            float(self.least_bandwidth),
            math.inf if self.most_bandwidth is None else float(self.most_bandwidth),
        )


# Sections 5 and 6 of the paper. Of messages it gives the rate of 1024 bytes between nodes, and that within a node it is 3.9 / 1.2 times that
# on average; other sizes are in a figure only. So a message takes as long as one of 1024 bytes here, and the latency is in it.
_INTER_NODE = 75e6
SUMMIT = TriangularMachine(
    "summit",
    bandwidth=828e9,
    task_seconds=0.0,
    near=Link(0.0, (256, 512, 1024), tuple(_INTER_NODE * 3.9 / 1.2 * s / 1024 for s in (256, 512, 1024))),
    far=Link(0.0, (256, 512, 1024), tuple(_INTER_NODE * s / 1024 for s in (256, 512, 1024))),
    ranks_per_node=6,
    workers=160,
    least_bandwidth=1.3e9,
    most_bandwidth=5.2e9,
)


def _from_mapping(kind: Any, found: object, where: str) -> Any:
    if not isinstance(found, Mapping):
        raise InputError(f"{where}: an object with the parameters of a machine is needed.")
    fields = {f.name: f.default is dataclasses.MISSING for f in dataclasses.fields(kind)}
    unknown, missing = (
        sorted(set(found) - set(fields)),
        sorted(k for k, must in fields.items() if must and k not in found),
    )
    if unknown or missing:
        parts = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(missing)}"] * bool(missing)
        raise InputError(f"{where}: {'; '.join(parts)}. asterism bench channels --json writes a whole machine.")
    return kind(**found)


def read_triangular_machine(path: str | Path) -> TriangularMachine:
    """Read a machine from JSON: an object with the names of `TriangularMachine`, or one that has such a "machine".

    Parameters
    ----------
    path : path-like

    Returns
    -------
    TriangularMachine

    Raises
    ------
    FileError
        The file cannot be read, or is no JSON.
    InputError
        It holds no machine, or a value is out of its range.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {error}") from error
    if isinstance(found, dict) and "machine" in found:
        found = found["machine"]
    machine: TriangularMachine = _from_mapping(TriangularMachine, found, str(path))
    return machine


@dataclass(frozen=True)
class SweepPrediction:
    """One sweep, L x = b or L^T x = b; a part of a `TriangularPrediction`.

    Attributes
    ----------
    levels, nodes, messages : int
        On the critical path, which is that of the rank with the most time: levels of the graph in which edges within a rank cost none,
        supernodes that the rank works with, and messages that it sends and that do not overlap.
    compute, communication : float
        Seconds of that rank. It does not wait in this model.
    broadcasts, reductions, bytes : int
        Messages of all ranks, and their bytes.
    simulated : float or None
        Seconds of a simulation, in which ranks wait for messages. None where a rank has several workers.
    """

    levels: int
    nodes: int
    messages: int
    compute: float
    communication: float
    broadcasts: int
    reductions: int
    bytes: int
    simulated: float | None

    @property
    def modelled(self) -> float:
        """Seconds of the critical path."""
        return self.compute + self.communication


@dataclass(frozen=True)
class TriangularPrediction:
    """Both sweeps on so many ranks; made by `models.FactorPattern.predict`.

    Attributes
    ----------
    ranks : int
    grid : (int, int)
        Rows and columns of the process grid.
    forward, backward : SweepPrediction
        Of L x = b, and of L^T x = b.
    """

    ranks: int
    grid: tuple[int, int]
    forward: SweepPrediction
    backward: SweepPrediction

    @property
    def layout(self) -> str:
        """Rows x columns."""
        return "x".join(map(str, self.grid))

    @property
    def modelled(self) -> float:
        """Seconds of both sweeps, by their critical paths."""
        return self.forward.modelled + self.backward.modelled

    @property
    def simulated(self) -> float | None:
        """Seconds of both sweeps, simulated."""
        if self.forward.simulated is None or self.backward.simulated is None:
            return None
        return self.forward.simulated + self.backward.simulated

    @property
    def seconds(self) -> float:
        """The simulated time where there is one, else the modelled."""
        return self.modelled if self.simulated is None else self.simulated


class FactorPattern:
    """Supernodes and blocks of the triangular factors that a matrix would have.

    Parameters
    ----------
    A : Matrix
        Square, on one process. Its pattern and that of its transpose together count; rows are not matched to columns first.
    ordering : {"auto", "nd", "amd", "rcm", "natural"}
        auto: nested dissection where METIS is found, else approximate minimum degree.
    widest : int
        Supernodes of more columns are cut.

    Raises
    ------
    InputError
        A is not square or is on several ranks, or an argument is out of its range.

    Notes
    -----
    Cost: ordering and symbolic phase; memory of the order of the supernodes' rows.

    Examples
    --------
    >>> import asterism as am
    >>> m = am.models
    >>> pattern = m.FactorPattern(am.gallery.poisson((20, 20)), "amd")
    >>> link = m.Link(1e-6, (1024,), (1e9,))
    >>> found = pattern.predict(4, "2x2", m.TriangularMachine("mine", 10e9, 5e-8, link))
    >>> found.layout, found.forward.messages > 0
    ('2x2', True)
    """

    def __init__(self, A: Matrix, ordering: str = "auto", widest: int = 128) -> None:
        _check("widest", widest, least=1, above=False)
        if not hasattr(A, "comm_size"):
            raise InputError(
                f"a pattern of factors: A is a {type(A).__name__}; a Matrix is needed: am.Matrix.from_scipy(A)."
            )
        if A.comm_size > 1:
            raise InputError(f"a pattern of factors: the matrix is on {A.comm_size} ranks; one process is needed.")
        if A.shape[0] != A.shape[1]:
            raise InputError(
                f"a pattern of factors: the matrix is {A.shape[0]} x {A.shape[1]}; a square one is needed."
            )
        known = ("auto", "nd", "amd", "rcm", "natural")
        if ordering not in known:
            raise InputError(f"ordering '{ordering}' is not one of {', '.join(known)}.")
        self._h = _core.FactorPattern(A._h, ordering, min(as_count(widest, "widest"), _ALL))
        self._number = A.dtype.itemsize

    def __repr__(self) -> str:
        return (
            f"<asterism.models.FactorPattern {self.supernodes} supernodes, {self.entries} entries, {self.levels} levels, "
            f"{self.ordering} order>"
        )

    @property
    def ordering(self) -> str:
        """Which ordering was taken."""
        return str(self._h.ordering)

    @property
    def supernodes(self) -> int:
        """How many."""
        return int(self._h.supernodes)

    @property
    def entries(self) -> int:
        """Of one triangle with its diagonal; zeros within supernodes count."""
        return int(self._h.entries)

    @property
    def levels(self) -> int:
        """Of the graph of supernodes: how many must be solved one after the other."""
        return int(self._h.levels)

    @property
    def widest(self) -> int:
        """Columns of the widest supernode."""
        return int(self._h.widest)

    def predict(self, ranks: int, layout: str, machine: TriangularMachine) -> TriangularPrediction:
        """Predict both sweeps.

        Parameters
        ----------
        ranks : int
            1 to 1048576.
        layout : str
            "Px1", "1xP", "square", or rows x columns such as "4x2".
        machine : TriangularMachine

        Returns
        -------
        TriangularPrediction

        Raises
        ------
        OptionError
            ``layout`` is another word, or a grid of other than so many ranks.
        InputError, DtypeError
            ``ranks`` is not an integer from 1 to 1048576, or ``machine`` is no machine.

        Notes
        -----
        Cost: time of the order of the blocks and of the ranks, twice for each sweep; some 130 bytes a rank.
        Source: Ding, Liu, Williams and Li (2021), algorithm 2; the simulated times are this library's.
        """
        ranks = _checked_ranks(ranks)
        rows, columns = _grid(layout, ranks)
        if not isinstance(machine, TriangularMachine):
            raise InputError(
                f"machine is {machine!r}; a TriangularMachine is needed, such as models.triangular.SUMMIT or what "
                "models.triangular.read_triangular_machine reads."
            )
        core = machine._core_form()
        forward, backward = (
            SweepPrediction(**self._h.predicted(rows, columns, back, self._number, core)) for back in (False, True)
        )
        return TriangularPrediction(ranks, (rows, columns), forward, backward)


def layouts(ranks: int, names: Iterable[str]) -> list[str]:
    """Return the different process grids of so many ranks that the names mean; "all" means every one.

    Parameters
    ----------
    ranks : int
        As for `FactorPattern.predict`.
    names : iterable of str
        "Px1", "1xP", "square", rows x columns such as "4x2", or "all".

    Returns
    -------
    list of str
        Rows x columns.
    """
    ranks = _checked_ranks(ranks)
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"names is {names!r}; a list of layouts is needed, such as ['Px1', 'square'] or ['all'].")
    found: dict[tuple[int, int], None] = {}
    for name in names:
        if name == "all":
            found |= dict.fromkeys((r, ranks // r) for r in range(ranks, 0, -1) if ranks % r == 0)
        else:
            found[_grid(name, ranks)] = None
    return [f"{rows}x{columns}" for rows, columns in found]
