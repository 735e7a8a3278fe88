"""The diagonal of a stencil operator, and a bound of the eigenvalues of D^-1 A.

Input: the coefficients of the stencil, or its grids. Output: what the core is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.aligned import aligned
from ..stencil.language import Expr, Grid, indices
from ..stencil.stencil import assign
from ..stencil.transpose import coefficients_of
from .making import Made, Y

__all__ = ["tell_diagonal", "tell_diagonal_of_product"]


def tell_diagonal(how: Made, A: Any, domain: Any) -> None:
    """Tell the core the diagonal, and Gershgorin's bound of the eigenvalues of D^-1 A. Collective."""
    d = how.stencil.facts.dimensions
    terms = coefficients_of(how.stencil.statements, how.of)
    centre = terms.get((0,) * d)
    if centre is None:
        return
    y = Grid(how.stencil.facts.outputs[0], d)
    total: Expr | None = None
    for c in terms.values():
        total = abs(c) if total is None else total + abs(c)
    assert total is not None

    def values(e: Expr) -> NDArray[Any]:
        s = assign(y(*indices(d)), e)
        handle = _core.StencilOperator(
            domain, how.dtype, how.kernel(s, {y.name: Y}, quick=True), how.arrays, "a diagonal"
        )
        nothing, out = (aligned((int(domain.layout.local_size),), how.dtype) for _ in range(2))
        nothing[...] = 0
        handle.apply(nothing, out)
        return out

    _tell(how, A, domain, values(centre), np.real(values(total)))


def _tell(how: Made, A: Any, domain: Any, main: NDArray[Any], sums: NDArray[Any]) -> None:
    inside = main != 0
    points = aligned(main.shape, how.dtype)
    low, high = domain.owned(how.comm.rank)
    domain.to_bricks(np.ones([b - a for a, b in zip(low, high, strict=True)], how.dtype), points)
    whole = bool(np.all(inside | (points == 0)))
    ratio = float(np.max(sums[inside] / np.abs(main[inside]), initial=0.0)) if whole else np.inf
    bound = float(how.comm.max(ratio))
    A.set_diagonal(np.where(points == 0, 1, main).astype(how.dtype), bound if np.isfinite(bound) else None)


def tell_diagonal_of_product(how: Made, A: Any, domain: Any) -> None:
    """Tell the core the diagonal of a stencil whose coefficients are grids, and Gershgorin's bound."""
    n = int(domain.layout.local_size)
    main, sums = np.zeros(n, np.promote_types(how.dtype, np.float64)), np.zeros(n)
    for o, c in zip(how.stencil.offsets(how.of), how.arrays, strict=True):
        sums += np.abs(c)
        if not any(o):
            main += c
    _tell(how, A, domain, main, sums)
