"""Operators that are functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count
from ..base.values import DTYPES, dtype_name, unmasked
from ..comm.communicator import as_communicator, one_call, reported
from ..errors import DtypeError, InputError, ShapeError, UnsupportedError

__all__ = ["Operator", "as_values"]


def as_values(values: Any, what: str) -> NDArray[Any]:
    """Return a C-contiguous array of one of the four dtypes; integers and bools become float64."""
    array = unmasked(values, what)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if isinstance(values, Operator):
        raise InputError(f"{what} is {values!r}; an array is needed. A.to_scipy() makes a SciPy matrix of a Matrix.")
    if hasattr(values, "toarray"):
        raise InputError(f"{what} is a {type(values).__name__}; an array is needed: toarray() makes one.")
    if array.dtype.name not in DTYPES:
        raise DtypeError(f"{what} has dtype {array.dtype}; float32, float64, complex64 or complex128 is needed.")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array)


class Operator:
    """A linear operator that a function applies: for `Solver`, as A or as M. A `Matrix` is one too.

    Parameters
    ----------
    apply : callable(x) -> y
        Maps my part of a vector to my part of the product; arrays (n), or (n, k) where there are several columns. x is read-only. On
        several ranks it is called on all of them together, so it may communicate.
    rows : int
        My rows.
    cols : int, optional
        My entries of x; as ``rows`` by default.
    dtype : optional
        One of the four; float64 by default.
    comm : None or mpi4py.MPI.Comm
    adjoint : callable(y) -> x, optional
        Applies A^H. Needed by bicg, lsmr and the like, and by `Solver.solve_transpose`.
    diagonal : array, shape (rows,), optional
        My part of the diagonal of A. The preconditioners jacobi and chebyshev need nothing else.
    name : str
        For messages.

    Raises
    ------
    ShapeError, DtypeError
        A size is negative, ``diagonal`` does not fit or the operator is not square, or a dtype is none of the four.
        Of a product: the function has returned another shape.

    Notes
    -----
    Collective. What a function raises on one rank is raised on all; one that communicates must raise before it does so, or on all.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> def second_differences(x):
    ...     y = 2 * x
    ...     y[1:] -= x[:-1]
    ...     y[:-1] -= x[1:]
    ...     return y
    >>> A = am.Operator(second_differences, 50)
    >>> x, info = am.solve(A, np.ones(50), ksp="cg", rtol=1e-10)
    >>> info.iterations
    25

    With its diagonal it can be preconditioned without a matrix:

    >>> A = am.Operator(second_differences, 50, diagonal=np.full(50, 2.0))
    >>> x, info = am.solve(A, np.ones(50), ksp="cg", pc="chebyshev", rtol=1e-10)
    >>> info.converged
    True
    """

    @one_call("Operator")
    def __init__(
        self,
        apply: Callable[[NDArray[Any]], Any],
        rows: int,
        cols: int | None = None,
        *,
        dtype: Any = np.float64,
        comm: Any = None,
        adjoint: Callable[[NDArray[Any]], Any] | None = None,
        diagonal: Any = None,
        name: str = "a function",
    ) -> None:
        c = as_communicator(comm)
        row_layout = _core.Layout(c, as_count(rows, "Operator: rows"))
        col_layout = row_layout if cols is None else _core.Layout(c, as_count(cols, "Operator: cols"))
        kind = dtype_name(dtype, "Operator")
        main = None if diagonal is None else as_values(diagonal, "Operator: diagonal")
        if main is not None:
            if main.shape != (rows,) or not row_layout.fits(col_layout):
                raise ShapeError(
                    f"Operator: diagonal has shape {main.shape}; ({rows},) is needed here, of a square operator."
                )
            if not np.can_cast(main.dtype, kind, "same_kind"):
                raise DtypeError(f"Operator: diagonal is {main.dtype}, the operator {kind}.")
            main = main.astype(kind, copy=False)
        self._h: _core.Operator = _core.FunctionOperator(
            row_layout,
            col_layout,
            kind,
            _filled_by(apply, name),
            None if adjoint is None else _filled_by(adjoint, name),
            main,
            name,
        )

    @classmethod
    def _of(cls, handle: _core.Operator) -> Operator:
        A = cls.__new__(cls)
        A._h = handle
        return A

    @classmethod
    def of(cls, A: Any, dtype: Any = None) -> Operator:
        """Return what has ``shape`` and ``matvec``, as SciPy's LinearOperator, as an operator of one process.

        Parameters
        ----------
        A : object
            ``A.matvec(x)`` applies it to (n); ``A.matmat(X)`` to (n, k) and ``A.rmatvec(x)`` the adjoint, where they are there.
        dtype : optional
            That the solve works in; A's by default, float64 where that is an integer.

        Returns
        -------
        Operator
            With an adjoint, if A has ``rmatvec``. (n, k) without ``matmat`` is applied column by column.
        """
        n, m = A.shape
        given = getattr(A, "dtype", None)
        counts = given is None or np.dtype(given).kind in "iub"  # of integers, or it does not say
        how = dtype if dtype is not None else np.float64 if counts else given
        wide = getattr(A, "matmat", None)

        def apply(x: NDArray[Any]) -> Any:
            if x.ndim == 1:
                return A.matvec(x)
            return np.stack([A.matvec(c) for c in x.T], axis=1) if wide is None else wide(x)

        def adjoint(x: NDArray[Any]) -> Any:
            return A.rmatvec(x) if x.ndim == 1 else np.stack([A.rmatvec(c) for c in x.T], axis=1)

        return cls(
            apply,
            n,
            m,
            dtype=how,
            adjoint=adjoint if hasattr(A, "rmatvec") else None,
            name=type(A).__name__,
        )

    @property
    def _comm(self) -> _core.Communicator:
        return self._h.rows.comm

    @property
    def _vector_layout(self) -> _core.Layout:
        return self._h.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Global shape."""
        return int(self._h.rows.global_size), int(self._h.cols.global_size)

    @property
    def local_shape(self) -> tuple[int, int]:
        """My rows, and my entries of x."""
        return int(self._h.rows.local_size), int(self._h.cols.local_size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return np.dtype(str(self._h.dtype))

    def __repr__(self) -> str:
        return f"<asterism.Operator {self.shape} {self.dtype}: {self._h.describe()}>"

    def _operand(self, x: Any, what: str) -> NDArray[Any]:
        array = as_values(x, what)
        if array.dtype != self.dtype:
            wide = np.promote_types(array.dtype, self.dtype)
            if wide != self.dtype:
                raise DtypeError(f"{what}: x is {array.dtype}, A {self.dtype}. {self._advice_for(wide)}")
            array = array.astype(self.dtype)
        return array

    def _advice_for(self, dtype: Any) -> str:
        """Return how to have this operator in a wider dtype."""
        return f"Use A.astype('{dtype}')." if hasattr(self, "astype") else f"Make A with dtype='{dtype}'."

    @property
    def _has_own_order(self) -> bool:
        """Whether the core has points in another order than users do."""
        return type(self)._entries is not Operator._entries

    def _entries(self, x: Any, what: str) -> Any:
        """Return my part of a vector, as users have it, in the order of the core."""
        return x

    def _points(self, entries: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the reverse, of that shape."""
        return entries

    __array_ufunc__ = None  # NumPy leaves `array @ A` to this class

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            f"{self!r} cannot be pickled: it is a function of this process. Pickle what the function needs, and make it anew there."
        )

    def __copy__(self) -> Operator:
        return Operator._of(self._h)  # nothing of it can be changed

    def __deepcopy__(self, memo: dict[int, Any]) -> Operator:
        return copy.copy(self)

    def dot(self, x: Any) -> NDArray[Any]:
        """Return ``A @ x``.

        Parameters
        ----------
        x : array, shape (m,) or (m, k), or Vector
            My part, as ``local_shape[1]`` says. Narrower values are converted to A's dtype; integers count as float64.

        Returns
        -------
        array, shape (n,) or (n, k), or Vector
            My part, of A's dtype. A Vector for a Vector: its queue does the product, and nobody waits.

        Raises
        ------
        ShapeError
            x has another number of rows.
        DtypeError
            x is wider than A's dtype: complex, or of more digits.

        Notes
        -----
        Collective. Ranks exchange the entries of x that they need of each other, a message to each neighbour; the product of a matrix
        with its own columns goes on meanwhile.
        """
        product: NDArray[Any] = self @ x
        return product

    def matvec(self, x: Any) -> NDArray[Any]:
        """Return ``A @ x``: SciPy's word, by which its own solvers and eigensolvers take an operator of one process.

        Parameters
        ----------
        x : array, shape (m,)

        Returns
        -------
        array, shape (n,)

        Raises
        ------
        ShapeError, DtypeError
            As for `dot`.

        Examples
        --------
        >>> import asterism as am, scipy.sparse.linalg
        >>> A = am.gallery.poisson((20, 20))
        >>> most = scipy.sparse.linalg.eigsh(A, k=1, return_eigenvectors=False)
        >>> round(float(most[0]), 3)
        7.955
        """
        return self.dot(x)

    def matmat(self, x: Any) -> NDArray[Any]:
        """Return ``A @ x`` of several columns, as `matvec`.

        Parameters
        ----------
        x : array, shape (m, k)

        Returns
        -------
        array, shape (n, k)

        Raises
        ------
        ShapeError, DtypeError
            As for `dot`.
        """
        return self.dot(x)

    def __rmatmul__(self, x: Any) -> NDArray[Any]:
        others = "A.T @ x or A.rmatvec(x), or x @ A.to_scipy()" if hasattr(self, "to_scipy") else "A.rmatvec(x)"
        raise UnsupportedError(
            f"x @ A of a {type(x).__name__} and a {type(self).__name__} is not offered. Use {others}."
        )

    @reported("A @ x")
    def __matmul__(self, x: Any) -> NDArray[Any]:
        """Product with my part of a vector, (n) or (n, k): an array, or a `Vector`, whose queue then does it. Collective."""
        if isinstance(x, Operator) or hasattr(x, "tocsr"):
            raise UnsupportedError(
                f"A @ B of a {type(self).__name__} and a {type(x).__name__} is not offered. Use A @ (B @ v) for a vector v, or, on one "
                "process, A.to_scipy() @ B.to_scipy()."
            )
        if getattr(type(x), "__array_ufunc__", x) is None:
            return NotImplemented  # it knows how
        return self._product(self._h.apply, x, "A @ x")

    def _product(self, apply: Callable[[Any, Any], None], x: Any, what: str, adjoint: bool = False) -> NDArray[Any]:
        """Return what `apply` of the core makes of x, as users have vectors."""
        array = self._operand(x, what)
        y = np.empty((self.local_shape[1 if adjoint else 0], *array.shape[1:]), dtype=self.dtype)
        apply(array, y)
        return y

    @one_call("A.H @ x")
    def rmatvec(self, x: Any) -> NDArray[Any]:
        """Return A^H x.

        Parameters
        ----------
        x : array, shape (n,) or (n, k)
            My part, as ``local_shape[0]`` says.

        Returns
        -------
        array, shape (m,) or (m, k)
            My part, of A's dtype.

        Raises
        ------
        ShapeError, DtypeError
            As for `dot`.
        UnsupportedError
            A is a function without ``adjoint``.

        Notes
        -----
        Collective. Cost: as of `dot`; the messages go the other way.
        """
        return self._product(self._h.apply_adjoint, x, "A.H @ x", adjoint=True)


def _filled_by(function: Callable[[NDArray[Any]], Any], name: str) -> Callable[[NDArray[Any], NDArray[Any]], None]:
    def fill(x: NDArray[Any], y: NDArray[Any]) -> None:
        returned = function(x)
        if returned is None:
            raise InputError(f"{name} returned None where an array of shape {y.shape} is needed. It has no return?")
        result = np.asarray(returned)
        if result.shape != y.shape and result.size == y.size and y.ndim == 1:
            result = result.reshape(y.shape)  # a column for a vector
        if result.shape != y.shape:
            raise ShapeError(f"{name} returned shape {result.shape} where {y.shape} is needed.")
        if not np.can_cast(result.dtype, y.dtype, "same_kind"):
            raise InputError(f"{name} returned {result.dtype} where {y.dtype} is needed.")
        y[...] = result

    return fill
