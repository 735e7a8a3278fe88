"""Model problems, used by tests, examples and benchmarks alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _core
from .base.indices import as_count, as_counts, as_shape
from .comm.communicator import as_communicator, one_call
from .la.matrix import Matrix

__all__ = ["convection_diffusion", "diffusion", "elasticity", "laplace_q2", "poisson", "rotated_anisotropy"]


def __dir__() -> list[str]:
    return __all__


@one_call("poisson")
def poisson(
    shape: int | Sequence[int],
    comm: Any = None,
    *,
    dtype: str = "float64",
    stencil: str = "star",
    neumann: bool = False,
    epsilon: Sequence[float] = (),
) -> Matrix:
    """-Laplace on a grid with unit spacing, Dirichlet values eliminated.

    Parameters
    ----------
    shape : int, or sequence of 1 to 3 ints
        Grid points; the last index runs fastest.
    stencil : {"star", "box"}
        5/7-point, or 9/27-point.
    neumann : bool
        Pure Neumann: the constants are in the null space.
    epsilon : sequence of float
        Coefficient of each direction (star only).

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.poisson((4, 4)).nnz
    64
    """
    if stencil not in ("star", "box"):
        raise ValueError(f"stencil '{stencil}' is not 'star' or 'box'.")
    return Matrix(
        _core.poisson(
            as_communicator(comm),
            as_shape(shape, "poisson: shape"),
            dtype,
            stencil == "box",
            neumann,
            list(epsilon),
        )
    )


@one_call("convection_diffusion")
def convection_diffusion(
    shape: int | Sequence[int],
    velocity: Sequence[float],
    epsilon: float = 1.0,
    comm: Any = None,
    *,
    dtype: str = "float64",
) -> Matrix:
    """-epsilon Laplace(u) + velocity . grad u on the unit interval, square or cube, by upwind differences of first order; unsymmetric.

    Parameters
    ----------
    shape : int, or sequence of 1 to 3 ints
        Grid points; the last index runs fastest. Dirichlet values are eliminated.
    velocity : sequence of float
        One component for each dimension.
    epsilon : float
        Diffusion.
    comm : None or mpi4py.MPI.Comm
    dtype : {"float64", "float32", "complex128", "complex64"}

    Raises
    ------
    ShapeError
        If ``velocity`` has another number of components than ``shape``.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.convection_diffusion((3,), (1.0,), 0.1).toarray()
    array([[ 7.2, -1.6,  0. ],
           [-5.6,  7.2, -1.6],
           [ 0. , -5.6,  7.2]])
    """
    return Matrix(
        _core.convection_diffusion(
            as_communicator(comm),
            as_shape(shape, "convection_diffusion: shape"),
            float(epsilon),
            list(map(float, velocity)),
            dtype,
        )
    )


@one_call("diffusion")
def diffusion(
    shape: int | Sequence[int],
    comm: Any = None,
    *,
    contrast: float = 1.0,
    block: int = 8,
    stretch: float = 1.0,
    dtype: str = "float64",
) -> Matrix:
    """Finite volumes for -div(k grad u), Dirichlet values at the boundary: jumping coefficients, stretched cells.

    Parameters
    ----------
    shape : int, or sequence of 1 to 3 ints
        Cells; the last index runs fastest.
    contrast : float
        k in half of the blocks, which a hash of their place chooses; 1 in the others.
    block : int
        Cells of a block in each direction.
    stretch : float
        Of a cell's width to that of the one before it, in each direction; the first one is 1 wide.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.diffusion((4, 4), contrast=1e6, block=2, stretch=1.1).nnz
    64
    """
    return Matrix(
        _core.diffusion(
            as_communicator(comm),
            as_shape(shape, "diffusion: shape"),
            float(contrast),
            as_count(block, "block"),
            float(stretch),
            dtype,
        )
    )


@one_call("rotated_anisotropy")
def rotated_anisotropy(
    shape: Sequence[int],
    comm: Any = None,
    *,
    epsilon: float = 1e-3,
    theta: float = math.pi / 4,
    dtype: str = "float64",
) -> Matrix:
    """Bilinear finite elements for a diffusion of 1 in one direction and epsilon across it; Dirichlet values eliminated.

    Parameters
    ----------
    shape : (int, int)
        Inner points of a square mesh; x goes with the first index.
    theta : float
        Radians from x to the direction of the strong diffusion.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.rotated_anisotropy((4, 4), epsilon=0.01).nnz
    100
    """
    points = as_counts(shape, 2, "rotated_anisotropy: shape")
    return Matrix(_core.rotated_anisotropy(as_communicator(comm), points, float(epsilon), float(theta), dtype))


@one_call("elasticity")
def elasticity(
    cells: Sequence[int],
    comm: Any = None,
    *,
    youngs_modulus: float = 1.0,
    poisson_ratio: float = 0.3,
    dtype: str = "float64",
) -> Matrix:
    """Linear elasticity on cubic trilinear cells, clamped where x = 0.

    Three unknowns a node; block size and rigid-body modes are attached to the matrix.

    Parameters
    ----------
    cells : (int, int, int)
        Of unit size, in each direction.
    comm : None or mpi4py.MPI.Comm
    youngs_modulus : float
        Positive.
    poisson_ratio : float
        Above -1 and below 0.5.
    dtype : {"float64", "float32", "complex128", "complex64"}

    Raises
    ------
    InputError
        If a modulus is out of its range.

    Examples
    --------
    >>> import asterism as am
    >>> K = am.gallery.elasticity((2, 2, 2))
    >>> K.shape, K.block_size, K.near_null_space.shape
    ((54, 54), 3, (54, 6))
    """
    counts = as_counts(cells, 3, "elasticity: cells")
    return Matrix(_core.elasticity(as_communicator(comm), counts, youngs_modulus, poisson_ratio, dtype))


@one_call("laplace_q2")
def laplace_q2(
    cells: Sequence[int],
    comm: Any = None,
    *,
    processes: Sequence[int] | None = None,
    nodes: Sequence[int] = (1, 1, 1),
    dtype: str = "float64",
) -> Matrix:
    """-Laplace by triquadratic hexahedra (27 nodes, 3 x 3 x 3 Gauss points), Dirichlet values eliminated.

    The cells are cubes of side 1. The unknowns are at ``p / 2`` for ``1 <= p < 2 * cells`` in each direction; up to 125 entries a row, 64 in
    the mean. For cubes of side h multiply the matrix by h. The problem of Fig. 9 and 10 of Mills, Adams and others (2025).

    Parameters
    ----------
    cells : (int, int, int)
    processes : (int, int, int), optional
        The cells are cut into so many boxes, one for each rank, whose unknowns follow each other. By default the unknowns are dealt evenly in
        the order of the grid, the last index the fastest, so that any number of ranks has the same matrix.
    nodes : (int, int, int)
        With ``processes``: the cells are first cut into a box for each node of a cluster, and each of these into ``processes`` ones. Ranks of
        a node follow each other.

    Raises
    ------
    ShapeError
        Where ``nodes`` times ``processes`` is not the number of ranks, or one of the three is not three numbers.
    OutOfMemoryError
        Where a rank has more than 2**31 - 1 rows.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.laplace_q2((2, 2, 2)).shape
    (27, 27)
    """
    counts = as_counts(cells, 3, "laplace_q2: cells")
    per_node = [0, 0, 0] if processes is None else as_counts(processes, 3, "laplace_q2: processes")
    boxes = as_counts(nodes, 3, "laplace_q2: nodes")
    return Matrix(_core.laplace_q2(as_communicator(comm), counts, dtype, boxes, per_node))
