"""Stencils as distributed operators: grids in bricks, dealt to the ranks.

Input: a linear `Stencil` and the number of points. Output: `StencilOperator`, for products and solvers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .base.aligned import aligned
from .comm.agree import agreed
from .comm.communicator import as_communicator, one_call, reported
from .errors import DtypeError, InputError, ShapeError, UnsupportedError
from .la.operator import Operator, as_values
from .la.vector import Vector
from .stencil.compiler import Library
from .stencil.interpreter import constant_value
from .stencil.kernel import callable_of
from .stencil.language import Constant, Expr, Grid, Operation, Value, indices, walk
from .stencil.operator_input import checked
from .stencil.sources import Source, generate
from .stencil.stencil import Stencil, assign
from .stencil.table import build_table
from .stencil.transpose import coefficients_of

__all__ = ["StencilOperator", "operator"]

_X, _Y, _B, _W = -1, -2, -3, -4  # StencilKernel of the core


def __dir__() -> list[str]:
    return __all__


class StencilOperator(Operator):
    """A linear stencil on a grid that is dealt to the ranks in boxes of bricks. `am.stencil.operator` makes it.

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

    def __init__(self, domain: Any, stencil: Stencil, handle: Any, how: _Made) -> None:
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
        """Return where my points are in the unit box, of the shape of my points and a last axis of the directions."""
        at = np.meshgrid(*_axes(self._how, [(s.start, s.stop) for s in self.owned]), indexing="ij")
        return np.stack(at, axis=-1)

    def __repr__(self) -> str:
        points, ranks = (" x ".join(map(str, a)) for a in (self.grid_shape, self.ranks))
        return f"<asterism.StencilOperator on {points} points in {ranks} boxes, {self.dtype}: {self.stencil!r}>"

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
        """Return my points in the order of a `Vector` of this operator, with zeros in the padding."""
        return self._entries(x, "to_bricks")

    def from_bricks(self, entries: Any) -> NDArray[Any]:
        """Return what a `Vector` of this operator, or its array, holds, of the shape of my points."""
        values = as_values(np.asarray(entries), "from_bricks")
        if values.ndim not in (1, 2) or values.shape[0] != self._h.rows.local_size:
            raise ShapeError(
                f"from_bricks: the array has the shape {values.shape}; ({self._h.rows.local_size},) is needed."
            )
        return self._points(values, (*self.local_grid_shape, *values.shape[1:]))

    def make_vector(self, x: Any = None, queue: Any = None) -> Vector:
        """Return a vector of my points, zero or with the values of an array."""
        if x is None:
            return Vector(self, queue, fill=0.0)
        entries = self._operand(self._entries(x, "make_vector"), "make_vector")
        v = Vector(self, queue, columns=entries.shape[1] if entries.ndim == 2 else 1)
        v.copy_from(entries if entries.ndim == 1 or entries.shape[1] > 1 else entries[:, 0])
        return v

    @reported("L @ x")
    def __matmul__(self, x: Any) -> NDArray[Any]:
        """Product with my points: an array, or a `Vector`. Collective."""
        if isinstance(x, Vector):
            return NotImplemented  # it knows how
        return self._product(self._h.apply, x, "L @ x")

    def _product(self, apply: Callable[[Any, Any], None], x: Any, what: str) -> NDArray[Any]:
        if isinstance(x, (Operator, Vector)) or hasattr(x, "tocsr"):
            raise UnsupportedError(f"{what}: x is a {type(x).__name__}; an array is needed.")
        points = self._operand(x, what)
        entries = self._entries(points, what)
        y = aligned(entries.shape, self.dtype)
        apply(entries, y)
        return self._points(y, points.shape)

    @one_call("L.T @ x")
    def rmatvec(self, x: Any) -> NDArray[Any]:
        """Return L^T x. Collective."""
        return self._product(self._h.apply_transpose, x, "L.T @ x")


class _Made:
    """How an operator was made: what all its kernels have in common."""

    def __init__(
        self,
        comm: Any,
        stencil: Stencil,
        name: str,
        shape: tuple[int, ...],
        periodic: tuple[bool, ...],
        brick: tuple[int, ...],
        dtype: str,
        target: str | None,
        constants: dict[str, float],
        coefficients: dict[str, Any],
        centring: str,
        spacing: tuple[str, ...],
    ) -> None:
        self.comm, self.stencil, self.of = comm, stencil, name
        self.shape, self.periodic, self.brick, self.dtype, self.target = shape, periodic, brick, dtype, target
        self.constants, self.coefficients = constants, list(coefficients)
        self.functions = {n: f for n, f in coefficients.items() if callable(f)}  # of the coordinates
        self.centring, self.spacing = centring, spacing
        self.cells = centring != "nodes"
        self.arrays: list[NDArray[Any]] = []  # of the coefficients, in bricks
        self.compiled = True

    def coarser(self, shape: tuple[int, ...], brick: tuple[int, ...]) -> _Made:
        """Return the same for the grid of half as many points."""
        out = copy.copy(self)
        out.shape, out.brick = shape, brick
        out.constants = {n: 2 * v if n in self.spacing else v for n, v in self.constants.items()}
        return out

    def converted(self, dtype: str) -> _Made:
        """Return the same in another dtype."""
        out = copy.copy(self)
        out.dtype = dtype
        out.arrays = [aligned(a.shape, dtype) for a in self.arrays]
        for to, values in zip(out.arrays, self.arrays, strict=True):
            to[...] = values
        return out

    def kernel(self, stencil: Stencil, roles: dict[str, int], quick: bool = False, weights: Sequence[str] = ()) -> Any:
        """Return a kernel as the core takes it; the other grids are coefficients. Collective.

        quick: a table, for what is used once. weights: constants that the core gives.
        """
        stencil.check_periodic(self.shape, self.periodic)
        source = generate(stencil, self.target, self.brick, self.dtype)
        found = build_table(stencil, source) if quick else _compiled(self.comm, stencil, source)
        if not quick:
            self.compiled = self.compiled and isinstance(found, Library)
        grids = [roles[g] if g in roles else self.coefficients.index(g) for g in source.grids]
        names = [n for n, _ in source.constants]
        values = [self.constants.get(n, 0.0) for n in names]
        program = 0 if isinstance(found, Library) else found.program
        places = [names.index(n) for n in weights]
        return found.address, program, found.handle, grids, values, float(stencil.cost(self.dtype).flops), places


def _compiled(comm: Any, stencil: Stencil, source: Source) -> Any:
    """Compile on one rank, and find it in the cache on the others; an error of one is an error of all. Collective."""

    def build() -> Any:
        found = callable_of(stencil, source, warn=comm.rank == 0)
        if found is None:
            raise UnsupportedError("the stencil can neither be compiled nor be made a table.")
        return found

    first = agreed(comm, lambda: build() if comm.rank == 0 else None)
    return agreed(comm, lambda: build() if first is None else first)


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "1"
    return name


def _form(how: _Made, name: str) -> Any:
    """Return the kernel of a fused stencil: the residual, a weighted step, or steps with one weight for points with an even sum of indices and
    one for the others. Collective.
    """
    f = how.stencil.facts
    at = indices(f.dimensions)
    taken = [*f.grids, *(n for n, _ in f.constants)]
    b, w = (Grid(_unused(n, taken), f.dimensions) for n in ("b", "w"))
    even, more = (Constant(_unused(n, taken), None) for n in ("even", "more"))
    y, x = Grid(f.outputs[0], f.dimensions), Grid(how.of, f.dimensions)
    residual = b(*at) - how.stencil.statements[0].value
    weight = even + more * (sum(at[1:], at[0]) % 2)
    value = {
        "residual": residual,
        "smooth": x(*at) + w(*at) * residual,
        "step": x(*at) + weight * residual,
        "start": weight * b(*at),
    }[name]
    roles = {how.of: _X, y.name: _Y, b.name: _B, w.name: _W}
    return how.kernel(assign(y(*at), value), roles, weights=(even.name, more.name) if name in ("step", "start") else ())


def _diagonal(how: _Made, A: Any, domain: Any) -> None:
    """Tell the core the diagonal, and Gershgorin's bound of the eigenvalues of D^-1 A. Collective."""
    d = how.stencil.facts.dimensions
    terms = coefficients_of(how.stencil.statements, how.of)
    centre = terms.get((0,) * d)
    if centre is None:
        return
    y = Grid(how.stencil.facts.outputs[0], d)
    total: Expr | None = None
    for c in terms.values():
        total = abs(c) if total is None else total + abs(c)
    assert total is not None

    def values(e: Expr) -> NDArray[Any]:
        s = assign(y(*indices(d)), e)
        handle = _core.StencilOperator(
            domain, how.dtype, how.kernel(s, {y.name: _Y}, quick=True), how.arrays, "a diagonal"
        )
        nothing, out = (aligned((int(domain.layout.local_size),), how.dtype) for _ in range(2))
        nothing[...] = 0
        handle.apply(nothing, out)
        return out

    main, sums = values(centre), values(total)
    inside = main != 0
    points = aligned(main.shape, how.dtype)
    low, high = domain.owned(how.comm.rank)
    domain.to_bricks(np.ones([b - a for a, b in zip(low, high, strict=True)], how.dtype), points)
    whole = bool(np.all(inside | (points == 0)))
    ratio = float(np.max(sums[inside] / np.abs(main[inside]), initial=0.0)) if whole else np.inf
    bound = float(how.comm.max(ratio))
    A.set_diagonal(np.where(points == 0, 1, main).astype(how.dtype), bound if np.isfinite(bound) else None)


def _zero_ends(how: _Made, A: Any, domain: Any) -> list[list[bool]]:
    """Return at which ends of the axes the values of cells are zero at the border: there constants are far from solutions. Collective."""
    d, out = len(how.shape), [[False] * 2 for _ in range(3)]
    if not how.cells:
        return out
    ones, product, main = (aligned((int(domain.layout.local_size),), how.dtype) for _ in range(3))
    low, high = (b[3 - d :] for b in domain.owned(how.comm.rank))
    mine = [b - a for a, b in zip(low, high, strict=True)]
    domain.to_bricks(np.ones(mine, how.dtype), ones)
    A.apply(ones, product)
    A.diagonal(main)
    share = np.empty(mine, how.dtype)
    domain.from_bricks(np.abs(product) / np.abs(main), share)
    for axis in range(d):
        for side in range(2):
            at_end = share.size > 0 and (low[axis] == 0 if side == 0 else high[axis] == how.shape[axis])
            least = float(np.min(np.take(share, -side, axis))) if at_end else np.inf
            out[3 - d + axis][side] = not how.periodic[axis] and 0.05 < -float(how.comm.max(-least)) < np.inf
    return out


def _is_symmetric(how: _Made) -> bool:
    """Tell whether the stencil has constant coefficients, the same at opposite offsets."""
    terms = coefficients_of(how.stencil.statements, how.of)
    if any(not isinstance(n, (Value, Constant, Operation)) for c in terms.values() for n in walk(c)):
        return False
    numbers = {o: constant_value(c, how.constants, how.dtype) for o, c in terms.items()}
    return all(numbers.get(tuple(-x for x in o)) == c for o, c in numbers.items())


def _axes(how: _Made, box: Sequence[tuple[int, int]]) -> list[NDArray[np.float64]]:
    """Return the coordinates of a box of points along each axis."""
    return [
        (np.arange(a, b) + (0.5 if how.cells else 0 if p else 1)) / (n if p or how.cells else n + 1)
        for (a, b), n, p in zip(box, how.shape, how.periodic, strict=True)
    ]


def _coefficient(name: str, value: Any, how: _Made, domain: Any) -> NDArray[Any]:
    """Return a coefficient grid in bricks, from an array of my points or of all, or from a function of the coordinates."""
    low, high = (b[3 - len(how.shape) :] for b in domain.owned(how.comm.rank))
    mine = tuple(b - a for a, b in zip(low, high, strict=True))
    if callable(value):
        at = _axes(how, list(zip(low, high, strict=True)))
        array = np.broadcast_to(np.asarray(value(*np.meshgrid(*at, indexing="ij", sparse=True))), mine)
    else:
        array = np.asarray(value)
        if array.shape != mine and array.shape == how.shape:
            array = array[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
    if array.shape != mine:
        raise ShapeError(
            f"the array '{name}' has the shape {array.shape}; my points have {mine}, and the grid {how.shape}."
        )
    if array.dtype.kind not in "buif":
        raise DtypeError(f"the array '{name}' has the dtype {array.dtype}; real numbers are needed.")
    if not np.isfinite(array).all():
        raise InputError(f"the array '{name}' has entries that are not finite.")
    out = aligned((int(domain.layout.local_size),), how.dtype)
    domain.to_bricks(np.ascontiguousarray(array, dtype=how.dtype), out)
    return out


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
    sizes, flags, blocks, kind, name, scalars, coefficients, centring, names = agreed(
        c, lambda: checked(stencil, shape, periodic, brick, dtype, of, points, interpolation, spacing, given)
    )
    domain = _core.BrickDomain(c, list(sizes), list(blocks), list(flags), [] if ranks is None else list(ranks), None)
    how = _Made(c, stencil, name, sizes, flags, blocks, kind, target, scalars, coefficients, centring, names)
    how.arrays = agreed(c, lambda: [_coefficient(n, v, how, domain) for n, v in coefficients.items()])
    return _made(how, domain)


def _coarse(how: _Made, domain: Any, ends: list[list[bool]]) -> tuple[StencilOperator, Any, Any] | None:
    """Return the stencil discretised again with twice the spacing, and the transfers. Collective.

    None: there is no such grid.
    """
    d = len(how.shape)
    coarse = _core.BrickTransfer.coarsened(domain, how.centring, [max(r) for r in how.stencil.facts.reach])
    if coarse is None:
        return None
    if not how.spacing:
        raise InputError(
            "multigrid discretises the stencil again with twice the spacing, and none of its constants is known to be the spacing. "
            "Write the stencil with a constant 'h', or name it with spacing= of am.stencil.operator."
        )
    next_one = how.coarser(tuple(coarse.shape[3 - d :]), tuple(coarse.brick[3 - d :]))
    P = _core.BrickTransfer(domain, coarse, how.centring, how.dtype, ends)
    R = _core.BrickRestriction(P)
    mean = (
        R
        if not any(map(any, ends))
        else _core.BrickRestriction(_core.BrickTransfer(domain, coarse, how.centring, how.dtype, [[False] * 2] * 3))
    )

    def averaged(fine: NDArray[Any]) -> NDArray[Any]:
        out = aligned((int(coarse.layout.local_size),), how.dtype)
        mean.apply(fine, out)
        return out

    next_one.arrays = [
        averaged(fine) if n not in how.functions else _coefficient(n, how.functions[n], next_one, coarse)
        for n, fine in zip(how.coefficients, how.arrays, strict=True)
    ]
    return _made(next_one, coarse), P, R


def _made(how: _Made, domain: Any) -> StencilOperator:
    out = how.stencil.facts.outputs[0]
    product = how.kernel(how.stencil, {how.of: _X, out: _Y})
    points, brick = (" x ".join(map(str, n)) for n in (how.shape, how.brick))
    text = f"stencil of {len(how.stencil.offsets(how.of))} points on {points} points in bricks of {brick}, {how.dtype}"
    handle = _core.StencilOperator(domain, how.dtype, product, how.arrays, text)
    if _is_symmetric(how):
        handle.add("transposed", product)
    else:
        transpose = how.stencil.transpose(how.of)
        fits = all(max(reach) <= b for reach, b in zip(transpose.facts.reach, how.brick, strict=True))
        if fits and not any(
            p and n < m for p, n, m in zip(how.periodic, how.shape, transpose.least_periodic, strict=True)
        ):
            handle.add("transposed", how.kernel(transpose, {out: _X, how.of: _Y}))
    _diagonal(how, handle, domain)
    others = [o for o in how.stencil.offsets(how.of) if any(o)]
    if all(sum(map(abs, o)) % 2 for o in others):
        handle.set_colouring(True)  # red and black
    elif all(max(map(abs, o)) == 1 for o in others):
        handle.set_colouring(False)
    handle.set_maker(lambda form: _form(how, form), [max(r) for r in how.stencil.facts.reach])

    def coarse() -> Any:
        found = _coarse(how, domain, _zero_ends(how, handle, domain))
        return found and (found[0]._h, *found[1:])

    handle.set_coarse(coarse)
    handle.set_converted(lambda dtype: _made(how.converted(dtype), domain)._h)
    return StencilOperator(domain, how.stencil, handle, how)
