"""Time of a multigrid solve on many GPUs, from the parameters of a machine.

Input: a `Machine`, a `Placement` of ranks, a `Cycle`. Output: `Prediction`. Kernels cost latency and bytes; exchanges cost latency, bytes
through NICs and within nodes. Ranks share the NICs of their node.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..base.indices import as_count, as_counts, near_cube
from ..errors import InputError, ShapeError
from .machines import Machine
from .operations import costs

__all__ = ["Cycle", "Placement", "Prediction", "predict", "scaling"]

Three = tuple[int, int, int]


@dataclass(frozen=True)
class Cycle:
    """A V cycle with communication-avoiding smoothing, as the paper's artifact runs it.

    Attributes
    ----------
    local : (int, int, int)
        Points of a rank.
    coarsenings : int
        At most so many. Coarsening ends where a brick would not fit into a rank.
    down, up, bottom : int
        Smoothing steps before and after the correction, and on the coarsest level.
    brick : int
        Points of a brick along an axis. Ghosts are one brick deep, and allow as many steps between exchanges.
    cycles : int
        Of a solve.
    itemsize : int
        Bytes of a number.
    """

    local: Three
    coarsenings: int = 6
    down: int = 6
    up: int = 6
    bottom: int = 100
    brick: int = 8
    cycles: int = 12
    itemsize: int = 8

    def __post_init__(self) -> None:
        as_counts(self.local, 3, "local")
        for name in ("down", "up", "bottom", "coarsenings", "brick", "cycles", "itemsize"):
            as_count(getattr(self, name), f"Cycle: {name}")
        if self.brick < 1 or self.cycles < 1 or self.itemsize < 1 or any(n < self.brick for n in self.local):
            raise InputError(
                f"{self.local} points of a rank, bricks of {self.brick}, {self.cycles} cycles of {self.itemsize} bytes: "
                "each must be positive, and a rank needs one brick."
            )

    def levels(self) -> list[Three]:
        """Return the points of a rank on each level, the finest first.

        Returns
        -------
        list of (int, int, int)
        """
        out = [self.local]
        while len(out) <= self.coarsenings and all(n % 2 == 0 and n // 2 >= self.brick for n in out[-1]):
            a, b, c = out[-1]
            out.append((a // 2, b // 2, c // 2))
        return out


@dataclass(frozen=True)
class Placement:
    """A grid of nodes, each with a grid of ranks; the domain is periodic.

    Attributes
    ----------
    nodes : (int, int, int)
        Nodes along each axis.
    ranks : (int, int, int)
        Ranks of a node along each axis.

    Raises
    ------
    ShapeError, DtypeError
        One of the two is not three positive integers.
    """

    nodes: Three
    ranks: Three

    def __post_init__(self) -> None:
        for name in ("nodes", "ranks"):
            if min(as_counts(getattr(self, name), 3, f"Placement: {name}")) < 1:
                raise ShapeError(f"Placement: {name} is {getattr(self, name)}; at least 1 along each axis.")

    @classmethod
    def of(cls, nodes: int, ranks_per_node: int) -> Placement:
        """Return near-cubes of both.

        Parameters
        ----------
        nodes, ranks_per_node : int
            At least 1. Each becomes three factors that are as alike as they can be, the largest first.

        Returns
        -------
        Placement
        """
        for name, n in (("nodes", nodes), ("ranks_per_node", ranks_per_node)):
            if as_count(n, f"Placement.of: {name}") < 1:
                raise ShapeError(f"Placement.of: {name} is {n}; at least 1 is needed.")
        return cls(near_cube(nodes), near_cube(ranks_per_node))

    @property
    def size(self) -> int:
        """Of all ranks."""
        return math.prod(self.nodes) * math.prod(self.ranks)

    def traffic(self, local: Three, ghost: int) -> tuple[int, int, int]:
        """Return what an exchange with all 26 neighbours sends.

        Parameters
        ----------
        local : (int, int, int)
            Points of a rank.
        ghost : int
            How deep the ghost points are.

        Returns
        -------
        off, on, node : int
            Points that the busiest rank sends to other nodes, and within its node; and those that a node sends to other nodes. What a rank
            sends to itself, at an axis with one rank, is not counted.
        """
        worst_off = worst_on = node = 0
        for at in itertools.product(*map(range, self.ranks)):
            off = on = 0
            for step in itertools.product((-1, 0, 1), repeat=3):
                if not any(step):
                    continue
                points = math.prod(min(ghost, n) if s else n for s, n in zip(step, local, strict=True))
                moved = [(a + s) // r % n != 0 for a, s, r, n in zip(at, step, self.ranks, self.nodes, strict=True)]
                itself = all((a + s) % r == a for a, s, r in zip(at, step, self.ranks, strict=True))
                if any(moved):
                    off += points
                elif not itself:
                    on += points
            worst_off, worst_on, node = max(worst_off, off), max(worst_on, on), node + off
        return worst_off, worst_on, node


@dataclass(frozen=True)
class Prediction:
    """Seconds of each operation in one cycle, on each level, and of the whole solve; made by `models.predict`.

    Attributes
    ----------
    machine : Machine
    placement : Placement
    cycle : Cycle
        What was predicted from.
    levels : tuple of mapping of str to float
        Seconds of one cycle by operation, the finest level first.
    norm : float
        Seconds of one norm of the residual, after each cycle.
    """

    machine: Machine
    placement: Placement
    cycle: Cycle
    levels: tuple[Mapping[str, float], ...]
    norm: float

    @property
    def seconds(self) -> float:
        """Of a solve."""
        return self.cycle.cycles * (sum(sum(level.values()) for level in self.levels) + self.norm)

    @property
    def points_per_second(self) -> float:
        """Points of the finest grid, once, over the seconds of a solve."""
        return math.prod(self.cycle.local) * self.placement.size / self.seconds

    def shares(self, level: int = 0) -> dict[str, float]:
        """Return each operation's share of the time on a level.

        Parameters
        ----------
        level : int
            0 is the finest, -1 the coarsest.

        Returns
        -------
        dict of str to float
            The shares add up to 1.

        Raises
        ------
        IndexError
            There is no such level.
        """
        total = sum(self.levels[level].values())
        return {name: seconds / total for name, seconds in self.levels[level].items()}


def _kernel(machine: Machine, op: str, points: float, itemsize: int) -> float:
    moved = costs()[op].bytes * itemsize / 8 / machine.intensity[op]
    return machine.kernel_latency + points * moved / (machine.memory_bandwidth * machine.roofline[op])


def exchange_seconds(machine: Machine, placement: Placement, local: Three, ghost: int, itemsize: int = 8) -> float:
    """Return the time of one exchange. Messages between and within nodes travel at once."""
    off, on, node = (itemsize * points for points in placement.traffic(local, ghost))
    moving = max(
        off / machine.nic_bandwidth,
        node / (machine.nics_per_node * machine.nic_bandwidth),  # where ranks share NICs
        on / machine.node_bandwidth,
    )
    copies = 2 * (off + on) / machine.host_bandwidth if machine.staged else 0.0  # to the host and from there
    across = off / machine.socket_bandwidth if machine.far_nic else 0.0
    return machine.exchange_latency * (placement.size > 1) + moving + copies + across


def _smoothing(
    machine: Machine, placement: Placement, cycle: Cycle, local: Three, steps: int, op: str
) -> dict[str, float]:
    """Return the seconds of some steps: the region shrinks from the ghosts by one point a step, until the next exchange."""
    out = {"applyOp": 0.0, op: 0.0, "exchange": 0.0}
    for step in range(steps):
        deep = cycle.brick - 1 - step % cycle.brick if placement.size > 1 else 0
        points = math.prod(n + 2 * deep for n in local)
        out["applyOp"] += _kernel(machine, "applyOp", points, cycle.itemsize)
        out[op] += _kernel(machine, op, points, cycle.itemsize)
        if step % cycle.brick == 0:
            out["exchange"] += exchange_seconds(machine, placement, local, cycle.brick, cycle.itemsize)
    return out


def predict(machine: Machine, placement: Placement, cycle: Cycle) -> Prediction:
    """Predict a solve.

    Parameters
    ----------
    machine : Machine
        One of `MACHINES`, or of your own.
    placement : Placement
        Ranks on nodes.
    cycle : Cycle
        Points of a rank, and the V cycle.

    Returns
    -------
    Prediction

    Notes
    -----
    A kernel takes its latency and its bytes over the bandwidth that it reaches. An exchange takes its latency, its bytes over those of NICs
    and nodes, whichever is slower, and copies to the host where there are some. Nothing overlaps. The network is ideal. Cost: some
    operations for each rank of a node and each level.
    Source: Antepara, Williams, Johansen and Hall (2024), section VI, for the parameters and the cycle.

    Examples
    --------
    >>> import asterism as am
    >>> m = am.models
    >>> found = m.predict(m.MACHINES["frontier"], m.Placement.of(128, 8), m.Cycle((512, 512, 512)))
    >>> found.placement.size, found.points_per_second > 50e9
    (1024, True)
    """
    for name, value, kind in (
        ("machine", machine, Machine),
        ("placement", placement, Placement),
        ("cycle", cycle, Cycle),
    ):
        if not isinstance(value, kind):
            raise InputError(f"predict: {name} is {value!r}; a models.{kind.__name__} is needed.")
    levels: list[dict[str, float]] = []
    sizes = cycle.levels()
    for number, local in enumerate(sizes):
        total: dict[str, float] = {}
        bottom = number == len(sizes) - 1
        loops = (
            [(cycle.bottom, "smooth")] if bottom else [(cycle.down, "smooth+residual"), (cycle.up, "smooth+residual")]
        )
        for steps, op in loops:
            for name, seconds in _smoothing(machine, placement, cycle, local, steps, op).items():
                total[name] = total.get(name, 0.0) + seconds
        if not bottom:  # at coarse points
            for op in ("restriction", "interpolation+increment"):
                total[op] = _kernel(machine, op, math.prod(local) / 8, cycle.itemsize)
        levels.append(total)
    norm = machine.exchange_latency * math.ceil(math.log2(placement.size))
    return Prediction(machine, placement, cycle, tuple(levels), norm)


def scaling(machine: Machine, nodes: Sequence[int], cycle: Cycle, kind: str = "weak") -> list[tuple[Prediction, float]]:
    """Predict solves on several numbers of nodes, with the parallel efficiency over the first.

    Parameters
    ----------
    machine : Machine
    nodes : sequence of int
        Each is made a `Placement` with the machine's ranks.
    cycle : Cycle
        Its `local` is that of each rank, or with "strong" that on the first number of nodes. Later ranks have as much less.
    kind : {"weak", "strong"}

    Returns
    -------
    list of (Prediction, float)
        The efficiency is that in points per second and rank.

    Raises
    ------
    InputError
        ``kind`` is another word; a number is not positive; or, with "strong", not the first times a power of two, or too large for the
        bricks.
    """
    if kind not in ("weak", "strong"):
        raise InputError(f"scaling is weak or strong, not {kind!r}.")
    if not isinstance(machine, Machine):
        raise InputError(f"scaling: machine is {machine!r}; a models.Machine is needed.")
    if (
        not isinstance(nodes, Iterable)
        or not (numbers := list(nodes))
        or min(as_count(n, "nodes") for n in numbers) < 1
    ):
        raise InputError(f"nodes is {nodes!r}; a list of positive numbers is needed, such as [1, 8, 64].")
    out: list[tuple[Prediction, float]] = []
    for count in numbers:
        placement, here = Placement.of(count, machine.ranks_per_node), cycle
        if kind == "strong" and out:
            here = replace(cycle, local=_smaller(cycle, out[0][0].placement.size, placement.size))
        found = predict(machine, placement, here)
        first = out[0][0] if out else found
        per_rank = found.points_per_second / found.placement.size
        out.append((found, per_rank / (first.points_per_second / first.placement.size)))
    return out


def _smaller(cycle: Cycle, before: int, after: int) -> Three:
    """Return the points of a rank where so many more ranks share them: the longest axis is cut in two as often as needed."""
    factor = after / before
    halvings = round(math.log2(factor)) if factor > 0 else -1
    if factor < 1 or 2**halvings != factor:
        raise InputError(
            f"strong scaling from {before} to {after} ranks: each number must be the first times a power of two."
        )
    local = list(cycle.local)
    for _ in range(halvings):
        axis = local.index(max(local))
        if local[axis] % 2 or local[axis] // 2 < cycle.brick:
            raise InputError(
                f"strong scaling to {after} ranks: {tuple(local)} points of a rank cannot be cut again into bricks of {cycle.brick}."
            )
        local[axis] //= 2
    a, b, c = local
    return a, b, c
