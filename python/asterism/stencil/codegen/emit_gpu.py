"""CUDA and HIP text of a kernel: a group of lanes computes a row of a brick, and they exchange neighbours in the row by shuffles.

Input: programs for bricks inside and at the ends of the domain, and a plan. Output: text. A warp (CUDA) or wavefront (HIP) is folded over
as many planes as it has groups of lanes, so that a row of 8 points keeps no lane idle. The rows of a plane are unrolled as in C++.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..language.checks import Facts
from .body import NEUTRAL, Body, Names, brick_inside, totals
from .complex_numbers import complex_numbers
from .functions import NAMES, text_of_functions
from .gpu_loads import arranged
from .nodes import Builder, Program, Store
from .passes import Margins, Plan
from .prelude import Shape

__all__ = ["GPU_TARGETS", "GUARDS", "Dialect", "emit_gpu"]

GUARDS = 6  # Executor::most_guards of the core
AHEAD = 96  # registers of 32 bits for what a lane loads before it is used


@dataclass(frozen=True)
class Dialect:
    """What the texts for the vendors differ in: lanes of a warp, the header, and what its lanes call together."""

    lanes: int
    header: str
    shuffle: str
    every: str
    trap: str


GPU_TARGETS = {
    "cuda": Dialect(32, "", "__shfl_sync(0xffffffffu, x, lane)", "__all_sync(0xffffffffu, x)", "__trap()"),
    "hip": Dialect(
        64,
        "#ifndef __HIPCC_RTC__\n#include <hip/hip_runtime.h>\n#endif\n",
        "__shfl(x, lane)",
        "__all(x)",
        "__builtin_trap()",
    ),
}


class LaneNames(Names):
    """Arguments come by value; functions are overloaded."""

    functions, arguments = {"abs": "fabs", "sqrt": "sqrt"} | NAMES, "a."


class LaneBody(Body):
    """One plane of a brick; a vector is what the lanes of a group have."""

    number, real, condition = "T", "T", "bool"
    complex_number, complex_real = "T", "R"
    both, either = " && ", " || "
    functions = LaneNames.functions

    def whole(self, lane: int) -> bool:
        """Where it begins with a group's first lane."""
        return lane % self.plan.vector == 0

    def loaded(self, plane: str, first: int) -> str:
        """Each lane loads its own."""
        return f"{plane}[{first}]"

    def shifted(self, by: int, left: str, right: str) -> str:
        """From lanes to the right: one shuffle."""
        return f"shift({left}, {right}, {by})"

    def spread(self, scalar: str, real: bool) -> str:
        """All lanes have it."""
        return scalar

    def converted(self, whole: str) -> str:
        """As a number."""
        return f"{self.real}({whole})"

    def truth(self, value: bool) -> str:
        """As a word."""
        return "true" if value else "false"

    def negated(self, condition: str) -> str:
        """Logically."""
        return f"!{condition}"

    def index(self, data: tuple[object, ...], row: int, lane: int) -> str:
        """Return the lane's own."""
        return f"({' + '.join(self.index_terms(data, ('i', str(row), _plus('k', lane))))})"

    def ordered(self, block: list[str]) -> list[str]:
        """Loads go before what uses them, so that many are under way at once."""
        read = {name for (grid, *_), name in self.planes.items() if grid not in self.facts.outputs}
        most = AHEAD * 4 // self.shape.real_size // (2 if self.shape.complex else 1)
        lines, pointers = arranged(block, read, most, self.plan.vector)
        self.pointers.update(pointers)
        return lines

    # -- stores

    def inside(self, stride: int, plane: int, row: str, column: str) -> str:
        """Return the condition under which a point lies in the domain."""
        places = (_plus("2 * (o0 + i)", plane) if stride == 2 else "o0 + i", row, column)
        text = " && ".join(f"{places[axis]} < n{axis}" for axis in range(self.shape.missing, 3))
        key = ("inside", text)
        return self.known[key] if key in self.known else self.fresh(key, text, "bool")

    def put(self, at: str, value: str, inside: str) -> None:
        """Write the lane's point; zeros into the padding."""
        chosen = f"T({value})" if self.shape.complex else value
        self.block.append(f"if (mine) {at} = {f'{inside} ? {chosen} : T(0)' if inside else value};")

    def store(self, s: Store, value: str, row: int, lane: int) -> None:
        """Write a vector."""
        inside = self.inside(1, 0, _plus("o1", row), _plus("o2 + k", lane)) if self.masked else ""
        self.put(f"{s.grid}__out[{row * self.shape.brick[2] + lane}]", value, inside)

    def store_pair(self, s: Store, pair: list[str], row: int, lane: int) -> None:
        """Write points of both parities of the last axis."""
        for half, target, place, at_row, start in self.halves(s, row, lane):
            inside = (
                self.inside(2, s.parity[0], _plus("2 * o1", at_row), _plus("2 * o2 + k", start)) if self.masked else ""
            )
            value = self.fresh((half, *pair), f"{half}({', '.join(pair)})", "T")
            self.put(f"((T*){target})[{place}]", value, inside)

    def reduce(self, s: Store, value: str, row: int, lane: int) -> None:
        """Take a vector into a reduction; only points within the domain."""
        counts = "mine"
        if self.masked:
            stride, (p0, p1, p2) = s.stride, s.parity
            if stride == 1:
                inside = self.inside(1, 0, _plus("o1", row), _plus("o2 + k", lane))
            else:
                inside = self.inside(2, p0, _plus("2 * o1", 2 * row + p1), _plus("2 * (o2 + k)", 2 * lane + p2))
            counts = f"mine && {inside}"
        op = self.facts.reductions[s.slot][1]
        parts = {f"total{s.slot}": value}
        if op == "sum" and self.shape.complex:
            parts = {f"total{s.slot}": f"re({value})", f"total{s.slot}_im": f"im({value})"}
        for total, part in parts.items():
            self.block.append(f"if ({counts}) {total} = take_{op}({total}, {part});")

    # -- pointers

    def text(self) -> list[str]:
        """Return the lines for one plane of a brick."""
        self.pointers: dict[str, str] = {}
        self.emit()
        planes, points = self.shape.brick[0], self.shape.brick[1] * self.shape.brick[2]
        out: list[str] = []
        for (grid, stride, offset, c1, c2), name in self.planes.items():
            bricks, at = self.span(stride, offset)
            near = [self.neighbour(stride, (c0, c1, c2)) for c0 in bricks]
            ids = near[-1][1]
            for m in reversed(range(len(bricks) - 1)):
                ids = f"{at} < {planes * (m + 1)} ? {near[m][1]} : {ids}"
            place = "" if planes == 1 else f" + {at} * {points}" if at == "i" else f" + ({at}) % {planes} * {points}"
            number = self.facts.grids.index(grid)
            out.append(f"T const* const {name} = brick_of(a, {number}, {near[0][0]}, {ids}){place} + k;")
        for grid in dict.fromkeys(s.grid for s in self.program.stores if s.slot < 0 and s.stride == 1):
            place = f" + i * {points}" if planes > 1 else ""
            out.append(f"T* const {grid}__out = brick_of(a, {self.facts.grids.index(grid)}, a.owned, id){place} + k;")
        out += [f"T const* const {name} = {text};" for name, text in self.pointers.items()]
        return [*out, *self.lines]


def _plus(text: str, number: int) -> str:
    return f"{text} + {number}" if number else text


def emit_gpu(
    dialect: Dialect,
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
    names = LaneNames(facts, shape)
    first, second = (
        LaneBody(facts, shape, plan, builder, names, p, m) if p else None for p, m in ((whole, not edge), (edge, True))
    )
    assert first is not None
    d, missing, planes = shape.dimensions, shape.missing, shape.brick[0]
    stride = 2 if facts.space == "fine" else 1
    V, lanes = plan.vector, dialect.lanes
    groups = lanes // V
    body = first.text()
    if second is not None:
        inside, far = brick_inside(shape, stride, margins)
        body = [
            f"if (every({' && '.join([*inside, *far])})) {{",
            *_in(body),
            "} else {  // at an end of the domain",
            *_in(second.text()),
            "}",
        ]
    # lanes beyond the last plane, and those that are left over, repeat the first plane without writing it: all take part in shuffles
    where = [
        f"bool const mine = {f'lane < {groups * V} && ' if groups * V < lanes else ''}first + lane / {V} < planes;"
    ]
    where.append(f"long const plane = mine ? first + lane / {V} : first;")
    where.append(f"long const b = {f'plane / {planes}' if planes > 1 else 'plane'}, id = a.visit ? a.visit[b] : b;")
    where.append(f"int const i = {f'int(plane % {planes})' if planes > 1 else 0};")
    where.append(f"int const* const near = a.neighbours + {3**d} * id;")
    where.append(f"int const* const child = a.children + {2**d} * id;")
    for axis in range(3):
        where.append(f"long const o{axis} = {f'a.origin[{d} * id + {axis - missing}]' if axis >= missing else 0};")
    extent = "fine_extent" if facts.space == "fine" else "extent"
    loop = [*_used(where, body), *body]
    start = [f"long const n{axis} = {f'a.{extent}[{axis - missing}]' if axis >= missing else 1};" for axis in range(3)]
    lines = [
        f"if (warpSize != {lanes} || blockDim.x % {lanes}) {dialect.trap};",
        "for (int g = 0; g < a.guard_count; ++g)",
        "  if ((a.guards[g].number[0] != 0 || a.guards[g].number[1] != 0) != (a.guards[g].wanted != 0)) return;",
        f"int const lane = threadIdx.x % {lanes}, k = lane % {V};",
        *_used(start, loop),
        *names.lines,
        *(f"double {total} = {NEUTRAL[op]};" for total, _, op in totals(facts, shape)),
        f"long const planes = a.bricks{f' * {planes}' if planes > 1 else ''}, warps = gridDim.x * long(blockDim.x / {lanes});",
        f"long const warp = blockIdx.x * long(blockDim.x / {lanes}) + threadIdx.x / {lanes};",
        f"for (long first = warp * {groups}; first < planes; first += warps * {groups}) {{",
        *_in(loop),
        "}",
    ]
    for total, m, op in totals(facts, shape):
        other = f"from_lane({total}, (lane + s) % {lanes})"
        lines.append(f"for (int s = {lanes // 2}; s; s /= 2) {total} = take_{op}({total}, {other});")
        lines.append(f"if (lane == 0) a.reductions[{m} * warps + warp] = {total};")
    rest = "(Arguments const a) {\n" + "".join(f"  {t}\n" for t in lines) + "}\n"
    head = _head(dialect, facts, shape, plan, title) + _functions(dialect, shape, V, rest)
    inline = "__device__ __forceinline__"
    head += text_of_functions(rest, "R" if shape.complex else "T", 0, shape.complex, inline, inline)
    return head + '\nextern "C" __global__ void ', rest


def _in(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _used(lines: list[str], by: list[str]) -> list[str]:
    """Return the declarations whose names are used by later ones or by the text."""
    words = set(re.findall(r"\w+", "\n".join(by)))
    out: list[str] = []
    for line in reversed(lines):
        declared = re.findall(r"(\w+) = ", line)
        if words & set(declared):
            out.insert(0, line)
            words |= set(re.findall(r"\w+", line))
    return out


def _head(dialect: Dialect, facts: Facts, shape: Shape, plan: Plan, title: str) -> str:
    """Return what the text is, its types, and the arguments."""
    V, lanes, d = plan.vector, dialect.lanes, shape.dimensions
    groups, planes = lanes // V, shape.brick[0]
    what = f"{groups} {'planes' if planes > 1 else 'bricks'} at once" if groups > 1 else "one plane"
    lanes_of = f", {V} lanes for {'a row' if V == shape.brick[2] else 'a part of a row'}" + (
        " of each" if groups > 1 else ""
    )
    outputs = ", ".join(f"{n} {g}" for n, g in enumerate(facts.grids))
    constants = "  // " + ", ".join(n for n, _ in facts.constants) if facts.constants else ""
    fine = f"""  int const* children;  // [id][{2**d}], of the finer space
  int const* fine_neighbours;
  int fine_extent[{d}];
  long fine_owned;
"""
    reductions = f"  double* reductions;  // [{len(facts.reductions) * (2 if shape.complex else 1)}][warps]: of each warp, which the caller takes together\n"
    number = "double" if shape.real_size == 8 else "float"
    numbers = f"typedef {number} T;"
    if shape.complex:
        inline = "__device__ __forceinline__"
        numbers = f"""typedef {number} R;
{inline} R absolute(R x) {{ return fabs(x); }}
{inline} R root(R x) {{ return sqrt(x); }}
{complex_numbers(inline, inline)}typedef Complex<R> T;"""
    return f"""// {title}
// Bricks of {" x ".join(map(str, shape.brick[shape.missing :]))} points, {"scatter" if plan.scatter else "gather"} form. A warp of {lanes} lanes computes {what}{lanes_of}.
// u__p_r3_k0 is the lane's point of the grid u: plane i + p (m1: -1), row 3, place k + 0; rm1, km8: of a neighbour.
// Launch any number of blocks of a multiple of {lanes} threads. All pointers are to the device's memory, except for null.
{dialect.header}{numbers}
struct Guard {{
  double const* number;  // complex
  long wanted;
}};
struct Arguments {{
  long bricks;            // how many to visit
  int const* visit;       // their ids; null: 0 to bricks - 1
  int const* neighbours;  // [id][{3**d}]
  int const* origin;      // [id][{d}]
  int extent[{d}];
  T* grids[{len(facts.grids)}];  // {outputs}
  T* ghosts[{len(facts.grids)}];
  long owned;
  T constants[{max(1, len(facts.constants))}];{constants}
{reductions if facts.reductions else ""}{fine if facts.space != "one" else ""}  Guard guards[{GUARDS}];  // nothing is done where a number is not zero and must be, or the other way round
  int guard_count;
}};

"""


def _functions(dialect: Dialect, shape: Shape, V: int, rest: str) -> str:
    """Return the functions that a text calls."""
    place = f"int const lane = threadIdx.x % {dialect.lanes}, k = lane % {V}"
    known = {  # later ones call earlier ones
        "brick_of": f"""T* brick_of(Arguments const& a, int grid, long owned, long id) {{
  return id < owned ? a.grids[grid] + id * {shape.points} : a.ghosts[grid] + (id - owned) * {shape.points};
}}
""",
        "from_lane": f"X from_lane(X x, int lane) {{ return {dialect.shuffle}; }}\n",
        "every": f"bool every(bool x) {{ return {dialect.every}; }}\n",
        "shift": f"""T shift(T x, T y, int s) {{  // the row that begins s places into x, and goes on in y
  {place};
  return from_lane(k >= s ? x : y, k + s < {V} ? lane + s : lane + s - {V});
}}
""",
        "even": f"""T even(T x, T y) {{  // every other place of x and then of y
  {place}, from = lane - k + 2 * k % {V};
  T const left = from_lane(x, from), right = from_lane(y, from);
  return 2 * k < {V} ? left : right;
}}
""",
        "mixed": f"""T mixed(T x, T y, int first) {{  // x and y by turns
  {place}, from = lane - k + (first + k) / 2;
  T const left = from_lane(x, from), right = from_lane(y, from);
  return (first + k) % 2 ? right : left;
}}
""",
        "low": "T low(T x, T y) { return mixed(x, y, 0); }\n",
        "high": f"T high(T x, T y) {{ return mixed(x, y, {V}); }}\n",
        "take_sum": "double take_sum(double x, double y) { return x + y; }\n",
        "take_max": "double take_max(double x, double y) { return y > x || y != y ? y : x; }\n",
        "take_min": "double take_min(double x, double y) { return y < x || y != y ? y : x; }\n",
    }
    out = ""
    for name, text in reversed(known.items()):
        if re.search(rf"\b{name}\(", out + rest):
            kind = "template <class X>\n" if name == "from_lane" else ""
            if kind and shape.complex:
                text += """template <class X>
__device__ __forceinline__ Complex<X> from_lane(Complex<X> x, int lane) { return {from_lane(x.re, lane), from_lane(x.im, lane)}; }
"""
            out = f"{kind}__device__ __forceinline__ {text}{out}"
    return out
