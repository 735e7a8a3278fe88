"""The values of a plane of a brick as vectors: what the emitters of C++ and of GPU text share.

Input: a program and a plan. Output: lines for the rows of a plane, which are unrolled, so that neighbours are known rows of known bricks, and
vectors are shared between rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from ..language.checks import Facts
from .functions import NAMES
from .nodes import Builder, Node, Program, Store
from .passes import Margins, Plan, place
from .prelude import Shape

__all__ = ["NEUTRAL", "Body", "Names", "brick_inside", "remainder_of", "step", "totals"]

#: What reductions begin with.
NEUTRAL = {"sum": "0.0", "max": "-__builtin_inf()", "min": "__builtin_inf()"}


def tag(number: int) -> str:
    """Return a number as a part of a name."""
    return str(number) if number >= 0 else f"m{-number}"


class Names:
    """What the user's names and the numbers of a stencil are called in the text.

    The user's names have no _ at their ends. A constant gets one, and names that are made of a grid's have two after it. So they are no
    words of C++ or of the kernel, and none of them is another's.
    """

    functions, arguments = {"abs": "__builtin_fabs", "sqrt": "__builtin_sqrt"} | NAMES, "a->"

    def __init__(self, facts: Facts, shape: Shape) -> None:
        self.constants = [name for name, _ in facts.constants]
        self.real = "T"
        if shape.complex:
            self.functions, self.real = Body.functions, "R"
        self.weights: dict[Node, str] = {}
        self.lines: list[str] = []

    def scalar(self, n: Node) -> str:
        """Return the name of a value that is the same at all points."""
        if n not in self.weights:
            if n.op == "constant":
                name, text = n.data[0] + "_", f"{self.arguments}constants[{self.constants.index(n.data[0])}]"
            else:
                text = self._text(n)  # whose arguments take names first
                name = f"w{sum(w[0] == 'w' and w[1:].isdigit() for w in self.weights.values())}"
            self.weights[n] = name
            self.lines.append(f"{self.real if n.real else 'T'} const {name} = {text};")
        return self.weights[n]

    def _text(self, n: Node) -> str:
        if n.op == "number":
            return literal(n.data[0])
        args = [self.scalar(c) for c in n.args]
        if n.op in ("+", "*", "/"):
            return f"{args[0]} {n.op} {args[1]}"
        if n.op == "sum":
            return " + ".join(f"{args[m]} * {args[m + 1]}" for m in range(0, len(args), 2))
        if n.op in ("min", "max"):
            return (
                f"{args[0]} {'<' if n.op == 'min' else '>'} {args[1]} || {args[0]} != {args[0]} ? {args[0]} : {args[1]}"
            )
        return f"{self.functions[n.op]}({args[0]})"


def literal(value: complex) -> str:
    """Return a number as C++ reads it exactly."""
    if isinstance(value, complex):
        return f"T({literal(value.real)}, {literal(value.imag)})"
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": '__builtin_nan("")', "inf": "__builtin_inf()", "-inf": "-__builtin_inf()"}[repr(value)]
    return repr(value)


_CONDITIONS = ("test", "true", "false", "&", "|", "~", "<", "<=", ">", ">=", "==", "!=")


class Body(ABC):
    """The rows of one plane of a brick, as vectors. How a text spells what is done with vectors, its own class tells."""

    number, real, condition = "V", "V", "I"  # types of vectors
    complex_number, complex_real = "C", "V"
    both, either = " & ", " | "  # of conditions

    def __init__(
        self, facts: Facts, shape: Shape, plan: Plan, builder: Builder, names: Names, program: Program, masked: bool
    ) -> None:
        self.facts, self.shape, self.plan, self.b = facts, shape, plan, builder
        self.names, self.program, self.masked = names, program, masked
        self.planes: dict[tuple[str, int, int, int, int], str] = {}  # pointers that the planes need
        self.rows_after: dict[str, int] = {}  # of the next brick along the second axis, which are read
        self.lines: list[str] = []
        self.block: list[str] = []
        self.known: dict[tuple[object, ...], str] = {}
        self.count = 0
        if shape.complex:
            self.number, self.real = self.complex_number, self.complex_real
            self.functions = Body.functions

    def kind(self, n: Node) -> str:
        """Return the type of a value at many points."""
        return self.condition if n.op in _CONDITIONS else self.real if n.real else self.number

    # -- where values are

    def plane(self, grid: str, stride: int, offset: int, c1: int, c2: int) -> str:
        """Return the pointer to a plane of a brick."""
        key = (grid, stride, offset, c1, c2)
        if key not in self.planes:
            self.planes[key] = f"{grid}__{tag(offset)}" + (f"_{tag(c1)}_{tag(c2)}" if c1 or c2 else "")
        return self.planes[key]

    def halves(self, s: Store, row: int, lane: int) -> Iterator[tuple[str, str, int, int, int]]:
        """Yield where the two vectors of points of both parities go: low or high, the plane, the place in it, the row, the first lane."""
        V, (_, rows, lanes) = self.plan.vector, self.shape.brick
        at_row = 2 * row + s.parity[1] if self.shape.missing < 2 else 0
        for half, start in (("low", 2 * lane), ("high", 2 * lane + V)):
            target = self.plane(s.grid, 2, s.parity[0], at_row // rows, start // lanes)
            yield half, target, at_row % rows * lanes + start % lanes, at_row, start

    def load(self, grid: str, stride: int, offset: int, row: int, lane: int) -> str:
        """Return the vector that begins at a row and lane of the plane at stride * i + offset."""
        V, (_, rows, lanes) = self.plan.vector, self.shape.brick
        key = ("load", grid, stride, offset, row, lane)
        if key not in self.known:
            name = f"{grid}__{tag(offset)}_r{tag(row)}_k{tag(lane)}"
            if stride == 1:
                self.rows_after[grid] = max(self.rows_after.get(grid, 0), row - rows + 1)
            first = lane // lanes
            if self.whole(lane):
                at = self.plane(grid, stride, offset, row // rows, first)
                text = self.loaded(at, row % rows * lanes + lane % lanes)
            else:
                low = lane // V * V
                left, right = (self.load(grid, stride, offset, row, m) for m in (low, low + V))
                text = self.shifted(lane - low, left, right)
            self.define(key, name, text)
        return self.known[key]

    def define(self, key: tuple[object, ...], name: str, text: str) -> None:
        """Add a vector to the block."""
        self.block.append(f"{self.number} const {name} = {text};")
        self.known[key] = name

    def fresh(self, key: tuple[object, ...], text: str, kind: str) -> str:
        """Add a vector without a name of its own."""
        name = f"v{self.count}"
        self.count += 1
        self.block.append(f"{kind} const {name} = {text};")
        self.known[key] = name
        return name

    # -- values

    def vector(self, n: Node, row: int, lane: int) -> str:
        """Return the name of a value at a row, for the lanes from `lane` on."""
        V = self.plan.vector
        if n.uniform:
            return self.spread(self.names.scalar(n), n.real)
        if n.op == "at":
            return self.vector(n.args[0], row + n.data[0], lane + n.data[1])
        if n.op == "read":
            grid, stride, (p, r, k) = n.data
            if stride == 1:
                return self.load(grid, 1, p, row + r, lane + k)
            key = ("even", n, row, lane)
            if key not in self.known:
                at_row, first = (2 * row + r if self.shape.missing < 2 else 0), 2 * lane + k
                pair = [self.load(grid, 2, p, at_row, m) for m in (first, first + V)]
                self.fresh(key, f"even({', '.join(pair)})", self.number)
            return self.known[key]
        at = (n, row, lane)
        if at in self.known:
            return self.known[at]
        if lane % V:
            low = lane // V * V
            pair = [self.vector(n, row, m) for m in (low, low + V)]
            return self.fresh(at, self.shifted(lane - low, *pair), self.kind(n))
        if n.op == "sum":
            return self.fresh(at, self.gathered(n, row, lane), self.kind(n))
        return self.fresh(at, self.operation(n, row, lane), self.kind(n))

    def gathered(self, n: Node, row: int, lane: int) -> str:
        """Return the text of a sum. Values with the same coefficient are added first: short chains of operations run side by side."""
        alike: dict[Node, list[str]] = {}
        for c, v in n.terms:
            alike.setdefault(c, []).append(self.vector(v, row, lane))
        text = ""
        for c, vectors in alike.items():
            if c.op == "number" and c.data[0] in (1, -1):
                for vector in vectors:
                    text = self.plus(text, c, vector)
            else:
                text = self.plus(text, c, vectors[0] if len(vectors) == 1 else f"({' + '.join(vectors)})")
        return text

    def plus(self, text: str, c: Node, vector: str) -> str:
        """Return the text plus coefficient times vector."""
        value = c.data[0] if c.op == "number" else 0.0
        if value == 1:
            return f"{text} + {vector}" if text else vector
        if value == -1:
            return f"{text} - {vector}" if text else f"-{vector}"
        term = f"{self.names.scalar(c)} * {vector}"
        return f"{text} + {term}" if text else term

    def operation(self, n: Node, row: int, lane: int) -> str:
        """Return the text of any other operation."""
        if n.op in ("true", "false"):
            return self.truth(n.op == "true")
        if n.op in ("index", "remainder", "test"):
            if n.op == "remainder":
                return self.remainder(n, row, lane)
            whole = self.index(n.data, row, lane)
            return f"{whole} {n.data[4]} 0" if n.op == "test" else self.converted(whole)
        args = [self.vector(c, row, lane) for c in n.args]
        if n.op == "where":
            return self.choice(n, *args)
        if n.op == "~":
            return self.negated(args[0])
        if n.op in ("min", "max"):
            first = f"({args[0]} {'<' if n.op == 'min' else '>'} {args[1]}) | ({args[0]} != {args[0]})"
            return f"({first}) ? {args[0]} : {args[1]}"
        if n.op in self.functions:
            return f"{self.functions[n.op]}({args[0]})"
        if n.op in ("==", "!=") and self.shape.complex:
            parts = (f"({part}({args[0]}) {n.op} {part}({args[1]}))" for part in ("re", "im"))
            return (self.both if n.op == "==" else self.either).join(parts)
        return f" {n.op} ".join(args)

    def choice(self, n: Node, condition: str, a: str, b: str) -> str:
        """Return the text of a where at each lane."""
        if self.shape.complex and not n.real:
            return f"choose({condition}, {a}, {b})"
        return f"{condition} ? {a} : {b}"

    def index_terms(self, data: tuple[object, ...], inner: tuple[str, str, str]) -> list[str]:
        """Return the terms of an integer. ``inner`` is where a point lies in its brick."""
        terms, add, parity, stride = data[:4]
        out = [str(add)] if add else []
        for symbol, axis, f in terms:  # type: ignore[attr-defined]
            text, p = f"(o{axis} + {inner[axis]})", parity[axis]  # type: ignore[index]
            if symbol == "n":
                text = f"n{axis}"
            elif p or stride != 1:
                text = f"({stride} * {text} + {p})"
            out.append(text if f == 1 else f"{f} * {text}")
        return out or ["0"]

    def remainder(self, n: Node, row: int, lane: int) -> str:
        """Return the text of the remainder of an index."""
        return self.converted(remainder_of(self.index(n.data, row, lane), n.data[4]))

    @abstractmethod
    def index(self, data: tuple[object, ...], row: int, lane: int) -> str:
        """Return an integer, a sum of indices and extents, at each lane."""

    # -- statements

    def emit(self) -> None:
        """Write all blocks of rows."""
        rows, lanes, V = self.shape.brick[1], self.shape.brick[2], self.plan.vector
        for first in range(0, rows, self.plan.rows):
            block = range(first, min(rows, first + self.plan.rows))
            self.known.clear()
            self.block = []
            if self.plan.scatter:
                self.scatter(block)
            for row in block:
                for lane in range(0, lanes, V):
                    self.stores(row, lane)
            what = f"rows {block[0]} to {block[-1]}" if len(block) > 1 else f"row {block[0]}"
            self.lines += [f"{{  // {what}", *(f"  {line}" for line in self.ordered(self.block)), "}"]

    def scatter(self, block: range) -> None:
        """Compute all sums of a block by adding each vector into those that use it."""
        lanes, V = range(0, self.shape.brick[2], self.plan.vector), self.plan.vector
        for n in self.sums():
            uses: dict[tuple[object, int, int], tuple[Node, int, int, list[tuple[tuple[int, int], Node]]]] = {}
            for row in block:
                for lane in lanes:
                    for c, v in n.terms:
                        where = place(v, row, lane)
                        uses.setdefault(where, (v, row, lane, []))[3].append(((row, lane), c))
            begun: dict[tuple[int, int], str] = {}
            for _, (v, row, lane, sums) in sorted(uses.items(), key=lambda u: (u[0][1], u[0][2] // V)):
                vector = self.vector(v, row, lane)
                for at, c in sums:
                    if at not in begun:
                        begun[at] = f"s{self.count}"
                        self.count += 1
                        self.block.append(f"{self.kind(n)} {begun[at]} = {self.plus('', c, vector)};")
                    else:
                        self.block.append(self.plus(begun[at] + " = " + begun[at], c, vector) + ";")
            for (row, lane), name in begun.items():
                self.known[n, row, lane] = name

    def sums(self) -> list[Node]:
        """Return the sums that are worth it, those within others first."""
        out: dict[Node, None] = {}

        def visit(n: Node) -> None:
            if n.op == "at" or n in out or n.uniform:
                return
            for c in n.args:
                visit(c)
            if n.op == "sum" and n not in self.b.bases and len(n.terms) > 2:
                out[n] = None

        for s in self.program.stores:
            visit(s.value)
        return list(out)

    def stores(self, row: int, lane: int) -> None:
        """Write the values of one vector of points."""
        pairs: dict[tuple[str, int, int], list[str]] = {}
        for s in self.program.stores:
            value = self.vector(s.value, row, lane)
            if s.slot >= 0:
                self.reduce(s, value, row, lane)
            elif s.stride == 1:
                self.store(s, value, row, lane)
            else:
                pair = pairs.setdefault((s.grid, s.parity[0], s.parity[1]), [])
                pair.append(value)
                if len(pair) == 2:
                    self.store_pair(s, pair, row, lane)

    @abstractmethod
    def store(self, s: Store, value: str, row: int, lane: int) -> None:
        """Write a vector of points."""

    @abstractmethod
    def store_pair(self, s: Store, pair: list[str], row: int, lane: int) -> None:
        """Write points of both parities of the last axis."""

    @abstractmethod
    def reduce(self, s: Store, value: str, row: int, lane: int) -> None:
        """Take a vector into a reduction."""

    def neighbour(self, stride: int, c: tuple[int, int, int]) -> tuple[str, str]:
        """Return how many bricks are owned, and the id of the brick at a distance of `c` bricks."""
        missing, d, a = self.shape.missing, self.shape.dimensions, self.names.arguments
        if stride == 1:
            return f"{a}owned", step(f"{a}neighbours", "near", "id", c[missing:], d)
        inside = [min(1, max(0, o)) for o in c[missing:]]
        child = f"child[{sum(o << (d - 1 - axis) for axis, o in enumerate(inside))}]"
        rest = tuple(o - p for o, p in zip(c[missing:], inside, strict=True))
        return f"{a}fine_owned", step(f"{a}fine_neighbours", "", child, rest, d)

    def span(self, stride: int, offset: int) -> tuple[list[int], str]:
        """Return the bricks along the first axis that hold the planes at stride * i + offset, and the plane's number from the first on."""
        if self.shape.missing:
            return [0], "0"
        planes = self.shape.brick[0]
        first = offset // planes
        many = (stride * (planes - 1) + offset) // planes - first + 1
        shift = offset - first * planes
        return list(range(first, first + many)), ("i" if stride == 1 else f"{stride} * i") + (
            f" + {shift}" if shift else ""
        )

    # -- the spelling

    def ordered(self, block: list[str]) -> list[str]:
        """Return the lines of some rows in the order in which they are written."""
        return block

    functions = {"abs": "absolute", "sqrt": "root"} | NAMES

    @abstractmethod
    def whole(self, lane: int) -> bool:
        """Tell whether the vector that begins at a lane is read at once; else it is made of two."""

    @abstractmethod
    def loaded(self, plane: str, first: int) -> str:
        """Return the vector that begins at a point of a plane."""

    @abstractmethod
    def shifted(self, by: int, left: str, right: str) -> str:
        """Return the vector that begins so many lanes into the first of two."""

    @abstractmethod
    def spread(self, scalar: str, real: bool) -> str:
        """Return a vector of one number."""

    @abstractmethod
    def converted(self, whole: str) -> str:
        """Return integers as numbers."""

    @abstractmethod
    def truth(self, value: bool) -> str:
        """Return a condition that always or never holds."""

    @abstractmethod
    def negated(self, condition: str) -> str:
        """Return the other condition."""


def step(table: str, near: str, start: str, by: Sequence[int], d: int) -> str:
    """Return the id of the brick at some distance, by steps to neighbours."""
    text, by = start, list(by)
    while any(by):
        by_one = [max(-1, min(1, o)) for o in by]
        number = sum((o + 1) * 3 ** (d - 1 - a) for a, o in enumerate(by_one))
        text = f"{near}[{number}]" if near and text == start else f"{table}[{3**d}L * {text} + {number}]"
        by = [o - s for o, s in zip(by, by_one, strict=True)]
    return text


def remainder_of(whole: str, by: int) -> str:
    """Return the text of a remainder that is not negative."""
    return f"({whole} & {by - 1})" if by & (by - 1) == 0 else f"(({whole} % {by} + {by}) % {by})"


def totals(facts: Facts, shape: Shape) -> list[tuple[str, int, str]]:
    """Return the variables of the reductions, their places and operations. Of complex kernels each has two places, for both parts."""
    out: list[tuple[str, int, str]] = []
    for m, (_, op) in enumerate(facts.reductions):
        out.append((f"total{m}", 2 * m if shape.complex else m, op))
        if shape.complex and op == "sum":
            out.append((f"total{m}_im", 2 * m + 1, op))
    return out


def brick_inside(shape: Shape, stride: int, margins: Margins) -> tuple[list[str], list[str]]:
    """Return the conditions under which all points of a brick lie in the domain, and those under which they are far from its ends."""
    twice = "2 * " if stride == 2 else ""
    after = [f"{twice}(o{axis} + {shape.brick[axis]}) <= n{axis}" for axis in range(3)]
    far = [f"{twice}o{axis} >= {low}" for axis, (low, _) in enumerate(margins) if low]
    far += [f"{after[axis]} - {high}" for axis, (_, high) in enumerate(margins) if high]
    return after[shape.missing :], far
