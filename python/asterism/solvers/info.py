"""What happened in a solve."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.display import html_table, si_bytes

__all__ = ["SolveInfo", "print_norm"]


@dataclass(repr=False, eq=False)
class SolveInfo:
    """What happened in a solve.

    Attributes
    ----------
    converged : bool
        Whether the tolerance was reached; of a direct solve also where the answer is exact to rounding.
    reason : str
        ``CONVERGED_RTOL`` and others by PETSc's names; ``CONVERGED_ROUNDING`` where ``rtol`` and ``atol`` are 0, and of
        direct solves that miss them.
    why : str
        In words, with the option to try; empty when converged.
    iterations : int
    residual_norms : array, shape (iterations + 1,) or (iterations + 1, k)
        ``||b - A x||`` from step 0.
    true_residual : float or array of k
        Computed from the answer at the end.
    rhs_norm : float or array of k
        ``||b||``.
    backward_error : float or array of k, or None
        Componentwise (Oettli and Prager 1964), of a direct solve: the least e for which x solves a system exactly whose entries differ by e
        of each. At rounding level no better answer can be told from it.
    resumes : int
        Times that the method started again, because the residual of the answer missed the target.
    host_waits : int
        Times that the host waited for the queue; 0 on the inline queue.
    setup_seconds, solve_seconds : float
        Time of the set-up that this solve used, and of the solve.
    memory_bytes : int
        Of the matrix and the preconditioner, on this rank.
    method, preconditioner : str
        What was used, the preconditioner with its size or levels.
    notes : list of str
        What was chosen or found, a sentence each: the choice of ``auto``, a null space, refinement.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> x, info = am.solve(am.gallery.poisson((30, 30)), np.ones(900), rtol=1e-8)
    >>> info.converged, info.reason, info.notes
    (True, 'CONVERGED_RTOL', ['ksp auto: cg (Hermitian, positive diagonal)'])
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
    backward_error: Any = None

    @property
    def relative_residual(self) -> Any:
        """``true_residual / rhs_norm``, a float or an array of k; where b is zero: 0 if the residual is zero too, else infinite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.equal(self.true_residual, 0), 0.0, np.divide(self.true_residual, self.rhs_norm))
        return float(ratio) if ratio.ndim == 0 else ratio

    def notes_of_projection(self) -> bool:
        """Tell whether a null space was projected out: x is then one of many solutions."""
        return any("null space" in n for n in self.notes)

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth of a SolveInfo is ambiguous (SciPy's info is 0 on success); use info.converged instead"
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (numbers.Number, np.bool_)):
            raise TypeError("a SolveInfo is no number (SciPy's info is 0 on success); use info.converged instead")
        return NotImplemented

    __hash__ = object.__hash__

    def _summary(self) -> str:
        columns = np.size(self.true_residual)
        worst = f"{np.max(self.relative_residual):.2e}" if columns else "none"
        many = f", the worst of {columns} columns" if columns > 1 else ""
        direct = (
            ""
            if self.backward_error is None or not columns
            else f", backward error {np.nanmax(self.backward_error):.1e}"
        )
        return f"{self.reason} after {self.iterations} iterations, relative residual {worst}{direct}{many}"

    def __repr__(self) -> str:
        return f"<asterism.SolveInfo {self._summary()}>"

    def _repr_html_(self) -> str:
        facts = {
            "result": self._summary(),
            "why": self.why,
            "solver": f"{self.method} + {self.preconditioner}",
            "time": f"set-up {self.setup_seconds:.3g} s, solve {self.solve_seconds:.3g} s",
            "memory": si_bytes(self.memory_bytes),
            **{f"note {i}": note for i, note in enumerate(self.notes, 1)},
        }
        return html_table("asterism.SolveInfo", {name: text for name, text in facts.items() if text})


def print_norm(it: int, norm: Any) -> None:
    """Print the line of an iteration, as ``-ksp_monitor`` does."""
    text = f"{norm:.12e}" if isinstance(norm, float) else " ".join(f"{v:.6e}" for v in norm)
    print(f"{it:5d} KSP residual norm {text}", flush=True)
