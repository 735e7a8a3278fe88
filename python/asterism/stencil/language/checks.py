"""Checks of whole stencils, and what later stages ask of them.

Input: the statements of the user. Output: `Facts`, or an error that shows the line at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .expressions import (
    Condition,
    Constant,
    Expr,
    Integer,
    Operation,
    Quotient,
    Ref,
    Remainder,
    Value,
    Where,
    walk,
)
from .expressions import Where as WhereNode
from .statements import Assignment, Reduction, Statement
from .user_line import fail

__all__ = ["Facts", "are_real", "check", "check_dtype"]


@dataclass(frozen=True)
class Facts:
    """What a stencil is made of.

    ``space`` tells where its points lie: "one" (all grids have the same points), "coarse" (it reads 2 * i of a finer grid) or "fine"
    (it reads i // 2 of a coarser one). ``elsewhere`` has the grids of that other space. ``reach`` is, for each axis, how far the reads go
    below and above the point, in points of the grid that is read; ``least``, how many points one-sided differences need. ``inputs`` are the grids that are read before they are written.
    ``coloured`` are the axes along which a red-black update reads the grid that it writes: an odd number of points
    around such an axis would join points of one colour.
    """

    dimensions: int
    outputs: tuple[str, ...]
    grids: tuple[str, ...]
    inputs: tuple[str, ...]
    constants: tuple[tuple[str, float | complex | None], ...]
    reductions: tuple[tuple[str, str], ...]
    space: str
    elsewhere: frozenset[str]
    reach: tuple[tuple[int, int], ...]
    least: tuple[int, ...]
    coloured: tuple[bool, ...]


def check(statements: Sequence[Statement]) -> Facts:
    """Return the facts, or raise an `InputError`."""
    outputs = _outputs(statements)
    refs = [n for s in statements for n in walk(s.value) if isinstance(n, Ref)]
    targets = [s.target for s in statements if isinstance(s, Assignment)]
    first = (targets + refs)[0] if targets or refs else None
    if first is None:
        fail(statements[0].line, "the stencil reads and writes no grid.")
    dimensions = first.grid.dimensions
    for ref in [*targets, *refs]:
        if ref.grid.dimensions != dimensions:
            text = f"'{ref.grid.name}' has {ref.grid.dimensions} dimensions and '{first.grid.name}' {dimensions}."
            fail(ref.line, text + " All grids of a stencil have the same.")
    space, elsewhere = _spaces(targets, refs)
    for s in statements:
        _values(s, dimensions)
    _order(statements)
    named = dict.fromkeys([*outputs, *(r.grid.name for r in refs)])
    reach = tuple(
        (max([0, *(-r.offsets[a] for r in refs)]), max([0, *(r.offsets[a] for r in refs)])) for a in range(dimensions)
    )
    reductions = tuple((s.name, s.op) for s in statements if isinstance(s, Reduction))
    return Facts(
        dimensions,
        outputs,
        tuple(named),
        _inputs(statements),
        _constants(statements, named),
        reductions,
        space,
        elsewhere,
        reach,
        _least(statements, dimensions),
        tuple(any(r.offsets[a] for r in refs if r.grid.name in outputs) for a in range(dimensions)),
    )


def _least(statements: Sequence[Statement], dimensions: int) -> tuple[int, ...]:
    """Return how many points along each axis one-sided differences need."""
    out = [0] * dimensions
    for n in walk(*(s.value for s in statements)):
        if isinstance(n, Where) and n.least is not None:
            axis, points = n.least
            out[axis] = max(out[axis], points)
    return tuple(out)


def _outputs(statements: Sequence[Statement]) -> tuple[str, ...]:
    names: dict[str, Statement] = {}
    for s in statements:
        if isinstance(s, Assignment):
            if s.target.scale != 1 or s.target.divide != 1 or any(s.target.offsets):
                fail(
                    s.line,
                    "the left side must be a grid at (i, j, k) itself. For interpolation, read a coarse grid at i // 2.",
                )
        name = s.target.grid.name if isinstance(s, Assignment) else s.name
        if name in names:
            fail(s.line, f"'{name}' is assigned twice. Take another name, or one statement.")
        names[name] = s
    return tuple(n for n, s in names.items() if isinstance(s, Assignment))


def _inputs(statements: Sequence[Statement]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    written: set[str] = set()
    for s in statements:
        found |= {n.grid.name: None for n in walk(s.value) if isinstance(n, Ref) and n.grid.name not in written}
        if isinstance(s, Assignment):
            written.add(s.target.grid.name)
    return tuple(found)


def _spaces(targets: list[Ref], refs: list[Ref]) -> tuple[str, frozenset[str]]:
    places: dict[str, tuple[tuple[int, int], Ref]] = {}
    for ref in [*targets, *refs]:
        place = (ref.scale, ref.divide)
        if ref.grid.name in places and places[ref.grid.name][0] != place:
            fail(ref.line, f"'{ref.grid.name}' is read in two index spaces: a grid has the points of one.")
        places[ref.grid.name] = (place, ref)
    other = {place for place, _ in places.values()} - {(1, 1)}
    if len(other) > 1:
        line = next(r.line for p, r in places.values() if p == (1, 2))
        fail(line, "the stencil reads a finer grid (2 * i) and a coarser one (i // 2). Two stencils are needed.")
    if not other:
        return "one", frozenset()
    return ("coarse" if (2, 1) in other else "fine"), frozenset(n for n, (p, _) in places.items() if p in other)


def _values(s: Statement, dimensions: int) -> None:
    if isinstance(s.value, Condition):
        fail(s.line, "a condition is no number: write where(condition, 1.0, 0.0).")
    for n in walk(s.value):
        if isinstance(n, Quotient):
            fail(n.line, "i // 2 is an index of a coarse grid, not a number.")
        whole = n.of if isinstance(n, Remainder) else n
        if isinstance(whole, Integer) and any(axis >= dimensions for _, axis, _ in whole.terms):
            fail(
                n.line, f"an index of axis {max(a for _, a, _ in whole.terms)} in a stencil of {dimensions} dimensions."
            )


def _order(statements: Sequence[Statement]) -> None:
    """Refuse what would depend on the order in which points are visited."""
    written = {s.target.grid.name: s for s in statements if isinstance(s, Assignment)}
    for s in statements:
        for n in walk(s.value):
            if isinstance(n, Ref) and n.grid.name in written and any(n.offsets):
                if s is written[n.grid.name] and red_black(s):
                    continue
                fail(
                    n.line,
                    f"'{n.grid.name}' is written, and read at a neighbour: the result would depend on the order of the points. "
                    "Write another grid, or update the points of one colour: where((i + j + k) % 2 == 0, ..., u(i, j, k)).",
                )


def red_black(s: Statement) -> bool:
    """Tell whether an assignment changes the points of one colour only, and reads its grid at points of the other."""
    w = s.value
    if not isinstance(s, Assignment) or not isinstance(w, WhereNode) or w.condition.op not in ("==", "!="):
        return False
    left, right = w.condition.arguments
    if not isinstance(left, Remainder) or left.by != 2 or not isinstance(right, (Value, Constant)):
        return False
    if w.condition.op == "!=" and not (isinstance(right, Value) and right.value in (0, 1)):
        return False  # of another number: the points of both colours
    colours = [t[0] == "i" and t[2] % 2 == 1 for t in left.of.terms]
    if len(colours) != s.target.grid.dimensions or not all(colours):
        return False
    name = s.target.grid.name
    changed, kept = (w.a, w.b)
    if not (isinstance(kept, Ref) and kept.grid.name == name and not any(kept.offsets)):
        return False
    mine = [n for n in walk(changed) if isinstance(n, Ref) and n.grid.name == name]
    return all(sum(n.offsets) % 2 == 1 or not any(n.offsets) for n in mine)


def are_real(root: Expr) -> dict[int, bool]:
    """Tell of each node of an expression, by its id, whether its value is real where grids and constants are complex."""
    real: dict[int, bool] = {}
    for n in walk(root):
        below = [real[id(c)] for c in n.children()]
        if isinstance(n, Value):
            real[id(n)] = not isinstance(n.value, complex)
        elif isinstance(n, (Constant, Ref)):
            real[id(n)] = False
        elif isinstance(n, WhereNode):
            real[id(n)] = all(below[1:])
        else:
            real[id(n)] = not isinstance(n, Operation) or n.op == "abs" or all(below)
    return real


def check_dtype(statements: Sequence[Statement], dtype: str) -> None:
    """Refuse what has no meaning in a dtype: complex numbers in a real one, an order of complex ones."""
    for s in statements:
        if not dtype.startswith("complex"):
            for n in walk(s.value):
                if isinstance(n, Value) and isinstance(n.value, complex):
                    fail(
                        n.line,
                        f"{n.value} is not real, and the stencil is computed in {dtype}. Give dtype= complex64 or complex128.",
                    )
            continue
        real = are_real(s.value)
        for n in walk(s.value):
            ordered = (
                n.op if isinstance(n, (Condition, Operation)) and n.op in ("<", "<=", ">", ">=", "min", "max") else ""
            )
            if ordered and not all(real[id(c)] for c in n.children()):
                fail(n.line, f"complex numbers have no order ({ordered}). Take abs() of them, or a real dtype.")
        if isinstance(s, Reduction) and s.op != "sum" and not real[id(s.value)]:
            fail(s.line, f"complex numbers have no order (reduction {s.op}). Take abs() of them, or a real dtype.")


def _constants(
    statements: Sequence[Statement], grids: dict[str, None]
) -> tuple[tuple[str, float | complex | None], ...]:
    found: dict[str, Constant] = {}
    nodes: list[Expr] = [n for s in statements for n in walk(s.value)]
    for n in nodes:
        if isinstance(n, Constant):
            if n.name in grids:
                fail(n.line, f"'{n.name}' is the name of a grid and of a constant.")
            if found.setdefault(n.name, n).default != n.default:
                fail(n.line, f"the constant '{n.name}' has two defaults, {found[n.name].default} and {n.default}.")
    return tuple((name, n.default) for name, n in found.items())
