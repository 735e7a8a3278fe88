"""SciPy's direct solvers, with its signatures and return values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.values import unmasked
from ..errors import AsterismError, ConvergenceError, DtypeError, InputError, ShapeError, UnsupportedError
from ..la.matrix import Matrix
from ..solvers.factorized import factorized as factors_of
from ..solvers.factors import Factors
from ..solvers.solver import Solver
from .iterative import one_of_four

__all__ = ["factorized", "splu", "spsolve", "spsolve_triangular"]

_ORDERS = {None: "auto", "NATURAL": "natural", "MMD_ATA": "auto", "MMD_AT_PLUS_A": "amd", "COLAMD": "auto"}


_WITHOUT_EFFECT = ("Equil", "IterRefine", "SymmetricMode")


class _SuperLU:
    """What `splu` returns: the attributes of SciPy's SuperLU."""

    def __init__(self, factors: Factors) -> None:
        self._factors = factors

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return self._factors.shape

    @property
    def nnz(self) -> int:
        """Entries of L and U."""
        return int(self.L.nnz + self.U.nnz)

    @property
    def perm_r(self) -> NDArray[np.int32]:
        """Row i of A is row ``perm_r[i]`` of L U."""
        return self._factors.perm_r

    @property
    def perm_c(self) -> NDArray[np.int32]:
        """Column j of A is column ``perm_c[j]`` of L U."""
        return self._factors.perm_c

    @property
    def _scales(self) -> tuple[Any, Any]:
        """Of the rows and columns of L U."""
        f = self._factors
        return f.R[np.argsort(f.perm_r)], f.C[np.argsort(f.perm_c)]

    @property
    def L(self) -> Any:
        """``Pr @ A @ Pc = L @ U``; the diagonal is 1."""
        from scipy.sparse import csc_array, diags_array

        r, _ = self._scales
        f = self._factors
        return csc_array(diags_array(1 / r) @ f.L @ diags_array(r)).astype(f.dtype, copy=False)

    @property
    def U(self) -> Any:
        """The upper triangle."""
        from scipy.sparse import csc_array, diags_array

        r, c = self._scales
        f = self._factors
        return csc_array(diags_array(1 / r) @ f.U @ diags_array(1 / c)).astype(f.dtype, copy=False)

    def solve(self, rhs: Any, trans: str = "N") -> NDArray[Any]:
        """Solve A x = rhs, with A^T for ``trans="T"``, with A^H for ``"H"``. rhs: (n,) or (n, k)."""
        if hasattr(rhs, "toarray"):
            raise InputError(f"rhs is a {type(rhs).__name__}; an array is needed: toarray() makes one.")
        b: NDArray[Any] = unmasked(rhs, "rhs")
        f = self._factors
        if b.ndim not in (1, 2):
            raise ShapeError(f"object too deep for desired array: rhs has shape {b.shape}; (n,) or (n, k) is needed.")
        if not np.can_cast(b.dtype, f.dtype):
            raise DtypeError(f"Cannot cast array data from {b.dtype!r} to {f.dtype!r}, that of A, safely.")
        if b.shape[0] != f.shape[0]:
            raise ShapeError(f"rhs is of incompatible size: its shape is {b.shape}, that of A {f.shape}.")
        x: NDArray[Any] = f.solve(b.astype(f.dtype, copy=False), trans)
        return x


def _square(A: Any, name: str) -> Any:
    """Return A as a CSR array of one of the four dtypes; b's dtype may widen it."""
    from scipy.sparse import csr_array, issparse

    if isinstance(A, Matrix):
        A = A.to_scipy()
    S: Any = csr_array(A if issparse(A) else unmasked(A, "the matrix"))
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise ShapeError(f"{name}: A has shape {S.shape}; it can only factor square matrices.")
    return S.astype(one_of_four(S.dtype), copy=False)


def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, Any] | None = None,
) -> _SuperLU:
    """Factor a sparse square matrix, to solve with many right-hand sides; see `asterism.factorized`.

    Parameters
    ----------
    A : sparse array or matrix, ndarray, or Matrix on one process
    permc_spec : {"NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD"}, optional
        MMD_AT_PLUS_A: approximate minimum degree of A + A^T. NATURAL: no order that reduces fill; rows and columns are exchanged all the
        same. Else nested dissection of large matrices where METIS is found, and minimum degree.
    diag_pivot_thresh : float, optional
        A pivot is at least this times the largest entry of its column, 0.1 by default.
    relax, panel_size : int, optional
        Of SuperLU's data structures. The same answer comes without them, so they change nothing.
    options : dict, optional
        ``ColPerm``, ``DiagPivotThresh``, ``Relax`` and ``PanelSize``: as the arguments. ``Equil``, ``IterRefine`` and ``SymmetricMode``
        change nothing: matrices are always scaled, answers refined, and pivots exchanged where they are small.

    Returns
    -------
    lu
        With ``solve(rhs, trans="N")``, ``L``, ``U``, ``perm_r``, ``perm_c``, ``shape`` and ``nnz``: ``Pr @ A @ Pc = L @ U``.

    Raises
    ------
    RuntimeError
        A is singular, exactly or to working precision.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from asterism.scipy import splu
    >>> A = sp.csc_array([[1.0, 0, 0], [5, 0, 2], [0, -1, 0]])
    >>> print(splu(A).solve(np.array([1.0, 2, 3])))
    [ 1.  -3.  -1.5]
    """
    given = {"ColPerm": permc_spec, "DiagPivotThresh": diag_pivot_thresh, "Relax": relax, "PanelSize": panel_size}
    known = (*given, *_WITHOUT_EFFECT)
    unknown = sorted(set(options or {}) - set(known))
    if unknown:
        raise UnsupportedError(f"splu: options has {', '.join(unknown)}; of SuperLU's {', '.join(known)} are known.")
    given.update(options or {})
    if given["ColPerm"] not in _ORDERS:
        raise InputError(f"splu: permc_spec is {given['ColPerm']!r}; one of {', '.join(filter(None, _ORDERS))}.")
    more: dict[str, Any] = {"pc_factor_mat_ordering_type": _ORDERS[given["ColPerm"]]}
    if given["DiagPivotThresh"] is not None:
        more["pc_factor_pivot_threshold"] = float(given["DiagPivotThresh"])
    S = _square(A, "splu")
    try:
        factors = factors_of(S, **more)
    except InputError as error:
        if "singular" not in str(error):
            raise
        raise RuntimeError(f"Factor is exactly singular, or to working precision: {error}") from error
    if factors.solver.factors and factors.solver.factors["zero"]:
        raise RuntimeError("Factor is exactly singular, or to working precision: it has a null space.")
    return _SuperLU(factors)


def factorized(A: Any) -> Callable[..., NDArray[Any]]:
    """Return ``splu(A).solve``.

    Parameters
    ----------
    A : sparse array or matrix, ndarray, or Matrix on one process, shape (n, n)

    Returns
    -------
    solve : callable(b, trans="N")
        Solves for b of the shape (n,) or (n, k).

    Raises
    ------
    RuntimeError
        A is singular, exactly or to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from asterism.scipy import factorized
    >>> solve = factorized(np.array([[3.0, 2, -1], [2, -2, 4], [-1, 0.5, -1]]))
    >>> print(solve(np.array([1.0, -2, 0])).round(12))
    [ 1. -2. -2.]
    """
    return splu(A).solve


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Solve A x = b directly.

    Parameters
    ----------
    A : as for `splu`
    b : array, shape (n,) or (n, k), or sparse array
    permc_spec : str, optional
        As for `splu`.
    use_umfpack : bool
        Changes nothing: UMFPACK is not used.

    Returns
    -------
    x : array, (n,) if b has one column; sparse if b is sparse with several columns
        If A is singular, NaN and a MatrixRankWarning.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from asterism.scipy import spsolve
    >>> A = sp.csc_array([[3.0, 2, 0], [1, -1, 0], [0, 5, 1]])
    >>> print(spsolve(A, A @ np.array([1.0, 2, 3])))
    [1. 2. 3.]
    """
    from scipy.sparse import csc_array, issparse
    from scipy.sparse.linalg import MatrixRankWarning

    S = _square(A, "spsolve")
    sparse = issparse(b) and b.ndim == 2 and b.shape[1] > 1
    by_type = issparse(A) and A.format in ("csc", "csr")
    rhs: Any = csc_array(b) if sparse else b.toarray() if issparse(b) else unmasked(b, "b")
    if rhs.ndim not in (1, 2) or rhs.shape[0] != S.shape[0]:
        raise ShapeError(f"spsolve: b has shape {rhs.shape} for A of {S.shape}; (n,) or (n, k) is needed.")
    dtype = np.promote_types(S.dtype, one_of_four(rhs.dtype))
    S, rhs = S.astype(dtype, copy=False), rhs.astype(dtype, copy=False)
    try:
        lu = splu(S, permc_spec)
        try:
            x: Any = lu._factors.solve(rhs) if sparse else lu.solve(rhs)
        except ConvergenceError as error:
            if not lu._factors.condition * np.finfo(dtype).eps > 0.1:
                raise
            raise RuntimeError(f"Factor is singular to working precision: {error}") from error
    except AsterismError:
        raise
    except RuntimeError as error:
        warnings.warn(str(error).replace("Factor", "Matrix"), MatrixRankWarning, stacklevel=2)
        x = np.full(rhs.shape, np.nan, dtype)
    if sparse:
        return type(A)(x) if by_type else csc_array(x)
    return x.ravel() if x.ndim == 2 and x.shape[1] == 1 else x


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> NDArray[Any]:
    """Solve A x = b with triangular A.

    Parameters
    ----------
    A : sparse array or matrix, or ndarray
    b : array, shape (n,) or (n, k)
    lower : bool
        Whether A is lower triangular, else upper.
    overwrite_A, overwrite_b : bool
        Permissions, of which no use is made.
    unit_diagonal : bool
        Take 1 for each entry of the diagonal, whatever A has there.

    Returns
    -------
    x : array of b's shape

    Raises
    ------
    numpy.linalg.LinAlgError
        A zero on the diagonal, or an entry on the other side of it.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from asterism.scipy import spsolve_triangular
    >>> A = sp.csr_array([[3.0, 0, 0], [1, -1, 0], [2, 0, 1]])
    >>> print(spsolve_triangular(A, A @ np.array([1.0, 2, 3])))
    [1. 2. 3.]
    """
    from scipy.sparse import csr_array, eye_array, tril

    S = _square(A, "spsolve_triangular")
    rhs = unmasked(b, "b")
    if rhs.ndim not in (1, 2) or rhs.shape[0] != S.shape[0]:
        raise ShapeError(f"spsolve_triangular: b has shape {rhs.shape} for A of {S.shape}; (n,) or (n, k) is needed.")
    T: Any = csr_array(S if lower else S.conj().T)
    below = tril(T, -1, format="csr")
    diagonal = T.diagonal()
    if below.count_nonzero() + np.count_nonzero(diagonal) != T.count_nonzero():
        raise np.linalg.LinAlgError(f"A is not {'lower' if lower else 'upper'} triangular.")
    if unit_diagonal:
        T = csr_array(below + eye_array(T.shape[0], dtype=T.dtype))
    elif not diagonal.all():
        raise np.linalg.LinAlgError(f"A is singular: zero entry on diagonal, in row {np.argmin(abs(diagonal))}.")
    dtype = np.promote_types(T.dtype, one_of_four(rhs.dtype))
    rhs = np.ascontiguousarray(rhs, dtype)
    # one forward sweep is the whole solve; with an upper triangle it is the adjoint of one
    s = Solver(T.astype(dtype), ksp_type="preonly", pc_type="sor", pc_sor_symmetric=False, ksp_check_input=False)
    return s.preconditioner @ rhs if lower else s.preconditioner.rmatvec(rhs)
