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
from ..stencil.lower import lower
from ..stencil.nodes import Builder, postorder
from ..stencil.passes import far_from_ends, known_far_from_ends
from ..stencil.stencil import assign
from ..stencil.transpose import coefficients_of
from .making import Made, Y, unused

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
        points = _by_ends(how, y, e, domain)
        if points is not None:
            entries = aligned((int(domain.layout.local_size),), how.dtype)
            domain.to_bricks(points, entries)
            return entries
        s = assign(y(*indices(d)), e)
        handle = _core.StencilOperator(
            domain, how.dtype, how.kernel(s, {y.name: Y}, quick=True), how.arrays, "a diagonal"
        )
        nothing, out = (aligned((int(domain.layout.local_size),), how.dtype) for _ in range(2))
        nothing[...] = 0
        handle.apply(nothing, out)
        return out

    _tell(how, A, domain, values(centre), np.real(values(total)))


def _by_ends(how: Made, y: Grid, e: Expr, domain: Any) -> NDArray[Any] | None:
    """Return a value at my points that depends on nothing but how near they are to the ends; None for other values.

    It is computed on a grid of the points near the ends and one between.
    """
    d, b = y.dimensions, Builder()
    s = assign(y(*indices(d)), e)
    values = [store.value for store in lower(s.statements, s.facts, b).stores]
    for n in postorder(*values):
        if n.op in ("index", "remainder", "read") or (n.op == "test" and known_far_from_ends(n) is None):
            return None
    _, margins = far_from_ends(values, b)
    sizes, places = [], []
    box = (b[3 - d :] for b in domain.owned(how.comm.rank))
    for n, (low, high), first, end in zip(how.shape, margins[3 - d :], *box, strict=True):
        size, at = min(n, low + high + 1), np.arange(first, end)
        sizes.append(size)
        places.append(np.where(at < low, at, np.where(at >= n - high, at - n + size, low)))
    shape_of = Grid(unused("shape_of", [y.name, *(name for name, _ in s.facts.constants)]), d)
    given: dict[str, Any] = {name: how.constants[name] for name, _ in s.facts.constants}
    given[shape_of.name] = np.zeros(sizes)
    small = assign(y(*indices(d)), e + shape_of(*indices(d))).interpret(dtype=how.dtype, **given)
    return np.ascontiguousarray(small[y.name][np.ix_(*places)])


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
