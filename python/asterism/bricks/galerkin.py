"""Galerkin's product R A P of a stencil with linear interpolation: the coefficients of a stencil on half as many points along each axis.

Input: constant coefficients, or the product as a function of vectors. Output: the coefficient at each offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stencil.language.constructors import grid, indices
from ..stencil.language.expressions import Constant
from ..stencil.language.stencil import Stencil, assign

__all__ = ["coefficients", "constants", "reach", "stencil_of"]

Offsets = tuple[int, ...]
_WEIGHTS = {  # of the fine points around 2 c, or 2 c + 1 of nodes with borders
    "nodes": {-1: 0.5, 0: 1.0, 1: 0.5},
    "cells": {-1: 0.25, 0: 0.75, 1: 0.75, 2: 0.25},
}


def __dir__() -> list[str]:
    return __all__


def reach(fine: int, centring: str, points: int, uneven: bool, periodic: bool) -> int:
    """Return how far the product reads along an axis of that many fine points. uneven: they cannot be halved exactly."""
    if points == 1:
        return 0
    out = (fine + (2 if centring == "nodes" else 3) + (uneven and periodic)) // 2
    return min(out, (points + 1) // 4) if periodic else out  # half of the coarse points, either way around


def constants(terms: Mapping[Offsets, complex], centring: str) -> dict[Offsets, complex]:
    """Return the product of constant coefficients with R = P^T / 2^d, far from ends.

    It is right at the ends too, where values are zero behind 2 m + 1 nodes.
    """
    w = _WEIGHTS[centring]

    def along(offset: int) -> dict[int, float]:  # of a shift along one axis
        out: dict[int, float] = {}
        for i, a in w.items():
            for j, b in w.items():
                if (i + offset - j) % 2 == 0:
                    k = (i + offset - j) // 2
                    out[k] = out.get(k, 0.0) + a * b / 2
        return out

    total: dict[Offsets, complex] = {}
    for offsets, value in terms.items():
        for parts in product(*(along(o).items() for o in offsets)):
            k = tuple(p[0] for p in parts)
            total[k] = total.get(k, 0.0) + value * float(np.prod([p[1] for p in parts]))
    return _without_rounding(total)


def _without_rounding(total: dict[Offsets, complex]) -> dict[Offsets, complex]:
    most = max(map(abs, total.values()))
    return {k: v for k, v in sorted(total.items()) if abs(v) > 1e-15 * most}


class _Colours:
    """Colours of the coarse points of an axis: a row of the product reads no two points of one colour."""

    def __init__(self, points: int, periodic: bool, reach: int) -> None:
        self.points, self.periodic = points, periodic
        self.offsets = [o for _, o in sorted((abs(o), o) for o in range(-reach, reach + 1))]
        if periodic:  # of those that are the same point around the end the nearest
            self.offsets = list({o % points: o for o in reversed(self.offsets)}.values())
        least = min(2 * reach + 1, points)
        number = np.arange(points)
        self.of = number % least
        if periodic and points % least:
            divisor = next(n for n in range(least, points + 1) if points % n == 0)
            rest = points - points % least  # from there on each has a colour of its own
            if divisor <= least + points % least:
                self.of = number % divisor
            else:
                self.of[rest:] = least + np.arange(points - rest)
        self.count = int(self.of.max()) + 1

    def rows(self, low: int, high: int, offset: int, colour: int) -> NDArray[Any]:
        """Return the rows of a box, counted from its first one, that read a point of the colour at that offset."""
        read = np.arange(low, high) + offset
        if self.periodic:
            read %= self.points
        there = (read >= 0) & (read < self.points)
        return np.flatnonzero(there & (self.of[np.where(there, read, 0)] == colour))


def coefficients(
    shape: Sequence[int],
    periodic: Sequence[bool],
    reaches: Sequence[int],
    box: Sequence[tuple[int, int]],
    dtype: Any,
    apply: Callable[[NDArray[Any]], NDArray[Any]],
) -> dict[Offsets, NDArray[Any]]:
    """Return the coefficients at this rank's coarse points, by products with one vector for each colour.

    box: this rank's points. apply: R A P of an array of the box. All ranks call it equally often.
    """
    axes = [_Colours(n, p, r) for n, p, r in zip(shape, periodic, reaches, strict=True)]
    mine = tuple(b - a for a, b in box)
    out = {o: np.zeros(mine, dtype) for o in product(*(a.offsets for a in axes))}
    for colours in product(*(range(a.count) for a in axes)):
        x = np.zeros(mine, dtype)
        x[np.ix_(*(a.of[low:high] == c for a, c, (low, high) in zip(axes, colours, box, strict=True)))] = 1
        y = apply(x)
        rows = [
            {o: a.rows(low, high, o, c) for o in a.offsets}
            for a, c, (low, high) in zip(axes, colours, box, strict=True)
        ]
        for offsets, coefficient in out.items():
            at = np.ix_(*(r[o] for r, o in zip(rows, offsets, strict=True)))
            coefficient[at] = y[at]
    return out


def stencil_of(offsets: Sequence[Offsets], varies: bool) -> Stencil:
    """Return the stencil with coefficients c0, c1 and so on at these offsets: grids, or constants."""
    d = len(offsets[0])
    at = indices(d)
    u, out = grid("u", d), grid("out", d)
    total: Any = None
    for n, o in enumerate(offsets):
        c = grid(f"c{n}", d)(*at) if varies else Constant(f"c{n}", None)
        term = c * u(*(i + step for i, step in zip(at, o, strict=True)))
        total = term if total is None else total + term
    return assign(out(*at), total)
