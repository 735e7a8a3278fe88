"""Queues of work."""

from __future__ import annotations

import atexit
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..base.indices import as_count
from ..errors import InputError

if TYPE_CHECKING:
    from ..la.vector import Vector

__all__ = ["Event", "GpuArray", "Queue", "handle_of", "queue_of"]

_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    # functions that are still queued need the interpreter: an idle queue may be freed whenever it likes
    for q in list(_queues):
        try:
            q.wait()
        except Exception:
            traceback.print_exc()


class Event:
    """The point that a queue had come to, made by `Queue.record`."""

    def __init__(self, handle: _core.QueueEvent) -> None:
        self._h = handle

    def __repr__(self) -> str:
        return f"<asterism.Event, {'done' if self.done else 'not done'}>"

    @property
    def done(self) -> bool:
        """Whether all before it is done."""
        return bool(self._h.done)

    def wait(self) -> None:
        """Wait for it. Errors of the work before it are raised here, or by another wait, once."""
        self._h.wait()


class GpuArray:
    """Memory on a GPU, for libraries that read ``__cuda_array_interface__`` (version 3)."""

    def __init__(self, pointer: int, shape: tuple[int, ...], dtype: Any, read_only: bool, stream: int | None) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (pointer, read_only),
            "strides": None,
            "version": 3,
            "stream": stream or None,
        }


class Queue:
    """An ordered queue that work on vectors is submitted to.

    Operations of a `Vector` on it return at once; reading a value waits. What must come after what, also between queues, follows
    from what each operation reads and writes.

    Parameters
    ----------
    kind : str
        ``"thread"``: a worker thread runs the work in order. ``"inline"``: it is run at once, by the caller. For tests ``"strict"``
        (as thread, but data lie apart as on a device) and ``"shuffle"`` (in a random order that reads and writes allow).
        ``"cuda"``, ``"hip"``: a stream of this process's GPU, which a worker thread launches into; what has no form for it runs
        on the host with its data copied, which `asterism.gpu_state` counts.
    seed : int
        Of the shuffle queue: 0 or more. The same seed gives the same order.

    Raises
    ------
    OptionError
        ``kind`` is another word.
    UnsupportedError
        There is no GPU that can be used; the text says what is missing.

    Examples
    --------
    >>> import asterism as am
    >>> q = am.Queue()
    >>> A = am.gallery.poisson((100, 100))
    >>> x = am.Vector(A, q, fill=1.0)
    >>> r = A @ x                     # returns at once
    >>> norm = r.norm()               # so does this
    >>> round(float(norm), 6)         # this waits
    20.19901
    """

    def __init__(self, kind: str = "thread", *, seed: int = 1) -> None:
        self._h = _core.Queue.make(kind, as_count(seed, "Queue: seed"))
        _queues.add(self)

    @classmethod
    def _of(cls, handle: _core.Queue) -> Queue:
        q = cls.__new__(cls)
        q._h = handle
        _queues.add(q)
        return q

    @classmethod
    def on_stream(cls, stream: Any) -> Queue:
        """Return a queue that launches into a stream of the caller's, from the submitting thread at once.

        The caller's own work there keeps its order with what is submitted. Work that must run on the host (what has no form for the
        GPU, MPI) makes the caller wait then.

        Parameters
        ----------
        stream : int or stream object
            A ``cudaStream_t`` as an integer, or an object with ``__cuda_stream__()``, ``.ptr`` (CuPy) or ``.cuda_stream`` (PyTorch).
            Its device must be current in this thread.

        Returns
        -------
        Queue

        Raises
        ------
        TypeError
            ``stream`` is none of these.
        UnsupportedError
            There is no GPU that can be used, or this process uses another one.
        """
        number: Any = stream
        if hasattr(stream, "__cuda_stream__"):
            protocol: Any = getattr(stream, "__cuda_stream__", None)
            pair: Any = protocol() if callable(protocol) else protocol
            number = pair[1]
        elif not isinstance(stream, int):
            number = getattr(stream, "ptr", getattr(stream, "cuda_stream", None))
        if not isinstance(number, int):
            raise TypeError(f"on_stream: a {type(stream).__name__} is no stream; an integer, or CuPy's or PyTorch's.")
        return cls._of(_core.Queue.on_stream(number))

    @property
    def stream(self) -> int | None:
        """Of a GPU's queue its ``cudaStream_t``, when all that was submitted is launched; else None."""
        number = self._h.stream
        return None if number is None else int(number)

    @property
    def kind(self) -> str:
        """As given."""
        return str(self._h.kind)

    def __repr__(self) -> str:
        return f"<asterism.Queue {self.kind}>"

    def fork(self) -> Queue:
        """Return another queue of this kind, whose work comes after all that this one was given so far.

        Returns
        -------
        Queue
            With a worker thread, or a stream, of its own. That of an inline queue is inline, and so the same; that of a shuffle queue
            shares its lot of tasks.
        """
        return Queue._of(self._h.fork())

    def record(self) -> Event:
        """Return the point that this queue has come to."""
        return Event(self._h.record())

    def wait_for(self, event: Event) -> None:
        """Let what is submitted from now on come after an event, of any queue.

        Parameters
        ----------
        event : Event
            From `record`.

        Notes
        -----
        The caller does not wait, but on an inline queue, whose work is done at once.
        """
        if not isinstance(event, Event):
            raise TypeError(f"wait_for: a {type(event).__name__} where an event of Queue.record is needed.")
        self._h.wait_for(event._h)

    def join(self, other: Queue) -> None:
        """Let what is submitted from now on come after all that another queue was given so far.

        Parameters
        ----------
        other : Queue

        Notes
        -----
        ``self.wait_for(other.record())``.
        """
        queue_of(other, "join")
        self.wait_for(other.record())

    def wait(self) -> None:
        """Wait until all work is done. Errors of queued work are raised here, or at the first read, once."""
        self._h.wait()

    @property
    def waits(self) -> dict[str, int]:
        """How often the caller waited for this queue, by reason."""
        return dict(self._h.waits())

    def submit(
        self,
        function: Callable[..., Any],
        *,
        read: Sequence[Vector] = (),
        update: Sequence[Vector] = (),
        write: Sequence[Vector] = (),
        device: bool = False,
    ) -> None:
        """Submit a function of your own.

        It is called as ``function(*arrays)`` with NumPy arrays of the vectors' local parts in the order read, update, write, when
        its turn comes, with Python's lock held. Arrays of ``read`` are read-only; ``write`` means all of the array, its old values
        may be anything. What it raises is raised by the next wait.

        Parameters
        ----------
        function : callable
        read, update, write : sequences of Vector
        device : bool
            On a GPU's queue: the function is called as ``function(stream, *arrays)``, launches what it likes into that stream (an
            integer) and does not wait. The arrays have ``__cuda_array_interface__``: ``cupy.asarray(a)``, ``torch.as_tensor(a)``.

        Raises
        ------
        InputError
            A vector is given twice.
        TypeError
            One of them is no vector.
        UnsupportedError
            ``device`` is true, and the queue is on no GPU.
        """
        given = [(v, how) for how, vs in (("read", read), ("update", update), ("write", write)) for v in vs]
        for i, (v, how) in enumerate(given):
            if not isinstance(getattr(v, "_h", None), _core.QueueVector):
                raise TypeError(f"submit: {how}= has a {type(v).__name__} where an asterism.Vector is needed.")
            if any(w is v for w, _ in given[:i]):
                raise InputError(f"submit: a vector is given twice ({how}); update= is for what is read and written.")
        if device:
            shapes = [(v.shape, v.dtype, how == "read") for v, how in given]

            def launch(stream: int, pointers: list[int]) -> None:
                function(stream, *(GpuArray(p, *s, stream) for p, s in zip(pointers, shapes, strict=True)))

            self._h.submit_on_gpu(launch, [(v._h, how) for v, how in given])
            return
        self._h.submit(function, [(v._h, how, v._flat) for v, how in given])


def queue_of(x: Any, what: str) -> _core.Queue:
    """Return the core's queue of a `Queue`."""
    if not isinstance(x, Queue):
        raise TypeError(f"{what}: a {type(x).__name__} where an asterism.Queue is needed.")
    return x._h


def handle_of(x: Any, what: str) -> _core.QueueVector:
    """Return the core's vector of a `Vector`."""
    handle = getattr(x, "_h", None)
    if not isinstance(handle, _core.QueueVector):
        raise TypeError(
            f"{what}: a {type(x).__name__} where an asterism.Vector is needed. Vector.wrap(A, array) makes one of an array."
        )
    return handle
