"""What a kernel is found by in the cache, without its text.

Input: the statements of a stencil, and what else its text depends on. Output: a digest. Equal digests have equal text: everything that the
later stages read is in it, and so are these stages themselves.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..language.expressions import (
    Condition,
    Constant,
    Expr,
    Index,
    Integer,
    Operation,
    Quotient,
    Ref,
    Remainder,
    Value,
    Where,
    walk,
)
from ..language.statements import Assignment, Statement

__all__ = ["fingerprint"]

#: What a node is, besides its class and its arguments.
_DATA: dict[type[Expr], Callable[[Any], tuple[Any, ...]]] = {
    Value: lambda n: (n.value,),
    Constant: lambda n: (n.name,),
    Integer: lambda n: (n.terms, n.add),
    Index: lambda n: (n.terms, n.add),
    Quotient: lambda n: (n.of.terms, n.of.add, n.add),
    Remainder: lambda n: (n.of.terms, n.of.add, n.by),
    Operation: lambda n: (n.op,),
    Condition: lambda n: (n.op,),
    Where: lambda n: (),
    Ref: lambda n: (n.grid.name, n.grid.dimensions, n.offsets, n.scale, n.divide),
}


@functools.cache
def _stages() -> bytes:
    """Return a digest of the compiler's own files."""
    out = hashlib.sha256()
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        out.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return out.digest()


def fingerprint(statements: Sequence[Statement], *others: Any) -> str:
    """Return the digest, in hexadecimal digits. Its time grows with the nodes of the stencil.

    Parameters
    ----------
    statements : sequence of Assignment or Reduction
    *others
        What else the text depends on: its target, bricks, the dtype.
    """
    numbers: dict[int, int] = {}
    parts = []
    for node in walk(*(s.value for s in statements)):
        parts.append((type(node).__name__, _DATA[type(node)](node), [numbers[id(c)] for c in node.children()]))
        numbers[id(node)] = len(numbers)
    for s in statements:
        what = _DATA[Ref](s.target) if isinstance(s, Assignment) else (s.name, s.op)
        parts.append((type(s).__name__, what, [numbers[id(s.value)]]))
    return hashlib.sha256(_stages() + repr((others, parts)).encode()).hexdigest()
