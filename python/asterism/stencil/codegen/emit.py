"""C++ text of a kernel, with the vectors of GCC and clang and no includes.

Input: programs for bricks inside and at the ends of the domain, and a plan. Output: text. A loop over bricks holds one over the planes of a
brick.
"""

from __future__ import annotations

from ..language.checks import Facts
from .body import NEUTRAL, Names, brick_inside, totals
from .edge_body import EdgeBody
from .functions import text_of_functions
from .nodes import Builder, Program
from .passes import Margins, Plan
from .prelude import Shape, prelude
from .vector_body import VectorBody

__all__ = ["emit_cpp"]

# Conditions of vectors of one lane, that is in bricks with an odd last size, are miscompiled by this pass of g++ 12.2.
# It is switched off here and not by -fno-tree-reassoc, which clang refuses. The digest, by which kernels are found, has
# the size of the bricks and this file in it.
_ONE_LANE = """#ifndef __clang__
#pragma GCC optimize ("no-tree-reassoc")
#endif
"""
AHEAD = 2  # a brick is prefetched so many visits before its own: the next one is being read as a neighbour


def emit_cpp(
    facts: Facts,
    shape: Shape,
    plan: Plan,
    builder: Builder,
    whole: Program,
    edge: Program | None,
    margins: Margins,
    title: str,
    long_ends: bool,
    loops: bool,
) -> tuple[str, str]:
    """Return the text up to the function's name, and the rest. ``edge`` is the program for bricks at the ends, if it differs.

    With ``long_ends`` the rows of bricks at the ends are a loop, with ``loops`` those of all bricks.
    """
    names = Names(facts, shape)
    bodies = [(EdgeBody if loops else VectorBody)(facts, shape, plan, builder, names, whole, False)]
    if edge:
        bodies.append((EdgeBody if loops or long_ends else VectorBody)(facts, shape, plan, builder, names, edge, True))
    texts = [body.text() for body in bodies]
    d, missing, stride = shape.dimensions, shape.missing, 2 if facts.space == "fine" else 1
    loop = ["long const id = a->visit ? a->visit[b] : b;", f"int const* const near = a->neighbours + {3**d} * id;"]
    if any("child" in line for t in texts for line in t) or facts.space != "one":
        loop.append(f"int const* const child = a->children + {2**d} * id;")
    for axis in range(3):
        loop.append(f"long const o{axis} = {f'a->origin[{d} * id + {axis - missing}]' if axis >= missing else 0};")
    inside, far = brick_inside(shape, stride, margins)
    loop.append(f"bool const whole = {' && '.join(inside)};")
    loop += [
        "(void)near;",
        "bool const streams = past && whole;",
        "(void)streams;",
        f"long const after = b + {AHEAD} < a->bricks ? b + {AHEAD} : b;",
        "long const next = a->visit ? a->visit[after] : after;",
        "long const soon = b + 1 < a->bricks ? a->visit ? a->visit[b + 1] : b + 1 : id;",
        "(void)next, (void)soon;",
    ]
    if edge:
        loop += [f"if (whole{''.join(f' && {f}' for f in far)}) {{", *(f"  {t}" for t in texts[0])]
        loop += ["} else {", *(f"  {t}" for t in texts[1]), "}"]
    else:
        loop += texts[0]
    loop += _clear(facts, shape, whole)
    extent = "fine_extent" if facts.space == "fine" else "extent"
    lines = [f"long const n{axis} = {f'a->{extent}[{axis - missing}]' if axis >= missing else 1};" for axis in range(3)]
    lines += ["V const zero = {};", "bool const past = a->streams;", "(void)zero;", *names.lines]
    plane = shape.brick[1] * shape.brick[2]
    for grid in dict.fromkeys(s.grid for s in whole.stores if s.slot < 0 and s.stride == 1):
        lines.append(f"alignas(64) T {grid}__part[{plane}];  // a plane that is not whole")
    lines += [f"W {total} = {NEUTRAL[op]} - W{{}};" for total, _, op in totals(facts, shape)]
    lines += ["for (long b = 0; b < a->bricks; ++b) {", *(f"  {t}" for t in loop), "}", "if (past) end_streams();"]
    for total, m, op in totals(facts, shape):
        take = f"a->reductions[{m}] += {total}[l]" if op == "sum" else f"take_{op}(a->reductions + {m}, {total}[l])"
        lines.append(f"for (int l = 0; l < {plan.vector}; ++l) {take};")
    form = "scatter" if plan.scatter else "gather"
    head = f"// {title}\n// Bricks of {' x '.join(map(str, shape.brick[missing:]))} points, vectors of {plan.vector}, {form} form.\n"
    if plan.vector == 1:
        head += _ONE_LANE
    head += "// u__p_r3_k0 is a vector of the grid u: plane i + p (m1: -1), row 3 and lanes from 0 of the brick; rm1, km8: of a neighbour.\n"
    rest = "(Arguments const* a) {\n" + "".join(f"  {t}\n" for t in lines) + "}\n"
    number = "R" if shape.complex else "T"
    once = "__attribute__((noinline)) static"
    suffix = "f" if shape.real_size == 4 else ""
    functions = text_of_functions(rest, number, plan.vector, shape.complex, "static inline", once, "__builtin_", suffix)
    return head + prelude(shape, plan, loops) + functions + 'extern "C" void ', rest


def _clear(facts: Facts, shape: Shape, program: Program) -> list[str]:
    """Return lines that put zeros into the padding of outputs on the fine grid."""
    targets = dict.fromkeys(s.grid for s in program.stores if s.slot < 0 and s.stride == 2)
    if not targets:
        return ["(void)whole;"]
    b = shape.brick
    lines = ["if (!whole) {"]
    for grid in targets:
        number = facts.grids.index(grid)
        d, missing = shape.dimensions, shape.missing
        for c in range(2**d):
            digits = [0] * missing + [c >> (d - 1 - a) & 1 for a in range(d)]
            ends = [
                f"n{axis} - {'2 * ' if axis >= missing else ''}o{axis} - {b[axis] * digits[axis]}" for axis in range(3)
            ]
            lines.append(f"  clear(brick_of(a, {number}, a->fine_owned, child[{c}]), {', '.join(ends)});")
    return [*lines, "}"]
