"""SciPy's iterative solvers, with its signatures and return values.

Stopping is as documented there: ``norm(b - A @ x) <= max(rtol * norm(b), atol)``, of the residual itself, also with a
preconditioner, and computed from x at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.values import unmasked
from ..errors import InputError, ShapeError, UnsupportedError
from ..la.matrix import Matrix, as_operator
from ..la.operator import Operator, as_values
from ..solvers.least_squares import least_squares
from ..solvers.solver import Solver

__all__ = ["bicg", "bicgstab", "cg", "cgs", "gmres", "lsmr", "lsqr", "minres", "tfqmr"]


Result = tuple[NDArray[Any], int]
Callback = Callable[[NDArray[Any]], Any] | None


class _System:
    """A, M, b and x in one dtype."""

    def __init__(self, A: Any, b: Any, x0: Any, M: Any, name: str) -> None:
        if M is None and hasattr(A, "psolve"):
            M = _PreconditionerOf(A)
        shape = getattr(A, "shape", None)
        if shape is None or len(shape) != 2 or shape[0] != shape[1]:
            raise ShapeError(f"{name}: A has shape {shape}; a square matrix is needed.")
        n = shape[0]
        A, M, rhs = in_four(A), in_four(M), in_four(unmasked(b, "b"))
        if rhs.shape not in ((n,), (n, 1)):
            raise ShapeError(f"{name}: b has shape {rhs.shape} for A of {shape}; ({n},) or ({n}, 1) is needed.")
        rhs = as_values(rhs.reshape(n), "b")
        given = getattr(A, "dtype", None)
        of_A = one_of_four(np.float64 if given is None else given)
        self.dtype = np.result_type(of_A, rhs.dtype)
        self.b = rhs.astype(self.dtype, copy=False)
        self.A = self._operator(A, "A")
        self.M = None if M is None else self._operator(M, "M")
        if x0 is None:
            self.x = np.zeros(n, self.dtype)
        elif isinstance(x0, str):
            if x0 != "Mb":
                raise InputError(f"{name}: x0 is '{x0}'; an array, or 'Mb' for M @ b.")
            self.x = np.array(self.b if self.M is None else self.M @ self.b, self.dtype)
        else:
            guess = unmasked(x0, "x0")
            if guess.shape not in ((n,), (n, 1)):
                raise ShapeError(f"{name}: x0 has shape {guess.shape}, b {np.shape(b)}.")
            self.x = np.array(guess.reshape(n), self.dtype, order="C")

    def _operator(self, A: Any, what: str) -> Operator:
        made = as_operator(A, what, self.dtype)
        return made.astype(self.dtype) if isinstance(made, Matrix) and made.dtype != self.dtype else made

    def solver(self, method: str, rtol: float, atol: Any, max_it: int, **options: Any) -> Solver:
        if not isinstance(atol, (int, float, np.number)) or not atol >= 0:
            raise InputError(f"{method}: atol={atol!r}; a number that is not negative is needed.")
        largest = 1e300  # infinity, for the options
        if method == "cg":  # SciPy's looks for zeros alone
            options["ksp_cg_only_definite"] = "false"
        return Solver(
            self.A,
            M=self.M,
            ksp_type=method,
            pc_type=None if self.M is not None else "none",
            ksp_rtol=min(float(rtol), largest),
            ksp_atol=min(float(atol), largest),
            ksp_max_it=int(max_it),
            ksp_divtol=largest,
            ksp_keep_best="false",  # SciPy returns the last iterate
            **{"ksp_check_input": "false", **options},
        )


class _PreconditionerOf:
    """The ``psolve`` and ``rpsolve`` of an operator, as SciPy takes them."""

    def __init__(self, A: Any) -> None:
        self.shape, self.dtype = A.shape, getattr(A, "dtype", None)
        self.matvec = A.psolve
        if hasattr(A, "rpsolve"):
            self.rmatvec = A.rpsolve


def one_of_four(dtype: Any) -> np.dtype[Any]:
    """Return float64 or complex128 in place of what is none of the four."""
    d = np.dtype(dtype)
    return d if d.char in "fdFD" else np.dtype(np.complex128 if d.kind == "c" else np.float64)


def in_four(A: Any) -> Any:
    """Return a matrix or an array of half or long numbers as one of float64 or complex128, as SciPy's solvers take them; others as they are."""
    d = getattr(A, "dtype", None)
    known = not isinstance(d, np.dtype) or d.kind not in "fc" or d.char in "fdFD"
    return A if known or not hasattr(A, "astype") else A.astype(one_of_four(d))


def _run(s: _System, solver: Solver, callback: Any) -> Result:
    """Solve; callback(norm) after each iteration."""
    if not s.b.any():
        s.x[:] = 0
        return s.x, 0
    watch = None if callback is None else lambda it, norms: callback(norms[0]) if it > 0 else None
    r = solver._h.solve(s.b, s.x, watch, True)
    if r.reason == "DIVERGED_INTERRUPTED":
        raise KeyboardInterrupt(r.why)
    if r.converged and r.reason != "CONVERGED_ROUNDING":  # which is not what rtol=0, atol=0 asks for
        return s.x, 0
    # positive where the tolerance was not reached, negative where the method broke down
    missed = ("DIVERGED_ITS", "DIVERGED_STAGNATED", "CONVERGED_ROUNDING")
    return s.x, max(r.iterations, 1) if r.reason in missed else -10


_ARGUMENTS = """

    Parameters
    ----------
    A : sparse matrix or array, ndarray, LinearOperator, Matrix or Operator, shape (n, n)
    b : array, shape (n,) or (n, 1)
    x0 : array, or 'Mb' for M @ b, optional
    rtol, atol : float
        Stop when ``norm(b - A @ x) <= max(rtol * norm(b), atol)``.
    maxiter : int, optional
        10 n by default.
    M : as A, optional
        Approximates the inverse of A.
    callback : callable(x), optional
        Called after each iteration with the iterate itself.

    Returns
    -------
    x : array, shape (n,)
    info : int
        0: converged; positive: the tolerance was not reached after so many iterations; negative: the method broke down.

    Raises
    ------
    ShapeError
        A is not square, or b or x0 does not fit it.
    DtypeError, InputError, OptionError
        b has no numbers, or a tolerance is negative.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from asterism.scipy import NAME
    >>> A = sp.diags_array([-np.ones(99), 2 * np.ones(100), -np.ones(99)], offsets=[-1, 0, 1]).tocsr()
    >>> x, info = NAME(A, np.ones(100), rtol=1e-10)
    >>> info
    0
    """


class _Method(Protocol):
    __name__: str

    def __call__(
        self,
        A: Any,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        M: Any = None,
        callback: Callback = None,
    ) -> Result: ...


def _method(name: str, summary: str) -> _Method:
    def solve(
        A: Any,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        M: Any = None,
        callback: Callback = None,
    ) -> Result:
        s = _System(A, b, x0, M, name)
        max_it = 10 * len(s.b) if maxiter is None else int(maxiter)
        watch = None if callback is None else lambda norm: callback(s.x)
        return _run(s, s.solver(name, rtol, atol, max_it), watch)

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__ = summary + _ARGUMENTS.replace("NAME", name)
    return solve


cg = _method("cg", "Solve A x = b by conjugate gradients, A Hermitian positive definite.")
bicg = _method("bicg", "Solve A x = b by biconjugate gradients; operators need ``rmatvec``.")
bicgstab = _method("bicgstab", "Solve A x = b by stabilised biconjugate gradients.")
cgs = _method("cgs", "Solve A x = b by conjugate gradients squared.")


def tfqmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
    show: bool = False,
) -> Result:
    """Solve A x = b by transpose-free quasi-minimal residuals.

    Parameters
    ----------
    A, b, x0, rtol, atol, maxiter, M, callback
        As for `cg`.
    show : bool
        Print how it ended.

    Returns
    -------
    x, info
        As of `cg`.

    Notes
    -----
    An iteration has two products with A; SciPy counts each as one.
    """
    s = _System(A, b, x0, M, "tfqmr")
    max_it = min(10000, 10 * len(s.b)) if maxiter is None else int(maxiter)
    watch = None if callback is None else lambda norm: callback(s.x)
    x, info = _run(s, s.solver("tfqmr", rtol, atol, max_it), watch)
    if show:
        how = "converged due to reach TOL" if info == 0 else "not converged due to reach MAXIT"
        print(f"TFQMR: Linear solve {how} iterations")
    return x, info


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
    show: bool = False,
    check: bool = False,
) -> Result:
    """Solve (A - shift I) x = b by minimal residuals, A Hermitian.

    Parameters
    ----------
    A, b, x0, rtol, M, callback
        As for `cg`.
    shift : float
        Real; multiplies the identity.
    maxiter : int, optional
        5 n by default.
    show : bool
        Print how it ended.
    check : bool
        Look whether A is Hermitian.

    Returns
    -------
    x, info
        As of `cg`.

    Notes
    -----
    Stops by the residual as the other methods do; SciPy's by an estimate of it relative to norms of A and x.
    """
    s = _System(A, b, x0, M, "minres")
    if shift != 0:
        unshifted = s.A
        s.A = Operator(lambda x: unshifted @ x - shift * x, len(s.b), dtype=s.dtype, name=f"A - {shift} I")
    max_it = 5 * len(s.b) if maxiter is None else int(maxiter)
    watch = None if callback is None else lambda norm: callback(s.x.copy())  # SciPy's are arrays of their own here
    solver = s.solver("minres", rtol, 0.0, max_it, ksp_check_input="true" if check else "false")
    x, info = _run(s, solver, watch)
    if show:
        print(f"minres: {'converged' if info == 0 else 'not converged'}, info {info}")
    return x, info


def _one_column(b: Any) -> NDArray[Any]:
    rhs = np.atleast_1d(in_four(unmasked(b, "b")))
    return rhs.ravel() if rhs.ndim == 2 and 1 in rhs.shape else rhs


def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float | None = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
) -> tuple[NDArray[Any], int, int, float, float, float, float, float]:
    """Minimise norm(b - A x)^2 + damp^2 norm(x)^2.

    Parameters
    ----------
    A, b, damp, atol, btol, conlim, maxiter, x0
        As for `least_squares`, but ``maxiter`` is the smaller dimension by default.
    show : bool
        Print how it ended.

    Returns
    -------
    x, istop, itn, normr, normar, norma, conda, normx
        As SciPy's: the solution, why it stopped (1 and 2: converged), iterations, and norms.
    """
    x, i = least_squares(
        in_four(A),
        _one_column(b),
        x0,
        damp=damp,
        atol=atol or 0.0,
        btol=btol or 0.0,
        conlim=conlim or 0.0,
        maxiter=max(min(A.shape), 1) if maxiter is None else maxiter,
    )
    if show:
        print(
            f"lsmr: {i.reason}; {i.iterations} iterations, ||r|| {i.residual_norm:.3e}, ||A^H r|| {i.normal_norm:.3e}"
        )
    return x, i.stop, i.iterations, i.residual_norm, i.normal_norm, i.norm_A, i.cond_A, i.norm_x


def lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
) -> tuple[NDArray[Any], int, int, float, float, float, float, float, float, NDArray[Any]]:
    """Minimise norm(b - A x)^2 + damp^2 norm(x - x0)^2; see `asterism.least_squares`.

    Parameters
    ----------
    A, b, damp, atol, btol, conlim, x0
        As for `least_squares`.
    iter_lim : int, optional
        Most iterations; twice the columns by default.
    show : bool
        Print how it ended.
    calc_var : bool
        Is not offered.

    Returns
    -------
    x, istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, var
        As SciPy's: the solution, why it stopped (1 and 2: converged), iterations, norms of b - A x without and with damp, and
        others; var, an estimate of the diagonal of inv(A^H A), is zeros.

    Raises
    ------
    UnsupportedError
        ``calc_var`` is true.
    """
    if calc_var:
        raise UnsupportedError("calc_var=True is not offered; use scipy.sparse.linalg.lsqr for the variances.")
    n = A.shape[1]
    x, i = least_squares(
        in_four(A),
        _one_column(b),
        x0,
        method="lsqr",
        damp=damp,
        atol=atol,
        btol=btol,
        conlim=conlim,
        maxiter=max(2 * n, 1) if iter_lim is None else iter_lim,
    )
    start = np.zeros_like(x) if x0 is None else np.asarray(x0).reshape(n)
    undamped = float(np.sqrt(max(i.residual_norm**2 - damp**2 * float(np.linalg.norm(x - start)) ** 2, 0.0)))
    if show:
        print(
            f"lsqr: {i.reason}; {i.iterations} iterations, ||r|| {i.residual_norm:.3e}, ||A^H r|| {i.normal_norm:.3e}"
        )
    norms = (undamped, i.residual_norm, i.norm_A, i.cond_A, i.normal_norm, i.norm_x)
    return (x, i.stop, i.iterations, *norms, np.zeros(n))


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    callback_type: str | None = None,
) -> Result:
    """Solve A x = b by restarted generalised minimal residuals.

    Parameters
    ----------
    A, b, x0, rtol, atol, M
        As for `cg`.
    restart : int, optional
        Iterations between restarts, 20 by default.
    maxiter : int, optional
        Most restarts (with ``callback_type='legacy'`` iterations); 10 n by default.
    callback : callable, optional
        Called as ``callback_type`` says.
    callback_type : str
        ``'pr_norm'``: called with ``norm(b - A @ x) / norm(b)`` in each iteration; ``'x'``: with x at each restart; ``'legacy'``, if
        there is a callback and nothing is said: as pr_norm, and ``maxiter`` counts iterations.

    Returns
    -------
    x, info
        As of `cg`.

    Notes
    -----
    The preconditioner is applied on the right, SciPy's on the left: the norms here are those of the residual, there those of M times it.
    """
    if callback is not None and callback_type is None:
        warnings.warn(
            "gmres called without specifying `callback_type`: it is 'legacy', as in SciPy, where that will change. "
            "Name 'pr_norm', 'x' or 'legacy'.",
            DeprecationWarning,
            stacklevel=2,
        )
        callback_type = "legacy"
    if callback_type not in (None, "x", "pr_norm", "legacy"):
        raise InputError(f"gmres: callback_type={callback_type!r}; 'pr_norm', 'x' or 'legacy'.")
    s = _System(A, b, x0, M, "gmres")
    n = len(s.b)
    most = 10 * n if maxiter is None else int(maxiter)
    length = max(min(20 if restart is None else int(restart), n), 1)
    size = float(np.linalg.norm(s.b)) or 1.0
    if callback is not None and callback_type == "x" and most > 0:
        cycle = s.solver("gmres", rtol, atol, length, ksp_gmres_restart=length)
        info = most
        for _ in range(most):
            x, info = _run(s, cycle, None)
            callback(x)
            if info <= 0:
                break
        return s.x, most if info > 0 else info
    max_it = most if callback is not None and callback_type == "legacy" else most * length
    watch = None if callback is None else lambda norm: callback(np.float64(norm) / size)
    x, info = _run(s, s.solver("gmres", rtol, atol, max_it, ksp_gmres_restart=length), watch)
    return x, max(most, 1) if info > 0 else info
