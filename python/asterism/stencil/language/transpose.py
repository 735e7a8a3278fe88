"""The transpose of a linear stencil, as a stencil.

Input: one assignment ``y(p) = sum of w_o(p) * x(p + o)`` and the name of x. Output: ``x(q) = sum of w_o(q - o) * y(q - o)``. Coefficients are
taken at the other point: their grids are read there, and indices in them are those of that point, also around periodic ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .checks import Facts
from .expressions import (
    Condition,
    Constant,
    Expr,
    Grid,
    Integer,
    Operation,
    Ref,
    Remainder,
    Value,
    Where,
    walk,
)
from .statements import Assignment, Statement
from .user_line import fail

__all__ = ["coefficients_of", "transposed"]

Offsets = tuple[int, ...]
_Linear = dict[Offsets, Expr]  # coefficients; a value without x is at `_FREE`
_FREE: Offsets = ()


def transposed(
    statements: Sequence[Statement], facts: Facts, of: str | None, periodic: Sequence[bool]
) -> tuple[Assignment, tuple[int | None, ...]]:
    """Return the assignment, and for each axis the least number of points that it needs where it is periodic, None if it must not be.

    Conditions on the indices of axes that are not periodic need not look around their ends.
    """
    s = statements[0]
    if len(statements) > 1 or not isinstance(s, Assignment):
        fail(s.line, "the transpose is that of one assignment; transpose the parts before they are fused.")
    if facts.space != "one":
        fail(
            s.line,
            "the transpose of a stencil between a fine and a coarse grid is not there: write it with 2 * i and i // 2.",
        )
    if of is None and len(facts.inputs) != 1:
        fail(s.line, f"the stencil reads {', '.join(facts.inputs) or 'no grid'}: say of= which one it is linear in.")
    name = facts.inputs[0] if of is None else of
    if name not in facts.inputs:
        fail(s.line, f"the stencil does not read '{name}'; it reads {', '.join(facts.inputs)}.")
    if name == s.target.grid.name:
        fail(s.line, f"'{name}' is read and written: the transpose needs another grid for the result.")
    d = facts.dimensions
    terms = coefficients_of(statements, name)
    x, y = Grid(name, d), s.target.grid
    total: Expr | None = None
    least = [0] * d
    for offsets, coefficient in sorted(terms.items()):
        away = tuple(-o for o in offsets)
        if any(isinstance(n, (Integer, Remainder)) for n in walk(coefficient)):
            least = [max(a, abs(o)) for a, o in zip(least, offsets, strict=True)]
        weight, value = _Shift(away, periodic).of(coefficient), _at(y, away)
        term = _weighted(weight, value)
        if not _is_finite(coefficient):  # beyond an end the coefficient may be anything, and y is zero
            term = Where(Condition("==", value, Value(0.0)), Value(0.0), term)
        total = term if total is None else Operation("+", total, term)
    assert total is not None
    bounds = tuple(n if p or not n else None for n, p in zip(least, periodic, strict=True))
    return Assignment(_at(x, (0,) * d), total, s.line), bounds


def coefficients_of(statements: Sequence[Statement], name: str) -> dict[Offsets, Expr]:
    """Return the coefficient at each offset of the grid of that name, in which the one assignment is linear, or raise."""
    s = statements[0]
    terms = _linear(s.value, name)
    if _FREE in terms:
        fail(
            s.line, f"a part of the value is without '{name}', so the stencil is not linear in it. Take that part out."
        )
    return terms


def _at(grid: Grid, offsets: Offsets) -> Ref:
    return Ref(grid, [(1, o, 1) for o in offsets])


def _is_finite(coefficient: Expr) -> bool:
    """Tell whether a coefficient is finite wherever its grids are."""
    return not any(isinstance(n, Operation) and n.op in ("/", "sqrt", "log") and _varies(n) for n in walk(coefficient))


def _varies(e: Expr) -> bool:
    return any(isinstance(n, (Ref, Integer, Remainder)) for n in walk(e))


def _linear(value: Expr, name: str) -> _Linear:
    """Return the coefficients of the grid's values; an error shows the line where the stencil is not linear."""
    found: dict[int, _Linear] = {}
    for n in walk(value):
        parts = [found[id(c)] for c in n.children()]
        terms = found[id(n)] = _combined(n, parts, name)
        if len(terms) > 1 and _FREE in terms and _number(terms[_FREE]) == 0:
            del terms[_FREE]  # of where(condition, w * x, 0), say
    return found[id(value)]


def _combined(n: Expr, parts: list[_Linear], name: str) -> _Linear:
    if isinstance(n, Ref) and n.grid.name == name:
        return {n.offsets: Value(1.0)}
    if all(not p or set(p) == {_FREE} for p in parts):
        nothing = isinstance(n, Operation) and n.op == "*" and any(_number(p[_FREE]) == 0 for p in parts)
        return {_FREE: Value(0.0) if nothing else n}
    if isinstance(n, Condition):  # on x: only a guard may have it
        return {o: c for part in parts for o, c in part.items()}
    if isinstance(n, Where) and _guards(n, set(parts[2]), name):
        return parts[2]
    if isinstance(n, Where) and (not parts[0] or set(parts[0]) == {_FREE}):
        zero = Value(0.0)
        keys = dict.fromkeys([*parts[1], *parts[2]])
        return {o: _chosen(n.condition, parts[1].get(o, zero), parts[2].get(o, zero)) for o in keys}
    if isinstance(n, Operation):
        if n.op in "+-":
            sign = [1.0, 1.0 if n.op == "+" else -1.0]
            out: _Linear = {}
            for part, factor in zip(parts, sign, strict=True):
                for o, c in part.items():
                    scaled = c if factor == 1 else _product(Value(-1.0), c)
                    out[o] = _sum(out[o], scaled) if o in out else scaled
            return out
        if n.op == "neg":
            return {o: _product(Value(-1.0), c) for o, c in parts[0].items()}
        if n.op == "*" and any(set(p) == {_FREE} for p in parts):
            a, b = parts if set(parts[0]) == {_FREE} else parts[::-1]
            return {o: _product(a[_FREE], c) for o, c in b.items()}
        if n.op == "/" and set(parts[1]) == {_FREE}:
            inverse = Operation("/", Value(1.0), parts[1][_FREE])
            return {o: _product(inverse, c) for o, c in parts[0].items()}
    fail(n.line, f"the stencil is not linear in '{name}' here, as operators and transposes must be.")


def _guards(n: Where, offsets: set[Offsets], name: str) -> bool:
    """Tell whether this is ``where(x == 0, 0, w * x)``: what a transpose makes of a coefficient that may be infinite beyond an end."""
    left = n.condition.arguments[0]
    zero = n.condition.op == "==" and _number(n.condition.arguments[1]) == 0 and _number(n.a) == 0
    return zero and isinstance(left, Ref) and left.grid.name == name and offsets == {left.offsets}


def _number(e: Expr) -> complex | None:
    return e.value if isinstance(e, Value) else None


def _sum(a: Expr, b: Expr) -> Expr:
    x, y = _number(a), _number(b)
    return Value(x + y) if x is not None and y is not None else Operation("+", a, b)


def _product(a: Expr, b: Expr) -> Expr:
    x, y = _number(a), _number(b)
    if x is not None and y is not None:
        return Value(x * y)
    if x == 0 or y == 0:
        return Value(0.0)
    for number, other in ((x, b), (y, a)):  # so that conditions come first
        if number is not None and isinstance(other, Where):
            factor = Value(number)
            return _through_choices(other, lambda v, factor=factor: _product(factor, v))  # type: ignore[misc]
    return b if x == 1 else a if y == 1 else Operation("*", a, b)


def _chosen(condition: Condition, a: Expr, b: Expr) -> Expr:
    x, y = _number(a), _number(b)
    return a if x is not None and x == y else Where(condition, a, b)


def _through_choices(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Return f of a value; of one that conditions choose from several, the same choice from f of these."""
    found: dict[int, Expr] = {}
    stack = [e]
    while stack:
        n = stack[-1]
        if not isinstance(n, Where):
            found[id(n)] = f(n)
        elif missing := [c for c in (n.a, n.b) if id(c) not in found]:
            stack += missing
            continue
        else:
            found[id(n)] = _chosen(n.condition, found[id(n.a)], found[id(n.b)])
        stack.pop()
    return found[id(e)]


def _weighted(weight: Expr, value: Expr) -> Expr:
    """Return weight * value; what has several weights by conditions is read under these."""
    return _through_choices(weight, lambda w: Value(0.0) if _number(w) == 0 else _product(w, value))


class _Shift:
    """Coefficients at the point that is `by` away."""

    def __init__(self, by: Offsets, periodic: Sequence[bool]) -> None:
        self.by, self.periodic = by, periodic

    def of(self, e: Expr) -> Expr:
        found: dict[int, Expr] = {}
        for n in walk(e):
            found[id(n)] = self._one(n, [found[id(c)] for c in n.children()])
        return found[id(e)]

    def _one(self, n: Expr, args: list[Expr]) -> Expr:
        if isinstance(n, (Value, Constant)):
            return n
        if isinstance(n, Ref):
            return _at(n.grid, tuple(o + b for o, b in zip(n.offsets, self.by, strict=True)))
        if isinstance(n, Integer):
            return self._wrapped(n, lambda whole: whole)
        if isinstance(n, Remainder):
            by = n.by
            return self._wrapped(n.of, lambda whole: Remainder(whole, by))
        if isinstance(n, Condition):
            return self._condition(n, args)
        if isinstance(n, Where):
            condition, a, b = args
            assert isinstance(condition, Condition)
            return Where(condition, a, b)
        assert isinstance(n, Operation)
        return Operation(n.op, *args)

    def _moved(self, whole: Integer, turns: dict[int, int]) -> Integer:
        """Return the integer at the other point, with so many extents added along each axis."""
        factors = {(s, a): f for s, a, f in whole.terms}
        add = whole.add
        for s, axis, f in whole.terms:
            if s == "i":
                add += f * self.by[axis]
                factors["n", axis] = factors.get(("n", axis), 0) + f * turns.get(axis, 0)
        return Integer(tuple((s, a, f) for (s, a), f in sorted(factors.items()) if f), add)

    def _turns(self, whole: Integer) -> list[tuple[Condition | None, dict[int, int]]]:
        """Return the ways in which the other point lies around periodic ends: a condition, and the extents to add.

        Where an axis is not periodic, y is zero there, and any coefficient will do.
        """
        ways: list[tuple[Condition | None, dict[int, int]]] = [(None, {})]
        for s, axis, _ in whole.terms:
            by = self.by[axis] if s == "i" else 0
            if by and self.periodic[axis]:
                n = Integer((("n", axis, 1),), 0)
                i = Integer((("i", axis, 1),), by)
                out, turn = (Condition("<", i, Value(0)), 1) if by < 0 else (Condition(">=", i, n), -1)
                ways += [(out if c is None else Condition("&", c, out), {**t, axis: turn}) for c, t in list(ways)]
        return ways

    def _wrapped(self, whole: Integer, make: Callable[[Integer], Expr]) -> Expr:
        ways = self._turns(whole)
        value: Expr = make(self._moved(whole, {}))
        for condition, turns in ways[1:]:  # later ones turn around more axes
            assert condition is not None
            value = Where(condition, make(self._moved(whole, turns)), value)
        return value

    def _condition(self, n: Condition, args: list[Expr]) -> Condition:
        sides = n.arguments
        wholes = [c for c in sides if isinstance(c, Integer)]
        if not wholes or not all(isinstance(c, (Integer, Value)) for c in sides):
            return Condition(n.op, *args)
        difference = Integer((), 0)
        for c in wholes:  # the terms of all sides, to find the axes
            difference = Integer((*difference.terms, *c.terms), 0)
        axes = {(s, a): f for s, a, f in difference.terms}
        ways = self._turns(Integer(tuple((s, a, f) for (s, a), f in axes.items()), 0))

        def at(turns: dict[int, int]) -> Condition:
            return Condition(n.op, *(self._moved(c, turns) if isinstance(c, Integer) else c for c in sides))

        value = at({})
        for condition, turns in ways[1:]:
            assert condition is not None
            value = Condition(
                "|", Condition("&", condition, at(turns)), Condition("&", Condition("~", condition), value)
            )
        return value
