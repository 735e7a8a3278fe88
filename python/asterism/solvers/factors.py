"""Factors of a matrix, to solve with many right-hand sides and to look at."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..comm.communicator import one_call
from ..errors import AsterismError, InputError, ShapeError
from .info import SolveInfo
from .solver import Solver

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["Explicit", "Factors"]

_COLUMNS = 64  # of a sparse b that are solved together


class Determinant(NamedTuple):
    """A determinant, as `numpy.linalg.slogdet` gives it: ``sign * exp(logabsdet)``."""

    sign: Any
    logabsdet: float


class Inertia(NamedTuple):
    """How many eigenvalues of a Hermitian matrix are positive, negative, and zero up to rounding."""

    positive: int
    negative: int
    zero: int


class Explicit(NamedTuple):
    """L, U and how the matrix was permuted and scaled."""

    L: csc_array
    U: csc_array
    perm_r: NDArray[np.int32]
    perm_c: NDArray[np.int32]
    R: NDArray[np.float64]
    C: NDArray[np.float64]


class Factors:
    """Sparse factors of a square matrix, made by `factorized`.

    Attributes
    ----------
    solver : Solver
        What factors and solves: ``solver.info`` tells of the last solve, ``solver.factors`` of delayed pivots, growth and more.
    shape, dtype
        Of the matrix.
    nnz, memory_bytes : int
        Entries of the factors (zeros within dense blocks counted, as SuperLU does) and their memory.
    L, U : csc_array
        ``Pr @ diag(R) @ A @ diag(C) @ Pc = L @ U`` up to rounding. L is lower triangular; of lu and ldl its diagonal is 1. U is upper
        triangular. Of cholesky it is L^H. Of ldl it is D L^H, with one entry below the diagonal for each block of two in D. On several ranks
        they are gathered the first time that one of L, U, perm_r, perm_c, R and C is asked for, by all ranks together. Each rank then has
        them whole, which needs some 50 bytes for each of nnz entries (float64) for a while, and half of that afterwards.
    perm_r, perm_c : array of n integers
        As SciPy's splu: row i of A is row ``perm_r[i]`` of L U, column j is column ``perm_c[j]``. So ``Pr[perm_r, arange(n)] = 1`` and
        ``Pc[arange(n), perm_c] = 1``.
    R, C : array of n
        Scales of the rows and columns of A: powers of two, so nothing was rounded. (Where -A was factored, R is negative.)

    Notes
    -----
    A pivot at rounding level is replaced (``solver.factors["replaced"]``). L U is then another matrix than A. Such factors are given only
    where A has a null space that is known; it is projected out of the answers.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self._known: dict[str, Any] | None = None
        self._explicit: Explicit | None = None
        self._share_facts()

    def _share_facts(self) -> None:
        """Ask all ranks now, so that one of them may look later."""
        if self._comm.size > 1:
            self._known = self.solver.factors

    def __copy__(self) -> Factors:
        return Factors(copy.copy(self.solver))  # of its own: an update of one must not change the other

    def __repr__(self) -> str:
        n, m = self.shape
        try:
            f = self._facts if self._comm.size == 1 else self._known
        except AsterismError:
            f = None
        if f is None:
            return f"<asterism.Factors of {n} x {m}, {self.dtype}: the last update failed>"
        return f"<asterism.Factors {f['kind']} of {n} x {m}, {self.dtype}, {f['entries']} entries, {f['ordering'] or 'natural'} order>"

    @property
    def _comm(self) -> _core.Communicator:
        return self.solver._comm

    @property
    def _rows(self) -> int:
        """Of this process."""
        return int(self.solver.A._h.rows.local_size)

    @property
    def info(self) -> SolveInfo | None:
        """What happened in the last solve; ``info.backward_error`` says how good its answer is."""
        return self.solver.info

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return self.solver.A.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the matrix."""
        return self.solver.A.dtype

    @property
    def _facts(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self.solver.factors
        assert self._known is not None
        return self._known

    @property
    def kind(self) -> str:
        """lu: L U. cholesky: L L^H. ldl: L D L^H with blocks of one and two in D."""
        return str(self._facts["kind"])

    @property
    def nnz(self) -> int:
        """Entries of the factors, zeros within dense blocks counted."""
        return int(self._facts["entries"])

    @property
    def memory_bytes(self) -> int:
        """Memory of the factors."""
        return int(self._facts["memory_bytes"])

    @property
    def condition(self) -> float:
        """An estimate of the condition number of ``diag(R) @ A @ diag(C)`` in the 1-norm, mostly within a factor of 3."""
        return float(self._facts["condition"])

    @property
    def determinant(self) -> Determinant:
        """Sign (a phase, if A is complex) and logarithm of the determinant of A, as `numpy.linalg.slogdet`: no overflow."""
        sign = self._facts["sign"]
        return Determinant(sign if self.dtype.kind == "c" else float(sign.real), float(self._facts["logabsdet"]))

    @property
    def inertia(self) -> Inertia | None:
        """Numbers of positive, negative and zero eigenvalues, of cholesky and ldl; None of lu."""
        f = self._facts
        if f["kind"] == "lu":
            return None
        negative, zero = int(f["negative"]), int(f["zero"])
        return Inertia(self.shape[0] - negative - zero, negative, zero)

    def _factors(self) -> Explicit:
        if self._explicit is None:
            import scipy.sparse as sp

            lower, upper, rows, columns, R, C = self.solver._h.explicit_factors()
            L, U = (sp.csr_array((v, j, ptr), shape=self.shape).tocsc() for ptr, j, v in (lower, upper))
            places = np.arange(self.shape[0], dtype=np.int32)
            perm_r, perm_c = np.empty_like(places), np.empty_like(places)
            perm_r[rows], perm_c[columns] = places, places
            self._explicit = Explicit(L, U, perm_r, perm_c, R, C)
        return self._explicit

    @property
    def L(self) -> csc_array:
        """The lower triangle."""
        return self._factors().L

    @property
    def U(self) -> csc_array:
        """The upper triangle."""
        return self._factors().U

    @property
    def perm_r(self) -> NDArray[np.int32]:
        """Row i of A is row ``perm_r[i]`` of L U."""
        return self._factors().perm_r

    @property
    def perm_c(self) -> NDArray[np.int32]:
        """Column j of A is column ``perm_c[j]`` of L U."""
        return self._factors().perm_c

    @property
    def R(self) -> NDArray[np.float64]:
        """Scales of the rows of A."""
        return self._factors().R

    @property
    def C(self) -> NDArray[np.float64]:
        """Scales of the columns of A."""
        return self._factors().C

    @one_call("Factors.solve")
    def solve(self, b: Any, trans: str = "N") -> Any:
        """Solve A x = b, A^T x = b or A^H x = b.

        Parameters
        ----------
        b : array, shape (n,) or (n, k), or sparse array, shape (n, k)
            My rows.
        trans : {"N", "T", "H"}
            A, its transpose, or its conjugate transpose.

        Returns
        -------
        x : array of b's shape; csc_array for a sparse b
            Refined until its backward error is at rounding level. Of sparse b, 64 columns at a time are dense, and zeros are left out of x.

        Raises
        ------
        ConvergenceError
            If the backward error cannot be brought there.
        ShapeError
            b has another number of rows.
        InputError
            ``trans`` is another word, or b has NaN or infinite entries.

        Notes
        -----
        Collective. Cost: a pass over L and one over U for each column, and as many for each step of the refinement, with a product with A.

        Examples
        --------
        >>> import asterism as am, numpy as np, scipy.sparse as sp
        >>> A = sp.csc_array([[4.0, 1, 0], [0, 3, 2], [1, 0, 5]])
        >>> F = am.factorized(A)
        >>> x = F.solve(A @ np.array([1.0, 2, 3]))
        >>> print(x)
        [1. 2. 3.]
        >>> X = F.solve(sp.eye_array(3, format="csc"), trans="T")
        >>> bool(np.allclose((A.T @ X).toarray(), np.eye(3)))
        True
        """
        if trans not in ("N", "T", "H"):
            raise InputError(f"solve: trans is {trans!r}; 'N' (A), 'T' (its transpose) or 'H' (conjugate transpose).")
        if not hasattr(b, "tocsc"):
            return self._solved(b, trans)
        import scipy.sparse as sp

        rows = self._rows
        if len(b.shape) != 2 or b.shape[0] != rows:
            raise ShapeError(f"b has shape {b.shape}; ({rows}, k) is needed here.")
        columns: Any = sp.csc_array(b)
        parts = [
            sp.csc_array(self._solved(columns[:, j : j + _COLUMNS].toarray(), trans))
            for j in range(0, columns.shape[1], _COLUMNS)
        ]
        if not parts:
            return sp.csc_array(columns.shape, dtype=np.promote_types(columns.dtype, self.dtype))
        return sp.csc_array(sp.hstack(parts, format="csc"))

    def _solved(self, b: Any, trans: str) -> NDArray[Any]:
        if trans == "N":
            return self.solver.solve(b)
        return self.solver.solve_transpose(b, conjugate=trans == "H")

    def solve_transpose(self, b: Any, *, conjugate: bool = False) -> Any:
        """Solve A^T x = b, or A^H x = b: ``solve(b, trans="T")`` and ``"H"``.

        Parameters
        ----------
        b : array, shape (n,) or (n, k), or sparse array, shape (n, k)
            My rows.
        conjugate : bool
            Solve with A^H. For a real matrix the two are one.

        Returns
        -------
        x : array of b's shape; csc_array for a sparse b
            As of `solve`.

        Raises
        ------
        ConvergenceError, ShapeError
            As for `solve`.

        Notes
        -----
        Collective. Cost: as of `solve`, from the same factors.

        Examples
        --------
        >>> import asterism as am, numpy as np
        >>> A = np.array([[2.0, 1], [0, 4]])
        >>> print(am.factorized(A).solve_transpose(np.array([2.0, 5])))
        [1. 1.]
        """
        return self.solve(b, "H" if conjugate else "T")

    def update(self, A: Any) -> None:
        """Factor a matrix with other values. Where its entries are at the same places, the order and the symbolic phase are kept.

        Parameters
        ----------
        A : Matrix, SciPy sparse matrix or array
            Of the same size and dtype. ``solver.reused`` says whether they were kept: not if rows must be matched anew.

        Raises
        ------
        ShapeError
            Size, dtype or the rows of each rank are others. Nothing is changed.
        InputError
            The matrix is singular. These factors solve nothing then until an update succeeds.

        Notes
        -----
        Collective.

        Examples
        --------
        >>> import asterism as am, numpy as np, scipy.sparse as sp
        >>> A = am.Matrix.from_scipy(sp.csr_array([[2.0, 1], [1, 4]]))
        >>> F = am.factorized(A, "cholesky")
        >>> F.update(A.with_values(np.array([3.0, 1, 1, 5])))
        >>> F.solver.reused, round(float(np.exp(F.determinant.logabsdet)))
        (True, 14)
        """
        self._known = self._explicit = None
        self.solver.update(A)
        self._share_facts()
