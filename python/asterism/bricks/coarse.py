"""Coarser operators of a stencil for geometric multigrid: discretised again, or Galerkin's product.

Input: how an operator was made, and the function that makes one. Output: the coarser operator, and the transfers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.aligned import aligned
from ..comm.agree import agreed
from ..comm.communicator import as_communicator
from ..errors import InputError
from ..stencil.language.constructors import indices
from ..stencil.language.expressions import Grid
from ..stencil.language.stencil import Stencil, assign
from ..stencil.language.transpose import coefficients_of
from . import galerkin
from .making import Made, begin_forms, coefficient, constant_terms, is_symmetric
from .near_ends import margins, stencil_by_ends

__all__ = ["coarse_level", "ends_of"]

_Make = Callable[[Made, Any], Any]
_Level = tuple[Any, Any, Any, bool]  # the operator, P, R, and whether R is a multiple of P^T
_FEW = 2**16  # coarse points: a grid for each coefficient costs less than kernels that choose
_MOST_CHOICES = 200  # of a stencil: kernels become long with them


def ends_of(make: _Make, how: Made, A: Any) -> list[list[float]]:
    """Return how far behind the ends of the axes values are zero, in spacings; 0 where they go on as they are. Collective."""
    d, usual = len(how.shape), 0.5 if how.cells else 1.0
    zero = [[False, False]] * 3
    if not all(how.periodic):
        # what holds for most points of an end does so there too
        small = _on_small_grid(make, how, lambda near, axis: 8 * max(1, near + max(how.stencil.facts.reach[axis])))
        zero = A.zero_beyond() if small is None else small._h.zero_beyond()
    return [[usual] * 2] * (3 - d) + [[usual if z else 0.0 for z in at] for at in zero[3 - d :]]


def coarse_level(
    make: _Make, how: Made, A: Any, domain: Any, by: str, rows_per_rank: int, paired: bool = True
) -> _Level | None:
    """Return the operator of half as many points along each axis, and the transfers. Collective.

    by: "again", "galerkin", or "either". paired: R must be a multiple of P^T. None: there is no such grid.
    """
    if how.ends is None:
        how.ends = ends_of(make, how, A)
    if by == "galerkin" or how.is_product:
        return _product_level(make, how, A, domain, rows_per_rank)
    found = _discretised_again(make, how, domain, how.ends, by == "again", rows_per_rank, paired)
    return found if found or by == "again" else _product_level(make, how, A, domain, rows_per_rank)


def _discretised_again(
    make: _Make, how: Made, domain: Any, ends: list[list[float]], must: bool, rows_per_rank: int, paired: bool
) -> _Level | None:
    """Return the stencil with twice the spacing. None: it does not know its spacing, unless it must, or there is no such grid.

    An axis of one point keeps its spacing, so that there is no such grid either.

    Of cells the reverse of linear interpolation takes cos^3 of a wave as P does, cos^6 together: then the stencil with twice the spacing is
    too stiff by far. The mean of the fine cells takes cos, so that cells converge as nodes do, with cos^4 together. Not in one dimension,
    where a sweep by colours leaves residuals at every second cell, of which a mean is at the wrong place.
    """
    d = len(how.shape)
    if 1 in how.shape and must and max(how.shape) > 1:
        raise InputError(
            "-pc_gmg_galerkin none discretises the stencil again with twice the spacing, and an axis of one point keeps its own. Leave the "
            "option out, or leave out the axis."
        )
    if (not how.spacing and not must) or 1 in how.shape:
        return None
    reaches = [max(r) for r in how.stencil.facts.reach]
    coarse = _core.BrickTransfer.coarsened(domain, how.centring, False, reaches, rows_per_rank)
    if coarse is None or any(n < m for n, m in zip(coarse.shape[3 - d :], how.stencil.facts.least, strict=True)):
        return None
    if not how.spacing:
        raise InputError(
            "-pc_gmg_galerkin none discretises the stencil again with twice the spacing, and none of its constants is known to be the "
            "spacing. Write the stencil with a constant 'h', name it with spacing= of am.stencil.operator, or leave the option out."
        )
    begin_forms(how, ["residual"])  # of a level that is not the last one
    next_one = how.coarser(tuple(coarse.shape[3 - d :]), tuple(coarse.brick[3 - d :]))
    P = _core.BrickTransfer(domain, coarse, how.centring, how.dtype, ends)
    R = _core.BrickRestriction(P)
    usual = _core.BrickTransfer.usual_ends(how.centring)
    mean = (
        R
        if ends == usual
        else _core.BrickRestriction(_core.BrickTransfer(domain, coarse, how.centring, how.dtype, usual))
    )

    def averaged(fine: NDArray[Any]) -> NDArray[Any]:
        out = aligned((int(coarse.layout.local_size),), how.dtype)
        mean.apply(fine, out)
        return out

    next_one.arrays = [
        averaged(fine) if n not in how.functions else coefficient(n, how.functions[n], next_one, coarse)
        for n, fine in zip(how.coefficients, how.arrays, strict=True)
    ]
    if how.centring == "cells" and d > 1 and not paired:
        means = _core.BrickTransfer(domain, coarse, "blocks", how.dtype, ends)
        return make(next_one, coarse), P, _core.BrickRestriction(means), False
    return make(next_one, coarse), P, R, True


def _product_level(make: _Make, how: Made, A: Any, domain: Any, rows_per_rank: int) -> _Level | None:
    """Return Galerkin's product with linear interpolation as a stencil, on half as many points, rounded down, or up along periodic axes."""
    d = len(how.shape)
    ends, linear = how.ends, "cells" if how.cells else "nodes"
    assert ends is not None
    uneven = [n > 1 and n % 2 == (1 if p or how.cells else 0) for n, p in zip(how.shape, how.periodic, strict=True)]
    reaches = [
        galerkin.reach(max(r), linear, n, u, p)
        for n, r, u, p in zip(how.shape, how.stencil.facts.reach, uneven, how.periodic, strict=True)
    ]
    coarse = _core.BrickTransfer.coarsened(domain, how.centring, True, reaches, rows_per_rank)
    if coarse is None:
        return None
    begin_forms(how, ["residual"])
    P = _core.BrickTransfer(domain, coarse, how.centring, how.dtype, ends)
    linear_P = P if how.centring == linear else _core.BrickTransfer(domain, coarse, linear, how.dtype, ends)
    linear_R = _core.BrickRestriction(linear_P)
    R = linear_R if P is linear_P else _core.BrickRestriction(P)
    shape, brick = tuple(coarse.shape[3 - d :]), tuple(coarse.brick[3 - d :])
    numbers = constant_terms(how)
    plain = [
        n > 1 and not u and (p or (not how.cells and e == [1.0, 1.0]))
        for n, u, p, e in zip(how.shape, uneven, how.periodic, ends[3 - d :], strict=True)
    ]
    found: dict[tuple[int, ...], Any] = {}
    if numbers is not None and all(plain):
        found = dict(galerkin.constants(numbers, linear))
    # around few points an offset of more than half of them is another one too
    varies = not found or any(abs(o) > r for at in found for o, r in zip(at, reaches, strict=True))
    points = int(np.prod(coarse.shape, dtype=np.int64))
    by_ends = _near_ends(make, how, ends, linear, reaches) if varies and points > _FEW else None
    if varies and by_ends is None:
        whole = [0] * (3 - d) + reaches
        found = {tuple(o[3 - d :]): c for o, c in _core.galerkin_coefficients(A, linear_P, linear_R, coarse, whole)}
    next_one = copy.copy(how)
    next_one.is_product, next_one.shape, next_one.brick, next_one.of = True, shape, brick, "u"
    next_one.spacing, next_one.functions, next_one.arrays = (), {}, []
    next_one.constants, next_one.coefficients = {}, []
    next_one.ends = _core.BrickTransfer.coarse_ends(domain, linear, ends)
    next_one.is_symmetric = is_symmetric(how)
    if by_ends is not None:
        next_one.stencil, next_one.constants = by_ends
        return make(next_one, coarse), P, R, True
    next_one.stencil = galerkin.stencil_of(list(found), varies)
    if varies:
        next_one.coefficients, next_one.arrays = [f"c{n}" for n in range(len(found))], list(found.values())
    else:
        next_one.constants = {f"c{n}": v for n, v in enumerate(found.values())}
    return make(next_one, coarse), P, R, True


def _near_ends(
    make: _Make, how: Made, ends: list[list[float]], linear: str, reaches: list[int]
) -> tuple[Stencil, dict[str, complex]] | None:
    """Return Galerkin's product as a stencil whose coefficients depend on how near the ends are, and its constants. Collective.

    None: the coefficients depend on something else, or the stencil would be too long.
    """
    # from each end a quarter of the points, and as many between
    small = _on_small_grid(make, how, lambda near, axis: 4 * (near // 2 + reaches[axis] + 3))
    if small is None:
        return None

    def product() -> tuple[Stencil, dict[str, complex]] | None:
        coarse = _core.BrickTransfer.coarsened(small._domain, linear, True, reaches, 0)
        if coarse is None:
            return None
        d, P = len(how.shape), _core.BrickTransfer(small._domain, coarse, linear, how.dtype, ends)
        R, found = _core.BrickRestriction(P), {}
        for o, c in _core.galerkin_coefficients(small._h, P, R, coarse, [0] * (3 - d) + reaches):
            found[tuple(o[3 - d :])] = values = np.empty(coarse.shape[3 - d :], how.dtype)
            coarse.from_bricks(c, values)
        whole = [k == n for k, n in zip(small.grid_shape, how.shape, strict=True)]
        return stencil_by_ends(found, how.periodic, whole, _MOST_CHOICES)

    out = agreed(how.comm, product)
    # ranks with other processors may round otherwise
    return None if how.comm.max(int(out is None)) else out


def _on_small_grid(make: _Make, how: Made, least: Callable[[int, int], int]) -> Any | None:
    """Return the operator on a small grid with the same ends, for each rank alone: as many points over, and the borders as far away.

    least: how many points along an axis, by how many near an end differ from others. None: coefficients depend on something else than how
    near the ends are.
    """
    if how.coefficients:
        return None
    y = Grid(how.stencil.facts.outputs[0], len(how.shape))
    terms = coefficients_of(how.stencil.statements, how.of).values()
    near = margins([assign(y(*indices(y.dimensions)), c) for c in terms], how.dtype)
    if near is None:
        return None
    small, shape = copy.copy(how), []
    for axis, (n, p, b, m) in enumerate(zip(how.shape, how.periodic, how.brick, near, strict=True)):
        step = b if p else 1
        some = -(-least(max(m), axis) // step) * step
        shape.append(min(n, some if some % 2 == n % 2 else some + step))
    small.comm, small.shape = as_communicator(None), tuple(shape)
    mine = (small.comm, shape, list(how.brick), list(how.periodic), [1] * len(shape), None)
    return agreed(how.comm, lambda: make(small, _core.BrickDomain(*mine)))
