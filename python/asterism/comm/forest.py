"""Star forests: who talks to whom, and every way to move data along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count, as_indices
from ..device.queue import Queue
from ..errors import ShapeError
from .communicator import InputTypeError, as_communicator, one_call, reported
from .derived_types import begin_derived
from .flight import Flight
from .forest_algebra import ForestAlgebra
from .items import Op, operation_of, plain_items
from .queued_forest import QueuedForest

__all__ = ["StarForest", "shared_zeros"]

Data = Any  # an array, or a pair (array, MPI datatype)


def shared_zeros(shape: int | Sequence[int], dtype: Any = np.float64) -> NDArray[Any]:
    """Return an array of zeros in memory that the ranks of this machine can read.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : NumPy dtype

    Returns
    -------
    array

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

    Raises
    ------
    ShapeError, InputError
        Arrays or sizes do not fit, or a leaf or a root is outside of its space.
    OptionError
        ``transport`` is another word.

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
        given = np.asanyarray(remote)
        if given.size and (given.ndim != 2 or given.shape[1] != 2):
            raise ShapeError(
                f"StarForest: remote has shape {given.shape}; (leaves, 2) is needed: (rank, offset) of each leaf's root."
            )
        pairs = as_indices(given, "StarForest: remote").reshape(-1, 2)
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
        """Return my edges.

        Returns
        -------
        leaves : array of int64, shape (nleaves,)
            Positions in the leaf space.
        roots : array of int64, shape (nleaves, 2)
            (rank, offset) of each leaf's root. Edges are sorted by (rank, leaf).
        """
        leaves, remote = self._sf.graph()
        return np.asarray(leaves, dtype=np.int64), np.asarray(remote, dtype=np.int64).reshape(-1, 2)

    def root_ranks(self) -> list[int]:
        """Other ranks that own roots of my leaves, ascending."""
        return list(self._sf.root_ranks())

    def leaf_ranks(self) -> list[int]:
        """Other ranks with leaves on my roots, ascending."""
        return list(self._sf.leaf_ranks())

    def neighbours(self) -> list[dict[str, Any]]:
        """Describe each rank I share edges with, myself included.

        Returns
        -------
        list of dict
            ``rank``; ``has_leaves``, whether its leaves are on my roots, or its roots have my leaves; ``edges``, their number; ``pattern``
            of my positions, in words; ``index_bytes`` kept for them; ``transport`` and ``why``.
        """
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

    # moving data: what the extension's functions take, and they themselves

    def _down(self, rootdata: Any, leafdata: Any, op: Op) -> tuple[Any, ...]:
        at, items = plain_items(rootdata=(rootdata, self.nroots, False), leafdata=(leafdata, self.nleafspace, True))
        return (*at, *items, operation_of(op, rootdata))

    def _up(self, leafdata: Any, rootdata: Any, op: Op) -> tuple[Any, ...]:
        at, items = plain_items(leafdata=(leafdata, self.nleafspace, False), rootdata=(rootdata, self.nroots, True))
        return (*at, *items, operation_of(op, rootdata))

    def _up_and_down(self, rootdata: Any, leafdata: Any, leafupdate: Any, op: Op) -> tuple[Any, ...]:
        at, items = plain_items(
            rootdata=(rootdata, self.nroots, True),
            leafdata=(leafdata, self.nleafspace, False),
            leafupdate=(leafupdate, self.nleafspace, True),
        )
        return (*at, *items, operation_of(op, rootdata))

    @reported("StarForest.bcast_begin")
    def bcast_begin(self, rootdata: Data, leafdata: Data, op: Op = "replace") -> Flight:
        """Begin `bcast`, and return while the data travel.

        Parameters
        ----------
        rootdata, leafdata, op
            As for `bcast`. Neither array may be touched before ``end()``. They are kept alive until then.

        Returns
        -------
        Flight
            Its ``end()`` waits for the data. Several may be under way. Other ranks may call `bcast` meanwhile.

        Notes
        -----
        Collective, as is ``end()``. Only the one-sided transports (``window_...``) wait here. With the option ``-sf_progress thread`` a
        helper thread moves messages by MPI meanwhile.

        Examples
        --------
        >>> import asterism as am, numpy as np
        >>> sf = am.StarForest(None, 2, None, [[0, 0], [0, 0], [0, 1]])
        >>> leaves = np.zeros(3)
        >>> flight = sf.bcast_begin(np.array([5.0, 7.0]), leaves)
        >>> flight.end()
        >>> leaves
        array([5., 5., 7.])
        """
        if isinstance(rootdata, tuple):
            return begin_derived(self, "bcast", op, rootdata=rootdata, leafdata=leafdata)
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

        Raises
        ------
        ShapeError
            An array has too few rows, is read-only where it is written, or is of another shape or dtype than the other one.
        DtypeError
            ``op`` has no meaning for the dtype; MPI datatypes differ.
        OptionError
            ``op`` is another word.
        CommError
            An argument is no C-contiguous NumPy array; or another call has failed meanwhile.

        Notes
        -----
        Returns when the leaves here have their values, and rootdata may change. Cost: a message for each rank with leaves on my roots, and
        one from each rank with roots of my leaves, by shared memory within a machine. Positions that follow each other are neither packed
        nor unpacked.
        """
        if isinstance(rootdata, tuple):
            return self.bcast_begin(rootdata, leafdata, op).end()
        self._sf.bcast(*self._down(rootdata, leafdata, op))

    @reported("StarForest.reduce_begin")
    def reduce_begin(self, leafdata: Data, rootdata: Data, op: Op = "sum") -> Flight:
        """Begin `reduce`, and return while the data travel.

        Parameters
        ----------
        leafdata, rootdata, op
            As for `reduce`. Neither array may be touched before ``end()``. They are kept alive until then.

        Returns
        -------
        Flight
            As of `bcast_begin`.

        Notes
        -----
        Collective, as is ``end()``. Sums of long messages are faster by `reduce`.
        """
        if isinstance(rootdata, tuple):
            return begin_derived(self, "reduce", op, leafdata=leafdata, rootdata=rootdata)
        return Flight(self._sf.reduce_begin(*self._up(leafdata, rootdata, op)), (rootdata, leafdata))

    @reported("StarForest.reduce")
    def reduce(self, leafdata: Data, rootdata: Data, op: Op = "sum") -> None:
        """Set ``rootdata[r] = op(rootdata[r], leafdata[l])`` for every edge. Collective.

        Parameters
        ----------
        leafdata, rootdata, op
            As for `bcast`; rootdata is changed. With "replace" the highest (rank, leaf) wins.

        Notes
        -----
        Errors and cost as of `bcast`, the other way.
        """
        if isinstance(rootdata, tuple):
            return self.reduce_begin(leafdata, rootdata, op).end()
        self._sf.reduce(*self._up(leafdata, rootdata, op))

    @reported("StarForest.fetch_and_op_begin")
    def fetch_and_op_begin(self, rootdata: Data, leafdata: Data, leafupdate: Data, op: Op = "sum") -> Flight:
        """Begin `fetch_and_op`, and return while the data travel to the roots.

        Parameters
        ----------
        rootdata, leafdata, leafupdate, op
            As for `fetch_and_op`. No array may be touched before ``end()``. They are kept alive until then.

        Returns
        -------
        Flight
            Its ``end()`` sends the answers, and waits for those to this rank.

        Notes
        -----
        Collective, as is ``end()``.
        """
        if isinstance(rootdata, tuple):
            return begin_derived(self, "fetch_and_op", op, rootdata=rootdata, leafdata=leafdata, leafupdate=leafupdate)
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
            ``leafupdate[l]`` becomes the root's value just before leaf l was taken, in the order (rank, leaf).

        Raises
        ------
        ShapeError, DtypeError, OptionError, CommError
            As for `bcast`.

        Notes
        -----
        Cost: that of a `reduce` and then a `bcast`, and a pass over the edges of my roots, one after the other.

        Examples
        --------
        >>> import asterism as am, numpy as np
        >>> sf = am.StarForest(None, 1, None, [[0, 0], [0, 0], [0, 0]])
        >>> places = np.zeros(3, int)
        >>> sf.fetch_and_op(np.array([10]), np.array([2, 1, 4]), places)   # each leaf gets places of its own
        >>> places
        array([10, 12, 13])
        """
        if isinstance(rootdata, tuple):
            return self.fetch_and_op_begin(rootdata, leafdata, leafupdate, op).end()
        self._sf.fetch_and_op(*self._up_and_down(rootdata, leafdata, leafupdate, op))

    @one_call("StarForest.on")
    def on(self, queue: Queue) -> QueuedForest:
        """Return these operations as work of a queue, on vectors that may be a GPU's.

        Parameters
        ----------
        queue : Queue
            The queues of all ranks are on GPUs, or none is.

        Returns
        -------
        QueuedForest

        Raises
        ------
        CommError
            Some ranks' queues are on GPUs and others not; or the transport ``nccl``, ``ipc`` or ``nvshmem`` cannot be used.

        Notes
        -----
        Collective. Between GPUs the transport ``auto`` takes what ``-gpu_transport`` says. Other transports than ``nccl``, ``ipc`` and
        ``nvshmem`` carry what is packed through the host, ``p2p`` from the GPU's memory where MPI takes it.
        """
        return QueuedForest(self, queue)

    def multi(self) -> StarForest:
        """Return the forest with one root for each edge: grouped by root, then by (rank, leaf).

        Returns
        -------
        StarForest
            With as many roots as the sum of `degree`, and the same leaf space. Made once; later calls cost nothing.

        Notes
        -----
        Collective. Cost: a message of 8 bytes an edge, and memory of the order of the own edges.
        """
        return StarForest._of(self._sf.multi())

    @one_call("StarForest.gather")
    def gather(self, leafdata: NDArray[Any]) -> NDArray[Any]:
        """Return all leaves' values at their roots.

        Parameters
        ----------
        leafdata : array, shape (nleafspace,) or (nleafspace, k)

        Returns
        -------
        array, shape (sum of degrees,) or (sum of degrees, k)
            Of leafdata's dtype, in the order of `multi`: the values of root 0's leaves by (rank, leaf), then those of root 1's, ...

        Raises
        ------
        ShapeError, CommError
            As for `bcast`.

        Notes
        -----
        Collective. Cost: that of a `reduce`.
        """
        if not isinstance(leafdata, np.ndarray):
            raise InputTypeError("leafdata", leafdata)
        multi = self.multi()
        out = np.zeros((multi.nroots, *leafdata.shape[1:]), dtype=leafdata.dtype)
        multi.reduce(leafdata, out, "replace")
        return out

    @one_call("StarForest.scatter")
    def scatter(self, multirootdata: Data, leafdata: Data) -> None:
        """Undo `gather`: every leaf gets its own value back.

        Parameters
        ----------
        multirootdata : array, shape (sum of degrees,) or (sum of degrees, k)
            In the order of `multi`.
        leafdata : array, shape (nleafspace,) or (nleafspace, k)
            Changed at the leaves only.

        Raises
        ------
        ShapeError, CommError
            As for `bcast`.

        Notes
        -----
        Collective. Cost: that of a `bcast`.
        """
        self.multi().bcast(multirootdata, leafdata)
