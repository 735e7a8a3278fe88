"""The interpreter: what a stencil means, in NumPy.

Input: the statements and arrays. Output: new arrays. Generated kernels are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.values import unmasked
from ...errors import DtypeError, InputError, ShapeError
from .checks import Facts
from .expressions import (
    Condition,
    Constant,
    Expr,
    Integer,
    Operation,
    Ref,
    Remainder,
    Value,
    Where,
    walk,
)
from .numerals import as_number
from .statements import Assignment, Statement

__all__ = ["constant_value", "interpret"]

Array = NDArray[Any]


def _on_one_branch(function: Callable[..., Any]) -> Callable[[Array], Array]:
    """Return a root or logarithm that takes complex numbers on the negative real axis alike, whatever the sign of their zero."""
    return lambda a: function(a + np.zeros((), a.dtype) if np.iscomplexobj(a) else a)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "neg": np.negative, "abs": np.abs,
    "sqrt": _on_one_branch(np.sqrt), "log": _on_one_branch(np.log), "exp": np.exp, "sin": np.sin, "cos": np.cos,
    "min": np.minimum, "max": np.maximum, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal, "&": np.logical_and, "|": np.logical_or, "~": np.logical_not,
}  # fmt: skip
_REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min}


def points_of(
    facts: Facts, shapes: Mapping[str, tuple[int, ...]], known: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Return the number of points along each axis, from the shapes of the arrays, which must agree.

    Coarse arrays alone tell it of a fine grid up to one point: then it is ``known``, or twice theirs.
    """
    if not shapes:
        if known is not None:
            return known
        name = facts.outputs[0] if facts.outputs else facts.grids[0]
        raise ShapeError(
            "no array is given, so the number of points cannot be known. Give one of that shape, such as "
            f"{name}=np.zeros(...), or compile the stencil for a shape."
        )
    for name, shape in shapes.items():
        if len(shape) != facts.dimensions:
            raise ShapeError(f"the array '{name}' has {len(shape)} dimensions; the stencil has {facts.dimensions}.")
    here = {g: s for g, s in shapes.items() if g not in facts.elsewhere}
    if not here:
        if known is not None and facts.space == "fine":
            coarse = tuple((n + 1) // 2 for n in known)
            for name, shape in shapes.items():
                if shape != coarse:
                    raise ShapeError(
                        f"the array '{name}' has the shape {shape}; {coarse} is that of the coarse grid for {known} "
                        "points."
                    )
            return known
        halves = {tuple((n + 1) // 2 for n in s) for s in shapes.values()}
        doubles = {tuple(2 * n for n in s) for s in shapes.values()}
        found = halves if facts.space == "coarse" else doubles
        if len(found) != 1:
            raise ShapeError(f"the arrays have the shapes {dict(shapes)}; they must agree.")
        return found.pop()
    name, shape = next(iter(here.items()))
    for other, theirs in here.items():
        if theirs != shape:
            raise ShapeError(f"the array '{other}' has the shape {theirs}, and '{name}' {shape}.")
    for other in facts.elsewhere & shapes.keys():
        theirs = shapes[other]
        fine, coarse = (theirs, shape) if facts.space == "coarse" else (shape, theirs)
        if tuple((n + 1) // 2 for n in fine) != coarse:
            raise ShapeError(
                f"the array '{other}' has the shape {theirs}; with '{name}' of {shape} a fine grid must have twice the points."
            )
    return shape


def taken(facts: Facts, given: Mapping[str, Any], dtype: Any) -> tuple[dict[str, Array], dict[str, complex]]:
    """Return arrays and constants by name: all that the stencil needs, and nothing that it does not know."""
    arrays: dict[str, Array] = {}
    scalars = dict(facts.constants)
    for name, value in given.items():
        if name in facts.grids:
            arrays[name] = _array(name, value, np.dtype(dtype))
        elif name not in scalars:
            known = ", ".join([*facts.grids, *scalars])
            raise InputError(f"the stencil has no grid and no constant '{name}'; it has {known}.")
        else:
            scalars[name] = as_number(value, f"the constant '{name}'")
    for name in facts.inputs:
        if name not in arrays:
            raise InputError(f"the array '{name}' is missing: give {name}=...")
    for name, number in scalars.items():
        if number is None:
            raise InputError(f"the constant '{name}' has no value: give {name}=..., or a default.")
        if isinstance(number, complex) and np.dtype(dtype).kind != "c":
            raise DtypeError(
                f"the constant '{name}' is {number}; in {np.dtype(dtype)} it must be real. Give a complex dtype."
            )
    return arrays, {n: v for n, v in scalars.items() if v is not None}


def _array(name: str, value: Any, dtype: np.dtype[Any]) -> Array:
    try:
        array = unmasked(value, f"the array '{name}'")
    except ValueError as error:  # rows of different lengths
        raise ShapeError(f"the array '{name}' is not one: {error}") from None
    if array.dtype.kind not in ("buifc" if dtype.kind == "c" else "buif"):
        what = "numbers are needed" if dtype.kind == "c" else "real numbers are needed, or a complex dtype"
        raise DtypeError(f"the array '{name}' has the dtype {array.dtype}; {what}.")
    return array.astype(dtype, copy=False)


def interpret(
    statements: Sequence[Statement],
    facts: Facts,
    arrays: Mapping[str, Array],
    constants: Mapping[str, complex],
    periodic: Sequence[bool],
    dtype: Any,
    points: tuple[int, ...] | None = None,
) -> tuple[dict[str, Array], dict[str, complex]]:
    """Return the outputs by name, and the reductions. Points beyond an end that is not periodic are zero.

    The number of points is only needed where the arrays do not tell it (`points_of`).
    """
    shape = points_of(facts, {n: a.shape for n, a in arrays.items()}, points)
    known = dict(arrays)
    scalars = {n: np.dtype(dtype).type(v) for n, v in constants.items()}
    out: dict[str, Array] = {}
    reduced: dict[str, complex] = {}
    for s in statements:
        value = np.broadcast_to(_evaluate(s.value, known, scalars, shape, periodic, dtype), shape)
        if isinstance(s, Assignment):
            known[s.target.grid.name] = out[s.target.grid.name] = np.array(value, dtype)
        else:
            wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
            if not wide.size and s.op != "sum":
                raise ShapeError(f"the arrays have the shape {shape}: without points there is no {s.op} '{s.name}'.")
            reduced[s.name] = _REDUCTIONS[s.op](wide).item()
    return out, reduced


def _evaluate(
    root: Expr,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any],
    shape: tuple[int, ...],
    periodic: Sequence[bool],
    dtype: Any,
) -> Any:
    number = np.dtype(dtype).type
    real = number(0).real.dtype.type
    index = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True)
    found: dict[int, Any] = {}

    def integer(n: Integer) -> Any:
        return n.add + sum(f * (index[a] if s == "i" else shape[a]) for s, a, f in n.terms)

    def read(n: Ref) -> Array:
        a = arrays[n.grid.name]
        for axis, (points, add) in enumerate(zip(shape, n.offsets, strict=True)):
            at = (n.scale * np.arange(points) + add) // n.divide
            size = a.shape[axis]
            inside = np.ones(points, bool) if periodic[axis] else (at >= 0) & (at < size)
            a = np.take(a, at % size if periodic[axis] else np.clip(at, 0, size - 1), axis)
            a = np.where(inside.reshape([-1 if b == axis else 1 for b in range(len(shape))]), a, number(0))
        return a

    with np.errstate(all="ignore"):
        for n in walk(root):
            if isinstance(n, Value):
                found[id(n)] = (number if isinstance(n.value, complex) else real)(n.value)
            elif isinstance(n, Constant):
                found[id(n)] = scalars[n.name]
            elif isinstance(n, Integer):
                found[id(n)] = np.asarray(integer(n)).astype(real)
            elif isinstance(n, Remainder):
                found[id(n)] = np.asarray(integer(n.of) % n.by).astype(real)
            elif isinstance(n, Ref):
                found[id(n)] = read(n)
            elif isinstance(n, Where):
                found[id(n)] = np.where(*(found[id(c)] for c in n.children()))
            elif isinstance(n, (Operation, Condition)):
                found[id(n)] = _OPERATIONS[n.op](*(found[id(c)] for c in n.children()))
    return found[id(root)]


def constant_value(e: Expr, constants: Mapping[str, complex], dtype: Any) -> complex:
    """Return the value of an expression without grids and indices: a float, if the dtype is real."""
    scalars = {n: np.dtype(dtype).type(v) for n, v in constants.items()}
    value = _evaluate(e, {}, scalars, (), (), dtype)
    return complex(value) if np.dtype(dtype).kind == "c" else float(value)
