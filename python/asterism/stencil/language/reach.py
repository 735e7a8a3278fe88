"""How many bricks away a stencil reads, on a grid of a given shape.

Input: statements, shape, bricks. Output: a number for each axis. A one-sided difference reads far, but only at points near an end. Under
a condition ``index == value``, and several joined by ``&``, the distance is exact. Other conditions are not looked into: then the
distance is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expressions import Condition, Expr, Integer, Ref, Value, Where
from .statements import Statement

__all__ = ["bricks_away", "default_brick"]

_Known = tuple[tuple[int, int], ...]  # axes, and what their indices are
_BRICK, _LARGEST = 8, 64


def default_brick(statements: Sequence[Statement], shape: Sequence[int], periodic: Sequence[bool]) -> tuple[int, ...]:
    """Return 8 points for each axis, or all points of a shorter one, or more where the stencil would read further than the next brick.

    These are multiples of 4 to 64 points. Those of periodic axes divide their points, the nearest of 4 to 16 first. Where none fits, it is 8.
    """
    brick = [_BRICK] * len(shape)
    for axis, (n, around) in enumerate(zip(shape, periodic, strict=True)):
        sizes = list(range(_BRICK, _LARGEST + 1, 4))
        if around:
            near = sorted(range(4, 2 * _BRICK + 1), key=lambda b: abs(b - _BRICK))
            sizes = [b for b in dict.fromkeys([*near, *sizes]) if n % b == 0]
        for size in [n, *sizes] if 0 < n < _BRICK else sizes:
            brick[axis] = size
            if bricks_away(statements, shape, brick, periodic)[axis] <= 1:
                break
        else:
            brick[axis] = _BRICK
    return tuple(brick)


def bricks_away(
    statements: Sequence[Statement], shape: Sequence[int], brick: Sequence[int], periodic: Sequence[bool]
) -> tuple[int, ...]:
    """Return the greatest distance in bricks between a point and what is read for it, along each axis."""
    out = [0] * len(shape)
    seen: set[tuple[int, _Known]] = set()
    left: list[tuple[Expr, _Known]] = [(s.value, ()) for s in statements]
    while left:
        n, known = left.pop()
        if (id(n), known) in seen:
            continue
        seen.add((id(n), known))
        if isinstance(n, Ref):
            for axis, o in enumerate(n.offsets):
                out[axis] = max(out[axis], _away(o, dict(known).get(axis), shape[axis], brick[axis], periodic[axis]))
        elif isinstance(n, Where):
            left += [(n.condition, known), (n.b, known)]
            then = _with(n.condition, dict(known), shape)
            if then is not None:
                left.append((n.a, tuple(sorted(then.items()))))
        else:
            left += [(c, known) for c in n.children()]
    return tuple(out)


def _away(offset: int, index: int | None, extent: int, brick: int, periodic: bool) -> int:
    if index is None:
        return -(-abs(offset) // brick)
    if not periodic and not 0 <= index + offset < extent:
        return 0  # zeros
    return abs((index + offset) // brick - index // brick)


def _with(condition: Condition, known: dict[int, int], shape: Sequence[int]) -> dict[int, int] | None:
    """Return what is known where a condition holds; None if it never does."""
    if condition.op == "&":
        for c in condition.arguments:
            assert isinstance(c, Condition)
            more = _with(c, known, shape)
            if more is None:
                return None
            known = more
        return known
    found = _index(condition, shape) if condition.op == "==" else None
    if found is None:
        return known
    axis, index = found
    if not 0 <= index < shape[axis] or known.get(axis, index) != index:
        return None
    return {**known, axis: index}


def _index(condition: Condition, shape: Sequence[int]) -> tuple[int, int] | None:
    """Return the axis and the index of a condition that one index has one value."""
    terms: dict[int, int] = {}
    add = 0
    for side, sign in zip(condition.arguments, (1, -1), strict=True):
        if isinstance(side, Value) and not isinstance(side.value, complex) and float(side.value).is_integer():
            add += sign * int(side.value)
        elif isinstance(side, Integer):
            add += sign * side.add
            for symbol, axis, f in side.terms:
                if symbol == "n":
                    add += sign * f * shape[axis]
                else:
                    terms[axis] = terms.get(axis, 0) + sign * f
        else:
            return None
    left = {axis: f for axis, f in terms.items() if f}
    if len(left) != 1:
        return None
    ((axis, f),) = left.items()
    return (axis, -add * f) if abs(f) == 1 else None
