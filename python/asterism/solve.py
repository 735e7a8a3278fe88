"""The solver: a method and a preconditioner, chosen and nested by options."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import ConvergenceError, DtypeError, InputError, ShapeError, UnsupportedError
from .la import Matrix, as_operator
from .operator import as_values
from .options import add_options, process_options

__all__ = ["SolveInfo", "Solver", "solve"]

log = logging.getLogger("asterism")


@dataclass
class SolveInfo:
    """What happened in a solve.

    Attributes
    ----------
    converged : bool
    reason : str
        PETSc's name, e.g. ``CONVERGED_RTOL``.
    why : str
        In words, with the option to try; empty when converged.
    iterations : int
    residual_norms : array, shape (iterations + 1,) or (iterations + 1, k)
        ``||b - A x||`` from step 0.
    true_residual : float or array of k
        Computed from the answer at the end.
    rhs_norm : float or array of k
    host_waits : int
        Times that the host waited for the queue; 0 on the inline queue.
    """

    converged: bool
    reason: str
    why: str
    iterations: int
    residual_norms: NDArray[np.float64]
    true_residual: Any
    rhs_norm: Any
    resumes: int
    host_waits: int
    setup_seconds: float
    solve_seconds: float
    memory_bytes: int
    method: str = ""
    preconditioner: str = ""
    notes: list[str] = field(default_factory=list)

    def notes_of_projection(self) -> bool:
        """Tell whether a null space was projected out: x is then one of many solutions."""
        return any("null space" in n for n in self.notes)

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth of a SolveInfo is ambiguous (SciPy's info is 0 on success); use info.converged instead"
        )


class Solver:
    """Solves A x = b for many right-hand sides with one set-up.

    Parameters
    ----------
    A : Matrix or Operator
        Or what Matrix.from_scipy takes, or an object with ``shape`` and ``matvec`` (SciPy's LinearOperator).
    options : str or dict, optional
        PETSc's names: ``"-ksp_type gmres -pc_type ilu"`` or ``{"ksp_type": "gmres"}``.
    prefix : str
        Options are read as ``-<prefix>ksp_type`` and so on.
    P : Matrix, optional
        Preconditioners are set up on it: A itself where that is a matrix; where A is a function's operator, a matrix near it.
    M : Matrix or Operator, optional
        An approximate inverse of A, instead of a preconditioner.
    **call
        Single options with highest precedence: ``ksp="cg", pc="amg", rtol=1e-8`` and any full name.

    Notes
    -----
    Precedence: call > dict > command line (only after :func:`use_argv`) > environment
    (``ASTERISM_OPTIONS``) > file (``ASTERISM_OPTIONS_FILE``). Collective.
    """

    _SHORT = {
        "ksp": "ksp_type",
        "pc": "pc_type",
        "rtol": "ksp_rtol",
        "atol": "ksp_atol",
        "maxiter": "ksp_max_it",
        "max_it": "ksp_max_it",
        "restart": "ksp_gmres_restart",
    }

    def __init__(
        self, A: Any, options: Any = None, prefix: str = "", *, P: Any = None, M: Any = None, **call: Any
    ) -> None:
        self.A = as_operator(A, "A")
        o = process_options()
        layer = _core.OptionLayer
        add_options(options, layer.dict, "options", o)
        named = {prefix + self._SHORT.get(k, k): v for k, v in call.items() if v is not None}
        add_options(named, layer.call, "call", o)
        self._options, self._prefix = o, prefix
        if P is None and M is None and isinstance(self.A, Matrix):
            self._h = _core.Solver(self.A._h, o, prefix)
        else:
            near = self.A if P is None and isinstance(self.A, Matrix) else P
            if near is not None and not isinstance(near, Matrix):
                near = Matrix.from_scipy(near)
            inverse = None if M is None else as_operator(M, "M", self.A.dtype)
            self._h = _core.Solver(
                self.A._h, None if near is None else near._h, None if inverse is None else inverse._h, o, prefix
            )
        self.info: SolveInfo | None = None

    def update(self, A: Any) -> None:
        """Solve with another matrix from now on.

        Parameters
        ----------
        A : Matrix, SciPy sparse matrix or array
            Of the same size and dtype, its rows dealt as before. With entries at the same places (`Matrix.with_values` makes sure of it) the
            preconditioner keeps what depends on them alone: amg its aggregates and prolongation (from the second update on; the first keeps
            them; ``-pc_amg_reuse_interpolation false``: nothing), ilu its fill. ``setup_seconds`` of the next `info` says what it took.

        Notes
        -----
        Collective. Options stay; what was chosen by a look at the matrix is chosen again. After an error the solver solves nothing until an
        update succeeds. A solver of which another one uses the preconditioner changes that too.

        Examples
        --------
        >>> import asterism as am, numpy as np
        >>> A = am.gallery.poisson((30, 30))
        >>> solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
        >>> for step in range(3):
        ...     solver.update(A.with_values((1.0 + step) * A.to_scipy().data))
        ...     x = solver.solve(np.ones(900))
        >>> solver.reused
        True
        """
        B = as_operator(A, "A")
        if not isinstance(B, Matrix):
            raise InputError(f"update: A is {B!r}; a matrix is needed.")
        self._h.update(B._h)
        self.A = B

    @property
    def reused(self) -> bool:
        """Whether the last `update` kept something of the set-up before."""
        return bool(self._h.reused)

    def _flag(self, name: str, default: bool = False) -> bool:
        value = self._options.get(self._prefix + name)
        return default if value is None else value.lower() in ("true", "1", "yes", "on")

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        monitor: Callable[[int, Any], None] | None = None,
        raise_on_failure: bool | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 200,
    ) -> NDArray[Any]:
        """Solve for my part of b.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            My rows.
        x0 : array, optional
            Initial guess; zero by default. Not changed.
        monitor : callable(iteration, residual norm)
        raise_on_failure : bool, optional
            Overrides ``-ksp_error_if_not_converged``.
        checkpoint : path, optional
            The iterate is kept there as ``x`` (`load`) every ``checkpoint_every`` iterations and at the end, also of a solve that is stopped or
            fails: ``x0=load(path, comm)["x"]`` goes on from it, on any number of ranks. Of gmres it is that of the last restart; where columns
            are solved one after the other, those that are not done are as they were at the start.

        Returns
        -------
        x : array of b's shape

        Raises
        ------
        ConvergenceError
            Carries ``x`` and ``info``.
        """
        A = self.A
        rhs = as_values(b, "b")
        if rhs.ndim not in (1, 2) or rhs.shape[0] != A.local_shape[0]:
            raise ShapeError(
                f"b has shape {rhs.shape}; ({A.local_shape[0]},) or ({A.local_shape[0]}, k) is needed here."
            )
        if np.iscomplexobj(rhs) and A.dtype.kind != "c":
            columns = np.atleast_2d(rhs.T).T
            both = np.ascontiguousarray(np.concatenate([np.real(columns), np.imag(columns)], axis=1))
            guess = None
            if x0 is not None:
                g = np.atleast_2d(np.asarray(x0).T).T
                guess = np.concatenate([np.real(g), np.imag(g)], axis=1)
            log.info("the matrix is real, b complex: real and imaginary parts are solved as columns.")
            if checkpoint is not None:
                raise UnsupportedError(
                    "a checkpoint of a real matrix with a complex b is not offered; use A.astype('complex128')."
                )
            xr = self.solve(both, guess, monitor=monitor, raise_on_failure=raise_on_failure)
            k = xr.shape[1] // 2
            joined = xr[:, :k] + 1j * xr[:, k:]
            out: NDArray[Any] = joined[:, 0] if rhs.ndim == 1 else joined
            return out
        if rhs.dtype != A.dtype:
            if np.promote_types(rhs.dtype, A.dtype) != A.dtype:
                raise DtypeError(
                    f"b is {rhs.dtype}, the matrix {A.dtype}. Use A.astype('{np.promote_types(rhs.dtype, A.dtype)}')."
                )
            log.info("b is converted from %s to %s.", rhs.dtype, A.dtype)
            rhs = rhs.astype(A.dtype)
        if x0 is None:
            x = np.zeros(rhs.shape, dtype=A.dtype)
        else:
            x = np.array(as_values(x0, "x0"), dtype=A.dtype, order="C")
            if x.shape != rhs.shape:
                raise ShapeError(f"x0 has shape {x.shape}, b {rhs.shape}; they must be the same.")
        single = rhs.ndim == 1
        rank0 = A._h.rows.comm.rank == 0
        watchers: list[Callable[[int, Any], Any]] = []
        if monitor is not None:
            watchers.append(monitor)
        if self._flag("ksp_monitor") and rank0:
            watchers.append(_print_norm)
        if checkpoint is not None:
            if checkpoint_every < 1:
                raise InputError(f"checkpoint_every is {checkpoint_every}; at least 1.")
            if self._flag("ksp_asynchronous"):
                raise UnsupportedError("checkpoints need the iterate, which -ksp_asynchronous looks at late.")
            watchers.append(lambda it, _: self._keep(checkpoint, x) if it > 0 and it % checkpoint_every == 0 else None)

        def watch(it: int, norms: list[float]) -> None:
            for w in watchers:
                w(it, norms[0] if single else norms)

        r = self._h.solve(rhs, x, watch if watchers else None, checkpoint is not None)
        if checkpoint is not None:
            self._keep(checkpoint, x)
        norms = np.asarray(r.residual_norms, dtype=np.float64).reshape(len(r.residual_norms), -1)
        info = SolveInfo(
            r.converged,
            r.reason,
            r.why,
            r.iterations,
            norms[:, 0] if single else norms,
            r.true_residual[0] if single else np.asarray(r.true_residual),
            r.rhs_norm[0] if single else np.asarray(r.rhs_norm),
            r.resumes,
            r.host_waits,
            r.setup_seconds,
            r.solve_seconds,
            r.memory_bytes,
            str(self._h.method),
            str(self._h.preconditioner),
            list(r.notes),
        )
        self.info = info
        if info.reason == "DIVERGED_INTERRUPTED":
            raise KeyboardInterrupt(info.why)
        if rank0:
            for note in info.notes:
                log.info("%s", note)
            if self._flag("ksp_view"):
                print(self.view(), flush=True)
            if self._flag("ksp_converged_reason"):
                verb = "converged" if info.converged else "did not converge"
                print(f"Linear solve {verb} due to {info.reason} iterations {info.iterations}", flush=True)
        fails = self._flag("ksp_error_if_not_converged", True) if raise_on_failure is None else raise_on_failure
        if not info.converged and fails:
            raise ConvergenceError(f"{info.reason}: {info.why}", x, info)
        return x

    def _keep(self, path: str | Path, x: NDArray[Any]) -> None:
        _core.write_archive(str(path), self.A._h.rows.comm, {}, {"x": (self.A._h.rows, x)}, {})

    def explain(self) -> str:
        """Every option in force and where its value came from, as a table."""
        rows = [(f"-{n}", v, o) for n, v, o, _ in self._h.explain()]
        seen: dict[str, tuple[str, str, str]] = {}
        for row in rows:
            seen[row[0]] = row
        w0, w1 = (max(len(r[i]) for r in seen.values()) for i in (0, 1))
        return "\n".join(f"{n:<{w0}}  {v:<{w1}}  {o}" for n, v, o in seen.values())

    def options_in_force(self) -> list[dict[str, str]]:
        """Return the same as a list of name, value, origin, help."""
        return [dict(zip(("name", "value", "origin", "help"), e, strict=True)) for e in self._h.explain()]

    def view(self) -> str:
        """Matrix, method, preconditioner with its levels, and what was found."""
        return str(self._h.view())


def _print_norm(it: int, norm: Any) -> None:
    text = f"{norm:.12e}" if isinstance(norm, float) else " ".join(f"{v:.6e}" for v in norm)
    print(f"{it:5d} KSP residual norm {text}", flush=True)


def solve(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    ksp: str | None = None,
    pc: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = None,
    options: Any = None,
    monitor: Callable[[int, Any], None] | None = None,
    raise_on_failure: bool | None = None,
    **more: Any,
) -> tuple[NDArray[Any], SolveInfo]:
    """Solve A x = b.

    Parameters
    ----------
    A : Matrix or Operator, SciPy sparse matrix, array or LinearOperator, or dense array, shape (n, n)
    b : array, shape (n,) or (n, k)
        My rows.
    x0 : array, optional
    ksp, pc : str, optional
        Method and preconditioner; chosen by a look at the matrix if not given.
    rtol, atol : float, optional
        Stop when ``||b - A x|| <= max(rtol ||b||, atol)``; defaults 1e-5 and 0.
    maxiter : int, optional
    options : str or dict, optional
        Any option by PETSc's name.
    monitor : callable(iteration, residual norm), optional

    Returns
    -------
    x : array of b's shape
    info : SolveInfo

    Raises
    ------
    ConvergenceError
        If the solve did not converge; it carries ``x`` and ``info``.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> A = am.gallery.poisson((30, 30))
    >>> x, info = am.solve(A, np.ones(900), ksp="cg", pc="jacobi", rtol=1e-10)
    >>> info.reason
    'CONVERGED_RTOL'
    """
    s = Solver(A, options, ksp=ksp, pc=pc, rtol=rtol, atol=atol, maxiter=maxiter, **more)
    x = s.solve(b, x0, monitor=monitor, raise_on_failure=raise_on_failure)
    assert s.info is not None
    return x, s.info
