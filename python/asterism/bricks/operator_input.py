"""What `am.stencil.operator` is given.

Input: the caller's arguments. Output: the same in one form, or an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.indices import as_counts, as_flags, as_shape
from ..base.values import dtype_name
from ..errors import DtypeError, InputError, OptionError, ShapeError
from ..stencil.language.checks import check_dtype
from ..stencil.language.numerals import as_number
from ..stencil.language.reach import bricks_away, default_brick
from ..stencil.language.stencil import Stencil, as_brick, as_stencil
from ..stencil.language.transpose import coefficients_of

__all__ = ["checked"]

# of am.stencil.operator
_ARGUMENTS = (
    "stencil", "shape", "periodic", "comm", "brick", "dtype", "of", "ranks", "target", "points", "interpolation", "spacing",
)  # fmt: skip


def checked(
    stencil: Stencil,
    shape: Any,
    periodic: Any,
    brick: Any,
    dtype: Any,
    of: str | None,
    points: str,
    interpolation: str,
    spacing: Any,
    ranks: Any,
    given: dict[str, Any],
) -> tuple[Any, ...]:
    """Check what is given, and return it in one form."""
    f = as_stencil(stencil, "stencil.operator").facts
    sizes = tuple(as_shape(shape, "stencil.operator: shape"))
    if len(sizes) != f.dimensions or any(n < 1 for n in sizes):
        raise ShapeError(f"shape {sizes}: the stencil has {f.dimensions} dimensions, with at least one point each.")
    flags = as_flags(periodic, f.dimensions)
    stencil.check_shape(sizes, flags)
    if f.space != "one" or f.reductions or len(f.outputs) != 1 or len(stencil.statements) != 1:
        raise InputError(f"an operator is one assignment on the points of one grid; this is {stencil!r}.")
    blocks = (
        default_brick(stencil.statements, sizes, flags)
        if brick is None
        else as_brick(brick, f.dimensions, "stencil.operator: brick")
    )
    if len(blocks) != f.dimensions or any(n < 1 for n in blocks):
        raise InputError(f"brick={blocks}: {f.dimensions} positive sizes are needed.")
    for axis, away in enumerate(bricks_away(stencil.statements, sizes, blocks, flags)):
        if away > 1:
            low, high = f.reach[axis]
            hint = "Give larger bricks as brick=" + (" or leave it out." if brick is not None else ".")
            raise InputError(
                f"the stencil reads {max(low, high)} points far along axis {axis}, which is beyond the next brick of {blocks[axis]}. {hint}"
            )
    kind = dtype_name(dtype, "stencil")
    scalars = dict(f.constants)
    coefficients = {}
    for name, value in given.items():
        if name in scalars:
            scalars[name] = as_number(value, f"the constant '{name}'")
        elif name in f.inputs:
            coefficients[name] = value
        else:
            known = ", ".join([*f.inputs, *scalars])
            raise InputError(f"the stencil reads no grid and has no constant '{name}'; it has {known}.")
    others = [g for g in f.inputs if g not in coefficients and g != of]
    to_give = [n for n, number in scalars.items() if number is None] + (others if len(others) > 1 or of else [])
    for name in to_give:
        if name in _ARGUMENTS:
            raise InputError(
                f"'{name}' is an argument of stencil.operator, and a grid or constant of this stencil. Give that another name."
            )
    for name, number in scalars.items():
        if number is None:
            raise InputError(f"the constant '{name}' has no value: give {name}=..., or a default.")
        if not np.isfinite(number):
            raise InputError(
                f"the constant '{name}' is {number}. Look for a division by zero or an overflow where it is computed."
            )
        if isinstance(number, complex) and not kind.startswith("complex"):
            raise DtypeError(
                f"the constant '{name}' is {number}; in {kind} it must be real. Give dtype= complex64 or complex128."
            )
    left = [g for g in f.inputs if g not in coefficients]
    if of is None and len(left) != 1:
        raise InputError(
            f"the stencil reads {', '.join(f.inputs) or 'no grid'}: give all of these but the one that the operator is applied to."
        )
    name = left[0] if of is None else of
    if left != [name]:
        raise InputError(
            f"of={name!r}: give the grids {', '.join(g for g in f.inputs if g != name)} as arrays or functions."
        )
    if name in f.outputs:
        raise InputError(f"the grid '{name}' is read and written: an operator writes another grid.")
    coefficients_of(stencil.statements, name)  # linear
    if points not in ("nodes", "cells"):
        raise OptionError(f"points='{points}' is not one of nodes, cells.")
    if interpolation not in ("linear", "constant"):
        raise OptionError(f"interpolation='{interpolation}' is not one of linear, constant.")
    if interpolation == "constant" and points == "nodes":
        raise OptionError("interpolation='constant' goes with points='cells'.")
    centring = "blocks" if interpolation == "constant" else points
    names = (
        (("h",) if "h" in scalars else ()) if spacing is None else (spacing,) if isinstance(spacing, str) else spacing
    )
    if not (np.iterable(names) and all(isinstance(n, str) for n in names)):
        raise InputError(f"spacing={spacing!r}: the name of a constant is needed, such as 'h', or several.")
    names = tuple(names)
    for n in names:
        if n not in scalars:
            raise InputError(f"spacing={n!r} is no constant of the stencil; it has {', '.join(scalars) or 'none'}.")
    cut = [] if ranks is None else as_counts(ranks, f.dimensions, "stencil.operator: ranks")
    check_dtype(stencil.statements, kind)
    return sizes, flags, blocks, kind, name, scalars, coefficients, centring, names, cut
