"""From the user's statements to what a kernel does at each point of its iteration space.

Input: statements and their facts. Output: a `Program`. Stencils that read a coarse grid become statements over its points, one for each of
the 2^d fine points of a coarse one. Constants are folded; sums with constant coefficients are taken together.
"""

from __future__ import annotations

import cmath
import itertools
from collections import Counter
from collections.abc import Sequence

from ...errors import InputError
from ..language.checks import Facts
from ..language.expressions import (
    LARGEST,
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
from ..language.statements import Assignment, Statement
from .nodes import Builder, Node, Program, Store, postorder

__all__ = ["lower"]


def lower(statements: Sequence[Statement], facts: Facts, builder: Builder) -> Program:
    """Return the program."""
    missing = 3 - facts.dimensions
    fine = facts.space == "fine"
    parities = [(0, 0, 0)]
    if fine:
        choices = [(0,) if axis < missing else (0, 1) for axis in range(3)]
        parities = list(itertools.product(choices[0], choices[1], choices[2]))
    uses = Counter(id(c) for s in statements for n in walk(s.value) for c in n.children())
    stores: list[Store] = []
    fresh: dict[tuple[str, tuple[int, ...]], Node] = {}
    slot = 0
    for s in statements:
        name = s.target.grid.name if isinstance(s, Assignment) else ""
        text = f"{name} = ..." if name else f"{s.op} of {s.name}"  # type: ignore[union-attr]
        values = [_Lowering(facts, builder, parity, uses, fresh).lower(s.value) for parity in parities]
        for parity, value in zip(parities, values, strict=True):
            if name:
                fresh[name, parity] = value
                if value.op == "sum" and len(value.terms) > 2:
                    builder.kept.add(value)
            stores.append(Store(name, -1 if name else slot, 2 if fine else 1, parity, value, text))
        slot += not name
    _check_numbers(statements, [s.value for s in stores], builder)
    return Program(tuple(stores), facts.dimensions)


def _check_numbers(statements: Sequence[Statement], values: Sequence[Node], b: Builder) -> None:
    """Refuse numbers that are too large because several came together; one that the user has written may be infinite."""
    written = {n.value for s in statements for n in walk(s.value) if isinstance(n, Value)}
    if not all(cmath.isfinite(w) for w in written):
        return
    for n in postorder(*values):
        if n.op == "number" and n.data[0] not in written and not b.holds(n.data[0]):
            raise InputError(
                f"numbers of the stencil come together to {n.data[0]:.3g}, and the largest of {b.dtype} is {b.largest:.2g}: they are "
                "multiplied, divided and added before a grid's values. Scale the numbers, or the grid."
            )


class _Lowering:
    """One statement at one parity."""

    def __init__(
        self,
        facts: Facts,
        builder: Builder,
        parity: tuple[int, int, int],
        uses: Counter[int],
        fresh: dict[tuple[str, tuple[int, ...]], Node],
    ) -> None:
        self.facts, self.b, self.parity, self.uses, self.fresh = facts, builder, parity, uses, fresh
        self.missing = 3 - facts.dimensions
        self.stride = 2 if facts.space == "fine" else 1

    def lower(self, value: Expr) -> Node:
        found: dict[int, Node] = {}
        for n in walk(value):
            node = found[id(n)] = self.one(n, [found[id(c)] for c in n.children()])
            if self.uses[id(n)] > 1 and node.op == "sum" and len(node.terms) > 2:
                self.b.kept.add(node)
        return found[id(value)]

    def one(self, n: Expr, args: list[Node]) -> Node:
        b = self.b
        if isinstance(n, Value):
            return b.number(n.value)
        if isinstance(n, Constant):
            return b.node("constant", data=(n.name,))
        if isinstance(n, Ref):
            return self.read(n)
        if isinstance(n, Integer):
            return self.integer("index", n, None)
        if isinstance(n, Remainder):
            return self.integer("remainder", n.of, n.by)
        if isinstance(n, Where):
            return b.where(*args)
        if isinstance(n, Condition):
            return self.condition(n, args)
        assert isinstance(n, Operation)
        if n.op in "+-":
            return b.add(args[0], args[1] if n.op == "+" else b.multiply(b.number(-1), args[1]))
        if n.op == "neg":
            return b.multiply(b.number(-1), args[0])
        if n.op == "*":
            return b.multiply(*args)
        return b.divide(*args) if n.op == "/" else b.function(n.op, *args)

    def read(self, n: Ref) -> Node:
        name, offsets = n.grid.name, (0,) * self.missing + n.offsets
        if not any(offsets) and (name, self.parity) in self.fresh:
            return self.fresh[name, self.parity]
        if self.facts.space == "fine" and n.divide == 2:
            place = tuple((p + o) // 2 for p, o in zip(self.parity, offsets, strict=True))
            return self.b.node("read", data=(name, 1, place))
        if self.facts.space == "fine":
            place = tuple(p + o for p, o in zip(self.parity, offsets, strict=True))
            return self.b.node("read", data=(name, 2, place))
        return self.b.node("read", data=(name, n.scale, offsets))

    def integer(self, op: str, n: Integer, last: int | str | None, sign: int = 1) -> Node:
        terms = tuple((s, a + self.missing, sign * f) for s, a, f in n.terms)
        return self.b.integer(op, terms, sign * n.add, self.parity, self.stride, last)

    def condition(self, n: Condition, args: list[Node]) -> Node:
        if n.op in "&|~":
            return self.b.logic(n.op, *args)
        left, right = n.arguments
        if isinstance(left, (Integer, Value)) and isinstance(right, (Integer, Value)):
            whole = _difference(left, right)
            if whole is not None:
                return self.integer("test", whole, n.op)
        return self.b.compare(n.op, *args)


def _difference(left: Integer | Value, right: Integer | Value) -> Integer | None:
    """Return left - right if both are integers."""
    sides = []
    for side in (left, right):
        if isinstance(side, Value):
            if isinstance(side.value, complex) or not abs(side.value) <= LARGEST or side.value != int(side.value):
                return None
            side = Integer((), int(side.value))
        sides.append(side)
    out = sides[0] - sides[1]
    assert isinstance(out, Integer)
    return out
