"""Structured grids dealt to the ranks in boxes: global vectors, local arrays with ghost points, ghost exchange."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .base.files import write_figure
from .base.indices import as_count, as_flags, as_shape
from .base.values import dtype_name
from .comm.communicator import as_communicator, one_call, reported
from .comm.flight import Flight
from .comm.forest import StarForest, shared_zeros
from .errors import DtypeError, InputError, OptionError, ShapeError, UnsupportedError
from .la.operator import Operator

__all__ = ["Grid"]


def __dir__() -> list[str]:
    return __all__


class Grid:
    """A grid of 1 to 3 dimensions; each rank owns a box of its points.

    Parameters
    ----------
    shape : int or sequence of int
        Points in each direction; the last index is the fastest, as in NumPy.
    comm : None or mpi4py.MPI.Comm
    stencil : {"star", "box"}
        Which ghost points there are: those straight across a face (7 points in 3-D), or all around (27).
    periodic : bool or sequence of bool
        For each direction.
    width : int
        How deep the ghost points are.
    ranks : sequence of int, optional
        Into how many boxes each direction is cut; by default such that the fewest points are exchanged.
    transport : str, optional
        As for `StarForest`.
    spacing : float or sequence of float, optional
        Between points, for each direction. By default the points fill the unit box; a periodic direction ends where it begins.

    Raises
    ------
    ShapeError
        There are other than 1 to 3 dimensions, a direction without points, or other than as many ``ranks`` or ``spacing``.
    InputError
        The grid is cut into other than as many boxes as ranks, a spacing is not positive, or ``periodic`` no flag.
    OptionError
        ``stencil`` or ``transport`` is another word.

    Attributes
    ----------
    shape : tuple of int
    ranks : tuple of int
    spacing : tuple of float
    owned : tuple of slice
        This rank's points, in the indices of the whole grid.
    ghosted : tuple of (int, int)
        First index and end of a local array; outside of the grid in periodic directions.
    interior : tuple of slice
        The own points within a local array.

    Notes
    -----
    Making it is collective, as are the exchanges. A local array has shape ``[e - b for b, e in ghosted]``, a global one the
    shape of the own box; with another last axis for several unknowns a point. Raveled, a global array is this rank's part
    of a vector whose rows are numbered as `numbers` says, for matrices on the grid. An exchange sends one message for each
    neighbouring rank, without packing where its part is contiguous. Memory of
    making it: O(neighbours); time too, and O(ranks) where ``ranks`` is not given.

    Examples
    --------
    >>> import asterism as am
    >>> g = am.grid.Grid((6, 4), periodic=(False, True))
    >>> u = g.local()
    >>> u[g.interior] = 1.0
    >>> g.exchange(u)
    >>> u.shape, float(u.sum())
    ((6, 6), 36.0)
    """

    @one_call("Grid")
    def __init__(
        self,
        shape: int | Sequence[int],
        comm: Any = None,
        stencil: str = "star",
        periodic: bool | Sequence[bool] = False,
        *,
        width: int = 1,
        ranks: Sequence[int] | None = None,
        transport: str | None = None,
        spacing: float | Sequence[float] | None = None,
    ) -> None:
        sizes = as_shape(shape, "Grid: shape")
        d = len(sizes)
        around = [bool(p) for p in as_flags(periodic, d)]
        if stencil not in ("star", "box"):
            raise OptionError(f"stencil '{stencil}' is not one of star, box.")
        cuts = [] if ranks is None else [as_count(r, "Grid: ranks") for r in ranks]
        if spacing is None:
            between = []
        else:
            between = [float(spacing)] * d if np.isscalar(spacing) else [float(h) for h in spacing]  # type: ignore[arg-type, union-attr]
        self._comm = as_communicator(comm)
        self._h = _core.Grid(
            self._comm, sizes, as_count(width, "Grid: width"), stencil == "box", around, cuts, transport, between
        )
        self.stencil, self.width, self.periodic = stencil, int(width), tuple(around)
        self.shape: tuple[int, ...] = tuple(sizes)
        self.ranks: tuple[int, ...] = tuple(self._h.ranks[3 - d :])
        self.spacing: tuple[float, ...] = tuple(self._h.spacing)
        low, high = (b[3 - d :] for b in self._h.owned(self._comm.rank))
        first, end = (b[3 - d :] for b in self._h.ghosted(self._comm.rank))
        self.owned = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        self.ghosted = tuple(zip(first, end, strict=True))
        self.interior = tuple(slice(a - f, b - f) for a, b, f in zip(low, high, first, strict=True))
        self._ghosts = StarForest._of(self._h.ghosts)
        self._to_local = StarForest._of(self._h.global_to_local)

    def __repr__(self) -> str:
        points, cuts = (" x ".join(map(str, a)) for a in (self.shape, self.ranks))
        return f"<asterism.grid.Grid of {points} points in {cuts} boxes, {self.stencil} stencil, width {self.width}>"

    @property
    def local_shape(self) -> tuple[int, ...]:
        """Shape of local arrays."""
        return tuple(e - b for b, e in self.ghosted)

    @property
    def global_shape(self) -> tuple[int, ...]:
        """Shape of this rank's part of global arrays."""
        return tuple(s.stop - s.start for s in self.owned)

    def local(self, dtype: Any = np.float64, k: int | None = None) -> NDArray[Any]:
        """Return a local array of zeros.

        Parameters
        ----------
        dtype : NumPy dtype
        k : int, optional
            Unknowns of a point, as another last axis.

        Returns
        -------
        array, shape ``local_shape`` or ``(*local_shape, k)``
            On several ranks of `shared_zeros`: neighbours on this machine read it in place.
        """
        shape = self.local_shape if k is None else (*self.local_shape, k)
        return shared_zeros(shape, dtype) if self._comm.size > 1 else np.zeros(shape, dtype)

    def globals(self, dtype: Any = np.float64, k: int | None = None) -> NDArray[Any]:
        """Return this rank's part of a global array of zeros.

        Parameters
        ----------
        dtype : NumPy dtype
        k : int, optional
            Unknowns of a point, as another last axis.

        Returns
        -------
        array, shape ``global_shape`` or ``(*global_shape, k)``
        """
        return np.zeros(self.global_shape if k is None else (*self.global_shape, k), dtype)

    def numbers(self) -> NDArray[np.int64]:
        """Return for each point of a local array its row in global vectors and in matrices on the grid.

        Returns
        -------
        array of int64, shape ``local_shape``
        """
        return np.asarray(self._h.numbers(), dtype=np.int64).reshape(self.local_shape)

    def coordinates(self) -> NDArray[np.float64]:
        """Return where the own points are, of the shape of a global array and a last axis of the directions.

        The point with the indices p lies at ``p * spacing``. They are kept from the first call on.
        """
        xyz: NDArray[np.float64] = self._h.coordinates()
        return xyz.reshape(*self.global_shape, len(self.shape))

    def _flat(self, a: NDArray[Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        if (
            not isinstance(a, np.ndarray)
            or not a.flags.c_contiguous
            or a.shape[: len(shape)] != shape
            or a.ndim > len(shape) + 1
        ):
            got = f"shape {a.shape}" if isinstance(a, np.ndarray) else type(a).__name__
            raise ShapeError(f"{name}: a C-contiguous array of shape {shape} or {(*shape, 'k')} is needed, not {got}.")
        points = int(np.prod(shape))
        return a.reshape(points) if a.ndim == len(shape) else a.reshape(points, a.shape[-1])

    def _global_and_local(self, values: NDArray[Any], local: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return self._flat(values, "values", self.global_shape), self._flat(local, "local", self.local_shape)

    @reported("Grid.exchange_begin")
    def exchange_begin(self, local: NDArray[Any]) -> Flight:
        """Begin `exchange`, and return while the ghost points travel.

        Parameters
        ----------
        local : array
            As for `exchange`. Until ``end()`` own points may be read, and no point may be written.

        Returns
        -------
        Flight
            Its ``end()`` waits for the ghost points.

        Notes
        -----
        Collective, as is ``end()``.

        Examples
        --------
        >>> import asterism as am
        >>> g = am.grid.Grid((6, 4), periodic=True)
        >>> u = g.local()
        >>> u[g.interior] = 1.0
        >>> flight = g.exchange_begin(u)
        >>> inner = u[2:-2, 2:-2].sum()         # points that need no ghost points
        >>> flight.end()
        """
        flat = self._flat(local, "local", self.local_shape)
        return self._ghosts.bcast_begin(flat, flat)

    @reported("Grid.exchange")
    def exchange(self, local: NDArray[Any]) -> None:
        """Fill the ghost points from their owners, in place.

        Parameters
        ----------
        local : array, shape ``local_shape`` or ``(*local_shape, k)``
            C-contiguous, of any NumPy dtype without objects. Own points are not changed.

        Raises
        ------
        ShapeError
            It has another shape, or is not C-contiguous.

        Notes
        -----
        Collective. Cost: a message to and from each neighbouring rank; none where ranks share memory.
        """
        flat = self._flat(local, "local", self.local_shape)
        self._ghosts.bcast(flat, flat)

    @reported("Grid.to_local")
    def to_local(self, values: NDArray[Any], local: NDArray[Any]) -> None:
        """Fill a local array, ghost points included, from a global one.

        Parameters
        ----------
        values : array, shape ``global_shape`` or ``(*global_shape, k)``
        local : array, shape ``local_shape`` or ``(*local_shape, k)``
            Of the same dtype. Both are C-contiguous.

        Raises
        ------
        ShapeError
            An array has another shape or dtype, or is not C-contiguous.

        Notes
        -----
        Collective. Cost: that of `exchange`, and a copy of the own points.
        """
        self._to_local.bcast(*self._global_and_local(values, local))

    def to_global(self, local: NDArray[Any], values: NDArray[Any], op: str = "replace") -> None:
        """Put own points into a global array (replace), or add what all ranks have at a point, ghost points too (sum).

        Parameters
        ----------
        local : array, shape ``local_shape`` or ``(*local_shape, k)``
        values : array, shape ``global_shape`` or ``(*global_shape, k)``
            Is changed. Both are C-contiguous, and of one dtype; "replace" converts between precisions.
        op : str
            "replace", or a reduction of `StarForest.reduce`, such as "sum": ``values`` are combined with what comes.

        Raises
        ------
        ShapeError
            An array has another shape, or is not C-contiguous; or the dtypes differ.
        DtypeError
            "replace" would lose an imaginary part or a fraction.
        OptionError
            ``op`` is another word.

        Notes
        -----
        "replace" is a copy, and not collective. All else is, and costs a message to and from each neighbouring rank.
        """
        if op == "replace":
            flat, out = self._global_and_local(values, local)
            if flat.shape[1:] != out.shape[1:]:
                raise ShapeError(f"Grid.to_global: local has shape {local.shape}, values {values.shape}.")
            if not np.can_cast(local.dtype, values.dtype, "same_kind"):
                raise DtypeError(
                    f"Grid.to_global: local has dtype {local.dtype}, values {values.dtype}. Make values of {local.dtype}."
                )
            values[...] = local[self.interior]
        else:
            self._combine(local, values, op)

    @reported("Grid.to_global")
    def _combine(self, local: NDArray[Any], values: NDArray[Any], op: str) -> None:
        out, flat = self._global_and_local(values, local)
        self._to_local.reduce(flat, out, op)

    @one_call("Grid.star_operator")
    def star_operator(self, centre: float, sides: float | Sequence[float], *, dtype: Any = np.float64) -> Operator:
        """Return the operator of a star of constant coefficients, without a matrix.

        ``(A u)(p) = centre * u(p) + sum_d sides[d] * (u(p - e_d) + u(p + e_d))`` over the directions d. Points beyond a border
        that is not periodic are zero. Its vectors are global ones, raveled.

        Parameters
        ----------
        centre : float
        sides : float or sequence of float
            For each direction.
        dtype : optional
            One of the four; the coefficients are real.

        Returns
        -------
        Operator
            Symmetric, with its diagonal and a bound of its eigenvalues: the preconditioners jacobi, chebyshev and gmg work.

        Raises
        ------
        ShapeError
            There are other than one or as many ``sides`` as directions.
        InputError
            The grid has no ghost points, or a coefficient is not finite.
        DtypeError
            ``dtype`` is none of the four.

        Notes
        -----
        Collective; the coefficients are the same on all ranks. A product reads x and writes y once. Points that need no ghost points are done while those travel.

        Examples
        --------
        >>> import asterism as am, numpy as np
        >>> g = am.grid.Grid((40, 40))
        >>> A = g.star_operator(4.0, -1.0)
        >>> x, info = am.solve(A, np.ones(1600), ksp="cg", pc="chebyshev", rtol=1e-8)
        >>> info.converged
        True
        """
        d = len(self.shape)
        if self.width < 1:
            raise InputError("Grid.star_operator: ghost points must be at least 1 deep; make the grid with width=1.")
        weights = [float(sides)] * d if np.isscalar(sides) else [float(s) for s in sides]  # type: ignore[arg-type, union-attr]
        if len(weights) != d:
            raise ShapeError(f"Grid.star_operator: {len(weights)} side coefficients for {d} directions.")
        all_three = [0.0] * (3 - d) + weights
        return Operator._of(
            _core.StarOperator(self._h, float(centre), all_three, dtype_name(dtype, "Grid.star_operator"))
        )

    def forest(self) -> StarForest:
        """Return the star forest that fills ghost points: roots and leaves are points of local arrays."""
        return self._ghosts

    def view(self) -> str:
        """Describe the cuts and this rank's part; grids of 2 dimensions with up to 40 x 80 points are drawn."""
        text = " x ".join(map(str, self.shape))
        cuts = " x ".join(map(str, self.ranks))
        lines = [f"grid {text}, {self.stencil} stencil of width {self.width}, cut into {cuts} boxes"]
        own = ", ".join(f"{s.start}:{s.stop}" for s in self.owned)
        lines.append(f"rank {self._comm.rank} owns [{own}], {int(np.prod(self.global_shape))} points")
        lines += self._ghosts.view().splitlines()[1:]
        if len(self.shape) == 2 and self.shape[0] <= 40 and self.shape[1] <= 80:
            owner = self._owners()
            digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
            lines += ["".join(digits[r % len(digits)] for r in row) for row in owner]
        return "\n".join(lines)

    def _owners(self) -> NDArray[np.int64]:
        owner = np.zeros(self.shape, dtype=np.int64)
        d = len(self.shape)
        for r in range(self._comm.size):
            low, high = self._h.owned(r)
            owner[tuple(slice(a, b) for a, b in zip(low[3 - d :], high[3 - d :], strict=True))] = r
        return owner

    def picture(self, path: str | Path) -> None:
        """Write an image of who owns what; a grid of 3 dimensions is cut through its middle.

        Parameters
        ----------
        path : path-like
            Its ending says the format, ``.png`` or another one of Matplotlib's. Written beside, then renamed.

        Raises
        ------
        UnsupportedError
            Matplotlib is missing.
        FileError
            The file cannot be written.
        InputError
            Matplotlib has no such format.

        Notes
        -----
        Not collective: rank 0 writes, the others do nothing. Cost: memory of the order of the whole grid there.
        """
        if self._comm.rank != 0:
            return
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise UnsupportedError("Grid.picture needs matplotlib: pip install 'asterism-sparse[report]'") from error
        owner = np.atleast_2d(self._owners())
        if owner.ndim == 3:
            owner = owner[owner.shape[0] // 2]
        figure = Figure(figsize=(6, 5))
        axes = figure.add_subplot()
        image = axes.imshow(owner, cmap="tab20", interpolation="nearest", origin="lower")
        axes.set(
            title=f"owners of {' x '.join(map(str, self.shape))} points", xlabel="last index", ylabel="index before"
        )
        figure.colorbar(image, label="rank")
        write_figure(path, figure)
