"""Stencils: written in Python as on paper, interpreted by NumPy, or compiled to vector code for bricks.

The stages are one file each. `language` has what a stencil is, `codegen` makes the text of kernels from it, and
`kernels` compiles and caches them. Nothing here needs the compiled library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .codegen.sources import Source, generate
from .kernels.compiler import Library, build
from .kernels.kernel import Kernel, compile
from .language.constructors import constant, cos, exp, grid, indices, log, maximum, minimum, sin, sqrt, where
from .language.cost import Cost
from .language.differences import derivative, laplacian, weights
from .language.expressions import Expr, Grid
from .language.stencil import Stencil, assign, fuse, reduce

if TYPE_CHECKING:
    from ..bricks import StencilOperator

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
    "cos",
    "derivative",
    "exp",
    "fuse",
    "generate",
    "grid",
    "indices",
    "laplacian",
    "log",
    "maximum",
    "minimum",
    "operator",
    "reduce",
    "sin",
    "sqrt",
    "weights",
    "where",
]


def operator(
    stencil: Stencil,
    shape: int | Sequence[int],
    periodic: bool | Sequence[bool] = False,
    comm: Any = None,
    *,
    brick: int | Sequence[int] | None = None,
    dtype: Any = "float64",
    of: str | None = None,
    ranks: Sequence[int] | None = None,
    target: str | None = None,
    points: str = "nodes",
    interpolation: str = "linear",
    spacing: str | Sequence[str] | None = None,
    **given: Any,
) -> StencilOperator:
    """Return a linear stencil as an operator on a grid that is dealt to the ranks: for products and solvers.

    Parameters
    ----------
    stencil : Stencil
        One assignment, linear in the grid that it is applied to.
    shape : int or sequence of int
        Points of the whole grid.
    periodic : bool or sequence of bool
        For each axis, whose points must be a multiple of a brick's. Points beyond other ends are zero.
    comm : None or mpi4py.MPI.Comm
    brick : int or sequence of int, optional
        By default 8 points along each axis, or all of a shorter one, or 4 to 16 that divide a periodic one; more, at most 64, if the
        stencil would read further than the next brick. One-sided differences may read further than 8 points: at an end these often lie
        in the next brick.
    dtype : {float64, float32, complex128, complex64}
    of : str, optional
        The grid that it is applied to: by default the one that is not given.
    ranks : sequence of int, optional
        Into how many boxes each axis is cut; by default such that the fewest bricks are exchanged.
    target : {"generic", "avx2", "avx512"}, optional
        By default the widest that this CPU has.
    points : {"nodes", "cells"}
        Where the points lie: point i of n at ``(i + 1) / (n + 1)`` of the unit box, or at ``i / n`` along a periodic axis; of cells at
        ``(i + 0.5) / n``. Multigrid (``pc="gmg"``) interpolates accordingly.
    interpolation : {"linear", "constant"}
        From coarse grids of multigrid. Constant is for cells: it is cheaper, and needs several smoothing steps.
    spacing : str or sequence of str, optional
        The constants that are the spacing, which multigrid doubles from level to level: by default "h", if there is one. Without, or with
        another number of points than 2 m + 1 nodes, 2 m along a periodic axis or 2 m cells, it makes Galerkin's product.
    **given
        The constants, and the other grids that the stencil reads: arrays of my points or of the whole grid, or functions of the
        coordinates in the unit box. Multigrid evaluates functions again on coarser grids, and averages arrays.

    Returns
    -------
    StencilOperator
        ``L @ x`` takes and returns this rank's points in lexicographic order. So do `solve` and `Solver`.

    Raises
    ------
    InputError
        The stencil is not linear, a constant or grid is not given or not finite, or an unknown one is given.
    ShapeError
        ``shape`` has other dimensions than the stencil, a periodic axis is no multiple of a brick, or an array does not fit.
    OptionError, DtypeError
        ``points``, ``target`` or ``dtype`` is another word.

    Notes
    -----
    Collective. Rank 0 compiles, and the others find the kernel in the cache. The compiled library is needed. The diagonal and a bound
    of the eigenvalues come from the stencil: the preconditioners jacobi, chebyshev and gmg work. There is an adjoint product
    (``L.rmatvec(x)``; with ``conjugate=False`` L^T x) where the transposed stencil (`Stencil.transpose`) reads no further than one brick.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> i, j = am.stencil.indices(2)
    >>> u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
    >>> five = am.stencil.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    >>> L = am.stencil.operator(five, (30, 30))
    >>> x, info = am.solve(L, np.ones((30, 30)), ksp="cg", pc="chebyshev", rtol=1e-8)
    >>> bool(np.allclose(L @ x, 1.0, atol=1e-6))
    True
    """
    from ..bricks import operator as made

    return made(
        stencil,
        shape,
        periodic,
        comm,
        brick=brick,
        dtype=dtype,
        of=of,
        ranks=ranks,
        target=target,
        points=points,
        interpolation=interpolation,
        spacing=spacing,
        **given,
    )


def __dir__() -> list[str]:
    return __all__
