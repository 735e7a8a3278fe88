"""Galerkin's product R A P of a stencil with linear interpolation, as a stencil on half as many points along each axis.

Input: constant coefficients. Output: those of the product. The core finds coefficients that vary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..stencil.language.constructors import grid, indices
from ..stencil.language.expressions import Constant
from ..stencil.language.stencil import Stencil, assign

__all__ = ["constants", "reach", "stencil_of"]

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
