"""Messages that come when they come, for work that is driven by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..base.indices import as_count
from .communicator import as_communicator, one_call

__all__ = ["Channels"]


class Channels:
    """Put with signal, poll what arrived: who sends to whom is known beforehand, when is not.

    Parameters
    ----------
    comm : None or mpi4py.MPI.Comm
    to : sequence of int
        Ranks that this rank may send to.
    max_bytes : int
        Of one message, the same on all ranks.
    transport : {"auto", "p2p", "shm"}, optional
        As for `StarForest`: shared memory between ranks of one machine, else MPI.

    Notes
    -----
    Making it is collective. Messages of one sender arrive in its order. Before the object goes away, everything that was
    put must have been taken. Cost of `put`, up to 24 bytes within a machine: one cache line, no MPI call. Source: the
    message-driven triangular solves of Ding et al., whose one-sided puts these replace.
    """

    @one_call("Channels")
    def __init__(self, comm: Any, to: Sequence[int], max_bytes: int, transport: str | None = None) -> None:
        self._h = _core.Channels(
            as_communicator(comm),
            [as_count(r, "Channels: to") for r in to],
            as_count(max_bytes, "Channels: max_bytes"),
            transport,
        )

    def __repr__(self) -> str:
        return f"<asterism.Channels '{self.name}', from ranks {self.sources}>"

    @property
    def name(self) -> str:
        """For `comm_report`."""
        name: str = self._h.name
        return name

    @name.setter
    def name(self, name: str) -> None:
        self._h.name = name

    @property
    def sources(self) -> list[int]:
        """Ranks that may send to this one, ascending."""
        return list(self._h.sources)

    def put(self, rank: int, data: Any) -> None:
        """Copy a bytes-like object (also an array's memory) and signal it to `rank`. Never waits."""
        self._h.put(as_count(rank, "put: rank"), bytes(memoryview(data)))

    def poll(self) -> tuple[int, bytes] | None:
        """Return (rank, data) of a message that has arrived, in turn among the senders, or None."""
        message: tuple[int, bytes] | None = self._h.poll()
        return message

    def wait(self) -> tuple[int, bytes]:
        """Wait for a message and return (rank, data)."""
        message: tuple[int, bytes] = self._h.wait()
        return message
