"""The diagonal of a stencil operator, and a bound of the eigenvalues of D^-1 A.

Input: the coefficients of the stencil, or its grids. Output: what the core is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.aligned import aligned
from ..errors import InputError
from ..stencil.language.constructors import indices
from ..stencil.language.expressions import Expr, Grid
from ..stencil.language.stencil import assign
from ..stencil.language.transpose import coefficients_of
from .making import Made, Y, unused
from .near_ends import margins

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

    by_ends = _by_ends(how, y, (centre, total), domain)
    if by_ends is not None:
        (main, sums), places = by_ends
        if not np.isfinite(sums).all():
            said = ", ".join(f"{n}={v}" for n, v in how.constants.items())
            raise InputError(
                f"coefficients of the stencil are not finite in {how.dtype}{f', with {said}' if said else ''}. Look for a division by "
                "zero or an overflow."
            )
        how.largest = float(np.max(np.abs(main), initial=0.0))
        mine = np.ix_(*map(np.unique, places))
        A.set_diagonal_by_places(main, places, _gershgorin(how, main[mine], np.real(sums[mine])))
        return

    def values(e: Expr) -> NDArray[Any]:
        s = assign(y(*indices(d)), e)
        handle = _core.StencilOperator(
            domain, how.dtype, how.kernel(s, {y.name: Y}, quick=True), how.arrays, "a diagonal"
        )
        nothing, out = (aligned((int(domain.layout.local_size),), how.dtype, zero=True) for _ in range(2))
        handle.apply(nothing, out)
        return out

    main = values(centre)
    how.largest = float(how.comm.max(float(np.max(np.abs(main), initial=0.0))))
    A.set_diagonal(main, values(total))


def _by_ends(
    how: Made, y: Grid, several: Sequence[Expr], domain: Any
) -> tuple[list[NDArray[Any]], list[NDArray[np.int64]]] | None:
    """Return values that depend on nothing but how near a point is to the ends; None for other values.

    They are those of a small grid of the points near the ends and one between, with the place in it of each of my points, by axes.
    """
    d = y.dimensions
    assigned = [assign(y(*indices(d)), e) for e in several]
    near = margins(assigned, how.dtype)
    if near is None:
        return None
    sizes, places = [], []
    box = (b[3 - d :] for b in domain.owned(how.comm.rank))
    for n, (low, high), first, end in zip(how.shape, near, *box, strict=True):
        size, at = min(n, low + high + 1), np.arange(first, end)
        sizes.append(size)
        places.append(np.where(at < low, at, np.where(at >= n - high, at - n + size, low)))
    small = []
    for s, e in zip(assigned, several, strict=True):
        names = [name for name, _ in s.facts.constants]
        shape_of = Grid(unused("shape_of", [y.name, *names]), d)
        given: dict[str, Any] = {name: how.constants[name] for name in names}
        # what is read has no influence here, or the values would not be known
        given |= {name: np.zeros(sizes) for name in (shape_of.name, *s.facts.inputs)}
        on_small = assign(y(*indices(d)), e + shape_of(*indices(d)))
        with np.errstate(all="ignore"):  # the caller looks at what comes out
            small.append(np.ascontiguousarray(on_small.interpret(dtype=how.dtype, **given)[y.name]))
    return small, places


def _gershgorin(how: Made, main: NDArray[Any], sums: NDArray[Any]) -> float | None:
    """Return the largest sum of a row over its diagonal entry, on all ranks; None if one is zero. Collective."""
    size = np.abs(main)
    ratio = float(np.max(np.divide(sums, size, out=np.full(sums.shape, np.inf), where=size > 0), initial=0.0))
    bound = float(how.comm.max(ratio if ratio < np.inf else np.inf))
    return bound if bound < np.inf else None


def tell_diagonal_of_product(how: Made, A: Any, domain: Any) -> None:
    """Tell the core the diagonal of a stencil whose coefficients are grids, and Gershgorin's bound."""
    main, sums = (aligned((int(domain.layout.local_size),), how.dtype, zero=True) for _ in range(2))
    for o, c in zip(how.stencil.offsets(how.of), how.arrays, strict=True):
        sums += np.abs(c)
        if not any(o):
            main += c
    A.set_diagonal(main, sums)
