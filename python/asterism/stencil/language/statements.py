"""What a stencil is made of: assignments and reductions, trees of the language with a target or a name."""

from __future__ import annotations

from dataclasses import dataclass

from .expressions import Expr, Ref
from .user_line import Line

__all__ = ["Assignment", "Reduction", "Statement"]


@dataclass(frozen=True, eq=False)
class Assignment:
    """``target = value`` at every point. All points are read before any is written."""

    target: Ref
    value: Expr
    line: Line


@dataclass(frozen=True, eq=False)
class Reduction:
    """The sum, the largest or the smallest of the values at all points, under a name."""

    name: str
    op: str
    value: Expr
    line: Line


Statement = Assignment | Reduction
