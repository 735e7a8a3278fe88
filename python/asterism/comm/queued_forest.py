"""Star forests whose data queues work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from ..device.queue import Queue, handle_of, queue_of
from .communicator import one_call

if TYPE_CHECKING:
    from ..la.vector import Vector
    from .forest import StarForest

__all__ = ["QueuedFlight", "QueuedForest"]


class _Space:
    """What a vector is laid out as: a value for each root, or for each place of the leaf space."""

    dtype = np.dtype(np.float64)  # of a vector that is not asked for another

    def __init__(self, layout: _core.Layout) -> None:
        self._vector_layout = layout

    def __repr__(self) -> str:
        return f"<a layout of {self._vector_layout.local_size} values here>"


class QueuedFlight:
    """One operation under way on a queue, made by `QueuedForest.bcast_begin` and the like.

    One that is dropped before its end is ended then, with a warning.
    """

    def __init__(self, handle: _core.QueuedFlight) -> None:
        self._h = handle

    def __repr__(self) -> str:
        return "<asterism.QueuedFlight>"

    def end(self) -> None:
        """Submit the rest: what is submitted next finds the result. Does not wait. Collective.

        Raises
        ------
        CommError
            It was called before.
        """
        self._h.end()


class QueuedForest:
    """A star forest's operations as work of a queue, made by `StarForest.on`.

    They return at once, and are ordered with all else that uses their vectors. Data are vectors, laid out as `roots` and `leaves` or any
    others that are as long.

    Attributes
    ----------
    forest : StarForest
        Whose operations these are.
    queue : Queue
        That works on the vectors.
    roots, leaves : layouts
        For ``Vector(f.roots, queue)``: a value for each root, and for each place of the leaf space.

    Notes
    -----
    All operations are collective, in the order of the program. On a GPU the values are packed,
    combined and put in place by kernels, those of contiguous positions sent from and received where they lie. Same bits as the star
    forest's own (products of complex numbers to rounding). Cost: one pass over the edges on each side.

    Examples
    --------
    >>> import asterism as am
    >>> sf = am.StarForest(None, 2, None, [[0, 0], [0, 0], [0, 1]])
    >>> f = sf.on(am.Queue())
    >>> x, y = am.Vector(f.roots, f.queue, fill=0), am.Vector(f.leaves, f.queue, fill=1)
    >>> f.reduce(y, x)                  # returns at once
    >>> x.numpy()                       # this waits
    array([2., 1.])
    """

    def __init__(self, forest: StarForest, queue: Queue) -> None:
        self.forest = forest
        self.queue = queue
        self._h = _core.QueuedForest.make(forest._sf, queue_of(queue, "StarForest.on"))
        self.roots = _Space(self._h.roots)
        self.leaves = _Space(self._h.leaves)

    @property
    def _comm(self) -> _core.Communicator:
        return self.forest._comm

    @property
    def transport(self) -> str:
        """How messages go, and why, in words."""
        return str(self._h.transport)

    def __repr__(self) -> str:
        return f"<asterism.QueuedForest of {self.forest.nroots} roots and {self.forest.nleaves} leaves on {self.queue!r}, {self.transport}>"

    @one_call("QueuedForest.bcast")
    def bcast_begin(self, rootdata: Vector, leafdata: Vector, op: str = "replace") -> QueuedFlight:
        """Begin `bcast`: other work of the queue goes on until its end.

        Parameters
        ----------
        rootdata, leafdata, op
            As for `bcast`. The vectors are not to be changed before ``end()``.

        Returns
        -------
        QueuedFlight

        Notes
        -----
        Collective, as is ``end()``. Does not wait.
        """
        data = handle_of(rootdata, "rootdata"), handle_of(leafdata, "leafdata")
        return QueuedFlight(self._h.bcast_begin(*data, _core.reduce_op(op)))

    def bcast(self, rootdata: Vector, leafdata: Vector, op: str = "replace") -> None:
        """``leafdata[l] = op(leafdata[l], rootdata[r])`` for every edge.

        Parameters
        ----------
        rootdata : Vector, shape (nroots,) or (nroots, k)
        leafdata : Vector, shape (nleafspace,) or (nleafspace, k)
            Of rootdata's dtype and columns. Changed at the leaves only.
        op : {"replace", "sum", "prod", "min", "max"}
            The last two of real values.

        Raises
        ------
        ShapeError
            A vector has too few rows, or the two differ in columns or dtype.
        DtypeError
            ``op`` is min or max, and the values are complex.
        OptionError
            ``op`` is another word.
        TypeError
            An argument is no vector.

        Notes
        -----
        Collective. Does not wait: reading leafdata does.
        """
        self.bcast_begin(rootdata, leafdata, op).end()

    @one_call("QueuedForest.reduce")
    def reduce_begin(self, leafdata: Vector, rootdata: Vector, op: str = "sum") -> QueuedFlight:
        """Begin `reduce`: other work of the queue goes on until its end.

        Parameters
        ----------
        leafdata, rootdata, op
            As for `reduce`. The vectors are not to be changed before ``end()``.

        Returns
        -------
        QueuedFlight

        Notes
        -----
        Collective, as is ``end()``. Does not wait.
        """
        data = handle_of(leafdata, "leafdata"), handle_of(rootdata, "rootdata")
        return QueuedFlight(self._h.reduce_begin(*data, _core.reduce_op(op)))

    def reduce(self, leafdata: Vector, rootdata: Vector, op: str = "sum") -> None:
        """``rootdata[r] = op(rootdata[r], leafdata[l])`` for every edge, in (rank, leaf) order.

        Parameters
        ----------
        leafdata, rootdata, op
            As for `bcast`; rootdata is changed. With "replace" the highest (rank, leaf) wins.

        Notes
        -----
        Collective. Does not wait. Errors as of `bcast`.
        """
        self.reduce_begin(leafdata, rootdata, op).end()

    @one_call("QueuedForest.fetch_and_op")
    def fetch_and_op_begin(
        self, rootdata: Vector, leafdata: Vector, leafupdate: Vector, op: str = "sum"
    ) -> QueuedFlight:
        """Begin `fetch_and_op`: other work of the queue goes on until its end, which sends the answers.

        Parameters
        ----------
        rootdata, leafdata, leafupdate, op
            As for `fetch_and_op`. The vectors are not to be changed before ``end()``.

        Returns
        -------
        QueuedFlight

        Notes
        -----
        Collective, as is ``end()``. Does not wait.
        """
        data = handle_of(rootdata, "rootdata"), handle_of(leafdata, "leafdata"), handle_of(leafupdate, "leafupdate")
        return QueuedFlight(self._h.fetch_and_op_begin(*data, _core.reduce_op(op)))

    def fetch_and_op(self, rootdata: Vector, leafdata: Vector, leafupdate: Vector, op: str = "sum") -> None:
        """Reduce, and tell each leaf what was at its root just before it was taken.

        Parameters
        ----------
        rootdata, leafdata, op
            As for `reduce`.
        leafupdate : Vector, shape (nleafspace,) or (nleafspace, k)
            Of leafdata's dtype and columns. ``leafupdate[l]`` becomes that value.

        Notes
        -----
        Collective. Does not wait. Errors as of `bcast`.
        """
        self.fetch_and_op_begin(rootdata, leafdata, leafupdate, op).end()

    def wait(self) -> None:
        """Wait for all that was submitted; raises an error of messages between GPUs, of which queues do not know."""
        self._h.wait()
