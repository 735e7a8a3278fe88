"""Stencils: written in Python as on paper, interpreted by NumPy, or compiled to vector code for bricks.

The stages are one file each: `language`, `checks`, `cost`, `interpreter`; then `lower`, `passes`, `emit`, which
`sources` calls in turn, `compiler`, `cache` and `kernel`. `nodes` has the trees between them; `differences` derives
weights. Nothing here needs the compiled library.
"""

from __future__ import annotations

from .compiler import Library, build
from .cost import Cost
from .differences import derivative, laplacian, weights
from .kernel import Kernel, compile
from .language import Expr, Grid, constant, grid, indices, maximum, minimum, sqrt, where
from .sources import Source, generate
from .stencil import Stencil, assign, fuse, reduce

__all__ = [
    "Cost",
    "Expr",
    "Grid",
    "Kernel",
    "Library",
    "Source",
    "Stencil",
    "assign",
    "build",
    "compile",
    "constant",
    "derivative",
    "fuse",
    "generate",
    "grid",
    "indices",
    "laplacian",
    "maximum",
    "minimum",
    "reduce",
    "sqrt",
    "weights",
    "where",
]


def __dir__() -> list[str]:
    return __all__
