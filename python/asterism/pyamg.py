"""PyAMG's smoothed aggregation, with its names: ``smoothed_aggregation_solver(A, B).solve(b, accel="cg")``.

The hierarchy, its smoothers and its cycle are this library's (`-pc_type amg`), so numbers of iterations differ a little from PyAMG's.
What is not offered raises and says what is. On several ranks, and for all options, use `asterism.Solver` with ``pc="amg"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, ShapeError, UnsupportedError
from .la import Matrix
from .operator import Operator, as_values
from .solve import Solver

__all__ = ["MultilevelSolver", "smoothed_aggregation_solver"]

_ACCELERATORS = ("cg", "gmres", "fgmres", "bicgstab", "cgs", "cr", "minres")


class MultilevelSolver:
    """A multigrid hierarchy that solves, alone or under a Krylov method; from `smoothed_aggregation_solver`."""

    def __init__(self, A: Matrix, options: dict[str, Any]) -> None:
        self.A = A
        self._options = options
        self._setups: dict[str, Solver] = {}
        self.levels: list[dict[str, int]] = [
            {"rows": rows, "entries": entries} for rows, entries in self._setup("V")._h.levels()
        ]

    def _setup(self, kind: str) -> Solver:
        """Return the hierarchy with a kind of cycle; each is set up once."""
        if kind not in ("V", "W"):
            raise UnsupportedError(f"cycle={kind!r} is not offered; 'V' or 'W'.")
        if kind not in self._setups:
            self._setups[kind] = Solver(
                self.A,
                ksp_type="preonly",
                pc_type="amg",
                pc_amg_cycle_type=kind.lower(),
                ksp_check_input="false",
                **self._options,
            )
        return self._setups[kind]

    def _cycle(self, kind: str) -> Operator:
        return Operator._of(self._setup(kind)._h.preconditioner_operator())

    def operator_complexity(self) -> float:
        """Entries of all levels over those of the finest."""
        return sum(level["entries"] for level in self.levels) / max(self.levels[0]["entries"], 1)

    def grid_complexity(self) -> float:
        """Rows of all levels over those of the finest."""
        return sum(level["rows"] for level in self.levels) / max(self.levels[0]["rows"], 1)

    def __repr__(self) -> str:
        lines = [f"  {i:5d}  {level['rows']:10d}  {level['entries']:12d}" for i, level in enumerate(self.levels)]
        return "\n".join(
            [
                "MultilevelSolver",
                f"levels {len(self.levels)}, operator complexity {self.operator_complexity():.3f}, "
                f"grid complexity {self.grid_complexity():.3f}",
                "  level        rows       entries",
                *lines,
            ]
        )

    def solve(
        self,
        b: Any,
        x0: Any = None,
        tol: float = 1e-5,
        maxiter: int = 100,
        cycle: str = "V",
        accel: str | None = None,
        callback: Callable[[NDArray[Any]], Any] | None = None,
        residuals: list[float] | None = None,
        return_info: bool = False,
    ) -> Any:
        """Solve A x = b until ``norm(b - A x) <= tol norm(b)``.

        Parameters
        ----------
        b : array, shape (n,) or (n, 1)
        x0 : array, optional
        tol : float
        maxiter : int
        cycle : 'V' or 'W'
        accel : str, optional
            A Krylov method that the cycle is the preconditioner of; cycles alone without.
        callback : callable(x), optional
            Called after each iteration.
        residuals : list, optional
            Norms of the residual are appended, from the initial guess on.
        return_info : bool

        Returns
        -------
        x : array of b's shape, or (x, info)
            info is 0 if the tolerance was reached, else the number of iterations.
        """
        if accel is not None and accel not in _ACCELERATORS:
            raise UnsupportedError(f"accel={accel!r} is not offered; one of {', '.join(_ACCELERATORS)}.")
        solver = Solver(
            self.A,
            M=self._cycle(cycle),
            ksp_type=accel or "richardson",
            ksp_rtol=tol,
            ksp_max_it=maxiter,
            ksp_check_input="false",
        )
        rhs = as_values(b, "b")
        n = self.A.shape[0]
        if rhs.shape not in ((n,), (n, 1)):
            raise ShapeError(f"b has shape {rhs.shape}; ({n},) or ({n}, 1) is needed.")
        if np.result_type(rhs.dtype, self.A.dtype) != self.A.dtype:
            raise InputError(
                f"b is {rhs.dtype}, the matrix {self.A.dtype}; make the solver from A.astype({rhs.dtype})."
            )
        x = np.zeros(n, self.A.dtype) if x0 is None else np.array(np.asarray(x0).reshape(n), self.A.dtype, order="C")
        watch = None if callback is None else lambda it, _: callback(x) if it > 0 else None
        r = solver._h.solve(np.ascontiguousarray(rhs.reshape(n).astype(self.A.dtype)), x, watch, True)
        if r.reason == "DIVERGED_INTERRUPTED":
            raise KeyboardInterrupt(r.why)
        if residuals is not None:
            residuals.extend(norms[0] for norms in r.residual_norms)
        out = x.reshape(rhs.shape)
        return (out, 0 if r.converged else max(r.iterations, 1)) if return_info else out

    def aspreconditioner(self, cycle: str = "V") -> Any:
        """Return one cycle as SciPy's LinearOperator, for M of its solvers."""
        import scipy.sparse.linalg as linalg

        M = self._cycle(cycle)

        def apply(r: NDArray[Any]) -> NDArray[Any]:
            return M @ r.ravel()

        make: Any = linalg.LinearOperator  # a function of SciPy that looks like a class
        return make(self.A.shape, matvec=apply, rmatvec=apply, dtype=self.A.dtype)


def smoothed_aggregation_solver(
    A: Any,
    B: Any = None,
    *,
    strength: Any = "symmetric",
    smooth: Any = "jacobi",
    presmoother: Any = "jacobi",
    postsmoother: Any = None,
    max_levels: int = 10,
    max_coarse: int = 400,
) -> MultilevelSolver:
    """Build a smoothed-aggregation hierarchy.

    Parameters
    ----------
    A : sparse matrix or array, or Matrix, shape (n, n)
        Hermitian. Of a BSR matrix the block size is taken.
    B : array, shape (n,) or (n, k), optional
        Near-null vectors, e.g. rigid-body modes; constants by default.
    strength : 'symmetric' or ('symmetric', {'theta': number})
        Which couplings are strong; this library's default is not PyAMG's 0.
    smooth : 'jacobi' or ('jacobi', {'omega': number})
        Of the tentative prolongation.
    presmoother, postsmoother : 'jacobi', 'chebyshev', 'spai0', or (name, {'iterations' or 'degree': number})
        The same one before and after.
    max_levels, max_coarse : int
        Most levels, and rows below which a level is solved directly.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> from asterism.pyamg import smoothed_aggregation_solver
    >>> ml = smoothed_aggregation_solver(am.gallery.poisson((60, 60)))
    >>> x, info = ml.solve(np.ones(3600), tol=1e-8, accel="cg", return_info=True)
    >>> info
    0
    """
    bs = A.blocksize[0] if hasattr(A, "blocksize") and A.blocksize[0] == A.blocksize[1] else 1
    matrix = A if isinstance(A, Matrix) else Matrix.from_scipy(A, block_size=bs)
    if B is not None:
        near = as_values(B, "B")
        matrix = Matrix.from_scipy(matrix.to_scipy(), block_size=matrix.block_size) if isinstance(A, Matrix) else matrix
        matrix.near_null_space = near  # of a copy: A is the caller's
    name, given = _named(strength, "strength")
    if name not in ("symmetric", None):
        raise UnsupportedError(f"strength={strength!r} is not offered; ('symmetric', {{'theta': number}}).")
    options: dict[str, Any] = {"pc_amg_max_levels": max_levels, "pc_amg_coarse_size": max_coarse}
    if "theta" in given:
        options["pc_amg_threshold"] = given.pop("theta")
    _no_more(given, "strength")
    name, given = _named(smooth, "smooth")
    if name != "jacobi":
        raise UnsupportedError(f"smooth={smooth!r} is not offered; 'jacobi' or ('jacobi', {{'omega': number}}).")
    if "omega" in given:
        options["pc_amg_prolongator_damping"] = given.pop("omega")
    _no_more(given, "smooth")
    name, given = _named(presmoother, "presmoother")
    if postsmoother is not None and postsmoother != presmoother:
        raise UnsupportedError("postsmoother: the same as presmoother is offered, so that the cycle is symmetric.")
    if name not in ("jacobi", "chebyshev", "spai0"):
        raise UnsupportedError(f"presmoother={presmoother!r} is not offered; 'jacobi', 'chebyshev' or 'spai0'.")
    if name == "chebyshev":
        options["mg_levels_ksp_type"] = "chebyshev"
    else:
        options["mg_levels_ksp_type"], options["mg_levels_pc_type"] = "richardson", name
    steps = given.pop("degree", None) if name == "chebyshev" else given.pop("iterations", None)
    if steps is not None:
        options["mg_levels_ksp_max_it"] = steps
    _no_more(given, "presmoother")
    return MultilevelSolver(matrix, options)


def _named(value: Any, what: str) -> tuple[str | None, dict[str, Any]]:
    if value is None or isinstance(value, str):
        return value, {}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        return value[0], dict(value[1])
    raise InputError(f"{what}={value!r}; a name, or a tuple of a name and a dict, is needed.")


def _no_more(given: dict[str, Any], what: str) -> None:
    if given:
        raise UnsupportedError(f"{what}: {', '.join(given)} is not offered.")
