"""Least squares: systems of any shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import DtypeError, InputError, OptionError, ShapeError
from .la import Matrix, as_operator
from .operator import as_values

__all__ = ["LeastSquaresInfo", "least_squares"]

_REASONS = {
    0: "x is exact",
    1: "A x = b to the tolerances",
    2: "the least-squares solution to the tolerance",
    3: "the condition number is beyond conlim",
    4: "A x = b to the last bit",
    5: "the least-squares solution to the last bit",
    6: "the condition number is beyond what this precision can bear",
    7: "too many iterations",
}


@dataclass
class LeastSquaresInfo:
    """What happened.

    Attributes
    ----------
    converged : bool
        A solution to the tolerances (stop 0, 1, 2, 4 or 5).
    stop : int
        Paige and Saunders' number, 0 to 7; ``reason`` says it.
    reason : str
    iterations : int
    residual_norm : float
        ``norm(b - A x)``, with ``damp x`` below.
    normal_norm : float
        ``norm(A^H (b - A x) - damp^2 x)``: zero at the solution.
    norm_A, cond_A, norm_x : float
        Estimates of the Frobenius norm and condition number of A (with damp I below), and the norm of x.
    """

    converged: bool
    stop: int
    reason: str
    iterations: int
    residual_norm: float
    normal_norm: float
    norm_A: float
    cond_A: float
    norm_x: float


def least_squares(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    method: str = "lsmr",
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    monitor: Callable[[int, float, float], Any] | None = None,
) -> tuple[NDArray[Any], LeastSquaresInfo]:
    """Minimise ``norm(b - A x)^2 + damp^2 norm(x)^2`` by LSMR or LSQR.

    Parameters
    ----------
    A : Matrix or Operator with an adjoint, SciPy sparse matrix, array or LinearOperator, or dense array, shape (m, n)
        Of any shape and rank; of several solutions the shortest (from x0 = 0) is found.
    b : array, shape (my rows,)
    x0 : array, optional
    method : {"lsmr", "lsqr"}
        LSMR (Fong and Saunders 2011) lets the norm of the normal equations' residual fall in every step and often stops
        earlier; LSQR (Paige and Saunders 1982) has the least possible ``norm(b - A x)`` in every step.
    damp : float
        Weighs the norm of x; of x - x0 if an x0 is given.
    atol, btol : float
        Relative errors of A and b that the solution may answer to.
    conlim : float
        Stop when the condition number seems larger; 0: never.
    maxiter : int, optional
        4 times the smaller dimension by default: rounding delays it.
    monitor : callable(iteration, residual norm, normal norm), optional

    Returns
    -------
    x : array, shape (my part of the columns,)
    info : LeastSquaresInfo

    Notes
    -----
    Collective. An iteration costs a product with A and one with A^H, and three messages (lsqr: four).

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> A = np.array([[1.0, 0], [1, 1], [1, 2]])
    >>> x, info = am.least_squares(A, np.array([0.0, 1, 2]), atol=1e-12, btol=1e-12)
    >>> bool(np.allclose(x, [0, 1])), info.converged
    (True, True)
    """
    if method not in ("lsmr", "lsqr"):
        raise OptionError(f"method '{method}' is not one of lsmr, lsqr.")
    op = as_operator(A, "A")
    rhs = as_values(b, "b")
    m, n = op.local_shape
    if rhs.shape not in ((m,), (m, 1)):
        raise ShapeError(f"b has shape {rhs.shape}; ({m},) is needed here.")
    guess = None if x0 is None else as_values(x0, "x0")
    both = np.result_type(op.dtype, rhs.dtype, *(() if guess is None else (guess.dtype,)))
    if both != op.dtype:
        if not isinstance(op, Matrix):
            raise DtypeError(f"b and x0 are {both}, the operator {op.dtype}.")
        op = op.astype(both)
    x = np.zeros(n, both)
    if guess is not None:
        if guess.shape not in ((n,), (n, 1)):
            raise ShapeError(f"x0 has shape {guess.shape}; ({n},) is needed here.")
        x[:] = guess.reshape(n)
    for name, value in (("damp", damp), ("atol", atol), ("btol", btol), ("conlim", conlim)):
        if not value >= 0:
            raise InputError(f"{name}={value}; a number that is not negative is needed.")
    if maxiter is not None and maxiter < 1:
        raise InputError(f"maxiter={maxiter}; at least 1.")
    r = _core.least_squares(
        method,
        op._h,
        np.ascontiguousarray(rhs.reshape(m).astype(both, copy=False)),
        x,
        (float(damp), float(atol), float(btol), float(conlim)),
        4 * min(op.shape) if maxiter is None else maxiter,
        monitor,
    )
    stop = int(r[0])
    return x, LeastSquaresInfo(stop in (0, 1, 2, 4, 5), stop, _REASONS[stop], *r[1:])
