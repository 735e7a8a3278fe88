"""What a solver says of itself: its parts, its options, its factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from .. import _core
from ..base.display import html_table
from ..errors import AsterismError
from ..la.operator import Operator
from .info import SolveInfo

__all__ = ["Description"]


class _Preconditioner(Operator):
    """An approximate inverse of A, whose vectors users have in the order that A's have."""

    def __init__(self, A: Operator, handle: _core.Operator) -> None:
        self._h, self._A = handle, A

    @property
    def shape(self) -> tuple[int, int]:
        return self._A.shape

    @property
    def local_shape(self) -> tuple[int, int]:
        return self._A.local_shape

    def __copy__(self) -> Operator:
        return self

    def _product(self, apply: Callable[[Any, Any], None], x: Any, what: str, adjoint: bool = False) -> NDArray[Any]:
        return self._A._product(apply, x, what.replace("A", "M", 1), adjoint)


class Description:
    """The words and tables of a solver."""

    A: Operator
    info: SolveInfo | None
    _h: _core.Solver

    @property
    def _comm(self) -> _core.Communicator:
        return self.A._comm

    def __repr__(self) -> str:
        n, m = self.A.shape
        ranks = self._comm.size
        where = f", on {ranks} ranks" if ranks > 1 else ""
        return f"<asterism.Solver {self._h.method} + {self._preconditioner()} for {n} x {m}, {self.A.dtype}{where}>"

    @property
    def preconditioner(self) -> Operator:
        """The preconditioner that is set up, as an operator: ``M @ r`` applies it once, ``M.rmatvec(r)`` applies its adjoint.

        An approximate inverse of A: for M of other solvers, and of SciPy's. PETSc says ``PCApply``, PyAMG ``aspreconditioner``. Take it
        anew after an `update`, and where `solve` may have gone on to a stronger one (``pc="auto"``).

        Raises
        ------
        AsterismError
            The last `update` failed.

        Examples
        --------
        >>> import asterism as am, numpy as np, scipy.sparse.linalg
        >>> A = am.gallery.poisson((40, 40))
        >>> M = am.Solver(A, ksp="cg", pc="amg").preconditioner
        >>> X = np.random.default_rng(0).standard_normal((1600, 3))
        >>> least, _ = scipy.sparse.linalg.lobpcg(A, X, M=M, largest=False, tol=1e-6)
        >>> [round(float(v), 4) for v in least]
        [0.0117, 0.0293, 0.0293]
        """
        return _Preconditioner(self.A, self._h.preconditioner_operator())

    def _preconditioner(self) -> str:
        try:
            return str(self._h.preconditioner)
        except AsterismError:  # the last update failed
            return "nothing: set-up failed"

    def _repr_html_(self) -> str:
        facts = {
            "matrix": repr(self.A).strip("<>"),
            "method": self._h.method,
            "preconditioner": self._preconditioner(),
            "set-up": f"{self._h.setup_seconds:.3g} s",
            "last solve": "none yet" if self.info is None else self.info._summary(),
        }
        changed = [o for o in self.options_in_force() if o["origin"] != "default"]
        rows = [(f"-{o['name']}", o["value"], o["origin"]) for o in changed]
        return html_table("asterism.Solver", facts, ("option", "value", "from") if rows else (), rows)

    def explain(self) -> str:
        """Return every option in force and where its value came from, as a table.

        Returns
        -------
        str
            A line for each option.
        """
        rows = [(f"-{n}", v, o) for n, v, o, _ in self._h.explain()]
        seen: dict[str, tuple[str, str, str]] = {}
        for row in rows:
            seen[row[0]] = row
        w0, w1 = (max(len(r[i]) for r in seen.values()) for i in (0, 1))
        return "\n".join(f"{n:<{w0}}  {v:<{w1}}  {o}" for n, v, o in seen.values())

    def options_in_force(self) -> list[dict[str, str]]:
        """Return every option in force.

        Returns
        -------
        list of dict
            ``name`` without the dash, ``value``, ``origin`` ("default", or what set it) and ``help``.
        """
        return [dict(zip(("name", "value", "origin", "help"), e, strict=True)) for e in self._h.explain()]

    @property
    def factors(self) -> dict[str, Any] | None:
        """What is known of the factors of ``pc="lu"`` or ``"cholesky"``; None of other preconditioners. Collective.

        ``kind`` (lu, cholesky or ldl), ``solver_type`` (asterism, or another library with its version), ``entries``, ``memory_bytes``,
        ``ordering``, ``matched``, ``delayed`` and ``replaced`` pivots, blocks of ``two_by_two``, ``negative`` eigenvalues (of cholesky and
        ldl), ``growth`` (NaN of another library), an estimate of the ``condition`` number after scaling, and the determinant as ``sign`` (of
        modulus 1) and ``logabsdet``.
        """
        found: dict[str, Any] | None = self._h.factor_facts()
        return found

    def view(self) -> str:
        """Return matrix, method, preconditioner with its levels, and what was found, as text.

        Returns
        -------
        str
        """
        return str(self._h.view())
