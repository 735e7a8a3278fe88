"""`Stencil`: some statements that are computed together; what the user holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.indices import as_flags, as_shape
from ...base.values import dtype_name
from ...errors import InputError, ShapeError
from .checks import Facts, check, check_dtype
from .cost import Cost, cost
from .expressions import Expr, Number, Ref, _expr, walk
from .interpreter import interpret, points_of, taken
from .statements import Assignment, Reduction, Statement
from .transpose import transposed
from .user_line import fail, line_of_user

__all__ = ["Stencil", "assign", "fuse", "reduce"]


def as_brick(brick: int | Sequence[int], dimensions: int, what: str) -> tuple[int, ...]:
    """Return the points of a brick along each axis; a number is for each."""
    sizes = tuple(as_shape(brick, what))
    return sizes * dimensions if np.ndim(brick) == 0 else sizes


def as_stencil(given: Any, what: str) -> Stencil:
    """Return what is given; raises an `InputError` for anything but a stencil."""
    if not isinstance(given, Stencil):
        raise InputError(f"{what}: a {type(given).__name__} is no stencil; am.stencil.assign makes one.")
    return given


class Stencil:
    """Statements over the points of a grid; made by `stencil.assign`, `stencil.reduce` or `stencil.fuse`.

    Attributes
    ----------
    statements : tuple of Assignment or Reduction
    facts : Facts
        Names of its grids, constants and reductions; how far it reads.
    least_periodic : tuple of int or None
        So many points are needed along each periodic axis, more than 0 for some transposes. None: the axis must not be periodic.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = tuple(statements) if np.iterable(statements) else (statements,)
        if not self.statements or not all(isinstance(s, (Assignment, Reduction)) for s in self.statements):
            raise InputError(
                f"Stencil: {statements!r} is no list of statements; am.stencil.assign, reduce and fuse make a stencil."
            )
        self.facts: Facts = check(self.statements)
        self.least_periodic: tuple[int | None, ...] = (0,) * self.facts.dimensions
        self._sources: dict[Any, Any] = {}  # that were generated

    def __repr__(self) -> str:
        f = self.facts
        parts = [
            f"{', '.join((*f.outputs, *(n for n, _ in f.reductions)))} from {', '.join(g for g in f.grids if g not in f.outputs)}"
        ]
        if f.constants:
            parts.append(f"constants {', '.join(n for n, _ in f.constants)}")
        return f"<asterism.stencil.Stencil of {f.dimensions} dimensions: {'; '.join(parts)}>"

    def offsets(self, grid: str) -> list[tuple[int, ...]]:
        """Return the offsets at which a grid is read.

        Parameters
        ----------
        grid : str
            Its name.

        Returns
        -------
        list of tuple of int
            Sorted, each with the integer of every axis: 1 for ``i + 1``, ``2 * i + 1`` and ``(i + 1) // 2``. The list is empty if the
            stencil does not read the grid.
        """
        refs = (n for s in self.statements for n in walk(s.value) if isinstance(n, Ref))
        return sorted({r.offsets for r in refs if r.grid.name == grid})

    def cost(self, dtype: Any = np.float64) -> Cost:
        """Return the least loads, stores, flops and bytes at a point (at a coarse point, if there are two spaces).

        Parameters
        ----------
        dtype : {float64, float32, complex128, complex64}
            Its size gives the bytes.

        Returns
        -------
        Cost

        Raises
        ------
        DtypeError
            ``dtype`` is another one.

        Examples
        --------
        >>> import asterism as am
        >>> i, j = am.stencil.indices(2)
        >>> u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
        >>> print(am.stencil.assign(out(i, j), u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j)).cost())
        5 loads, 1 stores, 5 flops, 16 bytes a point: 0.312 flops a byte
        """
        return cost(self.statements, self.facts, np.dtype(dtype_name(dtype, "stencil")).itemsize)

    def source(
        self, target: str | None = None, brick: int | Sequence[int] | None = None, dtype: Any = np.float64
    ) -> str:
        """Return the text of the kernel, as `generate` does: C++ for "generic", "avx2" or "avx512", or for "cuda" or "hip".

        Parameters
        ----------
        target, brick, dtype
            As for `generate`.

        Returns
        -------
        str

        Raises
        ------
        InputError
            As for `generate`, or bricks of this shape make the kernel too long to compile.
        OptionError, DtypeError, ShapeError
            As for `generate`.

        Examples
        --------
        >>> import asterism as am
        >>> i, j = am.stencil.indices(2)
        >>> u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
        >>> text = am.stencil.assign(out(i, j), u(i, j + 1) - u(i, j)).source("cuda")
        >>> [line.strip() for line in text.splitlines() if "shift(u__0_r0" in line]
        ['T const u__0_r0_k1 = shift(u__0_r0_k0, u__0_r0_k8, 1);']
        """
        from ..codegen.sources import generate

        return generate(self, target, brick, dtype).text

    def interpret(
        self, /, periodic: bool | Sequence[bool] = False, dtype: Any = np.float64, **given: Any
    ) -> dict[str, Any]:
        """Compute in NumPy: slow, and by definition right.

        Parameters
        ----------
        periodic : bool or sequence of bool
            For each axis. Points beyond other ends are zero.
        dtype : {float64, float32, complex128, complex64}
        **given : array_like or number
            The grids that are read, and the constants, by name.

        Returns
        -------
        dict
            Of the outputs (arrays) and the reductions (float, or complex), by name.
        """
        f = self.facts
        kind = dtype_name(dtype, "stencil")
        check_dtype(self.statements, kind)
        arrays, constants = taken(f, given, kind)
        flags = as_flags(periodic, f.dimensions)
        self.check_shape(points_of(f, {n: a.shape for n, a in arrays.items()}), flags)
        out, reduced = interpret(self.statements, f, arrays, constants, flags, kind)
        return {**out, **reduced}

    def check_shape(self, shape: Sequence[int], periodic: Sequence[bool]) -> None:
        """Raise for an axis with too few points, and for a periodic one that a red-black update cannot go around.

        Parameters
        ----------
        shape : sequence of int
            Points along each axis of the grids that are written.
        periodic : sequence of bool
            For each axis.

        Raises
        ------
        ShapeError
            An axis has fewer points than one-sided differences need. A periodic axis has an odd number of points and a red-black
            update, or fewer points than ``least_periodic``.
        InputError
            A periodic axis must not be periodic: it has None in ``least_periodic``.
        """
        for axis, (n, needed) in enumerate(zip(shape, self.facts.least, strict=True)):
            if n < needed:
                raise ShapeError(
                    f"axis {axis} has {n} points; the one-sided differences at its ends (closure=True) need {needed}. "
                    "Take more points, or a lower accuracy."
                )
        for axis, n in enumerate(shape):
            if periodic[axis] and self.facts.coloured[axis] and n % 2:
                raise ShapeError(
                    f"axis {axis} is periodic with {n} points, an odd number: around its end a red-black update would "
                    f"read points of the colour that it changes. Take {n + 1} points, write another grid, or make the "
                    "axis not periodic."
                )
        for axis, (n, least) in enumerate(zip(shape, self.least_periodic, strict=True)):
            if periodic[axis] and least is None:
                raise InputError(
                    f"this transpose was made for an axis {axis} that is not periodic. Make it with transpose(periodic=True)."
                )
            if periodic[axis] and least is not None and n < least:
                raise ShapeError(f"axis {axis} is periodic with {n} points: this transpose needs {least} or more.")

    def transpose(self, of: str | None = None, periodic: bool | Sequence[bool] = True) -> Stencil:
        """Return the stencil of the transposed operator: it reads the output, and writes the grid that was read.

        Parameters
        ----------
        of : str, optional
            The grid in which the stencil is linear. Others are coefficients. It is needed where several grids are read.
        periodic : bool or sequence of bool
            The axes that may be periodic. Without them a stencil with closures has a much shorter transpose.

        Returns
        -------
        Stencil

        Raises
        ------
        InputError
            The stencil is not one assignment on one space, or is not linear in the grid. It does not read ``of``, or ``of`` is needed.
            The grid is written too. ``periodic`` is not one flag, or one for each axis.

        Notes
        -----
        Points beyond the ends are zero or periodic, as for the stencil itself. Closures at boundaries are transposed too.

        Examples
        --------
        >>> import asterism as am
        >>> i, = am.stencil.indices(1)
        >>> u, a, out = (am.stencil.grid(name, 1) for name in ("u", "a", "out"))
        >>> T = am.stencil.assign(out(i), a(i) * (u(i + 1) - u(i))).transpose(of="u")
        >>> T.interpret(a=[1.0, 2.0, 4.0], out=[1.0, 1.0, 1.0])["u"].tolist()
        [-1.0, -1.0, -2.0]
        """
        flags = as_flags(periodic, self.facts.dimensions)
        statement, least = transposed(self.statements, self.facts, of, flags)
        found = Stencil([statement])
        found.least_periodic = _larger(self.least_periodic, least)
        return found


def _larger(a: Sequence[int | None], b: Sequence[int | None]) -> tuple[int | None, ...]:
    """Return for each axis the larger number of points; None, an axis that must not be periodic, is more than any."""
    return tuple(None if m is None or n is None else max(m, n) for m, n in zip(a, b, strict=True))


def assign(target: object, value: Expr | Number) -> Stencil:
    """Return the stencil ``target = value`` at every point. All points are read before any is written.

    Parameters
    ----------
    target : Expr
        A grid at its indices, such as ``out(i, j, k)``.
    value : Expr or number

    Returns
    -------
    Stencil

    Raises
    ------
    InputError
        ``target`` is no grid at the indices themselves. ``value`` is a condition, or is no expression and no number. Its grids have
        different dimensions, or lie on more than two spaces. The result would depend on the order of the points. The message shows the
        line of the user's program.

    Examples
    --------
    >>> import asterism as am
    >>> i, = am.stencil.indices(1)
    >>> u, out = am.stencil.grid("u", 1), am.stencil.grid("out", 1)
    >>> difference = am.stencil.assign(out(i), u(i + 1) - u(i - 1))
    >>> difference.interpret(u=[1.0, 2.0, 4.0])["out"].tolist()
    [2.0, 3.0, -2.0]
    """
    if not isinstance(target, Ref):
        fail(
            line_of_user(),
            f"the left side must be a grid at its indices, such as out(i, j), not a {type(target).__name__}.",
        )
    return Stencil([Assignment(target, _expr(value), line_of_user())])


def reduce(op: str, name: str, value: Expr) -> Stencil:
    """Return the stencil that finds the "sum", "max" or "min" of a value over all points, under a name.

    Parameters
    ----------
    op : {"sum", "max", "min"}
        In a complex dtype the value must be real for "max" and "min".
    name : str
        The key of the result: an identifier.
    value : Expr
        It reads at least one grid.

    Returns
    -------
    Stencil

    Raises
    ------
    InputError
        ``op`` is another word, or ``name`` is no identifier. ``value`` reads no grid, is a condition, or is no expression. Its grids
        have different dimensions, or lie on more than two spaces.

    Examples
    --------
    >>> import asterism as am
    >>> i, = am.stencil.indices(1)
    >>> u = am.stencil.grid("u", 1)
    >>> am.stencil.reduce("max", "largest", abs(u(i))).interpret(u=[1.0, -3.0, 2.0])
    {'largest': 3.0}
    """
    if op not in ("sum", "max", "min"):
        fail(line_of_user(), f"a reduction is sum, max or min, not {op!r}.")
    if not isinstance(name, str) or not name.isidentifier():
        fail(line_of_user(), f"a reduction's name must be an identifier, not {name!r}.")
    return Stencil([Reduction(name, op, _expr(value), line_of_user())])


def fuse(*stencils: Stencil) -> Stencil:
    """Return one stencil that computes several in turn, in one pass over the points.

    A later one sees what an earlier one has assigned, at the point itself. What all share is read once.

    Parameters
    ----------
    *stencils : Stencil
        At least one, in the order of computation.

    Returns
    -------
    Stencil

    Raises
    ------
    InputError
        None is given, or something else than a stencil. Two assign the same name, or give a constant different defaults. One reads at a
        neighbour what another assigns. The grids have different dimensions, or lie on more than two spaces.

    Examples
    --------
    >>> import asterism as am
    >>> i, = am.stencil.indices(1)
    >>> x, b, r = (am.stencil.grid(name, 1) for name in "xbr")
    >>> residual = am.stencil.assign(r(i), b(i) - (2 * x(i) - x(i - 1) - x(i + 1)))
    >>> both = am.stencil.fuse(residual, am.stencil.reduce("sum", "square", r(i) * r(i)))
    >>> both.interpret(x=[1.0, 1.0], b=[1.0, 2.0])["square"]
    1.0
    """
    for one in stencils:
        if not isinstance(one, Stencil):
            fail(
                line_of_user(),
                f"fuse takes stencils, one after the other, not a {type(one).__name__}; assign makes one.",
            )
    if not stencils:
        fail(line_of_user(), "fuse needs at least one stencil; none is given.")
    found = Stencil([s for one in stencils for s in one.statements])
    for one in stencils:
        found.least_periodic = _larger(found.least_periodic, one.least_periodic)
    return found
