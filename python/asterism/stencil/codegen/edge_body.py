"""Bricks at the ends of the domain, where a stencil has long alternatives such as one-sided differences.

Input: a program and a plan. Output: lines for the planes of a brick. The rows are a loop, which keeps the text short. A point far from the
ends computes what a brick inside computes; a condition on the indices of planes and rows is a branch; one on lanes is a choice of lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from .body import Body, tag
from .nodes import Node, Program, Store, postorder
from .passes import far_from_ends
from .vector_body import VectorBody, loops

__all__ = ["EdgeBody", "has_long_ends"]

_BRANCHES = frozenset(["test", "&", "|", "~"])


def has_long_ends(whole: Program, edge: Program) -> bool:
    """Tell whether points at the ends have much more to compute than those inside."""
    inside, ends = (sum(len(n.args) for n in postorder(*(s.value for s in p.stores))) for p in (whole, edge))
    return ends > 4 * inside


def _axes(condition: Node) -> frozenset[int] | None:
    """Return the axes whose indices a condition depends on; None if it depends on other things."""
    nodes = postorder(condition)
    if any(n.op not in _BRANCHES for n in nodes):
        return None
    return frozenset(axis for n in nodes if n.op == "test" for symbol, axis, _ in n.data[0] if symbol == "i")


def _is_one_number(n: Node) -> bool:
    """Tell whether a value is the same at all lanes: a number, or one that conditions on planes and rows choose."""
    if n.uniform or n.op != "where":
        return n.uniform
    axes = _axes(n.args[0])
    return axes is not None and 2 not in axes and all(_is_one_number(v) for v in n.args[1:])


class EdgeBody(VectorBody):
    """The planes of one brick; row j of a plane, and lanes that are written out."""

    def emit(self) -> None:
        """Write the loop over rows."""
        _, rows, lanes = self.shape.brick
        # how far the rows are that are read, by grid, plane and brick along the last axis
        self.tables: dict[tuple[str, int, int], set[int]] = {}
        self.several: set[tuple[str, int]] = set()  # planes that are read at other rows than the point's
        self.far: dict[tuple[int, int, int], str] = {}
        self.near: set[str] = set()  # conditions that were branched on already
        lines: list[str] = []
        for n in postorder(*(s.value for s in self.program.stores)):
            if n.op == "read" and n.data[2][1]:
                self.several.add((n.data[0], n.data[2][0]))
        for lane in range(0, lanes, self.plan.vector):
            self.known, self.block = {}, []
            self.stores(0, lane)
            lines += [f"if (o2 + {lane} < n2) {{", *(f"  {line}" for line in self.block), "}"]
        self.lines += self.far_lines(0)
        for (grid, p, c2), distances in self.tables.items():
            low, high = min(distances), max(distances)
            name = self.rows_name(grid, p, c2)
            at = ", ".join(
                f"{self.plane(grid, 1, p, r // rows, c2)} + {r % rows * lanes}" for r in range(low, rows + high)
            )
            self.lines += [
                f"T const* const {name}_all[] = {{{at}}};",
                f"T const* const* const {name} = {name}_all + {-low};",
            ]
        within = f"i >= n0 - o0 ? 0 : n1 - o1 < {rows} ? n1 - o1 : {rows}"
        self.lines += [f"int const rows = {within};", "for (int j = 0; j < rows; ++j) {"]
        self.lines += [*(f"  {line}" for line in (*self.far_lines(1), *lines)), "}"]

    def between(self, fetches: list[tuple[str, int, int]], apart: int) -> list[str]:
        """Return fetches, then the lines of a plane, whose rows are a loop."""
        return [*loops(fetches, apart), *self.lines]

    # -- where values are

    def rows_name(self, grid: str, p: int, c2: int) -> str:
        """Return the name of the pointers to the rows of a plane."""
        return self.plane(grid, 1, p, 0, c2) + "_rows"

    def load(self, grid: str, stride: int, offset: int, row: int, lane: int) -> str:
        """Return the vector that begins at a lane of row j + `row`."""
        V, lanes = self.plan.vector, self.shape.brick[2]
        key = ("load", grid, stride, offset, row, lane)
        if key not in self.known:
            name = f"{grid}__{tag(offset)}_r{tag(row)}_k{tag(lane)}"
            self.rows_after[grid] = max(self.rows_after.get(grid, 0), row)
            c2 = lane // lanes
            if not self.whole(lane):
                low = lane // V * V
                left, right = (self.load(grid, stride, offset, row, m) for m in (low, low + V))
                text = self.shifted(lane - low, left, right)
            elif (grid, offset) in self.several:
                self.tables.setdefault((grid, offset, c2), {0}).add(row)
                at = "j" if row == 0 else f"j {'-' if row < 0 else '+'} {abs(row)}"
                text = self.loaded(f"{self.rows_name(grid, offset, c2)}[{at}]", lane % lanes)
            else:
                text = self.loaded(f"{self.plane(grid, 1, offset, 0, c2)} + j * {lanes}", lane % lanes)
            self.define(key, name, text)
        return self.known[key]

    def index(self, data: tuple[object, ...], row: int, lane: int) -> str:
        """Return a vector of integers."""
        return super().index(data, "j", lane)  # type: ignore[arg-type]

    def store(self, s: Store, value: str, row: int, lane: int) -> None:
        """Write a vector."""
        at = f"{s.grid}__out + j * {self.shape.brick[2]} + {lane}"
        self.block.append(f"if (streams) stream({at}, {value}); else store({at}, {value});")

    # -- choices

    def stores(self, row: int, lane: int) -> None:
        """Write the values of one vector of points; those far from the ends compute what points inside do."""
        for s in self.program.stores:
            if s.value.op != "where":
                self.known[s.value, row, lane] = self.far_or(s.value, row, lane, super().vector)
        super().stores(row, lane)

    def vector(self, n: Node, row: int, lane: int) -> str:
        """Return the name of a value."""
        if n.op == "where" and (n, row, lane) not in self.known:
            if _is_one_number(n):
                self.known[n, row, lane] = self.scalar_choice(n)
            else:
                self.known[n, row, lane] = self.far_or(n, row, lane, self.by_index)
        elif (
            n.op in _BRANCHES
            and (axes := _axes(n)) is not None
            and 2 not in axes
            and ("condition", n) not in self.known
        ):
            self.fresh(("condition", n), f"I{{}} - E({self.scalar_condition(n)})", self.condition)
        if ("condition", n) in self.known:
            return self.known["condition", n]
        return super().vector(n, row, lane)

    def far_or(self, n: Node, row: int, lane: int, near: Callable[[Node, int, int], str]) -> str:
        """Return the name of a value that is simpler far from the ends; without such an end, or near it, it is as `near` has it."""
        (inside,), margins = far_from_ends([n], self.b)
        conditions = [self.far_name(axis, lane, *margin) for axis, margin in enumerate(margins) if any(margin)]
        condition = " && ".join(conditions)
        if not conditions or condition in self.near:
            return near(n, row, lane)
        self.near.add(condition)
        name = self.branches(n, [(condition, lambda: self.vector(inside, row, lane)), ("", lambda: near(n, row, lane))])
        self.near.remove(condition)
        return name

    def ways(self, n: Node) -> tuple[frozenset[int] | None, list[tuple[Node, Node]], Node]:
        """Return the axes of a choice, the conditions on them with their values, and what remains."""
        axes, ways = _axes(n.args[0]), []
        while n.op == "where" and _axes(n.args[0]) == axes:
            ways.append((n.args[0], n.args[1]))
            n = n.args[2]
        return axes, ways, n

    def by_index(self, n: Node, row: int, lane: int) -> str:
        """Return the name of one of several values that conditions on the same axes choose."""
        axes, ways, last = self.ways(n)
        if axes is not None and 2 not in axes:
            texts: list[tuple[str, Callable[[], str]]] = [
                (self.scalar_condition(c), lambda v=v: self.vector(v, row, lane))  # type: ignore[misc]
                for c, v in ways
            ]
            return self.branches(n, [*texts, ("", lambda: self.vector(last, row, lane))])
        name = self.variable(n, f" = {self.vector(last, row, lane)}")
        known, block = self.known, self.block
        for c, v in reversed(ways):
            condition = self.vector(c, row, lane)
            self.known, self.block = dict(known), []
            value = self.vector(v, row, lane)
            lines = [*self.block, f"{name} = {self.choice(n, condition, value, name)};"]
            self.known, self.block = known, block
            if len(lines) > 1:
                lines = [f"if (any({condition})) {{", *(f"  {line}" for line in lines), "}"]
            block += lines
        return name

    def scalar_choice(self, n: Node) -> str:
        """Return one of several numbers that conditions on planes and rows choose."""
        if ("number", n) not in self.known:
            self.fresh(("number", n), self.scalar_text(n), self.names.real if n.real else "T")
        return self.spread(self.known["number", n], n.real)

    def scalar_text(self, n: Node) -> str:
        """Return the text of such a number."""
        if n.uniform:
            return self.names.scalar(n)
        a, b = (self.scalar_text(v) for v in n.args[1:])
        if self.shape.complex and not n.real:  # where one of them may be real
            a, b = f"T({a})", f"T({b})"
        return f"(({self.scalar_condition(n.args[0])}) ? {a} : {b})"

    def remainder(self, n: Node, row: int, lane: int) -> str:
        """Return the text of the remainder of an index; tables of lanes are for those that do not depend on the row."""
        if any(symbol == "i" and axis == 1 for symbol, axis, _ in n.data[0]):
            return Body.remainder(self, n, row, lane)
        return super().remainder(n, row, lane)

    def branches(self, like: Node, ways: list[tuple[str, Callable[[], str]]]) -> str:
        """Write branches that give one value, each with vectors of its own."""
        name, known, block = self.variable(like), self.known, self.block
        for m, (condition, value) in enumerate(ways):
            self.known, self.block = dict(known), []
            result = value()
            head = f"if ({condition}) {{" if condition else "{"
            block.append(("} else " if m else "") + head)
            block += [f"  {line}" for line in (*self.block, f"{name} = {result};")]
        block.append("}")
        self.known, self.block = known, block
        return name

    def variable(self, like: Node, text: str = "") -> str:
        """Add a vector that may change."""
        name = f"v{self.count}"
        self.count += 1
        self.block.append(f"{self.kind(like)} {name}{text};")
        return name

    def scalar_condition(self, n: Node) -> str:
        """Return the text of a condition on planes and rows."""
        if n.op == "test":
            return f"{' + '.join(self.index_terms(n.data, ('i', 'j', '0')))} {n.data[4]} 0"
        args = [f"({self.scalar_condition(a)})" for a in n.args]
        return f"!{args[0]}" if n.op == "~" else f" {n.op} ".join(args)

    def far_name(self, axis: int, lane: int, low: int, high: int) -> str:
        """Return the name of the condition that a vector is far from the ends of an axis."""
        if axis == 2:
            return f"({self.far_text(axis, low, high, lane)})"
        return self.far.setdefault((axis, low, high), f"far{axis}_{low}_{high}")

    def far_lines(self, axis: int) -> list[str]:
        """Return the conditions of an axis that have names."""
        return [f"bool const {name} = {self.far_text(*of)};" for of, name in self.far.items() if of[0] == axis]

    def far_text(self, axis: int, low: int, high: int, lane: int = 0) -> str:
        """Return the text of that condition."""
        at, points = (("i", 1), ("j", 1), (str(lane), self.plan.vector))[axis]
        out = [f"o{axis} + {at} >= {low}"] if low else []
        return " && ".join([*out, f"o{axis} + {at} + {points} <= n{axis} - {high}"])
