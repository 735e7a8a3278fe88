"""Least squares: systems of any shape."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count
from ..comm.communicator import one_call
from ..errors import DtypeError, InputError, OptionError, ShapeError
from ..la.matrix import Matrix, as_operator
from ..la.operator import Operator, as_values

__all__ = ["LeastSquaresInfo", "least_squares"]

_RESUMES = 4
_LARGEST_DAMP = 1e150
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


@dataclass(repr=False)
class LeastSquaresInfo:
    """What happened. Norms are computed from the answer.

    Attributes
    ----------
    converged : bool
        A solution to the tolerances: one of the two norms below is within its limit, up to rounding.
    stop : int
        Paige and Saunders' number of the test that ended it, 0 to 7; ``reason`` says it.
    reason : str
    iterations : int
    residual_norm : float
        ``norm(b - A x)``, with ``damp x`` below.
    residual_limit : float
        ``btol norm(b) + atol norm(A) norm(x)``: below it x solves A x = b to the tolerances.
    normal_norm : float
        ``norm(A^H (b - A x) - damp^2 x)``: zero at the solution.
    normal_limit : float
        ``atol norm(A) norm(b - A x)``: below it x is the least-squares solution to the tolerance.
    rhs_norm, norm_x : float
        Norms of b and x.
    norm_A : float
        The method's estimate of the Frobenius norm of A (with damp I below). The limits above are of the norm itself where A is a matrix.
    cond_A : float
        The method's estimate of the condition number: with lsmr a lower bound, which may be far below; with lsqr an estimate by Frobenius norms, which may be
        too small or too large.
    """

    converged: bool
    stop: int
    reason: str
    iterations: int
    residual_norm: float
    residual_limit: float
    normal_norm: float
    normal_limit: float
    rhs_norm: float
    norm_x: float
    norm_A: float
    cond_A: float

    @property
    def relative_residual(self) -> float:
        """``residual_norm / rhs_norm``."""
        return self.residual_norm / self.rhs_norm if self.rhs_norm else 0.0 if self.residual_norm == 0 else math.inf

    def __repr__(self) -> str:
        return (
            f"<asterism.LeastSquaresInfo {self.reason} after {self.iterations} iterations, "
            f"relative residual {self.relative_residual:.2e}>"
        )


@dataclass
class _Verified:
    """Norms of an answer, computed from it, and whether they are within the limits that the rules of Paige and Saunders give them."""

    residual_norm: float
    residual_limit: float
    normal_norm: float
    normal_limit: float
    rhs_norm: float
    norm_x: float
    within: bool
    excess: float


def _verify(
    op: Operator, b: NDArray[Any], x: NDArray[Any], start: NDArray[Any], norm_A: float, rule: tuple[float, ...]
) -> _Verified:
    damp, atol, btol, _ = rule

    def norm(v: NDArray[Any], layout: _core.Layout) -> float:
        return float(_core.norms(layout, np.ascontiguousarray(v))[0])

    rows, cols = op._h.rows, op._h.cols
    r = b - op @ x
    plain, moved = norm(r, rows), norm(x - start, cols)
    residual, normal = math.hypot(plain, damp * moved), norm(op.rmatvec(r) - damp**2 * (x - start), cols)
    size_b, size_x, eps = norm(b, rows), norm(x, cols), float(np.finfo(x.dtype).eps)
    limits = btol * size_b + atol * norm_A * size_x, atol * norm_A * residual
    rounding = 16 * eps * (norm_A * size_x + size_b)  # of b - A x, which A^H then enlarges
    excess = min(
        residual / max(1.01 * limits[0] + rounding, 1e-300),
        normal / max(1.01 * limits[1] + rounding * norm_A, 1e-300),
    )
    return _Verified(residual, limits[0], normal, limits[1], size_b, size_x, excess <= 1, excess)


@one_call("least_squares")
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

    Raises
    ------
    ShapeError
        ``b`` or ``x0`` does not fit A.
    DtypeError
        ``b`` or ``x0`` is wider than an A without entries.
    OptionError, InputError
        ``method`` is another word; a tolerance, ``damp`` or ``maxiter`` is out of its range.

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
        if not (isinstance(value, numbers.Real) and value >= 0):
            raise InputError(f"{name}={value!r}; a number that is not negative is needed.")
    if damp > _LARGEST_DAMP:
        raise InputError(f"damp={damp}; at most {_LARGEST_DAMP}, so that its square is finite.")
    if maxiter is not None and as_count(maxiter, "maxiter") < 1:
        raise InputError(f"maxiter={maxiter}; at least 1.")
    if monitor is not None and not callable(monitor):
        raise InputError(f"monitor is {monitor!r}; a function of the iteration and two residual norms is needed.")
    rule = (float(damp), float(atol), float(btol), float(conlim))
    most = 4 * min(op.shape) if maxiter is None else maxiter
    said = {
        "method": method,
        "dtype": both,
        "damp": damp,
        "atol": atol,
        "btol": btol,
        "conlim": conlim,
        "maxiter": most,
    }
    op._comm.require_same("least_squares", [(name, str(value)) for name, value in said.items()])
    rhs = np.ascontiguousarray(rhs.reshape(m).astype(both, copy=False))
    return x, _solved(op, rhs, x, method, rule, most, monitor)


def _solved(
    op: Operator,
    rhs: NDArray[Any],
    x: NDArray[Any],
    method: str,
    rule: tuple[float, ...],
    most: int,
    monitor: Callable[[int, float, float], Any] | None,
) -> LeastSquaresInfo:
    """Solve from x on, and again where the norms of the answer are not what the method's estimates say."""
    damp = rule[0]
    start, done = x.copy(), 0
    exact = math.hypot(op._h.frobenius_norm(), math.sqrt(op.shape[1]) * damp) if isinstance(op, Matrix) else None
    cond, tighter, resumes = 0.0, 1.0, 0
    while True:
        watch = monitor if monitor is None or done == 0 else _later(monitor, done)
        r = _core.least_squares(method, op._h, rhs, x, _tightened(rule, tighter), most - done, watch)
        stop, done, norm_A, cond = int(r[0]), done + int(r[1]), float(r[4]), max(cond, float(r[5]))
        found = _verify(op, rhs, x, start, norm_A if exact is None else exact, rule)
        said = stop in (0, 1, 2, 4, 5)
        # rounding makes the methods' own estimate of norm(A) too large, and their limits with it: they go on from x
        if not said or found.within or damp != 0 or done >= most or resumes == _RESUMES:
            break
        tighter, resumes = tighter * 1.5 * found.excess, resumes + 1
    reason = _REASONS[stop]
    if said and not found.within:
        reason += " by the method's estimates, but not by the norms of the answer"
    return LeastSquaresInfo(
        said and found.within,
        stop,
        reason,
        done,
        found.residual_norm,
        found.residual_limit,
        found.normal_norm,
        found.normal_limit,
        found.rhs_norm,
        found.norm_x,
        norm_A,
        cond,
    )


def _tightened(rule: tuple[float, ...], by: float) -> tuple[float, ...]:
    damp, atol, btol, conlim = rule
    return damp, atol / by, btol / by, conlim


def _later(monitor: Callable[[int, float, float], Any], done: int) -> Callable[[int, float, float], Any]:
    return lambda it, r, n: monitor(done + it, r, n)
