"""SciPy's solvers, iterative and direct, with its signatures and return values.

``from asterism.scipy import cg`` instead of ``from scipy.sparse.linalg import cg``: the same arguments, ``(x, info)`` back, info 0 on
success. Stopping is as documented there: ``norm(b - A @ x) <= max(rtol * norm(b), atol)``, of the residual itself, also with a
preconditioner, and computed from x at the end. A may be an `asterism.Matrix` too, which saves its conversion in each call; more than
SciPy's arguments (preconditioners of this library, several right-hand sides, ranks, reasons) has `asterism.solve`.

`splu`, `spsolve` and `factorized` refine each answer until its backward error is at rounding level; more than they has
`asterism.factorized`.
"""

from __future__ import annotations

from .direct import factorized, splu, spsolve, spsolve_triangular
from .iterative import bicg, bicgstab, cg, cgs, gmres, lsmr, lsqr, minres, tfqmr

__all__ = [
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "factorized",
    "gmres",
    "lsmr",
    "lsqr",
    "minres",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "tfqmr",
]


def __dir__() -> list[str]:
    return __all__
