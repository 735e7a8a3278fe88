"""Values that depend on nothing but how near a point is to the ends of the axes.

Input: expressions, or their values on a small grid with the same ends. Output: how near, or expressions with these values on any grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stencil.codegen.lower import lower
from ..stencil.codegen.nodes import Builder, postorder
from ..stencil.codegen.passes import far_from_ends, known_far_from_ends
from ..stencil.language.constructors import grid, indices, where
from ..stencil.language.expressions import Constant, Expr
from ..stencil.language.stencil import Stencil, assign

__all__ = ["margins", "stencil_by_ends"]

Offsets = tuple[int, ...]


def __dir__() -> list[str]:
    return __all__


def margins(assigned: Sequence[Stencil], dtype: str) -> tuple[tuple[int, int], ...] | None:
    """Return from how many points off both ends of each axis the assigned values are those far from the ends.

    None: they depend on something else.
    """
    b = Builder(dtype)
    values = [store.value for s in assigned for store in lower(s.statements, s.facts, b).stores]
    for n in postorder(*values):
        if n.op in ("index", "remainder", "read") or (n.op == "test" and known_far_from_ends(n) is None):
            return None
    return far_from_ends(values, b)[1][3 - assigned[0].facts.dimensions :]


def stencil_by_ends(
    found: Mapping[Offsets, NDArray[Any]], periodic: Sequence[bool], whole: Sequence[bool], most_choices: int
) -> tuple[Stencil, dict[str, complex]] | None:
    """Return the stencil on any grid whose coefficients near the ends are those on a small grid, and its constants.

    Parameters
    ----------
    found : mapping of offsets to arrays
        The coefficients at each point of the small grid. What is read behind ends of axes that are not periodic is zero.
    periodic : sequence of bool
    whole : sequence of bool
        Whether the small grid has all points along an axis. Else there must be points that are far from both ends.
    most_choices : int
        The number of conditions that a stencil may have: it becomes long with them.

    Returns
    -------
    stencil, dict; or None
        None: there is no such stencil.
    """
    all_values = np.stack(list(found.values()))
    d = all_values.ndim - 1
    middle = [n // 2 for n in all_values.shape[1:]]
    rounding = 8 * np.finfo(all_values.dtype).eps * np.abs(all_values).max()
    for values, offsets in zip(all_values, found, strict=True):
        for axis, (step, p) in enumerate(zip(offsets, periodic, strict=True)):
            n, along = values.shape[axis], np.moveaxis(values, axis, 0)  # a view
            if not p and n > 1:  # whatever it is, as zero is read
                along[: max(0, -step)] = along[max(0, n - step) :] = along[middle[axis]]
    ends = []
    for axis, n in enumerate(all_values.shape[1:]):
        along = np.moveaxis(all_values, axis + 1, 0)
        alike = [bool(np.abs(v - along[middle[axis]]).max() <= rounding) for v in along]
        low, high = alike.index(True), alike[::-1].index(True)
        if not all(alike[low : n - high]) or (not whole[axis] and n - low - high < 3):
            return None
        ends.append((low, high))

    at, constants, choices = indices(d), dict[str, complex](), 0

    def number(value: Any) -> Expr:
        name = next((m for m, v in constants.items() if abs(v - value) <= rounding), f"c{len(constants)}")
        constants.setdefault(name, value.item())
        return Constant(name, None)

    def choice(values: NDArray[Any]) -> Expr:
        """Return one of the values by the indices of as many axes, the first ones."""
        nonlocal choices
        axis = values.ndim - 1
        if axis < 0:
            return number(values[()])
        far = values[..., middle[axis]]
        out = choice(far)
        low, high = ends[axis]
        i = at[axis]
        places = [(n, i == n) for n in range(low)] + [(-1 - n, i == i.extent - 1 - n) for n in range(high)]
        for place, here in places:
            if np.abs(values[..., place] - far).max() > rounding:
                choices += 1
                out = where(here, choice(values[..., place]), out)
        return out

    u, out = grid("u", d), grid("out", d)
    total: Any = None
    for offsets, values in zip(found, all_values, strict=True):
        term = choice(values) * u(*(i + step for i, step in zip(at, offsets, strict=True)))
        total = term if total is None else total + term
        if choices > most_choices:
            return None
    return assign(out(*at), total), constants
