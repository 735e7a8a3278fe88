"""Stencils: written in Python as on paper, interpreted by NumPy, or compiled to vector code for bricks.

The stages are one file each: `language`, `checks`, `cost`, `interpreter`; then `lower`, `passes`, `emit`, `compile`, `cache`. `differences`
derives weights. Nothing here needs the compiled library.
"""

from __future__ import annotations

from .cost import Cost
from .differences import derivative, laplacian, weights
from .language import Expr, Grid, constant, grid, indices, maximum, minimum, sqrt, where
from .stencil import Stencil, assign, fuse, reduce

__all__ = [
    "Cost",
    "Expr",
    "Grid",
    "Stencil",
    "assign",
    "constant",
    "derivative",
    "fuse",
    "grid",
    "indices",
    "laplacian",
]
__all__ += ["maximum", "minimum", "reduce", "sqrt", "weights", "where"]


def __dir__() -> list[str]:
    return __all__
