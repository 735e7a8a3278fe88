"""A compiled stencil on NumPy arrays: the arrays are copied into bricks and back.

Input: a `Stencil` and the number of points. Output: `Kernel`, which is called with arrays. The bricks of a distributed grid call the same
functions without these copies.
"""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.display import si_bytes
from ...base.indices import as_flags, as_shape
from ...base.values import dtype_name
from ...errors import DtypeError, InputError, OutOfMemoryError, ShapeError, UnsupportedError
from ..codegen.sources import Source, generate
from ..language.checks import are_real
from ..language.interpreter import interpret, points_of, taken
from ..language.statements import Reduction
from ..language.stencil import Stencil, as_stencil
from .compiler import Library, build
from .table import Table, build_table

__all__ = ["Kernel", "compile"]

_LARGEST = 2**31 - 1
_INT, _LONG, _POINTER = ctypes.POINTER(ctypes.c_int), ctypes.c_long, ctypes.c_void_p


class _Arguments(ctypes.Structure):
    _fields_ = (
        ("bricks", _LONG), ("visit", _POINTER), ("neighbours", _POINTER), ("origin", _POINTER), ("extent", _POINTER),
        ("grids", _POINTER), ("ghosts", _POINTER), ("owned", _LONG), ("constants", _POINTER), ("reductions", _POINTER),
        ("children", _POINTER), ("fine_neighbours", _POINTER), ("fine_extent", _POINTER), ("fine_owned", _LONG),
        ("program", _POINTER), ("first", ctypes.c_int), ("last", ctypes.c_int), ("slots", _POINTER),
        ("streams", ctypes.c_int),
    )  # fmt: skip


class Bricks:
    """Bricks of an array in lexicographic order, and one of zeros after them."""

    def __init__(self, shape: tuple[int, ...], brick: tuple[int, ...], periodic: tuple[bool, ...]) -> None:
        self.shape, self.brick = shape, brick
        self.counts = tuple(-(-n // b) for n, b in zip(shape, brick, strict=True))
        for axis, (n, b) in enumerate(zip(shape, brick, strict=True)):
            if periodic[axis] and n % b:
                raise ShapeError(
                    f"axis {axis} is periodic with {n} points: that is no multiple of the {b} points of a brick. "
                    "Choose another brick=."
                )
        self.bricks = math.prod(self.counts)
        d = len(shape)
        text = f"shape {shape}: {self.bricks} bricks of {' x '.join(map(str, brick))} points"
        if self.bricks >= _LARGEST or max(shape) > _LARGEST - max(brick):
            raise ShapeError(
                f"{text}; a kernel numbers bricks, and points along an axis, in 32 bits. Divide the grid among ranks: am.grid.Grid."
            )
        try:
            self._number(d, brick, periodic)
        except MemoryError:
            tables = si_bytes(self.bricks * (20 * d + 4 * 3**d + 8))
            raise OutOfMemoryError(
                f"{text}; their tables take {tables}, which are not there. Take a larger brick=."
            ) from None

    def _number(self, d: int, brick: tuple[int, ...], periodic: tuple[bool, ...]) -> None:
        index = np.indices(self.counts).reshape(d, -1)
        self.origin = np.ascontiguousarray((index.T * brick), np.int32)
        near = np.empty((self.bricks + 1, 3**d), np.int32)
        near[-1] = self.bricks
        for number, step in enumerate(np.ndindex((3,) * d)):
            at = index + np.reshape(step, (d, 1)) - 1
            counts = np.reshape(self.counts, (d, 1))
            inside = np.ones(self.bricks, bool)
            for axis in range(d):
                if not periodic[axis]:
                    inside &= (at[axis] >= 0) & (at[axis] < self.counts[axis])
            ids = np.ravel_multi_index(tuple(at % counts), self.counts)
            near[:-1, number] = np.where(inside, ids, self.bricks)
        self.neighbours = near
        # some rows at a time, plane by plane: what kernels fetch a plane ahead is still in a core's cache when they read it
        ids, row = np.arange(self.bricks, dtype=np.int32).reshape(self.counts), 8 * math.prod(brick) * self.counts[-1]
        rows = max(1, 2**19 // row)
        parts = [ids[:, j : j + rows].ravel() for j in range(0, self.counts[1], rows)] if d == 3 else [ids.ravel()]
        self.visits = np.concatenate(parts)

    def empty(self, dtype: Any) -> NDArray[Any]:
        """Return bricks of zeros, aligned to 64 bytes."""
        points, size = (self.bricks + 1) * int(np.prod(self.brick)), np.dtype(dtype).itemsize
        raw = np.zeros(points * size + 64, np.uint8)
        first = -raw.ctypes.data % 64
        bricks: NDArray[Any] = raw[first : first + points * size].view(dtype)
        return bricks.reshape(self.bricks + 1, *self.brick)

    def _interleaved(self, bricks: NDArray[Any]) -> NDArray[Any]:
        d = len(self.shape)
        view = bricks[:-1].reshape(*self.counts, *self.brick)
        out: NDArray[Any] = view.transpose([a for axis in range(d) for a in (axis, d + axis)])
        return out

    def pack(self, array: NDArray[Any], bricks: NDArray[Any]) -> None:
        """Copy an array into bricks; the padding becomes zero."""
        padded = np.zeros([c * b for c, b in zip(self.counts, self.brick, strict=True)], bricks.dtype)
        padded[tuple(slice(n) for n in self.shape)] = array
        view = self._interleaved(bricks)
        view[...] = padded.reshape(view.shape)

    def unpack(self, bricks: NDArray[Any]) -> NDArray[Any]:
        """Return the array."""
        whole = self._interleaved(bricks).reshape([c * b for c, b in zip(self.counts, self.brick, strict=True)])
        array: NDArray[Any] = whole[tuple(slice(n) for n in self.shape)].copy()
        return array


_said: set[str] = set()


def callable_of(stencil: Stencil, source: Source, warn: bool = True) -> Library | Table | None:
    """Return the compiled kernel. Without a compiler return a table, and without that nothing; say so once."""
    try:
        return build(source)
    except UnsupportedError as error:
        why = str(error)
    try:
        found, how = build_table(stencil, source), "A table replaces the compiled kernel, which would be faster"
    except UnsupportedError as error:
        found, how, why = None, "NumPy interprets the stencil, which is slow", f"{why} {error}"
    if warn and why not in _said:
        _said.add(why)
        warnings.warn(f"{how}: {why}", RuntimeWarning, stacklevel=4)
    return found


class Kernel:
    """A stencil that is compiled for grids of one shape; made by `stencil.compile`. Call it with arrays by name.

    Attributes
    ----------
    source : Source
    compiled : bool
        False where there is no compiler: then a kernel of the library reads the stencil from a table.
    seconds : float
        That the compilation, or finding it in the cache, took.
    """

    def __init__(self, stencil: Stencil, shape: tuple[int, ...], periodic: tuple[bool, ...], source: Source) -> None:
        self.stencil, self.shape, self.periodic, self.source = stencil, shape, periodic, source
        f = stencil.facts
        coarse = shape if f.space != "fine" else tuple((n + 1) // 2 for n in shape)
        self._points = Bricks(coarse, source.brick, periodic)
        self.library = callable_of(stencil, source)
        self.compiled = isinstance(self.library, Library)
        self.seconds = self.library.seconds if isinstance(self.library, Library) else 0.0
        self._fine: Bricks | None = None
        self._streams = False

    def __repr__(self) -> str:
        text = " x ".join(map(str, self.shape))
        how = (
            f"compiled for {self.source.target}" if self.compiled else "from a table" if self.library else "interpreted"
        )
        return f"<asterism.stencil.Kernel for {text} points, {how}: {self.stencil!r}>"

    def __call__(self, /, out: NDArray[Any] | None = None, **given: Any) -> Any:
        """Compute.

        Parameters
        ----------
        out : ndarray, optional
            For the result, if the stencil has one output and no reduction. The grid ``out`` where the stencil reads one.
        **given : array_like or number
            The grids that are read, and the constants, by name.

        Returns
        -------
        ndarray or dict
            The one output, or all outputs and reductions by name. The arrays that are given do not change.
        """
        f, dtype = self.stencil.facts, np.dtype(self.source.dtype)
        named = "out" in f.inputs or ("out" in dict(f.constants) and not isinstance(out, np.ndarray))
        if named:  # a grid or constant of that name, as transposes read
            given, out = {"out": out, **given} if out is not None else given, None
        arrays, constants = taken(f, given, dtype)
        shape = points_of(f, {n: a.shape for n, a in arrays.items()}, self.shape)
        if shape != self.shape:
            raise ShapeError(f"the kernel is for {self.shape} points; the arrays have {shape}.")
        if self.library is None:
            outputs, reduced = interpret(
                self.stencil.statements, f, arrays, constants, self.periodic, dtype, self.shape
            )
            result: dict[str, Any] = {**outputs, **reduced}
        else:
            result = self._run(self.library, arrays, constants, dtype)
        single = result[f.outputs[0]] if len(f.outputs) == 1 and not f.reductions else None
        if out is not None:
            if single is None:
                raise InputError("out= is for stencils with one output and no reduction.")
            if not isinstance(out, np.ndarray) or out.shape != single.shape:
                what = f"has the shape {out.shape}" if isinstance(out, np.ndarray) else f"is a {type(out).__name__}"
                raise ShapeError(f"out {what}; an array of the shape {single.shape} is needed.")
            if not np.can_cast(single.dtype, out.dtype, "same_kind"):
                raise DtypeError(f"out has the dtype {out.dtype}, which does not hold {single.dtype}.")
            out[...] = single
            return out
        return result if single is None else single

    def _run(
        self,
        library: Library | Table,
        arrays: dict[str, NDArray[Any]],
        constants: dict[str, complex],
        dtype: np.dtype[Any],
    ) -> dict[str, Any]:
        f = self.stencil.facts
        points, fine = self._points, self._fine_bricks(arrays)
        held = {n: (fine if n in self.source.fine and fine is not None else points) for n in f.grids}
        bricks = {n: held[n].empty(dtype) for n in f.grids}
        for n, a in arrays.items():
            held[n].pack(a, bricks[n])
        start = {"sum": 0.0, "max": -np.inf, "min": np.inf}
        reductions = np.array([start[op] for _, op in f.reductions for _ in range(1 + (dtype.kind == "c"))] or [0.0])
        scalars = np.array([*constants.values(), 0.0], dtype)
        pointers = (ctypes.c_void_p * len(f.grids))(*(bricks[n].ctypes.data for n in f.grids))
        extent = np.array(points.shape, np.int32)
        argument = _Arguments(
            points.bricks, points.visits.ctypes.data, points.neighbours.ctypes.data, points.origin.ctypes.data,
            extent.ctypes.data,
        )  # fmt: skip
        argument.grids = argument.ghosts = ctypes.addressof(pointers)
        argument.owned = points.bricks + 1
        argument.last = points.brick[0] if f.dimensions == 3 else 1
        argument.constants, argument.reductions = scalars.ctypes.data, reductions.ctypes.data
        argument.streams = self._streams
        argument.program = library.program if isinstance(library, Table) else None
        kept: list[Any] = [extent]
        if fine is not None:
            children, fine_extent = self._children(points, fine), np.array(fine.shape, np.int32)
            kept += [children, fine_extent]
            argument.children, argument.fine_neighbours = children.ctypes.data, fine.neighbours.ctypes.data
            argument.fine_extent, argument.fine_owned = fine_extent.ctypes.data, fine.bricks + 1
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address)(ctypes.addressof(argument))
        result: dict[str, Any] = {n: held[n].unpack(bricks[n]) for n in f.outputs}
        result.update(self._reduced(reductions))
        return result

    def _reduced(self, found: NDArray[np.float64]) -> dict[str, complex]:
        """Return the reductions by name, from what a kernel left."""
        f = self.stencil.facts
        if not self.source.dtype.startswith("complex"):
            return {n: float(found[m]) for m, (n, _) in enumerate(f.reductions)}
        values = {s.name: s.value for s in self.stencil.statements if isinstance(s, Reduction)}
        real = {n: are_real(v)[id(v)] for n, v in values.items()}
        return {
            n: float(found[2 * m]) if real[n] else complex(found[2 * m], found[2 * m + 1])
            for m, (n, _) in enumerate(f.reductions)
        }

    def _fine_bricks(self, arrays: dict[str, NDArray[Any]]) -> Bricks | None:
        space = self.stencil.facts.space
        if space == "one":
            return None
        shape = self.shape
        if space == "coarse":
            shape = next((arrays[n].shape for n in self.source.fine if n in arrays), tuple(2 * n for n in self.shape))
        if self._fine is None or self._fine.shape != shape:
            self._fine = Bricks(shape, self.source.brick, self.periodic)
        return self._fine

    @staticmethod
    def _children(coarse: Bricks, fine: Bricks) -> NDArray[np.int32]:
        d = len(coarse.shape)
        at = coarse.origin // np.array(coarse.brick)
        out = np.empty((coarse.bricks, 2**d), np.int32)
        for number, step in enumerate(np.ndindex((2,) * d)):
            child = 2 * at + np.array(step)
            inside = (child < np.array(fine.counts)).all(axis=1)
            ids = np.ravel_multi_index(tuple(np.minimum(child, np.array(fine.counts) - 1).T), fine.counts)
            out[:, number] = np.where(inside, ids, fine.bricks)
        return out


def compile(
    stencil: Stencil,
    shape: int | Sequence[int],
    periodic: bool | Sequence[bool] = False,
    *,
    target: str | None = None,
    brick: int | Sequence[int] | None = None,
    dtype: Any = np.float64,
) -> Kernel:
    """Compile a stencil for arrays of one shape.

    Parameters
    ----------
    stencil : Stencil
    shape : int or sequence of int
        Points of the grids that are written; grids of another space have twice or half as many. A fine grid may have an
        odd number n, with (n + 1) // 2 coarse points.
    periodic : bool or sequence of bool
        For each axis, whose points must be a multiple of a brick's. Points beyond other ends are zero.
    target : {"generic", "avx2", "avx512"}, optional
        By default the widest that this CPU has.
    brick : int or sequence of int, optional
        8 points along each axis by default.
    dtype : {float64, float32, complex128, complex64}

    Returns
    -------
    Kernel

    Raises
    ------
    ShapeError
        ``shape`` has other dimensions than the stencil, or an axis without points. There are 2^31 bricks or more, or about as many points
        along an axis. A periodic axis is no multiple of a brick, or as for `Stencil.check_shape`.
    InputError
        ``stencil`` is none. ``periodic`` is not one flag, or one for each axis. ``brick`` and ``dtype`` do not fit the stencil, as for `generate`.
    OptionError, DtypeError
        ``target`` or ``dtype`` is another word, or a size is no integer.
    InternalError, FileError
        As for `build`.

    Notes
    -----
    The first use of a stencil runs the system's C++ compiler (``CXX``, g++, c++, clang++). Later ones find the result in the user's own
    cache folder (``ASTERISM_STENCIL_CACHE``). Without a compiler a kernel of the library reads the stencil from a table, and a warning says so once.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> i, j = am.stencil.indices(2)
    >>> u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
    >>> mean = am.stencil.assign(out(i, j), 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)))
    >>> kernel = am.stencil.compile(mean, shape=(16, 16), periodic=True)
    >>> float(kernel(u=np.ones((16, 16)))[3, 4])
    1.0
    """
    f = as_stencil(stencil, "stencil.compile").facts
    sizes = tuple(as_shape(shape, "stencil.compile: shape"))
    if len(sizes) != f.dimensions or any(n < 1 for n in sizes):
        raise ShapeError(f"shape {sizes}: the stencil has {f.dimensions} dimensions, with at least one point each.")
    flags = as_flags(periodic, f.dimensions)
    stencil.check_shape(sizes, flags)
    return Kernel(stencil, sizes, flags, generate(stencil, target, brick, dtype_name(dtype, "stencil")))
