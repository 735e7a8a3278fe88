"""Messages that come when they come, for work that is driven by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count
from ..errors import InputError, ShapeError
from .communicator import as_communicator, one_call

__all__ = ["Channels", "Message"]


class Message(NamedTuple):
    """A message of a channel: its bytes are a copy, or lie in the array that `Channels.land_in` gave."""

    rank: int
    data: bytes | memoryview
    label: int


def _bytes_of(array: Any, what: str) -> NDArray[np.uint8]:
    """Return the memory of a contiguous buffer, not a copy."""
    try:
        return np.frombuffer(array, np.uint8) if memoryview(array).nbytes else np.empty(0, np.uint8)
    except (TypeError, ValueError, BufferError) as e:
        raise ShapeError(f"{what}: a contiguous array or buffer is needed ({e}).") from None


def _as_channel(c: Any) -> tuple[int, int, int]:
    if not isinstance(c, tuple | list) or len(c) not in (2, 3):
        raise InputError(f"Channels: out lists (rank, bytes) or (rank, bytes, label), not {c!r}.")
    label = as_count(c[2], "Channels: label") if len(c) == 3 else 0
    return as_count(c[0], "Channels: rank"), as_count(c[1], "Channels: bytes"), label


class Channels:
    """Put with signal, poll what arrived: who sends to whom is known beforehand, when is not.

    Parameters
    ----------
    comm : None or mpi4py.MPI.Comm
    out : sequence of (rank, bytes) or (rank, bytes, label)
        The channels that this rank may send by: to whom, and the largest message. Several channels to one rank differ by
        their label, any integer from 0 on; without one it is 0.
    transport : {"auto", "p2p", "shm"}, optional
        As for `StarForest`: shared memory between ranks of one machine, else MPI.

    Raises
    ------
    InputError
        A channel leads to this rank itself or to one that is not there, has no size, or is listed twice; or the ranks give different
        transports.
    OptionError
        ``transport`` is another word.

    Notes
    -----
    Making it is collective. Messages of one channel arrive in their order. Before the object goes away, everything that was
    put must have been taken. Cost of `put`, up to 24 bytes within a machine: one cache line, no MPI call. `poll` costs the
    same for one label as for thousands. Source: the message-driven triangular solves of Ding et al., whose one-sided puts
    these replace.
    """

    @one_call("Channels")
    def __init__(self, comm: Any, out: Sequence[tuple[int, ...]], transport: str | None = None) -> None:
        self._h = _core.Channels(as_communicator(comm), [_as_channel(c) for c in out], transport)
        self._lent: dict[int, Any] = {}
        self._landing: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._delivered: dict[tuple[int, int], tuple[int, Message]] = {}

    def __repr__(self) -> str:
        return f"<asterism.Channels '{self.name}', {len(self.out)} out, {len(self.in_)} in>"

    @property
    def name(self) -> str:
        """For `comm_report`."""
        name: str = self._h.name
        return name

    @name.setter
    def name(self, name: str) -> None:
        self._h.name = name

    @property
    def out(self) -> list[tuple[int, int, int]]:
        """Channels from this rank: (rank, bytes, label), ascending by rank and label."""
        return list(self._h.out)

    @property
    def in_(self) -> list[tuple[int, int, int]]:
        """Channels to this rank: (rank, bytes, label), ascending by rank and label."""
        return list(self._h.in_)

    def put(self, rank: int, data: Any, label: int = 0) -> None:
        """Copy a message and signal it. Never waits.

        Parameters
        ----------
        rank : int
            To whom.
        data : bytes-like, or array
            Its memory, at most as many bytes as the channel's.
        label : int
            Of the channel.

        Raises
        ------
        InputError
            There is no such channel from this rank.
        ShapeError
            The message is longer than the channel's largest.

        Notes
        -----
        A receiver that falls behind costs memory of this rank.
        """
        self._h.put(as_count(rank, "put: rank"), bytes(memoryview(data)), as_count(label, "put: label"))

    def lend(self, rank: int, array: Any, label: int = 0) -> int:
        """Signal an array without a copy.

        Parameters
        ----------
        rank, label : int
            As for `put`.
        array : contiguous array
            It must not change before `returned` of the ticket, or `all_returned`.

        Returns
        -------
        ticket : int
            For `returned`.

        Raises
        ------
        InputError, ShapeError
            As for `put`; or the array is not contiguous.

        Notes
        -----
        Never waits. Within a machine an array of up to 24 bytes is copied all the same; so is one that is not of `shared_zeros`, if it has
        less than 4 KiB or its neighbour may not read it.
        """
        view = _bytes_of(array, "lend: array")
        ticket: int = self._h.lend(as_count(rank, "lend: rank"), view, as_count(label, "lend: label"))
        while self._lent and self._h.returned(oldest := next(iter(self._lent))):
            del self._lent[oldest]
        self._lent[ticket] = view
        return ticket

    def returned(self, ticket: int) -> bool:
        """Tell whether the receiver has released what was lent.

        Parameters
        ----------
        ticket : int
            Of `lend`.

        Returns
        -------
        bool
            Once it is true the array may change.

        Raises
        ------
        InputError
            No such ticket was given.
        """
        back: bool = self._h.returned(as_count(ticket, "returned: ticket"))
        if back:
            self._lent.pop(ticket, None)
        return back

    def all_returned(self) -> bool:
        """Tell whether nothing that was lent is still out."""
        back: bool = self._h.all_returned()
        if back:
            self._lent.clear()
        return back

    def under_way(self, rank: int, label: int = 0) -> int:
        """Return how many messages of a channel are not known to be released.

        Parameters
        ----------
        rank, label : int
            As for `put`.

        Returns
        -------
        int

        Raises
        ------
        InputError
            There is no such channel from this rank.
        """
        count: int = self._h.under_way(as_count(rank, "under_way: rank"), as_count(label, "under_way: label"))
        return count

    def land_in(self, rank: int, array: Any, label: int = 0) -> None:
        """Have messages of an incoming channel delivered in an array.

        Parameters
        ----------
        rank, label : int
            The sender, and the channel's label.
        array : contiguous array, or None
            Writeable, as long as the channel's largest message; None ends it.

        Raises
        ------
        InputError
            There is no such channel to this rank, or the array is read-only.
        ShapeError
            The array is not contiguous, or too short.

        Notes
        -----
        One message at a time: the next one comes after `release`. Until then it is set aside, and other channels go on. Waits only for a
        message that is on its way into the array before.
        """
        r, at = as_count(rank, "land_in: rank"), as_count(label, "land_in: label")
        view = None if array is None else _bytes_of(array, "land_in: array")
        if view is not None and not view.flags.writeable:
            raise InputError("land_in: array is read-only. Give one that can be written to.")
        self._h.land_in(r, view, at)
        if view is None:
            self._landing.pop((r, at), None)
        else:
            self._landing[r, at] = view

    def _message(self, arrived: tuple[int, int, bytes | None, int, int]) -> Message:
        rank, label, data, size, key = arrived
        if data is not None:
            return Message(rank, data, label)
        message = Message(rank, self._landing[rank, label].data[:size], label)
        self._delivered[rank, label] = key, message
        return message

    def poll(self) -> Message | None:
        """Return a message that has arrived, in turn among the senders, or None.

        Its `data` is a copy and nothing has to be released, or, after `land_in`, a view of that array until `release`.

        Returns
        -------
        Message or None
        """
        arrived = self._h.poll()
        return None if arrived is None else self._message(arrived)

    def wait(self) -> Message:
        """Wait for a message and return it as `poll` does.

        Returns
        -------
        Message

        Raises
        ------
        CommError
            No rank has a channel to this one; or another rank failed meanwhile.
        """
        return self._message(self._h.wait())

    def release(self, message: Message) -> None:
        """Give a message in an array of `land_in` back: its sender may go on, and the next one may come.

        Parameters
        ----------
        message : Message
            Itself, as `poll` or `wait` returned it.

        Raises
        ------
        InputError
            It lies in no array of `land_in`, or was released before.
        """
        if not isinstance(message, Message):
            raise InputError(f"release: message is a {type(message).__name__}; a message of poll or wait is needed.")
        key, delivered = self._delivered.get((message.rank, message.label), (-1, None))
        if delivered is not message:
            raise InputError(
                f"release: the message of rank {message.rank} with label {message.label} is not in an array of land_in, or was "
                "released before. Others are copies and need no release."
            )
        del self._delivered[message.rank, message.label]
        self._h.release(message.rank, key)
