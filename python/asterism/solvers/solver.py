"""The solver: a method and a preconditioner, chosen and nested by options."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.events import events_table
from ..base.options import add_options, check_keywords, process_options, refuse_keywords
from ..comm.agree import agreed
from ..comm.communicator import one_call
from ..errors import ConvergenceError, InputError, UnsupportedError
from ..la.matrix import Matrix, as_operator
from ..la.operator import Operator
from ..la.vector import Vector
from .description import Description
from .info import SolveInfo, print_norm
from .input import check_checkpoint, checked_columns, checked_rule, joined, parts_of, prepared

__all__ = ["Solver"]

log = logging.getLogger("asterism")

Monitor = Callable[[int, Any], Any]


class _Call(NamedTuple):
    """What one solve is told."""

    rule: tuple[float | None, float | None, int | None]
    monitor: Monitor | None
    raise_on_failure: bool | None
    checkpoint: str | Path | None = None
    checkpoint_every: int = 0


class Solver(Description):
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
    ksp, pc : str, optional
        Method and preconditioner; chosen by a look at the matrix if not given.
    rtol, atol : float, optional
        Stop when ``||b - A x|| <= max(rtol ||b||, atol)``; defaults 1e-5 and 0.
    maxiter, restart : int, optional
        Most iterations, 10000 by default; and those of gmres between restarts, 30 by default.
    block_size : int, optional
        Unknowns of a node of the mesh.
    coordinates : array, shape (my nodes, 2 or 3), optional
        Of the nodes, for elasticity: rigid-body modes are made of them.
    near_null_space : array, shape (my rows, k), optional
        Vectors that the operator maps to nearly zero. These three are said of the matrix that preconditioners are set up on; the caller's
        own is not changed.
    null_space : array, shape (my rows,) or (my rows, k), optional
        Vectors that A maps to zero: the six rigid-body modes of a free body, say. They are projected out of b, if A is Hermitian, and of x.
        Constants, constants of each unknown of a node, and near-null vectors are found by themselves where A is Hermitian. If A consists of
        several connected components, each of these vectors, and of those that are found, is taken apart: what it is on each component.
    **more
        Any other option by its full name: ``pc_amg_threshold=0.1``.

    Notes
    -----
    Precedence: call > dict > command line (only after `use_argv`) > environment (``ASTERISM_OPTIONS``) > file (``ASTERISM_OPTIONS_FILE``).
    Collective. On one process a solver can be pickled and copied: as its matrix and the options in force, with which it is set up anew.

    Raises
    ------
    OptionError
        An option or keyword is unknown, or its value is not allowed; or the preconditioner needs entries, and A has none.
    InputError, ShapeError, DtypeError
        A is not square, has NaN or empty rows, or vectors do not fit it.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> solver = am.Solver(am.gallery.poisson((30, 30)), ksp="cg", pc="amg", rtol=1e-8)
    >>> x = solver.solve(np.ones(900))
    >>> solver.info.reason
    'CONVERGED_RTOL'
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

    @one_call("Solver")
    def __init__(
        self,
        A: Any,
        options: Any = None,
        prefix: str = "",
        *,
        P: Any = None,
        M: Any = None,
        ksp: str | None = None,
        pc: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        maxiter: int | None = None,
        restart: int | None = None,
        block_size: int | None = None,
        coordinates: Any = None,
        near_null_space: Any = None,
        null_space: Any = None,
        **more: Any,
    ) -> None:
        check_keywords(more, self._SHORT, Solver.__init__, [Solver.solve])
        call = {"ksp": ksp, "pc": pc, "rtol": rtol, "atol": atol, "maxiter": maxiter, "restart": restart, **more}
        o = process_options()
        add_options(options, _core.OptionLayer.dict, "options", o)
        for word, value in call.items():
            if value is not None:  # one after the other: two words of one option are an error of the core
                add_options({prefix + self._SHORT.get(word, word): value}, _core.OptionLayer.call, "call", o)
        operator = as_operator(A, "A")
        self._null_space = (
            None if null_space is None else checked_columns(operator._entries(null_space, "null_space"), "null_space")
        )
        self._set_up(operator, o, prefix, P, M, (block_size, coordinates, near_null_space))

    def _set_up(self, A: Operator, o: _core.Options, prefix: str, P: Any, M: Any, said: tuple[Any, Any, Any]) -> None:
        near = A if P is None and isinstance(A, Matrix) else P
        if near is not None and not isinstance(near, Matrix):
            near = Matrix.from_scipy(near)
        if near is not None and A._has_own_order:
            raise UnsupportedError(
                f"vectors of {A!r} are in the order of its bricks, and those of the matrix P are not. Give as A an operator in P's order: "
                "am.Operator(lambda v: A @ v, rows=A.local_shape[0], adjoint=A.rmatvec)."
            )
        if near is None and any(s is not None for s in said):
            raise InputError(
                f"block_size, coordinates and near_null_space are said of a matrix, and A is {A!r}. Give a matrix near it as P."
            )
        described = None if near is None else near._described(*said)
        self.A: Operator = described if P is None and described is not None else A
        self._said, self._options, self._prefix = said, o, prefix
        self._P = None if P is None else described
        self._M = None if M is None else as_operator(M, "M", self.A.dtype)
        self.info: SolveInfo | None = None
        handles = (None if x is None else x._h for x in (described, self._M))
        zeros = None if self._null_space is None else np.ascontiguousarray(self._null_space, dtype=self.A.dtype)
        self._h = _core.Solver(self.A._h, *handles, o, prefix, zeros)

    def __reduce__(self) -> Any:
        if self._comm.size > 1:
            raise UnsupportedError(
                f"a solver on {self._comm.size} ranks cannot be pickled. Keep its matrix by am.save, and make it anew from there."
            )
        own = set(self._options.names()) - set(_core.process_defaults())
        settings = {name: str(self._options.get(name)) for name in own}
        return _unpickled, (self.A, self._P, self._M, self._said, self._null_space, settings, self._prefix, self.info)

    @one_call("Solver")
    def _again(self, A: Operator) -> Solver:
        new = Solver.__new__(Solver)
        new._null_space = self._null_space
        new._set_up(A, self._options, self._prefix, self._P, self._M, (None, None, None))
        new._said, new.info = self._said, self.info
        return new

    def __copy__(self) -> Solver:
        """Return another solver for the same matrix, set up anew. Collective."""
        return self._again(self.A)

    def __deepcopy__(self, memo: dict[int, Any]) -> Solver:
        return self._again(copy.deepcopy(self.A, memo))

    @one_call("Solver.update")
    def update(self, A: Any) -> None:
        """Solve with another matrix from now on.

        Parameters
        ----------
        A : Matrix, SciPy sparse matrix or array
            Of the same size and dtype, its rows dealt as before. With entries at the same places (`Matrix.with_values` makes sure of it) the
            preconditioner keeps what depends on them alone: amg its aggregates and prolongation (from the second update on; the first keeps
            them; ``-pc_amg_reuse_interpolation false``: nothing), ilu its fill. ``setup_seconds`` of the next `info` says what it took.

        Raises
        ------
        ShapeError
            Size, dtype or the rows of each rank are others. Nothing is changed.
        InputError
            A is no matrix; or it has NaN or empty rows, or cannot be set up.

        Notes
        -----
        Collective. Options stay; what was chosen by a look at the matrix is chosen again. After an error of the set-up the solver solves
        nothing until an update succeeds. A solver of which another one uses the preconditioner changes that too.

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
            raise InputError(f"update: A is {B!r}; a matrix is needed. Make a new Solver for another operator.")
        B = B._described(*self._said)
        self._h.update(B._h)
        self.A = B

    @property
    def reused(self) -> bool:
        """Whether the last `update` ran only the second phase of the preconditioner's set-up, that of the values."""
        return bool(self._h.reused)

    def _flag(self, name: str, default: bool = False) -> bool:
        value = self._options.get(self._prefix + name)
        return default if value is None else value.lower() in ("true", "1", "yes", "on")

    @one_call("Solver.solve")
    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        maxiter: int | None = None,
        monitor: Monitor | None = None,
        raise_on_failure: bool | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 200,
        **unknown: Any,
    ) -> NDArray[Any]:
        """Solve for my part of b.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            My rows. Of a `StencilOperator` also a `Vector`, in the order of bricks; then x is one too, and nothing is copied.
        x0 : array, optional
            Initial guess; zero by default. Not changed.
        rtol, atol, maxiter : optional
            Of this solve alone, instead of the solver's. Where ``auto`` goes on to a stronger preconditioner for it, that one stays. A direct
            solve does not stop by them.
        monitor : callable(iteration, residual norm), optional
            Called on all ranks, from step 0 on; of several columns with a list of k norms.
        raise_on_failure : bool, optional
            Overrides ``-ksp_error_if_not_converged``.
        checkpoint, checkpoint_every : path and int, optional
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
        ShapeError, DtypeError, InputError
            b or x0 does not fit A, or has NaN or infinite entries.
        OptionError
            For a keyword that `Solver` takes, or nobody.

        Notes
        -----
        Collective. `info` tells of this solve. Most methods read the matrix once in an iteration for all columns; ``info.notes`` says where
        columns are solved one after the other.
        """
        refuse_keywords(unknown, Solver.solve, Solver)
        rule = checked_rule(rtol, atol, maxiter)
        return self._solved("N", b, x0, _Call(rule, monitor, raise_on_failure, checkpoint, checkpoint_every))

    @one_call("Solver.solve_transpose")
    def solve_transpose(
        self,
        b: Any,
        x0: Any = None,
        *,
        conjugate: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
        maxiter: int | None = None,
        monitor: Monitor | None = None,
        raise_on_failure: bool | None = None,
        **unknown: Any,
    ) -> NDArray[Any]:
        """Solve A^T x = b, or A^H x = b, from the same set-up.

        Parameters
        ----------
        b : array, shape (n,) or (n, k)
            My rows.
        x0 : array, optional
            Initial guess; zero by default. Not changed.
        conjugate : bool
            Solve with A^H instead of A^T. For a real matrix the two are one.
        rtol, atol, maxiter, monitor, raise_on_failure : optional
            As for `solve`.

        Returns
        -------
        x : array of b's shape

        Raises
        ------
        ConvergenceError
            Carries ``x`` and ``info``.
        UnsupportedError
            A or M is a function without ``adjoint``.

        Notes
        -----
        Collective. The method runs with A^H and with the adjoint of the preconditioner, so iterations are about those of `solve`. `info`
        tells of this solve. All preconditioners have an adjoint; of amg and chebyshev it costs the memory of the transposed matrices once,
        unless A is Hermitian. For Hermitian A, A^H x = b is A x = b.

        Examples
        --------
        >>> import asterism as am, numpy as np, scipy.sparse as sp
        >>> S = sp.diags_array([1.0, 4.0, 2.0], offsets=[-1, 0, 1], shape=(100, 100))
        >>> solver = am.Solver(S, ksp="gmres", pc="ilu", rtol=1e-10)
        >>> x = solver.solve_transpose(np.ones(100))
        >>> bool(np.allclose(S.T @ x, 1))
        True
        """
        refuse_keywords(unknown, Solver.solve_transpose, Solver)
        rule = checked_rule(rtol, atol, maxiter)
        return self._solved("H" if conjugate else "T", b, x0, _Call(rule, monitor, raise_on_failure))

    def _solved(self, transpose: str, b: Any, x0: Any, call: _Call) -> NDArray[Any]:
        A = self.A
        checkpoint, every = call.checkpoint, call.checkpoint_every
        if checkpoint is not None:
            A._comm.require_same("solve", [("checkpoint", f"{checkpoint}, every {every}")])
            agreed(A._comm, lambda: check_checkpoint(checkpoint, every, self._flag("ksp_asynchronous")))
        rhs, x = prepared(A, b, x0, call.monitor, checkpoint)
        if isinstance(b, np.ndarray) and b.dtype != rhs.dtype:
            log.info("b is converted from %s to %s.", b.dtype, rhs.dtype)

        def points(entries: NDArray[Any]) -> NDArray[Any]:
            if isinstance(b, Vector) and A._has_own_order:
                return Vector.wrap(A, entries)  # type: ignore[return-value]  # as b is
            return A._points(entries, np.shape(b))

        try:
            return points(self._run(transpose, rhs, x, call, x0 is None))
        except ConvergenceError as error:
            error.x = points(error.x)
            raise

    def _run(
        self, transpose: str, rhs: NDArray[Any], x: NDArray[Any], call: _Call, zero_guess: bool = False
    ) -> NDArray[Any]:
        """Solve with entries as the core orders them. zero_guess: x is zero."""
        A, checkpoint = self.A, call.checkpoint
        if np.iscomplexobj(rhs) and A.dtype.kind != "c":
            parts, guess = parts_of(rhs), parts_of(x)
            log.info("the matrix is real, b complex: real and imaginary parts are solved as columns.")
            try:
                found = self._run(transpose, parts, guess, call, zero_guess)
            except ConvergenceError as error:
                error.x = joined(error.x, rhs.shape)
                raise
            return joined(found, rhs.shape)
        single, rank0 = rhs.ndim == 1, A._h.rows.comm.rank == 0
        watchers: list[Monitor] = [] if call.monitor is None else [call.monitor]
        if self._flag("ksp_monitor") and rank0:
            watchers.append(print_norm)
        if checkpoint is not None:
            every = call.checkpoint_every
            watchers.append(lambda it, _: self._keep(checkpoint, x) if it > 0 and it % every == 0 else None)

        def watch(it: int, norms: list[float]) -> None:
            for w in watchers:
                w(it, norms[0] if single else norms)

        watcher = watch if watchers else None
        r = self._h.solve(rhs, x, watcher, checkpoint is not None, transpose, zero_guess, *call.rule)
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
            r.method,
            r.preconditioner,
            list(r.notes),
            None if not r.backward_error else r.backward_error[0] if single else np.asarray(r.backward_error),
        )
        self.info = info
        if checkpoint is not None:
            self._keep(checkpoint, x)
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
            if self._flag("log_view"):  # this rank's, since its process began
                print("\n".join(events_table(_core.profile_snapshot())), flush=True)
        fails = call.raise_on_failure
        if not info.converged and (self._flag("ksp_error_if_not_converged", True) if fails is None else fails):
            raise ConvergenceError(f"{info.reason}: {info.why}", x, info)
        return x

    def _keep(self, path: str | Path, x: NDArray[Any]) -> None:
        _core.write_archive(str(path), self._comm, {}, {"x": (self.A._h.rows, x)}, {})


def _unpickled(
    A: Operator,
    P: Any,
    M: Any,
    said: tuple[Any, Any, Any],
    null_space: Any,
    settings: dict[str, str],
    prefix: str,
    info: SolveInfo | None,
) -> Solver:
    o = _core.Options()
    add_options(settings, _core.OptionLayer.call, "pickle", o)
    new = Solver.__new__(Solver)
    new._null_space = null_space
    new._set_up(A, o, prefix, P, M, (None, None, None))
    new._said, new.info = said, info
    return new
