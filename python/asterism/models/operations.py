"""The five operations of a multigrid cycle as stencils (Antepara and others, 2024, algorithms 1 and 2); their bytes and flops come from them.

Output: `OPERATIONS`, and the `Cost` of each at a point of the finer grid.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ..stencil.language.constructors import constant, grid, indices
from ..stencil.language.cost import Cost
from ..stencil.language.stencil import Stencil, assign, fuse

__all__ = ["OPERATIONS", "costs", "stencils"]

OPERATIONS = ("applyOp", "smooth", "smooth+residual", "restriction", "interpolation+increment")


@functools.cache
def stencils() -> Mapping[str, Stencil]:
    """Return the stencil of each operation."""
    at = i, j, k = indices(3)
    x, b, r, Ax, coarse, fine = (grid(name, 3) for name in ("x", "b", "r", "Ax", "coarse", "fine"))
    alpha, beta, gamma = (constant(name) for name in ("alpha", "beta", "gamma"))
    around = x(i + 1, j, k) + x(i - 1, j, k) + x(i, j + 1, k) + x(i, j - 1, k) + x(i, j, k + 1) + x(i, j, k - 1)
    smooth = assign(x(*at), x(*at) + gamma * (Ax(*at) - b(*at)))
    children = [fine(2 * i + a, 2 * j + c, 2 * k + d) for a in (0, 1) for c in (0, 1) for d in (0, 1)]
    return {
        "applyOp": assign(Ax(*at), alpha * x(*at) + beta * around),
        "smooth": smooth,
        "smooth+residual": fuse(assign(r(*at), b(*at) - Ax(*at)), smooth),
        "restriction": assign(coarse(*at), 0.125 * sum(children[1:], children[0])),
        "interpolation+increment": assign(fine(*at), fine(*at) + coarse(i // 2, j // 2, k // 2)),
    }


@functools.cache
def costs() -> Mapping[str, Cost]:
    """Return the least work of each: at a point, and at a coarse point for those between two grids."""
    return {name: s.cost() for name, s in stencils().items()}
