"""C++ text of a kernel, with the vectors of GCC and clang and no includes.

Input: programs for bricks inside and at the ends of the domain, and a plan. Output: text. A loop over bricks holds one over the planes of a
brick; the rows of a plane are unrolled, so that neighbours are known rows of known bricks, and vectors are shared between rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from .checks import Facts
from .nodes import Builder, Node, Program, Store
from .passes import Margins, Plan, place
from .prelude import Shape, prelude

__all__ = ["emit_cpp"]


def tag(number: int) -> str:
    """Return a number as a part of a name."""
    return str(number) if number >= 0 else f"m{-number}"


class Names:
    """What the user's names and the numbers of a stencil are called in the text.

    The user's names have no _ at their ends. A constant gets one, and names that are made of a grid's have two after it. So they are no
    words of C++ or of the kernel, and none of them is another's.
    """

    def __init__(self, facts: Facts) -> None:
        self.constants = [name for name, _ in facts.constants]
        self.weights: dict[Node, str] = {}
        self.lines: list[str] = []

    def scalar(self, n: Node) -> str:
        """Return the name of a value that is the same at all points."""
        if n not in self.weights:
            if n.op == "constant":
                name, text = n.data[0] + "_", f"a->constants[{self.constants.index(n.data[0])}]"
            else:
                text = self._text(n)  # whose arguments take names first
                name = f"w{sum(w[0] == 'w' and w[1:].isdigit() for w in self.weights.values())}"
            self.weights[n] = name
            self.lines.append(f"T const {name} = {text};")
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
        return f"__builtin_fabs({args[0]})" if n.op == "abs" else f"__builtin_sqrt({args[0]})"


def literal(value: float) -> str:
    """Return a number as C++ reads it exactly."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": '__builtin_nan("")', "inf": "__builtin_inf()", "-inf": "-__builtin_inf()"}[repr(value)]
    return repr(value)


class Body:
    """The planes of one brick."""

    def __init__(
        self, facts: Facts, shape: Shape, plan: Plan, builder: Builder, names: Names, program: Program, masked: bool
    ) -> None:
        self.facts, self.shape, self.plan, self.b = facts, shape, plan, builder
        self.names, self.program, self.masked = names, program, masked
        self.planes: dict[tuple[str, int, int, int, int], str] = {}  # pointers that the planes need
        self.lines: list[str] = []
        self.block: list[str] = []
        self.known: dict[tuple[object, ...], str] = {}
        self.count = 0

    # -- where values are

    def plane(self, grid: str, stride: int, offset: int, c1: int, c2: int) -> str:
        """Return the pointer to a plane of a brick."""
        key = (grid, stride, offset, c1, c2)
        if key not in self.planes:
            self.planes[key] = f"{grid}__{tag(offset)}" + (f"_{tag(c1)}_{tag(c2)}" if c1 or c2 else "")
        return self.planes[key]

    def load(self, grid: str, stride: int, offset: int, row: int, lane: int) -> str:
        """Return the vector that begins at a row and lane of the plane at stride * i + offset."""
        V, (_, rows, lanes) = self.plan.vector, self.shape.brick
        key = ("load", grid, stride, offset, row, lane)
        if key not in self.known:
            name = f"{grid}__{tag(offset)}_r{tag(row)}_k{tag(lane)}"
            first, last = lane // lanes, (lane + V - 1) // lanes
            if first == last:
                at = self.plane(grid, stride, offset, row // rows, first)
                text = f"load{'u' if lane % V else ''}({at} + {row % rows * lanes + lane % lanes})"
            else:
                low = lane // V * V
                left, right = (self.load(grid, stride, offset, row, m) for m in (low, low + V))
                text = f"shift{lane - low}({left}, {right})"
            self.define(key, name, text)
        return self.known[key]

    def define(self, key: tuple[object, ...], name: str, text: str) -> None:
        """Add a vector to the block."""
        self.block.append(f"V const {name} = {text};")
        self.known[key] = name

    def fresh(self, key: tuple[object, ...], text: str, kind: str = "V") -> str:
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
            return f"({self.names.scalar(n)} - zero)"
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
                self.fresh(key, f"even({', '.join(pair)})")
            return self.known[key]
        at = (n, row, lane)
        if at in self.known:
            return self.known[at]
        if lane % V:
            low = lane // V * V
            pair = [self.vector(n, row, m) for m in (low, low + V)]
            return self.fresh(at, f"shift{lane - low}({', '.join(pair)})")
        if n.op == "sum":
            return self.fresh(at, self.gathered(n, row, lane))
        kind = "I" if n.op in ("test", "true", "false", "&", "|", "~", "<", "<=", ">", ">=", "==", "!=") else "V"
        return self.fresh(at, self.operation(n, row, lane), kind)

    def gathered(self, n: Node, row: int, lane: int) -> str:
        """Return the text of a sum."""
        text = ""
        for c, v in n.terms:
            text = self.plus(text, c, self.vector(v, row, lane))
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
            return "~I{}" if n.op == "true" else "I{}"
        if n.op in ("index", "remainder", "test"):
            whole = self.index(n.data, row, lane)
            if n.op == "test":
                return f"{whole} {n.data[4]} 0"
            if n.op == "remainder":
                by = n.data[4]
                whole = f"({whole} & {by - 1})" if by & (by - 1) == 0 else f"(({whole} % {by} + {by}) % {by})"
            return f"__builtin_convertvector({whole}, V)"
        args = [self.vector(c, row, lane) for c in n.args]
        if n.op == "where":
            return f"{args[0]} ? {args[1]} : {args[2]}"
        if n.op == "~":
            return f"~{args[0]}"
        if n.op in ("min", "max"):
            return f"({args[0]} {'<' if n.op == 'min' else '>'} {args[1]}) | ({args[0]} != {args[0]}) ? {args[0]} : {args[1]}"
        if n.op in ("abs", "sqrt"):
            return f"{'absolute' if n.op == 'abs' else 'root'}({args[0]})"
        return f" {n.op} ".join(args)

    def index(self, data: tuple[object, ...], row: int, lane: int) -> str:
        """Return a vector of integers."""
        terms, add, parity, stride = data[:4]
        scalars, factor = [str(add)] if add else [], 0
        for symbol, axis, f in terms:  # type: ignore[attr-defined]
            if symbol == "n":
                scalars.append(f"{f} * n{axis}")
                continue
            inner = ("i", str(row), str(lane))[axis]
            p = parity[axis]  # type: ignore[index]
            scalars.append(
                f"{f} * ({stride} * (o{axis} + {inner}) + {p})" if p or stride != 1 else f"{f} * (o{axis} + {inner})"
            )
            factor += f * stride if axis == 2 else 0
        text = f"E({' + '.join(scalars) or 0})"
        return f"({factor} * lane + {text})" if factor else f"({text} + I{{}})"

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
            self.lines += [f"{{  // {what}", *(f"  {line}" for line in self.block), "}"]

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
                        self.block.append(f"V {begun[at]} = {self.plus('', c, vector)};")
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
                self.block.append(f"store({s.grid}__out + {row * self.shape.brick[2] + lane}, {value});")
            else:
                pair = pairs.setdefault((s.grid, s.parity[0], s.parity[1]), [])
                pair.append(value)
                if len(pair) == 2:
                    self.store_pair(s, pair, row, lane)

    def store_pair(self, s: Store, pair: list[str], row: int, lane: int) -> None:
        """Write points of both parities of the last axis."""
        V, (_, rows, lanes) = self.plan.vector, self.shape.brick
        at_row = 2 * row + s.parity[1] if self.shape.missing < 2 else 0
        for half, start in (("low", 2 * lane), ("high", 2 * lane + V)):
            target = self.plane(s.grid, 2, s.parity[0], at_row // rows, start // lanes)
            place_in = at_row % rows * lanes + start % lanes
            self.block.append(f"store((T*){target} + {place_in}, {half}({', '.join(pair)}));")

    def reduce(self, s: Store, value: str, row: int, lane: int) -> None:
        """Take a vector into a reduction; at the ends of the domain only its points within."""
        op, total = self.facts.reductions[s.slot][1], f"total{s.slot}"
        value = f"__builtin_convertvector({value}, W)"
        if self.masked:
            whole = tuple(
                self.index(((("i", axis, 1), ("n", axis, -1)), 0, s.parity, s.stride), row, lane)
                for axis in range(self.shape.missing, 3)
            )
            inside = " & ".join(f"({w} < 0)" for w in whole)
            neutral = {"sum": "0.0", "max": "-__builtin_inf()", "min": "__builtin_inf()"}[op]
            value = f"(__builtin_convertvector({inside}, L) ? {value} : {neutral} - W{{}})"
        if op == "sum":
            self.block.append(f"{total} += {value};")
        else:
            name = self.fresh(("reduced", s.slot, s.parity, row, lane), value, "W")
            self.block.append(
                f"{total} = ({name} {'>' if op == 'max' else '<'} {total}) | ({name} != {name}) ? {name} : {total};"
            )

    # -- pointers

    def text(self) -> list[str]:
        """Return the lines for one brick."""
        self.emit()
        brick, points = self.shape.brick, self.shape.brick[1] * self.shape.brick[2]
        tables: list[str] = []
        planes: list[str] = []
        for (grid, stride, offset, c1, c2), name in self.planes.items():
            if self.shape.missing:
                first, many, at = 0, 1, "0"
            else:
                first = offset // brick[0]
                many = (stride * (brick[0] - 1) + offset) // brick[0] - first + 1
                shift = offset - first * brick[0]
                at = ("i" if stride == 1 else f"{stride} * i") + (f" + {shift}" if shift else "")
            ids = [self.brick(grid, stride, (first + m, c1, c2)) for m in range(many)]
            if many == 1:
                tables.append(f"T const* const {name}_b = {ids[0]};")
                planes.append(f"T const* const {name} = {name}_b" + (f" + ({at}) * {points};" if brick[0] > 1 else ";"))
            else:
                tables.append(f"T const* const {name}_b[] = {{{', '.join(ids)}}};")
                planes.append(
                    f"T const* const {name} = {name}_b[({at}) / {brick[0]}] + ({at}) % {brick[0]} * {points};"
                )
        for grid in dict.fromkeys(s.grid for s in self.program.stores if s.slot < 0 and s.stride == 1):
            tables.append(f"T* const {grid}__b_out = brick_of(a, {self.facts.grids.index(grid)}, a->owned, id);")
            planes.append(f"T* const {grid}__out = {grid}__b_out" + (f" + i * {points};" if brick[0] > 1 else ";"))
        for grid, ahead in self.ahead().items():
            number, plane = self.facts.grids.index(grid), " + i * " + str(points) if brick[0] > 1 else ""
            at = _step("a->neighbours", "", "next", ahead[self.shape.missing :], self.shape.dimensions)
            tables.append(f"T const* const {grid}__next = brick_of(a, {number}, a->owned, {at});")
            line = 64 // (8 if self.shape.dtype == "float64" else 4)
            planes.append(f"for (int l = 0; l < {points}; l += {line}) __builtin_prefetch({grid}__next{plane} + l);")
        loop = f"for (int i = 0; i < {brick[0]}; ++i) {{" if brick[0] > 1 else "{"
        start = [] if brick[0] > 1 or not any("(o0 + i)" in line for line in self.lines) else ["  int const i = 0;"]
        return [*tables, loop, *start, *(f"  {p}" for p in planes), *(f"  {line}" for line in self.lines), "}"]

    def ahead(self) -> dict[str, tuple[int, int, int]]:
        """Return for each grid the last brick that is read: in the order of the bricks it is the one that no brick before has read."""
        out: dict[str, tuple[int, int, int]] = {}
        for grid, stride, offset, c1, c2 in self.planes:
            if stride == 1:
                c0 = 0 if self.shape.missing else (self.shape.brick[0] - 1 + offset) // self.shape.brick[0]
                out[grid] = max(out.get(grid, (0, 0, 0)), (c0, c1, c2))
        return out

    def brick(self, grid: str, stride: int, c: tuple[int, int, int]) -> str:
        """Return the text of the pointer to the brick of a grid at a distance of `c` bricks."""
        number = self.facts.grids.index(grid)
        missing, d = self.shape.missing, self.shape.dimensions
        if stride == 1:
            return f"brick_of(a, {number}, a->owned, {_step('a->neighbours', 'near', 'id', c[missing:], d)})"
        inside = [min(1, max(0, o)) for o in c[missing:]]
        child = f"child[{sum(o << (d - 1 - a) for a, o in enumerate(inside))}]"
        rest = tuple(o - p for o, p in zip(c[missing:], inside, strict=True))
        return f"brick_of(a, {number}, a->fine_owned, {_step('a->fine_neighbours', '', child, rest, d)})"


def _step(table: str, near: str, start: str, by: Sequence[int], d: int) -> str:
    """Return the id of the brick at some distance, by steps to neighbours."""
    text, by = start, list(by)
    while any(by):
        step = [max(-1, min(1, o)) for o in by]
        number = sum((o + 1) * 3 ** (d - 1 - a) for a, o in enumerate(step))
        text = f"{near}[{number}]" if near and text == start else f"{table}[{3**d}L * {text} + {number}]"
        by = [o - s for o, s in zip(by, step, strict=True)]
    return text


def emit_cpp(
    facts: Facts,
    shape: Shape,
    plan: Plan,
    builder: Builder,
    whole: Program,
    edge: Program | None,
    margins: Margins,
    title: str,
) -> tuple[str, str]:
    """Return the text up to the function's name, and the rest. ``edge`` is the program for bricks at the ends, if it differs."""
    names = Names(facts)
    bodies = [Body(facts, shape, plan, builder, names, p, m) for p, m in ((whole, False), (edge, True)) if p]
    texts = [body.text() for body in bodies]
    d, missing, stride = shape.dimensions, shape.missing, 2 if facts.space == "fine" else 1
    loop = ["long const id = a->visit ? a->visit[b] : b;", f"int const* const near = a->neighbours + {3**d} * id;"]
    if any("child" in line for t in texts for line in t) or facts.space != "one":
        loop.append(f"int const* const child = a->children + {2**d} * id;")
    for axis in range(3):
        loop.append(f"long const o{axis} = {f'a->origin[{d} * id + {axis - missing}]' if axis >= missing else 0};")
    inside = [f"{stride} * (o{axis} + {shape.brick[axis]}) <= n{axis}" for axis in range(missing, 3)]
    far = [f"{stride} * o{axis} >= {low}" for axis, (low, _) in enumerate(margins) if low]
    far += [
        f"{stride} * (o{axis} + {shape.brick[axis]}) <= n{axis} - {high}"
        for axis, (_, high) in enumerate(margins)
        if high
    ]
    loop.append(f"bool const whole = {' && '.join(inside)};")
    loop += [
        "(void)near;",
        "long const after = b + 1 < a->bricks ? b + 1 : b;",
        "long const next = a->visit ? a->visit[after] : after;",
        "(void)next;",
    ]
    if edge:
        loop += [f"if (whole{''.join(f' && {f}' for f in far)}) {{", *(f"  {t}" for t in texts[0])]
        loop += ["} else {", *(f"  {t}" for t in texts[1]), "}"]
    else:
        loop += texts[0]
    loop += _clear(facts, shape, whole)
    extent = "fine_extent" if facts.space == "fine" else "extent"
    lines = [f"long const n{axis} = {f'a->{extent}[{axis - missing}]' if axis >= missing else 1};" for axis in range(3)]
    lines += ["V const zero = {};", "(void)zero;", *names.lines]
    neutral = {"sum": "0.0", "max": "-__builtin_inf()", "min": "__builtin_inf()"}
    lines += [f"W total{m} = {neutral[op]} - W{{}};" for m, (_, op) in enumerate(facts.reductions)]
    lines += ["for (long b = 0; b < a->bricks; ++b) {", *(f"  {t}" for t in loop), "}"]
    for m, (_, op) in enumerate(facts.reductions):
        take = {"sum": "a->reductions[{m}] += total{m}[l]", "max": "take_max(a->reductions + {m}, total{m}[l])"}
        take["min"] = "take_min(a->reductions + {m}, total{m}[l])"
        lines.append(f"for (int l = 0; l < {plan.vector}; ++l) {take[op].format(m=m)};")
    form = "scatter" if plan.scatter else "gather"
    head = f"// {title}\n// Bricks of {' x '.join(map(str, shape.brick[missing:]))} points, vectors of {plan.vector}, {form} form.\n"
    head += "// u__p_r3_k0 is a vector of the grid u: plane i + p (m1: -1), row 3 and lanes from 0 of the brick; rm1, km8: of a neighbour.\n"
    return head + prelude(shape, plan) + 'extern "C" void ', "(Arguments const* a) {\n" + "".join(
        f"  {t}\n" for t in lines
    ) + "}\n"


def _clear(facts: Facts, shape: Shape, program: Program) -> list[str]:
    """Return lines that put zeros into the padding of outputs."""
    targets = {s.grid: s.stride for s in program.stores if s.slot < 0}
    if not targets:
        return ["(void)whole;"]
    b = shape.brick
    lines = ["if (!whole) {"]
    for grid, stride in targets.items():
        number = facts.grids.index(grid)
        if stride == 1:
            lines.append(f"  clear(brick_of(a, {number}, a->owned, id), n0 - o0, n1 - o1, n2 - o2);")
        else:
            d, missing = shape.dimensions, shape.missing
            for c in range(2**d):
                digits = [0] * missing + [c >> (d - 1 - a) & 1 for a in range(d)]
                ends = [
                    f"n{axis} - {'2 * ' if axis >= missing else ''}o{axis} - {b[axis] * digits[axis]}"
                    for axis in range(3)
                ]
                lines.append(f"  clear(brick_of(a, {number}, a->fine_owned, child[{c}]), {', '.join(ends)});")
    return [*lines, "}"]
