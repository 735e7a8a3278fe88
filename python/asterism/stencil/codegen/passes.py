"""Changes of a program that keep its meaning, and choices by cost.

Input and output: a `Program`, and a `Plan` of how its vectors are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .nodes import Builder, Node, Program, postorder

__all__ = ["Plan", "depends_on_place", "far_from_ends", "interior", "known_far_from_ends", "plan", "reuse"]

Margins = tuple[tuple[int, int], ...]
Place = TypeVar("Place")


def _remade(nodes: Sequence[Node], b: Builder, change: Callable[[Node, list[Node]], Node]) -> list[Node]:
    """Return the nodes with `change` at every node that they are made of; arguments first."""
    new: dict[Node, Node] = {}
    for n in postorder(*nodes):
        new[n] = change(n, [new[a] for a in n.args])
        if n in b.kept and new[n].op == "sum":
            b.kept.add(new[n])
    return [new[n] for n in nodes]


def _with_values(program: Program, values: Sequence[Node]) -> Program:
    """Return the program with other values of its stores."""
    return replace(program, stores=tuple(replace(s, value=v) for s, v in zip(program.stores, values, strict=True)))


def depends_on_place(program: Program) -> bool:
    """Tell whether bricks at a boundary need another kernel than those inside: for conditions on indices."""
    return any(n.op == "test" for n in postorder(*(s.value for s in program.stores)))


def interior(program: Program, b: Builder) -> tuple[Program, Margins]:
    """Return the program for points that are further from the ends than the margins: conditions on indices become constants."""
    values, margins = far_from_ends([s.value for s in program.stores], b)
    return _with_values(program, values), margins


def far_from_ends(nodes: Sequence[Node], b: Builder) -> tuple[list[Node], Margins]:
    """Return what values are at points that are further from the ends than the margins, and the margins."""
    margins = [[0, 0] for _ in range(3)]

    def change(n: Node, args: list[Node]) -> Node:
        if n.op == "test":
            known = known_far_from_ends(n)
            if known is not None:
                axis, low, high, holds = known
                margins[axis] = [max(margins[axis][0], low), max(margins[axis][1], high)]
                return b.truth(holds)
        return b.remade(n, args)

    return _remade(nodes, b, change), tuple((low, high) for low, high in margins)


def known_far_from_ends(test: Node) -> tuple[int, int, int, bool] | None:
    """Return axis, margins at both ends, and whether a test of one index holds within them; None for other tests."""
    terms, add, op = test.data[0], test.data[1], test.data[4]
    by_symbol = {s: (a, f) for s, a, f in terms}
    if len(by_symbol) != len(terms) or abs(by_symbol.get("i", (0, 0))[1]) != 1:
        return None
    axis, sign = by_symbol["i"]
    if sign < 0:
        add, op = -add, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    if "n" not in by_symbol:  # i op -add: what holds for large i
        low = -add + (op in ("<=", ">", "==", "!="))
        return axis, max(0, low), 0, op in (">", ">=", "!=")
    if by_symbol["n"] != (axis, -sign):
        return None
    high = add - (op in ("<=", ">"))  # i op n - add: what holds for small i
    return axis, 0, max(0, high), op in ("<", "<=", "!=")


def reuse(program: Program, b: Builder) -> Program:
    """Array common subexpressions: planes and columns of a sum that have the same coefficients are added once, then weighted.

    A 125-point stencil with symmetric coefficients weights 45 sums instead of 125 values.
    """

    def change(n: Node, args: list[Node]) -> Node:
        n = b.remade(n, args)
        return _reuse_in(n, b) if n.op == "sum" else n

    return _with_values(program, _remade([s.value for s in program.stores], b, change))


def _reuse_in(node: Node, b: Builder) -> Node:
    reads: dict[str, dict[tuple[int, int, int], Node]] = {}
    terms: list[tuple[Node, Node]] = []
    for c, v in node.terms:
        if v.op == "read" and v.data[1] == 1:
            reads.setdefault(v.data[0], {})[v.data[2]] = c
        else:
            terms.append((c, v))
    for grid, weights in reads.items():
        terms += _weighted(grid, weights, b)
    out = b.node("sum", *(n for pair in terms for n in pair))
    if node in b.kept:
        b.kept.add(out)
    return out


def _alike(parts: dict[int, dict[Place, Node]]) -> list[tuple[tuple[int, ...], dict[Place, Node]]]:
    """Return the parts with the numbers that have them; one for equal parts of several weights."""
    out: list[tuple[tuple[int, ...], dict[Place, Node]]] = []
    for number, part in parts.items():
        same = next((n for n, (_, other) in enumerate(out) if other == part and len(part) > 1), None)
        if same is None:
            out.append(((number,), part))
        else:
            out[same] = ((*out[same][0], number), part)
    return out


def _weighted(grid: str, weights: dict[tuple[int, int, int], Node], b: Builder) -> list[tuple[Node, Node]]:
    one = b.number(1)

    def read(o: tuple[int, int, int]) -> Node:
        return b.node("read", data=(grid, 1, o))

    planes: dict[int, dict[tuple[int, int], Node]] = {}
    for (p, r, k), c in weights.items():
        planes.setdefault(p, {})[r, k] = c
    out: list[tuple[Node, Node]] = []
    for those, pattern in _alike(planes):
        columns: dict[int, dict[int, Node]] = {}
        for (r, k), c in pattern.items():
            columns.setdefault(k, {})[r] = c
        for lanes, column in _alike(columns):
            if len(those) == 1 and len(lanes) == 1:
                out += [(c, read((min(those), r, min(lanes)))) for r, c in column.items()]
                continue
            base = read((min(those), 0, 0))
            if len(those) > 1:
                base = b.node("sum", *(n for p in those for n in (one, read((p, 0, 0)))))
            shifted = [base if k == 0 else b.node("at", base, data=(0, k)) for k in lanes]
            if len(lanes) > 1:
                base = b.node("sum", *(n for s in shifted for n in (one, s)))
            else:
                base = shifted[0]
            b.bases |= {n for n in (base, *shifted) if n.op == "sum"}
            out += [(c, base if r == 0 else b.node("at", base, data=(r, 0))) for r, c in column.items()]
    return out


@dataclass(frozen=True)
class Plan:
    """How vectors are computed.

    ``vector`` values lie in a vector, along the last axis; ``rows`` rows of a plane are computed together, each with all its vectors.
    With ``scatter`` a vector that was read is added into all sums that use it; else each sum gathers its vectors.
    """

    vector: int
    rows: int
    scatter: bool
    gather_cost: float
    scatter_cost: float


def fold(width: int, itemsize: int, last: int) -> int:
    """Return how many values a vector has: at most the registers' width, a power of two that divides the brick's last axis."""
    return max(1, math.gcd(width // itemsize, last))


def group(lanes: int, last: int) -> int:
    """Return how many lanes of a warp compute a row, or an equal part of it: as many as divide the brick's last axis."""
    return max(n for n in range(1, min(lanes, last) + 1) if last % n == 0)


def plan(program: Program, brick: tuple[int, int, int], vector: int, registers: int) -> Plan:
    """Choose blocks of rows, and gather or scatter form, by the vectors that must be read again.

    A sum of U terms over D different vectors, for S sums at once, costs U multiplications and additions in either form. Gathering reads
    U - D vectors again if all D do not fit into the registers; scattering reads and writes the sums again that do not fit, 2 U / S for each.
    Rows are taken together until half of the registers hold sums.
    """
    per_row = brick[2] // vector
    sums = [n for n in postorder(*(s.value for s in program.stores)) if n.op == "sum" and len(n.terms) > 2]
    rows = max(1, min(brick[1], registers // 2 // per_row))
    if any(n.op == "read" and n.data[1] == 2 for n in postorder(*(s.value for s in program.stores))) or any(
        s.stride == 2 for s in program.stores
    ):
        rows = min(rows, 2)
    gather = scatter = 0.0
    for n in sums:
        uses = [
            place(v, r, k) for r in range(rows) for k in range(0, brick[2], vector) for _, v in n.terms if not v.uniform
        ]
        outputs, different = rows * per_row, len(set(uses))
        free = registers - 4
        gather += len(uses) + (len(uses) - different if different > free else 0)
        scatter += len(uses) + 2 * len(uses) / outputs * max(0, outputs - free // 2)
    return Plan(vector, rows, scatter < gather, gather, scatter)


def place(node: Node, row: int, lane: int) -> tuple[object, int, int]:
    """Return the array, row and lane that a node reads at a row and lane: equal for equal vectors."""
    if node.op == "at":
        return place(node.args[0], row + node.data[0], lane + node.data[1])
    if node.op == "read" and node.data[1] == 1:
        grid, _, (p, r, k) = node.data
        return (grid, p), row + r, lane + k
    return node, row, lane
