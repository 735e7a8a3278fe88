"""The trees that the compiler works on: interned, and simplified as they are made.

A node is a value at every point of a brick. All grids have three axes here; missing ones come first and have one point.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .functions import FUNCTIONS, value_of

__all__ = ["Builder", "Node", "Program", "Store"]


@dataclass(frozen=True, eq=False)
class Node:
    """An operation, its arguments, and what else it depends on.

    ============  ==========================================================================================
    op            data
    ============  ==========================================================================================
    number        (value,)
    constant      (name,)
    read          (grid, stride, offsets): the grid at stride * point + offset
    at            (rows, lanes): the argument at another row and place of the same plane
    sum           (): arguments are coefficient, value, coefficient, value, ...; coefficients are the same at all points
    index         (terms, add, parity, stride): an integer as a number; the index along an axis is stride * point + parity
    remainder     (terms, add, parity, stride, by)
    test          (terms, add, parity, stride, op): the comparison of such an integer with zero
    true, false   ()
    others        (): * / abs sqrt exp log sin cos min max where, < <= > >= == !=, & | ~
    ============  ==========================================================================================
    """

    op: str
    args: tuple[Node, ...]
    data: tuple[Any, ...]
    uniform: bool
    real: bool  # also where grids and constants are complex

    @property
    def terms(self) -> list[tuple[Node, Node]]:
        """Coefficients and values of a sum."""
        return list(zip(self.args[::2], self.args[1::2], strict=True))


@dataclass(frozen=True)
class Store:
    """A value that goes to ``grid`` at stride * point + parity, or into the reduction number ``slot``."""

    grid: str
    slot: int
    stride: int
    parity: tuple[int, int, int]
    value: Node
    text: str


@dataclass(frozen=True)
class Program:
    """What a kernel does at each point of the iteration space."""

    stores: tuple[Store, ...]
    axes: int


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


_CONDITIONS = frozenset([*_COMPARE, "&", "|", "~"])


def _is_real(op: str, args: tuple[Node, ...], data: tuple[Any, ...]) -> bool:
    if op == "number":
        return not isinstance(data[0], complex)
    if op in ("constant", "read"):
        return False
    return op == "abs" or op in _CONDITIONS or all(a.real for a in args[op == "where" :])


class Builder:
    """Makes nodes for kernels of one dtype: equal ones once, constants folded."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.largest = sys.float_info.max if dtype in ("float64", "complex128") else 3.4028234663852886e38
        self._known: dict[tuple[Any, ...], Node] = {}
        self.kept: set[Node] = set()  # sums that several others use: not taken apart
        self.bases: set[Node] = set()  # sums that are used at several places of a plane

    def node(self, op: str, *args: Node, data: tuple[Any, ...] = ()) -> Node:
        """Return the node as it stands."""
        key = (op, data, *(id(a) for a in args))
        if key not in self._known:
            uniform = op in ("number", "constant") or (bool(args) and all(a.uniform for a in args))
            uniform = uniform and op not in _CONDITIONS  # which are vectors in every kernel
            self._known[key] = Node(op, args, data, uniform, _is_real(op, args, data))
        return self._known[key]

    def number(self, value: complex) -> Node:
        """Return a number: a float if it is real."""
        return self.node(
            "number", data=(value if isinstance(value, complex) and value.imag != 0 else float(value.real),)
        )

    def holds(self, value: complex) -> bool:
        """Tell whether the dtype has such a number."""
        return max(abs(value.real), abs(value.imag)) <= self.largest

    def truth(self, value: bool) -> Node:
        """Return a condition that always or never holds."""
        return self.node("true" if value else "false")

    def terms(self, node: Node) -> list[tuple[Node, Node]]:
        """Return a node as a sum."""
        return node.terms if node.op == "sum" and node not in self.kept else [(self.number(1), node)]

    def sum(self, terms: list[tuple[Node, Node]]) -> Node:
        """Return the sum of coefficients times values; equal values come together, and what is the same at all points."""
        zero, one = self.number(0), self.number(1)
        out: dict[Node, Node] = {}
        same = zero
        for c, v in terms:
            if v.uniform:
                same = self.add(same, self.multiply(c, v))
            else:
                out[v] = self.add(out[v], c) if v in out else c
        if same is not zero:
            out[same] = one
        left = [(c, v) for v, c in out.items() if c is not zero]
        if not left:
            return zero
        if len(left) == 1 and left[0][0] is one:
            return left[0][1]
        return self.node("sum", *(n for pair in left for n in pair))

    def add(self, a: Node, b: Node) -> Node:
        """Return a + b."""
        if a.uniform and b.uniform:
            return self._scalar("+", a, b, lambda x, y: x + y, 0.0)
        return self.sum([*self.terms(a), *self.terms(b)])

    def multiply(self, a: Node, b: Node) -> Node:
        """Return a * b."""
        if a.uniform and b.uniform:
            return self._scalar("*", a, b, lambda x, y: x * y, 1.0)
        if b.uniform:
            a, b = b, a
        if a.uniform:
            return self.sum([(self.multiply(a, c), v) for c, v in self.terms(b)])
        return self.node("*", a, b)

    def divide(self, a: Node, b: Node) -> Node:
        """Return a / b; by what is the same at all points, a multiplication, unless its inverse is beyond the largest number."""
        if b.op == "number" and b.data[0] != 0:
            if a.op == "number":
                return self.number(a.data[0] / b.data[0])
            if self.holds(1 / b.data[0]):
                return self.multiply(self.number(1 / b.data[0]), a)
        elif b.uniform and b.op != "number":
            return self.multiply(self.node("/", self.number(1), b), a)
        return self.node("/", a, b)

    def _scalar(self, op: str, a: Node, b: Node, f: Callable[[Any, Any], complex], neutral: float) -> Node:
        if a.op == "number" and b.op == "number":
            return self.number(f(a.data[0], b.data[0]))
        if self.number(neutral) in (a, b):
            return b if a is self.number(neutral) else a
        return self.node(op, *sorted((a, b), key=lambda n: n.op != "number"))

    def function(self, op: str, *args: Node) -> Node:
        """Return abs, min, max, or one of the functions of one number."""
        if all(a.op == "number" for a in args):
            values = [a.data[0] for a in args]
            if op in FUNCTIONS:
                known = value_of(op, values[0])
                return self.node(op, *args) if known is None else self.number(known)
            if op == "abs":
                return self.number(math.hypot(values[0].real, values[0].imag))
            return self.number(next((v for v in values if v != v), min(values) if op == "min" else max(values)))
        return self.node(op, *args)

    def integer(
        self,
        op: str,
        terms: tuple[tuple[str, int, int], ...],
        add: int,
        parity: tuple[int, int, int],
        stride: int,
        last: Any,
    ) -> Node:
        """Return an index, remainder or test; without terms it is a constant."""
        if op == "remainder" and all(s == "i" and f * stride % last == 0 for s, _, f in terms):
            return self.number((add + sum(f * parity[a] for _, a, f in terms)) % last)
        if not terms:
            return self.truth(_COMPARE[last](add, 0)) if op == "test" else self.number(add)
        return self.node(op, data=(terms, add, parity, stride, *(() if last is None else (last,))))

    def compare(self, op: str, a: Node, b: Node) -> Node:
        """Return a comparison of numbers."""
        if a.op == "number" and b.op == "number":
            return self.truth(_COMPARE[op](a.data[0], b.data[0]))
        return self.node(op, a, b)

    def logic(self, op: str, *args: Node) -> Node:
        """Return &, | or ~ of conditions."""
        true, false = self.truth(True), self.truth(False)
        if op == "~":
            return false if args[0] is true else true if args[0] is false else self.node("~", *args)
        ends, neutral = (false, true) if op == "&" else (true, false)
        if ends in args:
            return ends
        left = [a for a in dict.fromkeys(args) if a is not neutral]
        return self.node(op, *left) if len(left) > 1 else left[0] if left else neutral

    def where(self, condition: Node, a: Node, b: Node) -> Node:
        """Return one of two values."""
        if condition.op in ("true", "false") or a is b:
            return a if condition.op != "false" else b
        return self.node("where", condition, a, b)

    def remade(self, node: Node, args: list[Node]) -> Node:
        """Return the node with other arguments, simplified again."""
        op = node.op
        if not args:
            return node
        if op == "sum":
            pairs = zip(args[::2], args[1::2], strict=True)
            return self.sum([(self.multiply(c, inner), w) for c, v in pairs for inner, w in self.terms(v)])
        simple: dict[str, Callable[..., Node]] = {
            "*": self.multiply,
            "/": self.divide,
            "+": self.add,
            "where": self.where,
        }
        if op in simple:
            return simple[op](*args)
        if op in _COMPARE:
            return self.compare(op, *args)
        if op in ("&", "|", "~"):
            return self.logic(op, *args)
        if op in ("abs", "min", "max", *FUNCTIONS):
            return self.function(op, *args)
        return self.node(op, *args, data=node.data)


def postorder(*roots: Node) -> list[Node]:
    """Return every node once, arguments first."""
    out: dict[Node, None] = {}
    stack = [(r, False) for r in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            out[node] = None
        elif node not in out:
            stack.append((node, True))
            stack += [(a, False) for a in reversed(node.args)]
    return list(out)
