"""Products, sums and multiples of matrices."""

from __future__ import annotations

import cmath
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..comm.communicator import one_call
from ..errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from .matrix import Matrix

__all__ = ["Arithmetic", "ProductPlan", "Transposed", "ptap", "rap"]

_PLAIN, _TRANSPOSED, _CONJUGATE = 0, 1, 2


class Arithmetic:
    """What matrices do with matrices and numbers; all of it is collective."""

    def __add__(self, B: Any) -> Any:
        return _sum(self, B, 1.0, "A + B")

    def __radd__(self, B: Any) -> Any:
        return self if isinstance(B, int) and B == 0 else _sum(self, B, 1.0, "A + B")  # sum() begins with 0

    def __sub__(self, B: Any) -> Any:
        return _sum(self, B, -1.0, "A - B")

    def __rsub__(self, B: Any) -> Any:
        raise UnsupportedError(f"B - A with a {type(B).__name__} is not offered; a Matrix is needed.")

    def __neg__(self) -> Any:
        return _multiple(self, -1.0, "A * a", "")

    def __mul__(self, a: Any) -> Any:
        return _multiple(self, a, "A * a", "Use A @ x for the product.")

    __rmul__ = __mul__

    def __truediv__(self, a: Any) -> Any:
        return _multiple(self, a, "A / a", "A number is needed.")


class Transposed(Arithmetic):
    """``A.T`` or ``A.H``, for products and sums; `Matrix.transpose` makes a matrix of it."""

    __array_ufunc__ = None  # NumPy leaves `array @ A.T` to this class

    def __init__(self, A: Matrix, conjugate: bool) -> None:
        self._a, self._conjugate = A, conjugate
        self.shape = A.shape[::-1]
        self._comm = A._comm

    @property
    def T(self) -> Matrix:
        """The transpose of ``A.T`` is A. For ``A.H`` use ``A.transpose(conjugate=True).T``."""
        if self._conjugate and self._a.dtype.kind == "c":
            raise UnsupportedError("A.H.T is not offered. Use A.transpose(conjugate=True).T.")
        return self._a

    @property
    def H(self) -> Matrix:
        """The adjoint of ``A.H`` is A. For ``A.T`` use ``A.transpose().H``."""
        if not self._conjugate and self._a.dtype.kind == "c":
            raise UnsupportedError("A.T.H is not offered. Use A.transpose().H.")
        return self._a

    def __reduce__(self) -> Any:
        return Transposed, (self._a, self._conjugate)

    def __repr__(self) -> str:
        return f"<{self._a!r}.{'H' if self._conjugate else 'T'}>"

    def __matmul__(self, x: Any) -> Any:
        if is_factor(x):
            return multiply(self, x)
        return self._a._transposed_product(x, self._conjugate)

    def __rmatmul__(self, x: Any) -> Any:
        name, same = ("H", "(A @ x.conj()).conj()") if self._conjugate else ("T", "A @ x")
        raise UnsupportedError(f"x @ A.{name} of a {type(x).__name__} and a transpose is not offered. Use {same}.")


def is_factor(x: Any) -> bool:
    """Tell whether x is meant as a matrix, rather than as a vector."""
    return isinstance(x, Transposed) or isinstance(getattr(x, "_h", None), _core.Operator) or hasattr(x, "tocsr")


def _factor(x: Any, what: str) -> tuple[Any, int]:
    """Return the matrix and its form."""
    if isinstance(x, Transposed):
        return x._a._h, _CONJUGATE if x._conjugate else _TRANSPOSED
    handle = getattr(x, "_h", None)
    if isinstance(handle, _core.Matrix):
        return handle, _PLAIN
    if isinstance(handle, _core.Operator):
        raise UnsupportedError(f"{what} is a {type(x).__name__}, which has no entries. Use A @ (B @ v) for a vector v.")
    if hasattr(x, "tocsr"):
        raise UnsupportedError(
            f"{what} is a {type(x).__name__}. Use am.Matrix.from_scipy, or A.to_scipy() on one process."
        )
    raise TypeError(f"{what} is a {type(x).__name__}; a Matrix, A.T or A.H is needed.")


def _factors(given: Sequence[Any], call: str) -> list[tuple[Any, int]]:
    """Return factors as `_factor` does; on several ranks they must have the same dtypes. Collective."""
    found = [_factor(x, f"factor {i}") for i, x in enumerate(given, 1)]
    if found and found[0][0].comm.size > 1:
        found[0][0].comm.require_same(
            call, [(f"the dtype of factor {i}", str(h.dtype)) for i, (h, _) in enumerate(found, 1)]
        )
    return found


def _matrix_class(x: Any) -> Any:
    return type(x._a if isinstance(x, Transposed) else x)


@one_call("A @ B")
def multiply(A: Any, *others: Any) -> Matrix:
    """Return the product of two or more factors."""
    out: Matrix = _matrix_class(A)(_core.matrix_product(_factors((A, *others), "A @ B")))
    return out


def rap(R: Any, A: Any, P: Any) -> Matrix:
    """Return R A P.

    Parameters
    ----------
    R, A, P : Matrix, or ``B.T`` or ``B.H`` of one
        Shapes (m, n), (n, k) and (k, l). The ranks share the columns of each as the rows of the next.

    Returns
    -------
    Matrix, shape (m, l)

    Raises
    ------
    ShapeError
        If shapes do not fit, or the ranks share them otherwise.

    Notes
    -----
    Collective. A P is in memory until R (A P) is there. Bits depend neither on ranks nor on threads.

    Examples
    --------
    >>> import asterism as am, scipy.sparse as sp
    >>> A = am.gallery.poisson((4,))
    >>> P = am.Matrix.from_scipy(sp.csr_array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    >>> am.rap(P.T, A, P).toarray()
    array([[ 2., -1.],
           [-1.,  2.]])
    """
    return multiply(R, A, P)


def ptap(A: Any, P: Any) -> Matrix:
    """Return P^T A P, without conjugation, as PETSc's ``MatPtAP``; P^H A P is ``am.rap(P.H, A, P)``.

    Parameters
    ----------
    A : Matrix, or ``B.T`` or ``B.H`` of one
        Shape (n, n).
    P : Matrix, shape (n, m)
        Each rank has as many of its rows as columns of A.

    Returns
    -------
    Matrix, shape (m, m)

    Raises
    ------
    ShapeError
        If shapes do not fit, or the ranks share them otherwise.

    Notes
    -----
    Collective. A P is in memory until P^T (A P) is there.

    Examples
    --------
    >>> import asterism as am, scipy.sparse as sp
    >>> P = am.Matrix.from_scipy(sp.csr_array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    >>> am.ptap(am.gallery.poisson((4,)), P).toarray()
    array([[ 2., -1.],
           [-1.,  2.]])
    """
    return _ptap(A, P)


@one_call("ptap")
def _ptap(A: Any, P: Any) -> Matrix:
    if isinstance(P, Transposed):
        raise TypeError("ptap: P is a Transposed; a Matrix is needed. am.rap takes transposes.")
    middle, (handle, _) = _factors((A, P), "ptap")
    out: Matrix = _matrix_class(A)(_core.matrix_product([(handle, _TRANSPOSED), middle, (handle, _PLAIN)]))
    return out


class ProductPlan:
    """A product of matrices whose places are found once, for new values at the same places.

    Parameters
    ----------
    *factors : Matrix, or ``B.T`` or ``B.H`` of one
        Two or more: ``ProductPlan(A, B)`` for A B, ``ProductPlan(P.T, A, P)`` for P^T A P.

    Raises
    ------
    ShapeError
        If shapes do not fit, or the ranks share them otherwise.
    TypeError
        If there are fewer than two factors, or one is no matrix.
    UnsupportedError
        If a factor is SciPy's, or has no entries.

    Notes
    -----
    Collective. Making it is the symbolic phase and the first product, `matrix`. `multiply` is the numeric phase: multiplications, and
    messages with values alone. Memory: the factors' places, the rows that come from other ranks, the inner products, 8 bytes a row, and a
    byte or more for each multiplication of rows that differ by more than a shift of their columns. The values of the last two products
    that nobody has any more stay for the next ones.

    Examples
    --------
    >>> import asterism as am
    >>> A = am.gallery.poisson((100, 100))
    >>> plan = am.ProductPlan(A, A)
    >>> B = A.with_values(2 * A.to_scipy().data)
    >>> C = plan.multiply(A, B)  # A @ B
    >>> float(abs(C.to_scipy() - 2 * plan.matrix.to_scipy()).max())
    0.0
    """

    def __init__(self, *factors: Any) -> None:
        self._h = _plan(*factors)
        self._matrix = _matrix_class(factors[0])
        self._forms = [_factor(x, "factor")[1] for x in factors]

    @property
    def _comm(self) -> Any:
        return self._h.first.rows.comm

    def __repr__(self) -> str:
        return f"<asterism.ProductPlan of {len(self._forms)} factors: {self._h.first.describe()}>"

    @property
    def matrix(self) -> Matrix:
        """The product of the factors that the plan was made with."""
        out: Matrix = self._matrix(self._h.first)
        return out

    @one_call("ProductPlan.multiply")
    def multiply(self, *factors: Any) -> Matrix:
        """Return the product of factors with new values.

        Parameters
        ----------
        *factors : Matrix, or ``B.T`` or ``B.H`` of one
            As many as the plan has, in the same forms, with entries at the same places.

        Returns
        -------
        Matrix

        Raises
        ------
        InputError
            If a factor has entries at other places.
        TypeError
            If a factor is transposed, and that of the plan is not, or the other way round.

        Examples
        --------
        >>> import asterism as am
        >>> A = am.gallery.poisson((4,))
        >>> plan = am.ProductPlan(A, A)
        >>> plan.multiply(A.with_values(10 * A.to_scipy().data), A).diagonal()
        array([50., 60., 60., 50.])
        """
        if len(factors) != len(self._forms):
            raise InputError(f"ProductPlan.multiply: {len(factors)} matrices for {len(self._forms)} factors.")
        given = _factors(factors, "ProductPlan.multiply")
        names = ("plain", "transposed (.T)", "conjugate transposed (.H)")
        for i, ((_, form), wanted) in enumerate(zip(given, self._forms, strict=True), 1):
            if form != wanted:
                raise TypeError(
                    f"ProductPlan.multiply: factor {i} is {names[form]}, but the plan was made for a {names[wanted]} one."
                )
        out: Matrix = self._matrix(self._h.multiply([h for h, _ in given]))
        return out


@one_call("ProductPlan")
def _plan(A: Any = None, *others: Any) -> Any:
    if not others:
        raise TypeError(f"ProductPlan: {0 if A is None else 1} factor(s); two or more are needed.")
    return _core.ProductPlan(_factors((A, *others), "ProductPlan"))


def _whole(x: Any) -> Any:
    """Return a matrix for a transpose."""
    return x._a.transpose(x._conjugate) if isinstance(x, Transposed) else x


@one_call("Matrix multiple")
def _multiple(A: Any, a: Any, what: str, hint: str) -> Any:
    if not isinstance(a, numbers.Number):
        raise UnsupportedError(f"{what} with a {type(a).__name__} is not offered. {hint}")
    value, why = complex("nan"), ""
    try:
        given = complex(a)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
        if cmath.isfinite(given):
            value = given
            if "/" in what:
                value = 1.0 / given if given.imag else complex(1.0 / given.real)  # as a real number: A stays real
    except (OverflowError, ZeroDivisionError) as error:
        value, why = complex("nan"), f" ({error})"
    if not cmath.isfinite(value):
        raise InputError(f"{what}: a is {a!r:.40}; the factor of the matrix would not be finite{why}.")
    A = _whole(A)
    return type(A)(_core.matrix_scaled(value, A._h))


@one_call("Matrix sum")
def _sum(A: Any, B: Any, b: complex, what: str) -> Any:
    if not is_factor(B):
        raise UnsupportedError(f"{what} with a {type(B).__name__} is not offered; a Matrix is needed.")
    _factors((A, B), what)
    A, B = _whole(A), _whole(B)
    return type(A)(_core.matrix_sum(1.0, A._h, b, B._h))
