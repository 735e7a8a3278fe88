"""The planes of one brick as C++ with vectors as types.

Input: a program and a plan. Output: lines for the planes of a brick.
"""

from __future__ import annotations

from .body import NEUTRAL, Body, remainder_of, step
from .nodes import Node, Store

__all__ = ["VectorBody"]

MOST_LOOKED_UP = 8  # remainders by at most so much come from tables


class VectorBody(Body):
    """The planes of one brick, with vectors as types."""

    def whole(self, lane: int) -> bool:
        """Within a brick, also between its vectors."""
        lanes = self.shape.brick[2]
        return lane // lanes == (lane + self.plan.vector - 1) // lanes

    def loaded(self, plane: str, first: int) -> str:
        """Load."""
        return f"load{'u' if first % self.plan.vector else ''}({plane} + {first})"

    def shifted(self, by: int, left: str, right: str) -> str:
        """Shuffle two registers."""
        return f"shift{by}({left}, {right})"

    def spread(self, scalar: str, real: bool) -> str:
        """Subtract zeros, which keeps -0."""
        if real or not self.shape.complex:
            return f"({scalar} - zero)"
        return f"C({scalar}.re - zero, {scalar}.im - zero)"

    def converted(self, whole: str) -> str:
        """Convert each lane."""
        return f"__builtin_convertvector({whole}, V)"

    def truth(self, value: bool) -> str:
        """All bits or none."""
        return "~I{}" if value else "I{}"

    def negated(self, condition: str) -> str:
        """Turn all bits."""
        return f"~{condition}"

    def index(self, data: tuple[object, ...], row: int, lane: int) -> str:
        """Return a vector of integers."""
        terms, stride = data[0], data[3]
        factor = sum(f * stride for symbol, axis, f in terms if symbol == "i" and axis == 2)  # type: ignore[attr-defined]
        text = f"E({' + '.join(self.index_terms(data, ('i', str(row), str(lane))))})"
        return f"({factor} * lane + {text})" if factor else f"({text} + I{{}})"

    def remainder(self, n: Node, row: int, lane: int) -> str:
        """Look the lanes up by the remainder of the first one: AVX2 has no conversion from long to double."""
        terms, _, _, stride, by = n.data
        if by > MOST_LOOKED_UP:
            return super().remainder(n, row, lane)
        steps = [0, row, lane]
        factor = sum(f * stride for symbol, axis, f in terms if symbol == "i" and axis == 2)
        more = sum(f * stride * steps[axis] for symbol, axis, f in terms if symbol == "i") % by
        key = ("remainder", n, more)
        if key not in self.known:
            first = ("remainder", n)
            if first not in self.known:
                self.fresh(
                    first, remainder_of(f"({' + '.join(self.index_terms(n.data, ('i', '0', '0')))})", by), "long"
                )
            lanes = [", ".join(str((r + more + factor * m) % by) for m in range(self.plan.vector)) for r in range(by)]
            name = f"v{self.count}_of"
            self.block.append(f"static V const {name}[] = {{{', '.join(f'{{{x}}}' for x in lanes)}}};")
            self.fresh(key, f"{name}[{self.known[first]}]", "V")
        return self.known[key]

    def store(self, s: Store, value: str, row: int, lane: int) -> None:
        """Write a vector."""
        at = f"{s.grid}__out + {row * self.shape.brick[2] + lane}"
        self.block.append(f"if (streams) stream({at}, {value}); else store({at}, {value});")

    def store_pair(self, s: Store, pair: list[str], row: int, lane: int) -> None:
        """Write points of both parities of the last axis."""
        for half, target, place_in, _, _ in self.halves(s, row, lane):
            self.block.append(f"store((T*){target} + {place_in}, {half}({', '.join(pair)}));")

    def reduce(self, s: Store, value: str, row: int, lane: int) -> None:
        """Take a vector into a reduction; at the ends of the domain only its points within."""
        op, total = self.facts.reductions[s.slot][1], f"total{s.slot}"
        if op == "sum" and self.shape.complex:
            self.take(s, op, f"{total}_im", f"im({value})", row, lane)
            value = f"re({value})"
        self.take(s, op, total, value, row, lane)

    def take(self, s: Store, op: str, total: str, value: str, row: int, lane: int) -> None:
        """Take real numbers into a total."""
        value = f"__builtin_convertvector({value}, W)"
        if self.masked:
            whole = tuple(
                self.index(((("i", axis, 1), ("n", axis, -1)), 0, s.parity, s.stride), row, lane)
                for axis in range(self.shape.missing, 3)
            )
            inside = " & ".join(f"({w} < 0)" for w in whole)
            value = f"(__builtin_convertvector({inside}, L) ? {value} : {NEUTRAL[op]} - W{{}})"
        if op == "sum":
            self.block.append(f"{total} += {value};")
        else:
            name = self.fresh(("reduced", s.slot, s.parity, row, lane), value, "W")
            self.block.append(
                f"{total} = ({name} {'>' if op == 'max' else '<'} {total}) | ({name} != {name}) ? {name} : {total};"
            )

    def ordered(self, block: list[str]) -> list[str]:
        """Write each vector as soon as it is whole: registers are free then, and writing goes on beside reading."""
        stores = {line: line.split(", ", 1)[1].split(")", 1)[0] for line in block if line.startswith("if (streams)")}
        last = {
            value: max((m for m, line in enumerate(block) if f"{value} = " in line), default=-1)
            for value in stores.values()
        }
        at: dict[int, list[str]] = {}
        for line, value in stores.items():
            at.setdefault(last[value], []).append(line)
        out = at.get(-1, [])
        for m, line in enumerate(block):
            if line not in stores:
                out.append(line)
            out += at.get(m, [])
        return out

    # -- pointers

    def text(self) -> list[str]:
        """Return the lines for one brick."""
        self.emit()
        brick, points = self.shape.brick, self.shape.brick[1] * self.shape.brick[2]
        tables: list[str] = []
        planes: list[str] = []
        for (grid, stride, offset, c1, c2), name in self.planes.items():
            bricks, at = self.span(stride, offset)
            ids = [self.brick(grid, stride, (c0, c1, c2)) for c0 in bricks]
            if len(bricks) == 1:
                tables.append(f"T const* const {name}_b = {ids[0]};")
                planes.append(f"T const* const {name} = {name}_b" + (f" + ({at}) * {points};" if brick[0] > 1 else ";"))
            else:
                tables.append(f"T const* const {name}_b[] = {{{', '.join(ids)}}};")
                planes.append(
                    f"T const* const {name} = {name}_b[({at}) / {brick[0]}] + ({at}) % {brick[0]} * {points};"
                )
        for grid in dict.fromkeys(s.grid for s in self.program.stores if s.slot < 0 and s.stride == 1):
            tables.append(f"T* const {grid}__b_out = brick_of(a, {self.facts.grids.index(grid)}, a->owned, id);")
            planes.append(f"T* const {grid}__out = whole ? {grid}__b_out + i * {points} : {grid}__part;")
        line = 64 // (self.shape.real_size * (2 if self.shape.complex else 1))

        fetches: list[tuple[str, int, int]] = []

        def ahead(name: str, grid: str, start: str, of: tuple[int, int, int], count: int, cache: int) -> None:
            """Fetch some points of a plane of a brick that comes later, or of a neighbour of it, into the first cache (3) or the second (2)."""
            id = step("a->neighbours", "", start, of[self.shape.missing :], self.shape.dimensions)
            tables.append(f"T const* const {name} = brick_of(a, {self.facts.grids.index(grid)}, a->owned, {id});")
            fetches.append((f"{name} + i * {points}" if brick[0] > 1 else name, count, cache))

        for grid in dict.fromkeys(g for g, stride, _, _, _ in self.planes if stride == 1):
            deep = max(offset for g, stride, offset, _, _ in self.planes if g == grid and stride == 1)
            if deep > 0 and not self.shape.missing:
                # each brick comes from memory whole, while those of the plane of bricks before it are visited
                ahead(f"{grid}__next_plane", grid, "soon", (1, 0, 0), points, 2)
            else:
                ahead(f"{grid}__next", grid, "next", (0, 0, 0), points, 3)
            # what no brick before has read of the neighbours
            if rows := self.rows_after.get(grid, 0):
                ahead(f"{grid}__next_row", grid, "next", (0, 1, 0), min(rows, brick[1]) * brick[2], 2)
        outputs = dict.fromkeys(s.grid for s in self.program.stores if s.slot < 0 and s.stride == 1)
        # where all planes follow each other, the machine itself looks ahead
        for grid in outputs if brick[0] > 1 else ():
            tables.append(f"T* const {grid}__next_out = brick_of(a, {self.facts.grids.index(grid)}, a->owned, next);")
            each = f"for (int l = 0; l < {points}; l += {line}) __builtin_prefetch({grid}__next_out + i * {points} + l, 1);"
            planes.append(f"if (!streams && a->last - a->first < {brick[0]}) {each}")
        loop = "for (int i = a->first; i < a->last; ++i) {" if brick[0] > 1 else "{"
        plane = [] if brick[0] > 1 else ["  int const i = 0;", "  (void)i;"]
        ends = [
            f"  if (!whole) put({grid}__b_out + i * {points}, {grid}__part, i < n0 - o0 ? n1 - o1 : 0, n2 - o2, past);"
            for grid in outputs
        ]
        lines = self.between(fetches, line)
        return [*tables, loop, *plane, *(f"  {p}" for p in planes), *(f"  {line}" for line in lines), *ends, "}"]

    def between(self, fetches: list[tuple[str, int, int]], apart: int) -> list[str]:
        """Return the lines of a plane with fetches, so many points apart, after each vector that they write: many at once would wait for each other."""
        places = [m for m, line in enumerate(self.lines) if line.startswith("  if (streams)")]
        if not places:
            return [*loops(fetches, apart), *self.lines]
        each = [f"  __builtin_prefetch({at} + {p}, 0, {to});" for at, n, to in fetches for p in range(0, n, apart)]
        out: list[str] = []
        for m, line in enumerate(self.lines):
            out.append(line)
            if places and m == places[0]:
                share = -(-len(each) // len(places))
                out += each[:share]
                places, each = places[1:], each[share:]
        return out

    def brick(self, grid: str, stride: int, c: tuple[int, int, int]) -> str:
        """Return the text of the pointer to the brick of a grid at a distance of `c` bricks."""
        return f"brick_of(a, {self.facts.grids.index(grid)}, {', '.join(self.neighbour(stride, c))})"


def loops(fetches: list[tuple[str, int, int]], apart: int) -> list[str]:
    """Return loops over fetches: where each begins, how many points it has, and to which cache it goes."""
    out: list[str] = []
    for n, to in dict.fromkeys(f[1:] for f in fetches):
        begins = ", ".join(at for at, *like in fetches if like == [n, to])
        out += [
            f"T const* const fetched{len(out)}[] = {{{begins}}};",
            f"for (auto const* const p : fetched{len(out)}) for (int l = 0; l < {n}; l += {apart}) __builtin_prefetch(p + l, 0, {to});",
        ]
    return out
