"""PyAMG's smoothed aggregation, with its names: ``smoothed_aggregation_solver(A, B).solve(b, accel="cg")``.

Arguments, their order and their defaults are PyAMG's. The hierarchy, its smoothers and its cycle are this library's (`-pc_type amg`), so
numbers of iterations differ a little from PyAMG's. Of its defaults what is not offered is replaced by what is nearest, which a warning says
once; other choices that are not offered raise, and say what is. On several ranks, and for all options, use `asterism.Solver` with
``pc="amg"``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import InputError, ShapeError, UnsupportedError
from .la.matrix import Matrix
from .la.operator import Operator, as_values
from .solvers.solver import Solver

__all__ = ["MultilevelSolver", "smoothed_aggregation_solver"]


def __dir__() -> list[str]:
    return __all__


_SWEEP = ("block_gauss_seidel", {"sweep": "symmetric"})  # PyAMG's default smoother
_SEQUENTIAL = (
    "gauss_seidel",
    "block_gauss_seidel",
    "sor",
)  # one row after the other: a polynomial smooths as well, in parallel
_DIRECT = ("pinv", "pinv2", "lu", "splu", "cholesky")
_ACCELERATORS = ("cg", "gmres", "fgmres", "bicgstab", "cgs", "cr", "minres")


class MultilevelSolver:
    """A multigrid hierarchy that solves, alone or under a Krylov method; made by `pyamg.smoothed_aggregation_solver`.

    Attributes
    ----------
    A : Matrix
        Of the finest level.
    levels : list of dict
        ``rows`` and ``entries`` of each level, the finest first.
    """

    def __init__(self, A: Matrix, options: dict[str, Any]) -> None:
        self.A = A
        self._options = options
        self._setups: dict[str, Solver] = {}
        self._hermitian = bool(_core.look(A._h)["Hermitian"])
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
                ksp_type="cg" if self._hermitian else "preonly",  # so that the set-up knows; cycles alone are made
                pc_type="amg",
                pc_amg_cycle_type=kind.lower(),
                ksp_check_input="false",
                **self._options,
            )
        return self._setups[kind]

    def _cycle(self, kind: str) -> Operator:
        return self._setup(kind).preconditioner

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
        cycles_per_level: int = 1,
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
            Becomes the norms of the residual, from the initial guess on.
        cycles_per_level : int
            Of F cycles, which are not offered.
        return_info : bool

        Returns
        -------
        x : array of b's shape, or (x, info)
            info is 0 if the tolerance was reached, else the number of iterations. Without ``return_info`` a warning says that it was not.

        Raises
        ------
        UnsupportedError
            ``accel`` or ``cycle`` is another word.
        ShapeError
            b or x0 has another shape.
        InputError
            b or x0 is wider than the matrix.
        """
        if accel is not None and accel not in _ACCELERATORS:
            raise UnsupportedError(f"accel={accel!r} is not offered; one of {', '.join(_ACCELERATORS)}.")
        rhs = as_values(b, "b")
        solver = Solver(
            self.A,
            M=self._cycle(cycle),
            ksp_type=accel or "richardson",
            ksp_rtol=tol,
            ksp_atol=0.0 if np.any(rhs) else tol,
            ksp_max_it=maxiter,
            ksp_check_input="false",
        )
        n = self.A.shape[0]
        if rhs.shape not in ((n,), (n, 1)):
            raise ShapeError(f"b has shape {rhs.shape}; ({n},) or ({n}, 1) is needed.")
        if np.result_type(rhs.dtype, self.A.dtype) != self.A.dtype:
            raise InputError(
                f"b is {rhs.dtype}, the matrix {self.A.dtype}; make the solver from A.astype({rhs.dtype})."
            )
        guess = np.zeros(n) if x0 is None else as_values(x0, "x0")
        if guess.shape not in ((n,), (n, 1)):
            raise ShapeError(f"x0 has shape {guess.shape}; ({n},) or ({n}, 1) is needed.")
        if np.iscomplexobj(guess) and self.A.dtype.kind != "c":
            raise InputError(f"x0 is {guess.dtype}, the matrix {self.A.dtype}: its imaginary part would be lost.")
        x = np.array(guess.reshape(n), self.A.dtype, order="C")
        watch = None if callback is None else lambda it, _: callback(x) if it > 0 else None
        r = solver._h.solve(np.ascontiguousarray(rhs.reshape(n).astype(self.A.dtype)), x, watch, True)
        if r.reason == "DIVERGED_INTERRUPTED":
            raise KeyboardInterrupt(r.why)
        if residuals is not None:
            residuals[:] = [norms[0] for norms in r.residual_norms]
        out = x.reshape(rhs.shape)
        if not r.converged and not return_info:
            warnings.warn(
                f"MultilevelSolver.solve did not converge to tol={tol:g}: {r.reason} after {r.iterations} iterations, norm(b - A x) is "
                f"{r.true_residual[0]:.2e} and norm(b) {r.rhs_norm[0]:.2e}. {r.why}",
                RuntimeWarning,
                stacklevel=2,
            )
        return (out, 0 if r.converged else max(r.iterations, 1)) if return_info else out

    def aspreconditioner(self, cycle: str = "V") -> Any:
        """Return one cycle as SciPy's LinearOperator, for M of its solvers.

        Parameters
        ----------
        cycle : {"V", "W"}
            Each kind is set up once.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator, shape (n, n)
            With ``matvec`` and ``rmatvec``.

        Raises
        ------
        UnsupportedError
            ``cycle`` is another word.
        """
        import scipy.sparse.linalg as linalg

        return linalg.aslinearoperator(self._cycle(cycle))


def smoothed_aggregation_solver(
    A: Any,
    B: Any = None,
    BH: Any = None,
    symmetry: str = "hermitian",
    strength: Any = "symmetric",
    aggregate: Any = "standard",
    smooth: Any = ("jacobi", {"omega": 4.0 / 3.0}),
    presmoother: Any = _SWEEP,
    postsmoother: Any = _SWEEP,
    improve_candidates: Any = (("block_gauss_seidel", {"sweep": "symmetric", "iterations": 4}), None),
    max_levels: int = 10,
    max_coarse: int = 10,
    diagonal_dominance: Any = False,
    keep: bool = False,
    *,
    coarse_solver: Any = "pinv",
) -> MultilevelSolver:
    """Build a smoothed-aggregation hierarchy.

    Parameters
    ----------
    A : sparse matrix or array, or Matrix, shape (n, n)
        Hermitian. Of a BSR matrix the block size is taken.
    B : array, shape (n,) or (n, k), optional
        Near-null vectors, e.g. rigid-body modes; constants by default.
    BH : optional
        As in PyAMG, of no effect on Hermitian matrices.
    symmetry : 'hermitian', or 'symmetric' where A is real
    strength : name, (name, {parameter: number}) or None
        Which couplings are strong: 'symmetric' or 'classical' with 'theta', 'evolution' with 'epsilon'. None: all. Without 'theta',
        symmetric takes this library's, not PyAMG's 0.
    aggregate : 'standard'
    smooth : 'jacobi', ('jacobi', {'omega': number}) or None
        Of the tentative prolongation.
    presmoother, postsmoother : 'jacobi', 'chebyshev', 'spai0', or (name, {'iterations' or 'degree': number})
        The same before and after; the default of postsmoother is presmoother. 'gauss_seidel', 'block_gauss_seidel' and 'sor' become a Chebyshev polynomial of degree 3 for each
        iteration, which takes about as many cycles.
    improve_candidates : None
        PyAMG's default is taken too, and does nothing.
    max_levels, max_coarse : int
        Most levels, and rows below which a level is solved directly.
    diagonal_dominance, keep : False
    coarse_solver : str
        A direct one; which, is this library's choice.

    Returns
    -------
    MultilevelSolver

    Raises
    ------
    UnsupportedError
        A choice that is not offered; the text says what is.

    Notes
    -----
    On one process. Source: Vanek, Mandel and Brezina (1996).

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> from asterism.pyamg import smoothed_aggregation_solver
    >>> ml = smoothed_aggregation_solver(am.gallery.poisson((60, 60)), presmoother="jacobi", postsmoother="jacobi", improve_candidates=None)
    >>> x, info = ml.solve(np.ones(3600), tol=1e-8, accel="cg", return_info=True)
    >>> info
    0
    """
    for name, value, allowed in (
        ("aggregate", aggregate, ("standard",)),
        ("diagonal_dominance", diagonal_dominance, (False,)),
        ("keep", keep, (False,)),
        ("coarse_solver", coarse_solver, _DIRECT),
    ):
        if value not in allowed:
            raise UnsupportedError(f"{name}={value!r} is not offered; {' or '.join(map(repr, allowed))}.")
    matrix = A if isinstance(A, Matrix) else Matrix.from_scipy(A)
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"smoothed_aggregation_solver: A has shape {matrix.shape}; a square matrix is needed.")
    if symmetry != "hermitian" and (symmetry != "symmetric" or matrix.dtype.kind == "c"):
        raise UnsupportedError(f"symmetry={symmetry!r} of a {matrix.dtype} matrix is not offered; 'hermitian'.")
    if B is not None:
        matrix = matrix._described(None, None, B)
    options: dict[str, Any] = {
        "pc_amg_max_levels": max_levels,
        "pc_amg_coarse_size": max_coarse,
        "pc_amg_agg_type": "mis2",  # cycles without acceleration are usual there, and boxes need some more of them
    }
    options |= _strength(strength) | _prolongation(smooth) | _smoother(presmoother, postsmoother)
    if improve_candidates is not None:
        _say_once("smoothed_aggregation_solver: candidates are not improved (improve_candidates=None).", 2)
    return MultilevelSolver(matrix, options)


def _strength(strength: Any) -> dict[str, Any]:
    name, given = _named(strength, "strength")
    options: dict[str, Any] = {}
    if name == "evolution":  # PyAMG's default, which is ours
        epsilon = given.pop("epsilon", 4.0)
        if not epsilon >= 1:
            raise InputError(f"strength: epsilon={epsilon!r}; at least 1.")
        options = {"pc_amg_threshold": 1 / epsilon}
        if given.pop("k", 2) != 2 or given.pop("proj_type", "l2") != "l2":
            raise UnsupportedError(f"strength={strength!r} is not offered; k=2 and proj_type='l2'.")
    elif name == "classical":
        options = {"pc_amg_threshold": given.pop("theta", 0.1)}
        if given.pop("norm", "abs") != "abs":
            raise UnsupportedError(f"strength={strength!r} is not offered; norm='abs'.")
    elif name not in ("symmetric", None):
        raise UnsupportedError(
            f"strength={strength!r} is not offered; 'symmetric' or 'classical' with 'theta', 'evolution' with 'epsilon', or None."
        )
    elif "theta" in given:
        options = {"pc_amg_threshold": given.pop("theta")}
    _no_more(given, "strength")
    if name in ("evolution", "classical"):
        options["pc_amg_strength"] = name
    return options if name else {"pc_amg_threshold": 0}


def _prolongation(smooth: Any) -> dict[str, Any]:
    name, given = _named(smooth, "smooth")
    if name not in ("jacobi", None):
        raise UnsupportedError(f"smooth={smooth!r} is not offered; ('jacobi', {{'omega': number}}) or None.")
    options = {"pc_amg_prolongator_damping": given.pop("omega")} if "omega" in given else {}
    _no_more(given, "smooth")
    return options if name else {"pc_amg_prolongator_damping": 0}


def _smoother(presmoother: Any, postsmoother: Any) -> dict[str, Any]:
    name, given = _named(presmoother, "presmoother")
    if postsmoother != presmoother and not (postsmoother == _SWEEP and presmoother != _SWEEP):
        raise UnsupportedError("postsmoother: the same as presmoother is offered, so that the cycle is symmetric.")
    if name in _SEQUENTIAL:
        _say_once(
            f"smoothed_aggregation_solver: {name} is not offered as a smoother; a Chebyshev polynomial of degree 3 takes its place.",
            3,
        )
        given.pop("sweep", None)
        name, given["degree"] = "chebyshev", 3 * given.pop("iterations", 1)
    if name not in ("jacobi", "chebyshev", "spai0"):
        raise UnsupportedError(f"presmoother={presmoother!r} is not offered; 'jacobi', 'chebyshev' or 'spai0'.")
    if name == "chebyshev":
        options = {"mg_levels_ksp_type": "chebyshev"}
    else:
        options = {"mg_levels_ksp_type": "richardson", "mg_levels_pc_type": name}
    steps = given.pop("degree", None) if name == "chebyshev" else given.pop("iterations", None)
    if steps is not None:
        options["mg_levels_ksp_max_it"] = steps
        if name == "chebyshev" and steps > 6:  # no optimal coefficients are known
            options["mg_levels_ksp_chebyshev_kind"] = "fourth"
    _no_more(given, "presmoother")
    return options


_said: set[str] = set()


def _say_once(text: str, stacklevel: int) -> None:
    if text not in _said:
        _said.add(text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)


def _named(value: Any, what: str) -> tuple[str | None, dict[str, Any]]:
    if value is None or isinstance(value, str):
        return value, {}
    if isinstance(value, Sequence) and len(value) == 2 and isinstance(value[1], dict):
        return value[0], dict(value[1])
    raise InputError(f"{what}={value!r}; a name, or a tuple of a name and a dict, is needed.")


def _no_more(given: dict[str, Any], what: str) -> None:
    if given:
        raise UnsupportedError(f"{what}: {', '.join(given)} is not offered.")
