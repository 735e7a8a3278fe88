"""The interpreter: what a stencil means, in NumPy.

Input: the statements and arrays. Output: new arrays. Generated kernels are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ShapeError
from .checks import Facts, Statement
from .language import (
    Assignment,
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

__all__ = ["interpret"]

Array = NDArray[Any]
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt,
    "min": np.minimum, "max": np.maximum, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal, "&": np.logical_and, "|": np.logical_or, "~": np.logical_not,
}  # fmt: skip
_REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min}


def points_of(facts: Facts, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the number of points along each axis, from the shapes of the arrays, which must agree."""
    here = {g: s for g, s in shapes.items() if g not in facts.elsewhere}
    if not here:
        halves = {tuple((n + 1) // 2 for n in s) for s in shapes.values()}
        doubles = {tuple(2 * n for n in s) for s in shapes.values()}
        return (halves if facts.space == "coarse" else doubles).pop()
    name, shape = next(iter(here.items()))
    if len(shape) != facts.dimensions:
        raise ShapeError(f"the array '{name}' has {len(shape)} dimensions; the stencil has {facts.dimensions}.")
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


def values_of(facts: Facts, given: Mapping[str, float]) -> dict[str, float]:
    """Return all constants with their values."""
    known = dict(facts.constants)
    for name in given:
        if name not in known:
            raise InputError(f"the stencil has no constant '{name}'; it has {', '.join(known) or 'none'}.")
    out = {}
    for name, default in known.items():
        value = given.get(name, default)
        if value is None:
            raise InputError(f"the constant '{name}' has no value: give {name}=..., or a default.")
        out[name] = float(value)
    return out


def interpret(
    statements: Sequence[Statement],
    facts: Facts,
    arrays: Mapping[str, Array],
    constants: Mapping[str, float],
    periodic: Sequence[bool],
    dtype: Any,
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the outputs by name, and the reductions. Points beyond an end that is not periodic are zero."""
    shape = points_of(facts, {n: a.shape for n, a in arrays.items()})
    known = {n: np.asarray(a, dtype) for n, a in arrays.items()}
    scalars = {n: np.dtype(dtype).type(v) for n, v in values_of(facts, constants).items()}
    out: dict[str, Array] = {}
    reduced: dict[str, float] = {}
    for s in statements:
        value = np.broadcast_to(_evaluate(s.value, known, scalars, shape, periodic, dtype), shape)
        if isinstance(s, Assignment):
            known[s.target.grid.name] = out[s.target.grid.name] = np.array(value, dtype)
        else:
            reduced[s.name] = float(_REDUCTIONS[s.op](value.astype(np.float64)))
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
    index = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True)
    found: dict[int, Any] = {}

    def integer(n: Integer) -> Any:
        return n.add + sum(f * (index[a] if s == "i" else shape[a]) for s, a, f in n.terms)

    def read(n: Ref) -> Array:
        if n.grid.name not in arrays:
            raise InputError(f"the array '{n.grid.name}' is missing.")
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
                found[id(n)] = number(n.value)
            elif isinstance(n, Constant):
                found[id(n)] = scalars[n.name]
            elif isinstance(n, Integer):
                found[id(n)] = np.asarray(integer(n)).astype(dtype)
            elif isinstance(n, Remainder):
                found[id(n)] = np.asarray(integer(n.of) % n.by).astype(dtype)
            elif isinstance(n, Ref):
                found[id(n)] = read(n)
            elif isinstance(n, Where):
                found[id(n)] = np.where(*(found[id(c)] for c in n.children()))
            elif isinstance(n, (Operation, Condition)):
                found[id(n)] = _OPERATIONS[n.op](*(found[id(c)] for c in n.children()))
    return found[id(root)]
