"""What a stencil costs at least: loads, stores, flops, bytes.

Input: the statements. Output: `Cost`. Nothing is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .checks import Facts
from .expressions import Constant, Expr, Integer, Operation, Ref, Remainder, Value, Where, walk
from .statements import Assignment, Statement

__all__ = ["Cost", "cost"]

Coefficient = tuple[complex, tuple[str, ...]]


@dataclass(frozen=True)
class Cost:
    """The least work at a point; of stencils on two spaces, at a coarse point.

    Attributes
    ----------
    loads, stores : int
        Values that are read (each once, however often it is named) and written.
    flops : int
        Of the sum in which terms with the same coefficient are added first; each coefficient but 1 costs one multiplication.
        Where the stencil is no such sum: the operations as written, each different one once.
    bytes : int
        Each grid read once and written once: what no cache can save.
    """

    loads: int
    stores: int
    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """Flops for each byte."""
        return self.flops / self.bytes

    def __str__(self) -> str:
        text = f"{self.loads} loads, {self.stores} stores, {self.flops} flops, {self.bytes} bytes a point"
        return f"{text}: {self.intensity:.3g} flops a byte"


def cost(statements: Sequence[Statement], facts: Facts, itemsize: int) -> Cost:
    """Count."""
    fine = 2**facts.dimensions
    points = fine if facts.space == "fine" else 1
    loads = streams = stores = flops = 0
    written: set[str] = set()
    seen: set[tuple[object, ...]] = set()
    for s in statements:
        for n in walk(s.value):
            if isinstance(n, Ref) and n.grid.name not in written:
                seen.add((n.grid.name, n.scale, n.divide, n.offsets))
        if isinstance(s, Assignment):
            written.add(s.target.grid.name)
            stores += points
        flops += points * _flops(s.value) + (0 if isinstance(s, Assignment) else points)
    for name in {str(k[0]) for k in seen}:
        mine = [k for k in seen if k[0] == name]
        loads += len(mine) * points
        if facts.space == "coarse" and name in facts.elsewhere:  # distinct points of the cell
            streams += len({tuple(o % 2 for o in k[3]) for k in mine})  # type: ignore[attr-defined]
        else:
            streams += 1 if facts.space == "fine" and name in facts.elsewhere else points
    return Cost(loads, stores, flops, (streams + stores) * itemsize)


def _flops(value: Expr) -> int:
    terms = linear(value)
    if terms is not None:
        coefficients = set(terms.values())
        return max(0, len(terms) - 1) + len(coefficients - {(1.0, ())})
    number: dict[tuple[object, ...], int] = {}  # of each different node
    of: dict[int, int] = {}
    constant: set[int] = set()
    count = 0
    for n in walk(value):
        below = tuple(of[id(c)] for c in n.children())
        key = key_of(n, below)
        if key not in number:
            number[key] = len(number)
            if isinstance(n, (Value, Constant)) or (below and all(c in constant for c in below)):
                constant.add(number[key])
            elif isinstance(n, (Operation, Where)):
                count += 1
        of[id(n)] = number[key]
    return count


def key_of(n: Expr, children: tuple[int, ...] = ()) -> tuple[object, ...]:
    """Return what is equal for nodes of equal meaning, if their children are."""
    if isinstance(n, Value):
        return ("value", n.value)
    if isinstance(n, Constant):
        return ("constant", n.name)
    if isinstance(n, Ref):
        return ("ref", n.grid.name, n.scale, n.divide, n.offsets)
    if isinstance(n, Integer):
        return ("integer", n.terms, n.add)
    if isinstance(n, Remainder):
        return ("remainder", n.of.terms, n.of.add, n.by)
    return ("where" if isinstance(n, Where) else n.op, *children)  # type: ignore[attr-defined]


def linear(value: Expr) -> dict[tuple[object, ...], Coefficient] | None:
    """Return the coefficient of each value that is read, if the expression is such a sum with constant coefficients."""
    found: dict[int, tuple[Coefficient | None, dict[tuple[object, ...], Coefficient]] | None] = {}
    for n in walk(value):
        found[id(n)] = _combine(n, [found[id(c)] for c in n.children()])
    got = found[id(value)]
    return got[1] if got and got[0] is None and got[1] else None


# a constant: (coefficient, {}); a sum of values: (None, {value: coefficient}); anything else: None
_Part = tuple[Coefficient | None, dict[tuple[object, ...], Coefficient]] | None


def _combine(n: Expr, parts: list[_Part]) -> _Part:
    if isinstance(n, Value):
        return (n.value, ()), {}
    if isinstance(n, Constant):
        return (1.0, (n.name,)), {}
    if isinstance(n, Ref):
        return None, {key_of(n): (1.0, ())}
    if not isinstance(n, Operation) or any(p is None for p in parts) or n.op not in ("+", "-", "*", "/", "neg"):
        return None
    a = parts[0]
    b = parts[1] if len(parts) > 1 else None
    assert a is not None
    if n.op == "neg":
        return _scaled(a, (-1.0, ()))
    assert b is not None
    if n.op in "+-":
        return _added(a, b if n.op == "+" else _scaled(b, (-1.0, ())))
    if n.op == "/":
        if b[0] is None or not b[0][0]:
            return None
        return _scaled(a, (1.0 / b[0][0], tuple(f"1/{s}" for s in b[0][1])))
    return _scaled(a, b[0]) if b[0] is not None else _scaled(b, a[0]) if a[0] is not None else None


def _scaled(part: _Part, by: Coefficient) -> _Part:
    assert part is not None

    def times(c: Coefficient) -> Coefficient:
        return c[0] * by[0], tuple(sorted(c[1] + by[1]))

    return (None if part[0] is None else times(part[0])), {k: times(c) for k, c in part[1].items()}


def _sum(a: Coefficient, b: Coefficient) -> Coefficient:
    if a[1] == b[1]:
        return a[0] + b[0], a[1]
    return 1.0, ("(" + " + ".join(sorted(f"{v!r} {' '.join(names)}" for v, names in (a, b))) + ")",)


def _added(a: _Part, b: _Part) -> _Part:
    assert a is not None and b is not None
    if a[0] is not None and b[0] is not None:
        return _sum(a[0], b[0]), {}
    if a[0] is not None or b[0] is not None:
        return None
    out = dict(a[1])
    for k, c in b[1].items():
        out[k] = _sum(out[k], c) if k in out else c
    return None, {k: c for k, c in out.items() if c[0]}
