"""Stencils as distributed operators: grids in bricks, dealt to the ranks.

Input: a linear `Stencil` and the number of points. Output: `StencilOperator`, for products and solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.aligned import aligned
from ..comm.agree import agreed
from ..comm.communicator import as_communicator, one_call, reported
from ..errors import ShapeError, UnsupportedError
from ..la.matrix import Matrix
from ..la.operator import Operator, as_values
from ..la.vector import Vector
from ..stencil.codegen.fingerprint import fingerprint
from ..stencil.language.reach import bricks_away
from ..stencil.language.stencil import Stencil
from .coarse import coarse_level
from .diagonal import tell_diagonal, tell_diagonal_of_product
from .making import Made, X, Y, axes_of, coefficient, forms, is_symmetric
from .operator_input import checked

__all__ = ["StencilOperator", "make", "operator"]


class StencilOperator(Operator):
    """A linear stencil on a grid that is dealt to the ranks in boxes of bricks; made by `am.stencil.operator`.

    Attributes
    ----------
    stencil : Stencil
    grid_shape : tuple of int
        Points of the grid.
    brick : tuple of int
        Points of a brick.
    periodic : tuple of bool
    ranks : tuple of int
        Into how many boxes each axis is cut.
    owned : tuple of slice
        This rank's points, in the indices of the whole grid.
    points : {"nodes", "cells"}
        Where the points lie, as `am.stencil.operator` was told.
    compiled : bool
        False where there is no compiler: then a kernel of the library reads the stencil from a table.

    Notes
    -----
    Arrays are this rank's points in lexicographic order: of the shape of `owned`, or flat; with another last axis for several columns.
    `Vector` holds them in the order of bricks, as methods work on them. Its padding is zero.
    """

    def __init__(self, domain: Any, stencil: Stencil, handle: Any, how: Made) -> None:
        self._h, self._domain, self.stencil, self._how = handle, domain, stencil, how
        d = stencil.facts.dimensions
        self.grid_shape, self.brick, self.periodic = how.shape, how.brick, how.periodic
        self.ranks: tuple[int, ...] = tuple(domain.ranks[3 - d :])
        low, high = (b[3 - d :] for b in domain.owned(self._comm.rank))
        self.owned = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        self.points = "cells" if how.cells else "nodes"
        self.compiled = how.compiled

    @property
    def local_grid_shape(self) -> tuple[int, ...]:
        """Shape of this rank's points."""
        return tuple(s.stop - s.start for s in self.owned)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points of the grid, twice."""
        n = int(np.prod(self.grid_shape))
        return n, n

    @property
    def local_shape(self) -> tuple[int, int]:
        """Number of my points, twice."""
        n = int(np.prod(self.local_grid_shape))
        return n, n

    def coordinates(self) -> NDArray[np.float64]:
        """Return where my points are in the unit box.

        Returns
        -------
        array of float64, shape ``(*local_grid_shape, dimensions)``
        """
        at = np.meshgrid(*axes_of(self._how, [(s.start, s.stop) for s in self.owned]), indexing="ij")
        return np.stack(at, axis=-1)

    def __repr__(self) -> str:
        points, ranks = (" x ".join(map(str, a)) for a in (self.grid_shape, self.ranks))
        return f"<asterism.StencilOperator on {points} points in {ranks} boxes, {self.dtype}: {self.stencil!r}>"

    def __copy__(self) -> StencilOperator:
        return StencilOperator(self._domain, self.stencil, self._h, self._how)  # nothing of it can be changed

    def _columns(self, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
        """Return () or (k,): the last axis of an array of my points, which may be flat."""
        mine, n = self.local_grid_shape, self.local_shape[0]
        for of in (mine, (n,)):
            if shape == of:
                return ()
            if shape[:-1] == of:
                return shape[-1:]
        raise ShapeError(
            f"{what}: the array has the shape {shape}; my points have {mine}, flat ({n},), or with another last axis."
        )

    def _entries(self, x: Any, what: str) -> NDArray[Any]:
        if isinstance(x, Vector):  # in the order of bricks as it is
            if not x._h.layout.fits(self._h.rows):
                raise ShapeError(f"{what}: {x!r} is no vector of {self!r}. L.make_vector makes one.")
            return x.numpy()
        points = as_values(x, what)
        columns = self._columns(points.shape, what)
        out = aligned((int(self._h.rows.local_size), *columns), points.dtype)
        self._domain.to_bricks(points, out)
        return out

    def _points(self, entries: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        out = np.empty(shape, entries.dtype)
        self._domain.from_bricks(np.ascontiguousarray(entries), out)
        return out

    def to_bricks(self, x: Any) -> NDArray[Any]:
        """Return my points in the order of a `Vector` of this operator.

        Parameters
        ----------
        x : array, or Vector
            Of the shape of my points, or flat; with another last axis for several columns. A vector of this operator is in that order.

        Returns
        -------
        array, shape (entries,) or (entries, k)
            Of x's dtype, integers as float64. Whole bricks: the padding is zero.

        Raises
        ------
        ShapeError
            x has another shape.

        Notes
        -----
        Not collective. Cost: one pass over the points.
        """
        return self._entries(x, "to_bricks")

    def from_bricks(self, entries: Any) -> NDArray[Any]:
        """Return what a `Vector` of this operator holds, in lexicographic order.

        Parameters
        ----------
        entries : Vector, or array, shape (entries,) or (entries, k)
            As `to_bricks` returns them.

        Returns
        -------
        array, shape ``local_grid_shape`` or ``(*local_grid_shape, k)``

        Raises
        ------
        ShapeError
            There are other than as many entries as a vector has.

        Notes
        -----
        Not collective. Waits for the vector. Cost: one pass over the points.
        """
        values = as_values(np.asarray(entries), "from_bricks")
        if values.ndim not in (1, 2) or values.shape[0] != self._h.rows.local_size:
            raise ShapeError(
                f"from_bricks: the array has the shape {values.shape}; ({self._h.rows.local_size},) is needed."
            )
        return self._points(values, (*self.local_grid_shape, *values.shape[1:]))

    def make_vector(self, x: Any = None, queue: Any = None) -> Vector:
        """Return a vector of my points.

        Parameters
        ----------
        x : array, or Vector, optional
            As for `to_bricks`; zero by default.
        queue : Queue, optional
            Inline by default.

        Returns
        -------
        Vector
            Of the operator's dtype.

        Raises
        ------
        ShapeError, DtypeError
            x has another shape, or is wider than the operator's dtype.
        """
        if x is None:
            return Vector(self, queue, fill=0.0)
        entries = self._operand(self._entries(x, "make_vector"), "make_vector")
        v = Vector(self, queue, columns=entries.shape[1] if entries.ndim == 2 else 1)
        v.copy_from(entries if entries.ndim == 1 or entries.shape[1] > 1 else entries[:, 0])
        return v

    @one_call("StencilOperator.to_matrix")
    def to_matrix(self) -> Matrix:
        """Return the same as a matrix: for direct solvers, algebraic multigrid, ilu, and to look at the entries.

        Returns
        -------
        Matrix
            My rows are my points in lexicographic order, without the padding of bricks: those of ``b[L.owned].ravel()``.

        Notes
        -----
        Collective. The entries are found by one product for each colour, since a row reads no two points of one colour (Curtis, Powell and
        Reid 1974): ``2 r + 1`` along an axis of which a stencil reads ``r`` points to each side, less than twice as many if the axis is
        periodic. Memory is 24 bytes for each entry, besides the matrix.

        Examples
        --------
        >>> import numpy as np
        >>> import asterism as am
        >>> i, j = am.stencil.indices(2)
        >>> u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
        >>> s = am.stencil.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
        >>> A = am.stencil.operator(s, (30, 20)).to_matrix()
        >>> A.shape, A.nnz
        ((600, 600), 2900)
        >>> x, info = am.solve(A, np.ones(600), pc="cholesky")
        """
        return Matrix(self._h.to_matrix())

    @reported("L @ x")
    def __matmul__(self, x: Any) -> NDArray[Any]:
        """Product with my points: an array, or a `Vector`. Collective."""
        if isinstance(x, Vector):
            return NotImplemented  # it knows how
        return self._product(self._h.apply, x, "L @ x")

    def _product(self, apply: Callable[[Any, Any], None], x: Any, what: str, adjoint: bool = False) -> NDArray[Any]:
        if isinstance(x, (Operator, Vector)) or hasattr(x, "tocsr"):
            raise UnsupportedError(f"{what}: x is a {type(x).__name__}; an array is needed.")
        points = self._operand(x, what)
        entries = self._entries(points, what)
        if self._comm.size > 1:
            columns = str(entries.shape[1] if entries.ndim == 2 else 1)
            self._comm.require_same("a product", [("its form", what), ("the number of columns of x", columns)])
        y = aligned(entries.shape, self.dtype)
        apply(entries, y)
        return self._points(y, points.shape)

    @one_call("L.H @ x")
    def rmatvec(self, x: Any, conjugate: bool = True) -> NDArray[Any]:
        """Return L^H x, or without conjugation L^T x.

        Parameters
        ----------
        x : array
            Of the shape of my points, or flat; with another last axis for several columns.
        conjugate : bool
            Whether coefficients are conjugated. For a real operator the two are one.

        Returns
        -------
        array of x's shape
            Of the operator's dtype.

        Raises
        ------
        ShapeError, DtypeError
            x has another shape, or is wider than the operator's dtype.
        UnsupportedError
            x is a `Vector`; or the transposed stencil reaches over more than a brick.

        Notes
        -----
        Collective. Cost: as of ``L @ x``. The first call compiles the transposed stencil, if that is another one.
        """
        return self._product(
            lambda v, y: self._h.apply_transpose(v, y, conjugate), x, "L.H @ x" if conjugate else "L.T @ x"
        )


@one_call("stencil.operator")
def operator(
    stencil: Stencil,
    shape: int | Sequence[int],
    periodic: bool | Sequence[bool] = False,
    comm: Any = None,
    *,
    brick: int | Sequence[int] | None = None,
    dtype: Any = np.float64,
    of: str | None = None,
    ranks: Sequence[int] | None = None,
    target: str | None = None,
    points: str = "nodes",
    interpolation: str = "linear",
    spacing: str | Sequence[str] | None = None,
    **given: Any,
) -> StencilOperator:
    """Return a linear stencil as an operator. `am.stencil.operator` documents it."""
    c = as_communicator(comm)
    sizes, flags, blocks, kind, name, scalars, coefficients, centring, names, cut = agreed(
        c, lambda: checked(stencil, shape, periodic, brick, dtype, of, points, interpolation, spacing, ranks, given)
    )
    if c.size > 1:
        said = {
            "the stencil": f"{stencil!r} ({fingerprint(stencil.statements)[:12]})",
            "shape": sizes,
            "periodic": flags,
            "brick": blocks,
            "dtype": kind,
            "of": name,
            "points, interpolation": f"{points}, {interpolation}",
            "spacing": names,
            "ranks": cut,
            "target": target,
            **{f"the constant {n}": v for n, v in scalars.items()},
            **{f"the coefficient {n}": "a function" if callable(v) else "an array" for n, v in coefficients.items()},
        }
        c.require_same("stencil.operator", [(what, str(value)) for what, value in said.items()])
    domain = _core.BrickDomain(c, list(sizes), list(blocks), list(flags), cut, None)
    how = Made(c, stencil, name, sizes, flags, blocks, kind, target, scalars, coefficients, centring, names)
    how.arrays = agreed(c, lambda: [coefficient(n, v, how, domain) for n, v in coefficients.items()])
    return make(how, domain)


def make(how: Made, domain: Any) -> StencilOperator:
    """Return the operator on a domain of bricks. Collective."""
    out = how.stencil.facts.outputs[0]
    product = how.kernel(how.stencil, {how.of: X, out: Y})
    points, brick = (" x ".join(map(str, n)) for n in (how.shape, how.brick))
    text = f"stencil of {len(how.stencil.offsets(how.of))} points on {points} points in bricks of {brick}, {how.dtype}"
    if how.is_product:
        text += ", by Galerkin's product"
    handle = _core.StencilOperator(domain, how.dtype, product, how.arrays, text)
    transposes = False
    if is_symmetric(how):
        handle.add("transposed", product)
    else:
        transpose = how.stencil.transpose(how.of, how.periodic)
        fits = max(bricks_away(transpose.statements, how.shape, how.brick, how.periodic)) <= 1
        # made when it is asked for, by few
        transposes = fits and not any(
            p and m is not None and n < m
            for p, n, m in zip(how.periodic, how.shape, transpose.least_periodic, strict=True)
        )
    if how.is_product and how.arrays:
        tell_diagonal_of_product(how, handle, domain)
    else:
        tell_diagonal(how, handle, domain)
    others = [o for o in how.stencil.offsets(how.of) if any(o)]
    if all(sum(map(abs, o)) % 2 for o in others):
        handle.set_colouring(True)  # red and black
    elif all(max(map(abs, o)) == 1 for o in others):
        handle.set_colouring(False)
    handle.set_maker(lambda names: forms(how, names), [max(r) for r in how.stencil.facts.reach], transposes)

    # A holds this function, which must not hold A
    def coarse(A: Any, by: str, rows_per_rank: int, paired: bool) -> Any:
        found = coarse_level(make, how, A, domain, by, rows_per_rank, paired)
        return found and (found[0]._h, *found[1:])

    handle.set_coarse(coarse)
    handle.set_converted(lambda dtype: make(how.converted(dtype), domain)._h)
    return StencilOperator(domain, how.stencil, handle, how)
