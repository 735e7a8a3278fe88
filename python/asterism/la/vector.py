"""Vectors on queues, for methods of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count
from ..base.values import dtype_name, unmasked
from ..comm.communicator import reported
from ..device.gpu import gpu_array
from ..device.queue import GpuArray, Queue, handle_of, queue_of
from ..errors import DtypeError, InputError, ShapeError, UnsupportedError
from .operator import Operator, as_values
from .scalar import Scalar, handle_of_scalar

__all__ = ["Vector", "dots"]

_INLINE = Queue("inline")


class Vector:
    """My part of a distributed vector, (n) or (n, k), that a queue works on.

    Parameters
    ----------
    A : Matrix, Assembly, or roots or leaves of a QueuedForest
        The vector is laid out as its rows, its entries or its places, and has its dtype.
    queue : Queue, optional
        Inline by default: operations are done when they return.
    columns : int
        1 makes the shape (n), others (n, columns).
    fill : number, optional
        Uninitialised without.
    dtype : optional
        Another one of the four.
    unified : bool
        On a GPU's queue: in memory that the host and the GPU both address, moved by pages as they touch it. Nothing is copied between
        them, and it may be larger than the GPU's own. Freeing it waits for the device.

    Raises
    ------
    ShapeError, DtypeError
        ``columns`` is no integer from 1, or ``dtype`` none of the four.
    UnsupportedError
        ``unified`` is true, and the queue is on no GPU.

    Notes
    -----
    Operations are in place and return at once; those with sums over all ranks (`dot`, `norm`) return a `Scalar`. They are collective
    in the order of the program. Of a real vector's factor, when it is not known yet, the real part is taken; one that is known not to be
    real is an error. A thread or strict queue on several ranks needs ``MPI_THREAD_MULTIPLE`` (mpi4py's default).

    Examples
    --------
    >>> import asterism as am
    >>> A = am.gallery.poisson((4,))
    >>> x, y = am.Vector(A, fill=1.0), am.Vector(A, fill=2.0)
    >>> y.axpy(-2.0, A @ x)  # y = y - 2 A x
    >>> y.numpy()
    array([0., 2., 2., 0.])
    >>> float(x.dot(y))
    4.0
    """

    __array_ufunc__ = None  # operators are this class's: A @ x

    def __init__(
        self,
        A: Any,
        queue: Queue | None = None,
        *,
        columns: int = 1,
        fill: float | complex | None = None,
        dtype: Any = None,
        unified: bool = False,
    ) -> None:
        self.queue = _INLINE if queue is None else queue
        queue_of(self.queue, "Vector: queue")
        name = dtype_name(A.dtype if dtype is None else dtype, "Vector")
        columns = as_count(columns, "Vector: columns")
        if isinstance(A, Operator) and not unified:
            self._h = _core.QueueVector.make_of_operator(A._h, name, columns, self.queue._h)
        else:
            make = _core.QueueVector.make_unified if unified else _core.QueueVector.make
            self._h = make(A._vector_layout, name, columns, self.queue._h)
        self._flat = columns == 1
        if fill is not None:
            self.fill(fill)

    @classmethod
    def _of(cls, handle: _core.QueueVector, queue: Queue, flat: bool) -> Vector:
        v = cls.__new__(cls)
        v._h, v.queue, v._flat = handle, queue, flat
        return v

    @classmethod
    def wrap(cls, A: Any, array: Any, queue: Queue | None = None) -> Vector:
        """Return a vector over an array's own memory, without a copy.

        Parameters
        ----------
        A : Matrix, Assembly, or roots or leaves of a QueuedForest
            Laid out as its rows, entries or places.
        array : array, shape (n) or (n, k)
            A contiguous NumPy array of one of the four dtypes, or an object that exports one (``__dlpack__``, ``__array_interface__``);
            with a GPU's queue also one on that GPU (``__cuda_array_interface__`` or ``__dlpack__``: CuPy, PyTorch, Numba, JAX).
            It is kept alive. While a queue works on it use `numpy` to read it.
        queue : Queue, optional
            Inline by default.

        Returns
        -------
        Vector

        Raises
        ------
        InputError
            It cannot be used without a copy: it is not contiguous, of another dtype, read-only, or on another GPU.
        ShapeError
            It has not as many rows as are needed here, or more than two dimensions.
        UnsupportedError
            It is on a GPU, and the queue is not.
        """
        q = _INLINE if queue is None else queue
        owner, interface = array, getattr(array, "__cuda_array_interface__", None)
        if interface is None and getattr(array, "__dlpack_device__", lambda: (1, 0))()[0] in (2, 10):  # CUDA, ROCm
            # the exporter makes our stream wait for its work
            interface, owner = _core.dlpack_interface(array.__dlpack__(stream=q.stream))
        if (on_gpu := gpu_array(interface)) is not None:
            k = 1 if len(on_gpu["shape"]) == 1 else int(on_gpu["shape"][1])
            h = _core.QueueVector.wrap_gpu(
                A._vector_layout,
                on_gpu["data"][0],
                np.dtype(on_gpu["typestr"]).name,
                on_gpu["shape"][0],
                k,
                on_gpu["stream"],
                owner,
                q._h,
            )
            return cls._of(h, q, len(on_gpu["shape"]) == 1)
        if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
            array = np.from_dlpack(array)
        view = unmasked(array, "Vector.wrap: the array")
        usable = as_values(view, "Vector.wrap")
        if usable is not view and not np.shares_memory(usable, view):
            raise InputError(
                f"Vector.wrap: an array of dtype {view.dtype} and strides {view.strides} cannot be used in place; "
                "a contiguous one of float32, float64, complex64 or complex128 can. Vector(A).copy_from takes any."
            )
        if not usable.flags.writeable:
            raise InputError("Vector.wrap: the array is read-only. Vector(A).copy_from takes it.")
        if isinstance(A, Operator):
            h = _core.QueueVector.wrap_of_operator(A._h, usable, q._h)
        else:
            h = _core.QueueVector.wrap(A._vector_layout, usable, q._h)
        return cls._of(h, q, usable.ndim == 1)

    def like(self, fill: float | complex | None = None) -> Vector:
        """Return a new vector of the same layout, dtype, columns and queue.

        Parameters
        ----------
        fill : number, optional
            Uninitialised without.

        Returns
        -------
        Vector
        """
        v = Vector._of(self._h.like(), self.queue, self._flat)
        if fill is not None:
            v.fill(fill)
        return v

    def copy(self) -> Vector:
        """Return a copy."""
        v = self.like()
        v.copy_from(self)
        return v

    def __copy__(self) -> Vector:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Vector:
        return self.copy()

    def __reduce__(self) -> Any:
        raise UnsupportedError("a Vector cannot be pickled. Pickle v.numpy(), and make a vector of it anew: copy_from.")

    @property
    def _comm(self) -> _core.Communicator:
        return self._h.layout.comm

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return np.dtype(str(self._h.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of my part."""
        n = int(self._h.local_size)
        return (n,) if self._flat else (n, int(self._h.columns))

    def __repr__(self) -> str:
        return f"<asterism.Vector {self.shape} {self.dtype} on {self.queue!r}>"

    def numpy(self) -> NDArray[Any]:
        """Wait, and return my part as an array over the same memory.

        What is written to it is seen by what is submitted afterwards. After that ask again: the queue may be at work on it.

        Returns
        -------
        array, shape (n,) or (n, k)
        """
        out: NDArray[Any] = self._h.array(self._flat)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"{array.dtype} as {np.dtype(dtype)} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: int | None = None, **arguments: Any) -> Any:
        if self.queue.stream is None:
            return self.numpy().__dlpack__(**arguments)
        return self._h.gpu_capsule(self._flat, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.queue.stream is None:
            return (1, 0)  # the host's memory
        return (10 if self.queue.kind == "hip" else 2, int(_core.gpu_device()))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """My part in the GPU's memory, without a copy: for CuPy, PyTorch, Numba. Who uses it waits for the queue's stream there."""
        if (stream := self.queue.stream) is None:
            raise AttributeError(f"the vector is on queue '{self.queue.kind}', not on a GPU's")
        view = GpuArray(self._h.gpu_pointer(False), self.shape, self.dtype, False, stream)
        return view.__cuda_array_interface__

    def fill(self, a: Any) -> None:
        """Set y = a.

        Parameters
        ----------
        a : number, Scalar, or array of a number for each column
            Real, if the vector is.
        """
        self._h.fill(handle_of_scalar(a))

    def copy_from(self, x: Any) -> None:
        """Set y = x.

        Parameters
        ----------
        x : Vector, or array
            Of y's shape. It is converted between precisions, and from real to complex. A vector may be on another queue.

        Raises
        ------
        ShapeError
            x has another shape.
        DtypeError
            x is complex, and y real; or x is a vector of float64, and y of complex64.

        Notes
        -----
        Not collective. Waits for y if x is an array.
        """
        if isinstance(x, Vector):
            self._h.copy_from(x._h)
            return
        array = unmasked(x, "copy_from: the array")
        if array.shape != self.shape:
            raise ShapeError(f"copy_from: an array of shape {array.shape} into a vector of {self.shape}.")
        if not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise DtypeError(
                f"copy_from: an array of {array.dtype} into a vector of {self.dtype}. Give array.real, or another dtype."
            )
        np.copyto(self.numpy(), array, casting="same_kind")

    def scale(self, a: Any) -> None:
        """Set y = a y.

        Parameters
        ----------
        a : number, Scalar, or array of a number for each column
            Real, if the vector is.
        """
        self._h.scale(handle_of_scalar(a))

    def axpy(self, a: Any, x: Vector) -> None:
        """Set y = y + a x.

        Parameters
        ----------
        a : number, Scalar, or array of a number for each column
            Real, if the vector is.
        x : Vector
            Of y's shape and dtype. It may be y itself.

        Raises
        ------
        ShapeError
            x has another shape, or there are other than one or k numbers.
        DtypeError
            x has another dtype, or a is known not to be real and y is.
        TypeError
            x is no vector.
        """
        self._h.axpy(handle_of_scalar(a), handle_of(x, "axpy"))

    def aypx(self, b: Any, x: Vector) -> None:
        """Set y = x + b y.

        Parameters
        ----------
        b, x
            As a and x of `axpy`, with its errors.
        """
        self._h.axpby(handle_of_scalar(1.0), handle_of(x, "aypx"), handle_of_scalar(b))

    def axpby(self, a: Any, x: Vector, b: Any) -> None:
        """Set y = a x + b y.

        Parameters
        ----------
        a, x, b
            As a and x of `axpy`, with its errors.
        """
        self._h.axpby(handle_of_scalar(a), handle_of(x, "axpby"), handle_of_scalar(b))

    def multiply(self, d: Vector, x: Vector) -> None:
        """Set y = d x, entry by entry.

        Parameters
        ----------
        d : Vector, shape (n,)
            Of y's dtype; of one column, which multiplies each of x.
        x : Vector
            Of y's shape and dtype. It may be y itself.

        Raises
        ------
        ShapeError, DtypeError, TypeError
            As for `axpy`.
        """
        self._h.multiply(handle_of(d, "multiply"), handle_of(x, "multiply"))

    @reported("product")
    def product(self, A: Operator, x: Vector) -> None:
        """Set y = A x.

        Parameters
        ----------
        A : Matrix or Operator, shape (n, m)
            Of y's dtype; y is laid out as its rows.
        x : Vector
            Of y's dtype and columns, laid out as A's columns. Not y itself.

        Raises
        ------
        ShapeError, DtypeError
            A vector has another layout, or another dtype.
        InputError
            x is y.
        TypeError
            A has another type, or x is no vector.

        Notes
        -----
        Collective. Does not wait: reading y does. A product with columns of x that other ranks own needs a message from each of them.
        """
        if not isinstance(A, Operator):
            raise TypeError(f"product: a {type(A).__name__} where an asterism.Matrix or Operator is needed.")
        _core.apply_queued(A._h, handle_of(x, "product"), self._h)

    def __rmatmul__(self, A: Any) -> Vector:
        """Return A x, on x's queue."""
        if not isinstance(A, Operator):
            return NotImplemented
        h = _core.QueueVector.make_of_operator(A._h, str(self._h.dtype), self._h.columns, self.queue._h)
        y = Vector._of(h, self.queue, self._flat)
        y.product(A, self)
        return y

    @reported("update_and_norm2")
    def update_and_norm2(self, alpha: Any, p: Vector, q: Vector, r: Vector) -> Scalar:
        """Add alpha p to this vector and -alpha q to r; return r^H r. One pass instead of three: a step of conjugate gradients.

        Parameters
        ----------
        alpha : number, Scalar, or array of a number for each column
            Real, if the vectors are.
        p, q : Vector
            Of this vector's shape and dtype.
        r : Vector
            The same. It is changed, and must be another vector than this one.

        Returns
        -------
        Scalar
            A number for each column, over all ranks.

        Raises
        ------
        ShapeError, DtypeError, TypeError
            As for `axpy`.

        Notes
        -----
        Collective. Does not wait. Cost: 4 reads and 2 writes of n values a column, and one sum over the ranks.
        """
        handles = (handle_of(v, "update_and_norm2") for v in (p, q, r))
        return Scalar._of(self._h.update_and_norm2(handle_of_scalar(alpha), *handles))

    @reported("dot")
    def dot(self, y: Vector) -> Scalar:
        """Return x^H y over all ranks, a number for each column.

        Parameters
        ----------
        y : Vector
            Of x's shape and dtype.

        Returns
        -------
        Scalar

        Raises
        ------
        ShapeError, DtypeError, TypeError
            As for `axpy`.

        Notes
        -----
        Collective. Does not wait. Cost: one pass over both, and one sum over the ranks; `dots` makes several products in one.
        """
        return Scalar._of(self._h.dot(handle_of(y, "dot")))

    def norm(self) -> Scalar:
        """Return the 2-norm over all ranks, of each column.

        Returns
        -------
        Scalar

        Notes
        -----
        Collective. Does not wait. Squares that overflow or underflow do no harm, but with ``-reproducible``.
        """
        return Scalar._of(self._h.norm())


@reported("dots")
def dots(pairs: Sequence[tuple[Vector, Vector]]) -> list[Scalar]:
    """Return x^H y of each pair.

    Parameters
    ----------
    pairs : sequence of (Vector, Vector)
        The two of a pair are of one shape and dtype, and all pairs of as many columns. As many on all ranks.

    Returns
    -------
    list of Scalar
        One for each pair, with a number for each column.

    Raises
    ------
    ShapeError, DtypeError, TypeError
        As for `Vector.axpy`; or the pairs differ in their columns.
    CommError
        The pairs are on different communicators.

    Notes
    -----
    Collective. Does not wait. All pairs share one message.

    Examples
    --------
    >>> import asterism as am
    >>> x = am.Vector(am.gallery.poisson((4,)), fill=1.0)
    >>> [float(s) for s in am.dots([(x, x), (x, x)])]
    [4.0, 4.0]
    """
    return [Scalar._of(h) for h in _core.dots([(handle_of(x, "dots"), handle_of(y, "dots")) for x, y in pairs])]
