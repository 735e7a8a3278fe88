"""From statements to a table that a kernel of the compiled library reads: for machines without a compiler.

Input: a `Stencil` and its `Source`. Output: `Table`, called as a compiled kernel with its address in the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import UnsupportedError
from ..codegen.lower import lower
from ..codegen.nodes import Builder, Node, postorder
from ..codegen.sources import Source
from ..language.stencil import Stencil

__all__ = ["Table", "build_table"]

_NOWHERE = (0, 0, 0)


@dataclass(frozen=True)
class Table:
    """A stencil that is run from a table.

    Attributes
    ----------
    address : int
        Of the function that reads tables.
    program : int
        Of this table, the last of the arguments.
    """

    address: int
    program: int
    handle: Any


def build_table(stencil: Stencil, source: Source) -> Table:
    """Return the table of a stencil.

    Raises
    ------
    UnsupportedError
        Without the compiled library.
    """
    try:
        from ... import _core
    except ImportError as error:
        raise UnsupportedError(f"tables need asterism's compiled library: {error}") from error
    missing = 3 - stencil.facts.dimensions
    writer = _Writer(stencil, source.dtype, _core.stencil_op)
    table = _core.StencilTable(
        dtype=source.dtype,
        brick=(1,) * missing + source.brick,
        missing=missing,
        fine=stencil.facts.space == "fine",
        registers=writer.registers,
        grids=len(source.grids),
        constants=len(source.constants),
        scalars=writer.scalars,
        code=writer.code,
        terms=writer.terms,
        wholes=writer.wholes,
        stores=writer.stores,
        reductions=[op for _, op in source.reductions],
    )
    return Table(_core.stencil_table_address, table.address, table)


class _Writer:
    """Instructions in the order in which values are needed. A register is used again after the last use of its value."""

    def __init__(self, stencil: Stencil, dtype: str, op: Any) -> None:
        f = stencil.facts
        self.op, self.grids, self.constants = op, f.grids, [name for name, _ in f.constants]
        self.scalars: list[tuple[str, int, int, int, complex]] = []
        self.code: list[tuple[str, int, int, int, int, int, int, tuple[int, ...]]] = []
        self.terms: list[tuple[int, int, int, tuple[int, ...]]] = []
        self.wholes: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        self.stores: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        self.registers = 0
        self._free: list[int] = []
        self._of: dict[Node, int] = {}
        self._scalar_of: dict[Node, int] = {}
        program = lower(stencil.statements, f, Builder(dtype))
        stored = [s.value for s in program.stores]
        nodes = postorder(*stored)
        needed = set(stored)
        for n in reversed(nodes):
            if n in needed:
                needed.update(self._operands(n))
        order = [n for n in nodes if n in needed]
        last = {c: m for m, n in enumerate(order) for c in self._operands(n)}
        kept = {*stored, *(n for n in order if n.uniform)}
        for m, n in enumerate(order):
            self._write(n)
            for c in set(self._operands(n)) - kept:
                if last[c] == m:
                    self._free.append(self._of[c])
        for s in program.stores:
            grid = self.grids.index(s.grid) if s.slot < 0 else -1
            self.stores.append((self._of[s.value], grid, max(0, s.slot), s.stride, s.parity))

    @staticmethod
    def _operands(n: Node) -> list[Node]:
        """Return what must be in registers for a value. A sum reads its grids itself."""
        if n.uniform:
            return []
        if n.op == "sum":
            return [v for _, v in n.terms if v.op != "read" or v.data[1] != 1]
        return list(n.args)

    def _scalar(self, n: Node) -> int:
        """Return the number of a value that is the same at all points."""
        if n not in self._scalar_of:
            if n.op == "sum":
                total = -1
                for c, v in n.terms:
                    product = self._add("*", self._scalar(c), self._scalar(v))
                    total = product if total < 0 else self._add("+", total, product)
                self._scalar_of[n] = total
            elif n.op in ("number", "true", "false"):
                self._scalar_of[n] = self._add("number", value=n.data[0] if n.op == "number" else float(n.op == "true"))
            elif n.op == "constant":
                self._scalar_of[n] = self._add("constant", self.constants.index(n.data[0]))
            else:
                self._scalar_of[n] = self._add(n.op, *(self._scalar(c) for c in n.args))
        return self._scalar_of[n]

    def _add(self, op: str, a: int = 0, b: int = 0, c: int = 0, value: complex = 0.0) -> int:
        self.scalars.append((op, a, b, c, complex(value)))
        return len(self.scalars) - 1

    def _write(self, n: Node) -> None:
        if self._free:
            out = self._free.pop()
        else:
            out, self.registers = self.registers, self.registers + 1
        self._of[n] = out
        a = b = c = first = count = 0
        op, at = n.op, _NOWHERE
        if n.uniform or n.op in ("true", "false"):
            op, a = "copy", self._scalar(n)
        elif n.op == "sum" or (n.op == "read" and n.data[1] == 1):
            op, first = "sum", len(self.terms)
            for k, v in n.terms if n.op == "sum" else [(None, n)]:
                factor = self._add("number", value=1.0) if k is None else self._scalar(k)
                if v.op == "read" and v.data[1] == 1:
                    self.terms.append((factor, self.grids.index(v.data[0]), 0, v.data[2]))
                else:
                    self.terms.append((factor, -1, self._of[v], _NOWHERE))
            count = len(self.terms) - first
        elif n.op == "read":
            op, a, at = "fine", self.grids.index(n.data[0]), n.data[2]
        elif n.op in ("index", "remainder", "test"):
            first = self._whole(n)
            if n.op != "index":
                b = n.data[4] if n.op == "remainder" else self.op(n.data[4])
        else:
            a, b, c = (self._of[v] for v in (*n.args, *(n.args[:1] * (3 - len(n.args)))))
        self.code.append((op, out, a, b, c, first, count, at))

    def _whole(self, n: Node) -> int:
        """Return the number of an integer: its factors of the point's index in the iteration space, and of the extents."""
        terms, add, parity, stride = n.data[:4]
        f, e = [0, 0, 0], [0, 0, 0]
        for symbol, axis, factor in terms:
            if symbol == "n":
                e[axis] += factor
            else:
                f[axis] += factor * stride
                add += factor * parity[axis]
        self.wholes.append((add, tuple(f), tuple(e)))
        return len(self.wholes) - 1
