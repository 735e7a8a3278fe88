"""How an operator on bricks is made: its stencil, constants and coefficients, and the kernels that are compiled from them.

Input: what `am.stencil.operator` was given, checked. Output: kernels and arrays as the core takes them.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.aligned import aligned
from ..base.values import unmasked
from ..comm.agree import agreed
from ..errors import DtypeError, InputError, ShapeError, UnsupportedError
from ..stencil.codegen.sources import Source, generate
from ..stencil.kernels.compiler import Library, build_ahead, gpu_kernel
from ..stencil.kernels.kernel import callable_of
from ..stencil.kernels.table import build_table
from ..stencil.language.constructors import indices
from ..stencil.language.expressions import Constant, Grid, Operation, Value, walk
from ..stencil.language.interpreter import constant_value
from ..stencil.language.stencil import Stencil, assign
from ..stencil.language.transpose import coefficients_of

__all__ = ["X", "Y", "Made", "axes_of", "begin_forms", "coefficient", "constant_terms", "forms", "is_symmetric"]

X, Y, _B, _W = -1, -2, -3, -4  # StencilKernel of the core


class Made:
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
        constants: dict[str, complex],
        coefficients: dict[str, Any],
        centring: str,
        spacing: tuple[str, ...],
    ) -> None:
        self.comm, self.stencil, self.of = comm, stencil, name
        self.warns = comm.rank == 0  # where there is no compiler
        self.shape, self.periodic, self.brick, self.dtype, self.target = shape, periodic, brick, dtype, target
        self.constants, self.coefficients = constants, list(coefficients)
        self.functions = {n: f for n, f in coefficients.items() if callable(f)}  # of the coordinates
        self.centring, self.spacing = centring, spacing
        self.cells = centring != "nodes"
        self.arrays: list[NDArray[Any]] = []  # of the coefficients, in bricks
        self.compiled = True
        self.is_product = False  # of Galerkin
        self.is_symmetric = False  # as a product of a symmetric one
        self.ends: list[list[float]] | None = None  # as _ends finds them
        self.largest = 1.0  # of the diagonal's magnitudes

    def coarser(self, shape: tuple[int, ...], brick: tuple[int, ...]) -> Made:
        """Return the same for the grid of half as many points."""
        out = copy.copy(self)
        out.shape, out.brick = shape, brick
        out.constants = {n: 2 * v if n in self.spacing else v for n, v in self.constants.items()}
        return out

    def converted(self, dtype: str) -> Made:
        """Return the same in another dtype. Raises an UnsupportedError for one of single precision if entries are near the ends of its range."""
        most = 1e18 if np.dtype(dtype).kind == "f" else 1e15  # squares are summed
        if np.dtype(dtype).itemsize < np.dtype(self.dtype).itemsize and not 1 / most < self.largest < most:
            raise UnsupportedError(
                f"the stencil in {dtype}: the largest entry of the diagonal is {self.largest:.3g}, so that products would leave the range "
                f"of that dtype. From {1 / most:g} to {most:g} is possible. Use -pc_dtype float64, or scale the stencil."
            )
        out = copy.copy(self)
        out.dtype = dtype
        out.arrays = [aligned(a.shape, dtype) for a in self.arrays]
        for to, values in zip(out.arrays, self.arrays, strict=True):
            to[...] = values
        return out

    def begin(self, stencils: Iterable[Stencil], busy: int) -> None:
        """Begin to compile on the first rank, on its cores but so many; `kernel` waits for what is under way."""
        sources = [generate(s, self.target, self.brick, self.dtype) for s in stencils]
        if self.comm.rank == 0:
            build_ahead(sources, busy)

    def kernel(self, stencil: Stencil, roles: dict[str, int], quick: bool = False, scales: Sequence[str] = ()) -> Any:
        """Return a kernel as the core takes it; the other grids are coefficients. Collective.

        quick: a table, for what is used once. scales: constants that the core gives.
        """
        stencil.check_shape(self.shape, self.periodic)
        source = generate(stencil, self.target, self.brick, self.dtype)
        found = build_table(stencil, source) if quick else _compiled(self.comm, stencil, source, self.warns)
        if not quick:
            self.compiled = self.compiled and isinstance(found, Library)
        grids = [roles[g] if g in roles else self.coefficients.index(g) for g in source.grids]
        names = [n for n, _ in source.constants]
        values = [self.constants.get(n, 0.0) for n in names]
        program = 0 if isinstance(found, Library) else found.program
        places = [names.index(n) for n in scales]
        on_gpu = partial(gpu_kernel, stencil, self.brick, self.dtype)
        return (
            found.address,
            program,
            found.handle,
            grids,
            values,
            float(stencil.cost(self.dtype).flops),
            places,
            on_gpu,
        )


def _compiled(comm: Any, stencil: Stencil, source: Source, warns: bool) -> Any:
    """Compile on one rank, and find it in the cache on the others; an error of one is an error of all. Collective."""

    def build() -> Any:
        found = callable_of(stencil, source, warn=warns)
        if found is None:
            raise UnsupportedError("the stencil can neither be compiled nor be made a table.")
        return found

    first = agreed(comm, lambda: build() if comm.rank == 0 else None)
    return agreed(comm, lambda: build() if first is None else first)


def unused(name: str, taken: Sequence[str]) -> str:
    """Return the name, with digits behind it if it is taken."""
    while name in taken:
        name += "1"
    return name


def forms(how: Made, names: Sequence[str]) -> list[Any]:
    """Return the kernels of fused stencils, by the names of their forms in the core (StencilForm), compiled at once. Collective."""
    fused = [_fused(how, name) for name in names]
    how.begin((stencil for stencil, _, _ in fused), 0)
    return [how.kernel(stencil, roles, scales=scales) for stencil, roles, scales in fused]


def begin_forms(how: Made, names: Sequence[str]) -> None:
    """Begin to compile what will be asked for; one core goes on with other work. All ranks call it."""
    how.begin((_fused(how, name)[0] for name in names), 1)


def _fused(how: Made, name: str) -> tuple[Stencil, dict[str, int], tuple[str, ...]]:
    """Return a form: its stencil, the roles of its grids, and the constants that the core gives."""
    f = how.stencil.facts
    if name == "transposed":
        return how.stencil.transpose(how.of, how.periodic), {f.outputs[0]: X, how.of: Y}, ()
    at = indices(f.dimensions)
    taken = [*f.grids, *(n for n, _ in f.constants)]
    b, w = (Grid(unused(n, taken), f.dimensions) for n in ("b", "w"))
    scale, more = (Constant(unused(n, taken), None) for n in ("scale", "more"))
    y, x = Grid(f.outputs[0], f.dimensions), Grid(how.of, f.dimensions)
    residual = b(*at) - how.stencil.statements[0].value
    roles = {how.of: X, y.name: Y, b.name: _B, w.name: _W}
    if name == "residual":
        return assign(y(*at), residual), roles, ()
    if name == "smooth":
        return assign(y(*at), x(*at) + scale * w(*at) * residual), roles, (scale.name,)
    of_colour = name.startswith("coloured")
    weight = scale + more * (sum(at[1:], at[0]) % 2) if of_colour else scale
    weight = weight / coefficients_of(how.stencil.statements, how.of)[(0,) * f.dimensions]
    value = weight * b(*at) if name.endswith("start") else x(*at) + weight * residual
    return assign(y(*at), value), roles, (scale.name, more.name) if of_colour else (scale.name,)


def constant_terms(how: Made) -> dict[tuple[int, ...], complex] | None:
    """Return the coefficients, if they are constant."""
    terms = coefficients_of(how.stencil.statements, how.of)
    if any(not isinstance(n, (Value, Constant, Operation)) for c in terms.values() for n in walk(c)):
        return None
    return {o: constant_value(c, how.constants, how.dtype) for o, c in terms.items()}


def is_symmetric(how: Made) -> bool:
    """Tell whether the stencil has constant coefficients, the same at opposite offsets, or is a product of such a one."""
    if how.is_symmetric:
        return True
    numbers = constant_terms(how)
    return numbers is not None and all(numbers.get(tuple(-x for x in o)) == c for o, c in numbers.items())


def axes_of(how: Made, box: Sequence[tuple[int, int]]) -> list[NDArray[np.float64]]:
    """Return the coordinates of a box of points along each axis."""
    return [
        (np.arange(a, b) + (0.5 if how.cells else 0 if p else 1)) / (n if p or how.cells else n + 1)
        for (a, b), n, p in zip(box, how.shape, how.periodic, strict=True)
    ]


def coefficient(name: str, value: Any, how: Made, domain: Any) -> NDArray[Any]:
    """Return a coefficient grid in bricks, from an array of my points or of all, or from a function of the coordinates."""
    low, high = (b[3 - len(how.shape) :] for b in domain.owned(how.comm.rank))
    mine = tuple(b - a for a, b in zip(low, high, strict=True))
    if callable(value):
        at = axes_of(how, list(zip(low, high, strict=True)))
        array = unmasked(value(*np.meshgrid(*at, indexing="ij", sparse=True)), f"the array '{name}'")
        with contextlib.suppress(ValueError):  # of another shape
            array = np.broadcast_to(array, mine)
    else:
        array = unmasked(value, f"the array '{name}'")
        if array.shape != mine and array.shape == how.shape:
            array = array[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
    if array.shape != mine:
        raise ShapeError(
            f"the array '{name}' has the shape {array.shape}; my points have {mine}, and the grid {how.shape}."
        )
    of_complex = how.dtype.startswith("complex")
    if array.dtype.kind not in ("buifc" if of_complex else "buif"):
        what = "numbers are needed" if of_complex else "real numbers are needed, or a complex dtype"
        raise DtypeError(f"the array '{name}' has the dtype {array.dtype}; {what}.")
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(array, dtype=how.dtype)
    if not np.isfinite(values).all():
        finite = np.isfinite(array).all()
        raise InputError(
            f"the array '{name}' has entries that are "
            + (f"too large for {how.dtype}: up to {np.abs(array).max():.3g}." if finite else "not finite.")
        )
    out = aligned((int(domain.layout.local_size),), how.dtype)
    domain.to_bricks(values, out)
    return out
