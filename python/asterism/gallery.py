"""Model problems, used by tests, examples and benchmarks alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _core
from .base.indices import as_count, as_counts, as_shape
from .base.values import dtype_name
from .comm.communicator import as_communicator, one_call
from .errors import InputError, OptionError
from .la.matrix import Matrix

__all__ = ["convection_diffusion", "diffusion", "elasticity", "laplace_q2", "poisson", "rotated_anisotropy"]


def __dir__() -> list[str]:
    return __all__


@one_call("poisson")
def poisson(
    shape: int | Sequence[int],
    comm: Any = None,
    *,
    dtype: Any = "float64",
    stencil: str = "star",
    neumann: bool = False,
    epsilon: Sequence[float] = (),
) -> Matrix:
    """-Laplace on a grid with unit spacing, Dirichlet values eliminated.

    Parameters
    ----------
    shape : int, or sequence of 1 to 3 ints
        Grid points; the last index runs fastest.
    comm : None or mpi4py.MPI.Comm
    dtype : {"float64", "float32", "complex128", "complex64"}
    stencil : {"star", "box"}
        Of 3, 5 or 7 points: twice the sum of the coefficients on the diagonal, minus that of a direction beside it; or 9 or 27 points, with
        3^d - 1 and -1.
    neumann : bool
        Pure Neumann: the constants are in the null space.
    epsilon : sequence of float
        Coefficient of each direction, 1 by default; of a star only.

    Returns
    -------
    Matrix
        Rows are dealt evenly, in the order of the grid.

    Raises
    ------
    ShapeError
        The grid has other than 1 to 3 dimensions, or a direction without points; or ``epsilon`` has another number of coefficients.
    OptionError
        ``stencil`` is another word.
    InputError
        ``epsilon`` is given for a box, or is not finite.
    DtypeError
        ``dtype`` is none of the four.

    Notes
    -----
    Collective. Each rank makes its own rows; nothing is sent but to find the neighbours.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.poisson((4, 4)).nnz
    64
    """
    if stencil not in ("star", "box"):
        raise OptionError(f"poisson: stencil '{stencil}' is not one of star, box.")
    return Matrix(
        _core.poisson(
            as_communicator(comm),
            as_shape(shape, "poisson: shape"),
            dtype_name(dtype, "poisson"),
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
    dtype: Any = "float64",
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

    Returns
    -------
    Matrix

    Raises
    ------
    ShapeError
        The grid is as none of `poisson`, or ``velocity`` has another number of components than ``shape``.
    InputError
        A coefficient is not finite.
    DtypeError
        ``dtype`` is none of the four.

    Notes
    -----
    Collective. The spacing is 1 / (points + 1) in each direction.

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
            dtype_name(dtype, "convection_diffusion"),
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
    dtype: Any = "float64",
) -> Matrix:
    """Finite volumes for -div(k grad u), Dirichlet values at the boundary: jumping coefficients, stretched cells.

    Parameters
    ----------
    shape : int, or sequence of 1 to 3 ints
        Cells; the last index runs fastest.
    comm : None or mpi4py.MPI.Comm
    contrast : float
        k in half of the blocks, which a hash of their place chooses; 1 in the others. Positive.
    block : int
        Cells of a block in each direction, 1 or more.
    stretch : float
        Of a cell's width to that of the one before it, in each direction; the first one is 1 wide. Positive.
    dtype : {"float64", "float32", "complex128", "complex64"}

    Returns
    -------
    Matrix
        Of 3, 5 or 7 points; k at a face is the harmonic mean of both cells.

    Raises
    ------
    ShapeError
        The grid is as none of `poisson`.
    InputError
        A number is out of its range, or the widest cell beyond 1e100.
    DtypeError
        ``dtype`` is none of the four.

    Notes
    -----
    Collective.

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
            dtype_name(dtype, "diffusion"),
        )
    )


@one_call("rotated_anisotropy")
def rotated_anisotropy(
    shape: Sequence[int],
    comm: Any = None,
    *,
    epsilon: float = 1e-3,
    theta: float = math.pi / 4,
    dtype: Any = "float64",
) -> Matrix:
    """Bilinear finite elements for a diffusion of 1 in one direction and epsilon across it; Dirichlet values eliminated.

    Parameters
    ----------
    shape : (int, int)
        Inner points of a square mesh; x goes with the first index.
    comm : None or mpi4py.MPI.Comm
    epsilon : float
        Diffusion across the strong direction.
    theta : float
        Radians from x to the direction of the strong diffusion.
    dtype : {"float64", "float32", "complex128", "complex64"}

    Returns
    -------
    Matrix
        Of 9 points.

    Raises
    ------
    ShapeError
        ``shape`` is not two positive integers.
    InputError
        ``epsilon`` or ``theta`` is not finite.
    DtypeError
        ``dtype`` is none of the four.

    Notes
    -----
    Collective.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.rotated_anisotropy((4, 4), epsilon=0.01).nnz
    100
    """
    points = as_counts(shape, 2, "rotated_anisotropy: shape")
    kind = dtype_name(dtype, "rotated_anisotropy")
    return Matrix(_core.rotated_anisotropy(as_communicator(comm), points, float(epsilon), float(theta), kind))


@one_call("elasticity")
def elasticity(
    cells: Sequence[int],
    comm: Any = None,
    *,
    youngs_modulus: float = 1.0,
    poisson_ratio: float = 0.3,
    dtype: Any = "float64",
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

    Returns
    -------
    Matrix
        The nodes stand in the order of the grid, the last index the fastest; each rank has whole ones.

    Raises
    ------
    InputError
        A modulus is out of its range.
    ShapeError
        ``cells`` is not three positive integers.
    DtypeError
        ``dtype`` is none of the four.

    Notes
    -----
    Collective. 2 x 2 x 2 Gauss points a cell; up to 81 entries a row.

    Examples
    --------
    >>> import asterism as am
    >>> K = am.gallery.elasticity((2, 2, 2))
    >>> K.shape, K.block_size, K.near_null_space.shape
    ((54, 54), 3, (54, 6))
    """
    counts = as_counts(cells, 3, "elasticity: cells")
    kind = dtype_name(dtype, "elasticity")
    return Matrix(_core.elasticity(as_communicator(comm), counts, float(youngs_modulus), float(poisson_ratio), kind))


@one_call("laplace_q2")
def laplace_q2(
    cells: Sequence[int],
    comm: Any = None,
    *,
    processes: Sequence[int] | None = None,
    nodes: Sequence[int] = (1, 1, 1),
    dtype: Any = "float64",
) -> Matrix:
    """-Laplace by triquadratic hexahedra (27 nodes, 3 x 3 x 3 Gauss points), Dirichlet values eliminated.

    The cells are cubes of side 1. The unknowns are at ``p / 2`` for ``1 <= p < 2 * cells`` in each direction; up to 125 entries a row, 64 in
    the mean. For cubes of side h multiply the matrix by h. The problem of Fig. 9 and 10 of Mills, Adams and others (2025).

    Parameters
    ----------
    cells : (int, int, int)
    comm : None or mpi4py.MPI.Comm
    processes : (int, int, int), optional
        The cells are cut into so many boxes, one for each rank, whose unknowns follow each other. By default the unknowns are dealt evenly in
        the order of the grid, the last index the fastest, so that any number of ranks has the same matrix.
    nodes : (int, int, int)
        With ``processes``: the cells are first cut into a box for each node of a cluster, and each of these into ``processes`` ones. Ranks of
        a node follow each other.
    dtype : {"float64", "float32", "complex128", "complex64"}

    Returns
    -------
    Matrix

    Raises
    ------
    ShapeError
        ``nodes`` times ``processes`` is not the number of ranks, or one of the three is not three positive numbers.
    InputError
        ``nodes`` is given without ``processes``.
    OutOfMemoryError
        A rank has more than 2**31 - 1 rows.
    DtypeError
        ``dtype`` is none of the four.

    Notes
    -----
    Collective.

    Examples
    --------
    >>> import asterism as am
    >>> am.gallery.laplace_q2((2, 2, 2)).shape
    (27, 27)
    """
    counts = as_counts(cells, 3, "laplace_q2: cells")
    per_node = [0, 0, 0] if processes is None else as_counts(processes, 3, "laplace_q2: processes")
    boxes = as_counts(nodes, 3, "laplace_q2: nodes")
    if processes is None and boxes != [1, 1, 1]:
        raise InputError(f"laplace_q2: nodes is {tuple(nodes)}, which has no effect without processes. Give both.")
    return Matrix(_core.laplace_q2(as_communicator(comm), counts, dtype_name(dtype, "laplace_q2"), boxes, per_node))
