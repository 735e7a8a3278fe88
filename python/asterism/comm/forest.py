"""Star forests: who talks to whom, and every way to move data along it."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count, as_indices
from ..device.queue import Queue
from ..errors import DtypeError, ShapeError
from .communicator import InputTypeError, as_communicator, one_call, reported
from .derived_types import Typed
from .forest_algebra import ForestAlgebra
from .items import TYPES, Op, address_of, item_type, operation_of
from .queued_forest import QueuedForest

__all__ = ["Flight", "StarForest", "shared_zeros"]

Data = Any  # an array, or a pair (array, MPI datatype)


def shared_zeros(shape: int | Sequence[int], dtype: Any = np.float64) -> NDArray[Any]:
    """Return an array of zeros in memory that the ranks of this machine can read.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : NumPy dtype

    Notes
    -----
    A broadcast from such an array to a rank that broadcasts here too is one pass over shared memory: that rank reads the values
    where they lie, or a copy if it does not begin to within 0.2 ms of the end here, or if its core is so far that a copy
    around the caches is measured to be faster. Otherwise an array as any other. Where the system has no such
    memory it is one. Not collective.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    memory = None if kind.hasobject else _core.shared_bytes(size)
    if memory is None:
        return np.zeros(shape, kind)
    out: NDArray[Any] = np.ndarray(shape, kind, buffer=memory)
    out[...] = np.zeros((), kind)
    return out


def _say_what_is_under_way() -> None:
    """At exit, before MPI is gone: what was begun and never ended."""
    for name in _core.operations_under_way():
        logging.getLogger("asterism").warning(
            "an operation on the star forest '%s' was begun and never ended. Call end().", name
        )


atexit.register(_say_what_is_under_way)


class Flight:
    """One operation under way; `end()` makes its result readable."""

    def __init__(self, flight: _core.Flight, held: tuple[Any, ...], finish: Callable[[], None] | None = None) -> None:
        self._flight = flight
        self._held = held  # the arrays must outlive the operation
        self._finish = finish

    def __repr__(self) -> str:
        return f"<asterism.Flight, {'under way' if self._held else 'ended'}>"

    def end(self) -> None:
        """Wait for the data. Raises if called twice."""
        self._flight.end()
        if self._finish:
            self._finish()
        self._held = ()


class StarForest(ForestAlgebra):
    """Who talks to whom: leaves here point at roots anywhere, by (rank, offset).

    Parameters
    ----------
    comm : None or mpi4py.MPI.Comm
    nroots : int
        Size of this rank's root space.
    local : array of int64, shape (nleaves,), or None
        Positions of the leaves in the leaf space, in any order; None: 0, 1, 2, ...
    remote : array of int64, shape (nleaves, 2)
        (rank, offset) of each leaf's root.
    nleafspace : int, optional
        Size of the leaf space; the largest leaf + 1 by default.
    transport : str, optional
        What carries the data. ``auto``: node shared memory between ranks of one machine and MPI else; ``p2p``: MPI
        point-to-point; ``shm``: shared memory, an error where it does not reach; ``neighbor``: MPI's persistent
        neighbourhood collectives; ``collective``: MPI's collectives (allgather, gather, scatter where the forest is one,
        else all-to-all); ``window_fence``, ``window_lock``, ``window_pscw``: one-sided, which wait for other ranks when an
        operation begins; ``nccl``, ``ipc``, ``nvshmem``: between GPUs, for operations `on` a GPU's queue, other data go as by
        ``auto``. Results are the same bits. Default: the option ``-sf_transport``, else auto. Forests made from
        this one inherit it.

    Notes
    -----
    Collective, as are all operations. Bad input raises on all ranks. Data are C-contiguous arrays (n) or (n, k) of any
    NumPy dtype, or pairs (array, MPI datatype) with item i at i extents, derived types too, for replace and MPI operations
    made by the user; ``op`` is replace, sum, prod, min, max, logical_and/or/xor, bitwise_and/or/xor, minloc or maxloc (for
    structured (value, index) pairs), an mpi4py ``MPI.Op``, or a function of two arrays of many values. Values that meet
    in one place are taken in (rank, leaf) order. With the option ``-sf_debug`` every operation checks that all ranks call
    the same one and that the array it sends is not changed before it ends. Set-up sends one message per neighbour and
    takes memory of the order of the own edges. Source: Zhang et al., The PetscSF scalable communication layer.

    Examples
    --------
    >>> import asterism as am
    >>> sf = am.StarForest(None, 2, None, [[0, 0], [0, 0], [0, 1]])   # three leaves, two roots
    >>> sf.degree()
    array([2, 1])
    """

    @one_call("StarForest")
    def __init__(
        self,
        comm: Any,
        nroots: int,
        local: Any,
        remote: Any,
        nleafspace: int | None = None,
        transport: str | None = None,
    ) -> None:
        pairs = as_indices(remote, "StarForest: remote").reshape(-1, 2)
        leaves = None if local is None else as_indices(local, "StarForest: local")
        space = -1 if nleafspace is None else as_count(nleafspace, "StarForest: nleafspace")
        roots = as_count(nroots, "StarForest: nroots")
        self._sf = _core.StarForest(as_communicator(comm), roots, leaves, pairs, space, transport)

    def __repr__(self) -> str:
        return f"<asterism.StarForest of {self.nroots} roots and {self.nleaves} leaves, by {self.transport}>"

    # what it is

    @property
    def _comm(self) -> _core.Communicator:
        return self._sf.comm

    @property
    def nroots(self) -> int:
        """Size of this rank's root space."""
        return int(self._sf.nroots)

    @property
    def nleaves(self) -> int:
        """Number of this rank's leaves."""
        return int(self._sf.nleaves)

    @property
    def nleafspace(self) -> int:
        """Size of this rank's leaf space."""
        return int(self._sf.leaf_space)

    @property
    def transport(self) -> str:
        """What was asked to carry the data. `neighbours` says what does."""
        return str(self._sf.transport)

    @property
    def name(self) -> str:
        """For `comm_report` and warnings; can be set."""
        return str(self._sf.name)

    @name.setter
    def name(self, name: str) -> None:
        self._sf.name = name

    def degree(self) -> NDArray[np.int64]:
        """Number of leaves attached to each of my roots, shape (nroots,)."""
        return np.asarray(self._sf.degree(), dtype=np.int64)

    def graph(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """My leaves, shape (nleaves,), and their roots (rank, offset), shape (nleaves, 2), by (rank, leaf)."""
        leaves, remote = self._sf.graph()
        return np.asarray(leaves, dtype=np.int64), np.asarray(remote, dtype=np.int64).reshape(-1, 2)

    def root_ranks(self) -> list[int]:
        """Other ranks that own roots of my leaves, ascending."""
        return list(self._sf.root_ranks())

    def leaf_ranks(self) -> list[int]:
        """Other ranks with leaves on my roots, ascending."""
        return list(self._sf.leaf_ranks())

    def neighbours(self) -> list[dict[str, Any]]:
        """Each rank I share edges with, myself included: its edges, the pattern of my positions, bytes kept for them, the transport and why."""
        return [dict(n) for n in self._sf.neighbours()]

    def view(self) -> str:
        """Describe this rank's side in words: sizes, and a line for each neighbour and direction."""
        lines = [
            f"star forest '{self.name}': {self.nroots} roots, {self.nleaves} leaves in a space of {self.nleafspace}"
        ]
        for n in self.neighbours():
            what = "leaves on my roots" if n["has_leaves"] else "roots of my leaves"
            kept = f", {n['index_bytes']} bytes of indices" if n["index_bytes"] else ""
            by = f", by {n['transport']} ({n['why']})" if n["transport"] != "self" else ""
            lines.append(f"  rank {n['rank']}: {n['edges']} {what}, {n['pattern']}{kept}{by}")
        return "\n".join(lines)

    # moving data

    def _items(self, **arrays: tuple[Any, int, bool]) -> tuple[tuple[int, ...], tuple[int, int, int]]:
        """Addresses, and the items' type, size and number."""
        if plain := _core.plain_arrays(*arrays.values()):
            return plain  # type: ignore[no-any-return]
        first: tuple[str, NDArray[Any]] | None = None
        for name, (a, rows, written) in arrays.items():
            if not isinstance(a, np.ndarray) or not a.flags.c_contiguous:
                raise InputTypeError(name, a)
            if a.dtype.hasobject:
                raise InputTypeError(f"{name} (of dtype {a.dtype})", a)
            if written and not a.flags.writeable:
                raise ShapeError(f"{name} is read-only, but the operation writes to it.")
            if a.ndim not in (1, 2) or a.shape[0] < rows:
                raise ShapeError(f"{name} has shape {a.shape}, but {rows} rows are needed.")
            if first is None:
                first = name, a
            elif a.dtype != first[1].dtype or a.shape[1:] != first[1].shape[1:]:
                raise ShapeError(
                    f"{first[0]} and {name} differ: {first[1].shape} {first[1].dtype}, {a.shape} {a.dtype}."
                )
        assert first is not None
        a = first[1]
        addresses = tuple(address_of(entry[0]) for entry in arrays.values())
        return addresses, (item_type(a.dtype), a.itemsize, a.shape[1] if a.ndim == 2 else 1)

    def _derived(self, operation: str, op: Op, **data: Any) -> Flight:
        """Begin an operation on (array, MPI datatype) pairs."""
        spaces = {"rootdata": self.nroots, "leafdata": self.nleafspace, "leafupdate": self.nleafspace}
        target = {"bcast": ("leafdata",), "reduce": ("rootdata",), "fetch_and_op": ("rootdata", "leafupdate")}[
            operation
        ]
        typed = {name: Typed(name, d, spaces[name], name in target) for name, d in data.items()}
        first = next(iter(typed.values()))
        begin = getattr(self._sf, operation + "_begin")
        if op == "replace":
            for t in typed.values():
                if t.size != first.size:
                    raise DtypeError(f"{first.name} and {t.name} have items of {first.size} and {t.size} bytes.")
            packed = {name: t.pack() for name, t in typed.items()}
            addresses = [address_of(p) for p in packed.values()]

            def finish() -> None:
                for name in target:
                    typed[name].unpack(packed[name])

            core = begin(*addresses, int(TYPES["bytes"]), first.size, 1, _core.reduce_op("replace"))
            return Flight(core, (typed, packed), finish)
        for t in typed.values():
            if (t.size, t.extent) != (first.size, first.extent):
                raise DtypeError(f"{first.name} and {t.name} are of different MPI datatypes.")
        addresses = [address_of(t.raw) for t in typed.values()]
        return Flight(begin(*addresses, int(TYPES["bytes"]), first.extent, 1, first.operation(op)), (typed, data))

    # what the extension's functions take

    def _down(self, rootdata: Any, leafdata: Any, op: Op) -> tuple[Any, ...]:
        at, items = self._items(rootdata=(rootdata, self.nroots, False), leafdata=(leafdata, self.nleafspace, True))
        return (*at, *items, operation_of(op, rootdata))

    def _up(self, leafdata: Any, rootdata: Any, op: Op) -> tuple[Any, ...]:
        at, items = self._items(leafdata=(leafdata, self.nleafspace, False), rootdata=(rootdata, self.nroots, True))
        return (*at, *items, operation_of(op, rootdata))

    def _up_and_down(self, rootdata: Any, leafdata: Any, leafupdate: Any, op: Op) -> tuple[Any, ...]:
        at, items = self._items(
            rootdata=(rootdata, self.nroots, True),
            leafdata=(leafdata, self.nleafspace, False),
            leafupdate=(leafupdate, self.nleafspace, True),
        )
        return (*at, *items, operation_of(op, rootdata))

    @reported("StarForest.bcast_begin")
    def bcast_begin(self, rootdata: Data, leafdata: Data, op: Op = "replace") -> Flight:
        """Begin `bcast`; neither array may be touched before ``end()``."""
        if isinstance(rootdata, tuple):
            return self._derived("bcast", op, rootdata=rootdata, leafdata=leafdata)
        return Flight(self._sf.bcast_begin(*self._down(rootdata, leafdata, op)), (rootdata, leafdata))

    @reported("StarForest.bcast")
    def bcast(self, rootdata: Data, leafdata: Data, op: Op = "replace") -> None:
        """Set ``leafdata[l] = op(leafdata[l], rootdata[r])`` for every edge. Collective.

        Parameters
        ----------
        rootdata : array, shape (nroots,) or (nroots, k), or (buffer, MPI datatype)
        leafdata : array, shape (nleafspace,) or (nleafspace, k), or (buffer, MPI datatype)
            Changed at the leaves only.
        op : str, MPI.Op or callable(array, array)
            "replace", or a reduction such as "sum".
        """
        if isinstance(rootdata, tuple):
            return self.bcast_begin(rootdata, leafdata, op).end()
        self._sf.bcast(*self._down(rootdata, leafdata, op))

    @reported("StarForest.reduce_begin")
    def reduce_begin(self, leafdata: Data, rootdata: Data, op: Op = "sum") -> Flight:
        """Begin `reduce`; neither array may be touched before ``end()``."""
        if isinstance(rootdata, tuple):
            return self._derived("reduce", op, leafdata=leafdata, rootdata=rootdata)
        return Flight(self._sf.reduce_begin(*self._up(leafdata, rootdata, op)), (rootdata, leafdata))

    @reported("StarForest.reduce")
    def reduce(self, leafdata: Data, rootdata: Data, op: Op = "sum") -> None:
        """Set ``rootdata[r] = op(rootdata[r], leafdata[l])`` for every edge. Collective.

        Parameters
        ----------
        leafdata, rootdata, op
            As for `bcast`; rootdata is changed. With "replace" the highest (rank, leaf) wins.
        """
        if isinstance(rootdata, tuple):
            return self.reduce_begin(leafdata, rootdata, op).end()
        self._sf.reduce(*self._up(leafdata, rootdata, op))

    @reported("StarForest.fetch_and_op_begin")
    def fetch_and_op_begin(self, rootdata: Data, leafdata: Data, leafupdate: Data, op: Op = "sum") -> Flight:
        """Begin `fetch_and_op`; ``end()`` sends the answers and is collective too."""
        if isinstance(rootdata, tuple):
            return self._derived("fetch_and_op", op, rootdata=rootdata, leafdata=leafdata, leafupdate=leafupdate)
        arguments = self._up_and_down(rootdata, leafdata, leafupdate, op)
        return Flight(self._sf.fetch_and_op_begin(*arguments), (rootdata, leafdata, leafupdate))

    @reported("StarForest.fetch_and_op")
    def fetch_and_op(self, rootdata: Data, leafdata: Data, leafupdate: Data, op: Op = "sum") -> None:
        """Reduce, and tell each leaf what was there before. Collective.

        Parameters
        ----------
        rootdata, leafdata, op
            As for `reduce`.
        leafupdate : array of leafdata's shape
            ``leafupdate[l]`` becomes the root's value just before leaf l was taken.
        """
        if isinstance(rootdata, tuple):
            return self.fetch_and_op_begin(rootdata, leafdata, leafupdate, op).end()
        self._sf.fetch_and_op(*self._up_and_down(rootdata, leafdata, leafupdate, op))

    @one_call("StarForest.on")
    def on(self, queue: Queue) -> QueuedForest:
        """Return these operations as work of a queue, on vectors that may be a GPU's.

        Collective: the queues of all ranks are on GPUs, or none is. Between GPUs the transport ``auto`` takes what ``-gpu_transport`` says;
        ``nccl``, ``ipc`` and ``nvshmem`` are errors on all ranks where they cannot be used; the others carry what is packed through the
        host, ``p2p`` from the GPU's memory where MPI takes it.
        """
        return QueuedForest(self, queue)

    def multi(self) -> StarForest:
        """Make the forest with one root for each edge: grouped by root, then by (rank, leaf). Made once."""
        return StarForest._of(self._sf.multi())

    @one_call("StarForest.gather")
    def gather(self, leafdata: NDArray[Any]) -> NDArray[Any]:
        """Return all leaves' values at their roots, shape (sum of degrees[, k]), in the order of `multi`."""
        multi = self.multi()
        out = np.zeros((multi.nroots, *leafdata.shape[1:]), dtype=leafdata.dtype)
        multi.reduce(leafdata, out, "replace")
        return out

    @one_call("StarForest.scatter")
    def scatter(self, multirootdata: Data, leafdata: Data) -> None:
        """Undo `gather`: every leaf gets its own value back."""
        self.multi().bcast(multirootdata, leafdata)
