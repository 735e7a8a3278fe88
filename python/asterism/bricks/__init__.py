"""Stencils as distributed operators on bricks.

`stencil_operator` has the operator, `operator_input` checks its arguments, `making` has its kernels and arrays, and
`diagonal` what the stencil tells of the matrix. `coarse` and `galerkin` have the coarser operators of multigrid.
"""

from .coarse import coarse_level, ends_of
from .stencil_operator import StencilOperator, make, operator

__all__ = ["StencilOperator", "coarse_level", "ends_of", "make", "operator"]


def __dir__() -> list[str]:
    return __all__
