"""Values on grids as VTK's XML files of image data, which ParaView, VisIt and PyVista open.

Input: a `Grid` or a `StencilOperator`, and arrays of this rank's points. Output: a ``.vti`` file, or a ``.pvti`` file beside a folder of
pieces. The format: VTK File Formats, https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from . import _core
from .base.files import check_target, replacing
from .bricks import StencilOperator
from .comm.agree import agreed
from .comm.communicator import collective
from .comm.forest import StarForest
from .errors import DtypeError, FileError, InputError, ShapeError
from .grid import Grid
from .la.vector import Vector

__all__ = ["write_vtk"]

Box = tuple[tuple[int, int], ...]  # for each axis the first point and the end
Fields = dict[str, NDArray[Any]]  # of the shape (*points, components)


def write_vtk(
    path: str | Path,
    on: Grid | StencilOperator,
    /,
    *,
    spacing: float | Sequence[float] | None = None,
    origin: float | Sequence[float] | None = None,
    **fields: Any,
) -> None:
    """Write values on a grid for ParaView.

    Parameters
    ----------
    path : path-like
        ``NAME.vti``: one file, into which each rank writes its part. ``NAME.pvti``: a short file that names the pieces; rank r
        writes ``NAME/NAME_r.vti``.
    on : Grid or StencilOperator
    spacing, origin : float or sequence of float, optional
        Distance of points, and where the grid begins, for each axis. By default a `StencilOperator` fills the unit box, and a `Grid`
        has its own spacing and begins at 0.
    **fields : array
        At least one, under the name that it gets. Each has this rank's points: the shape of `owned`, or flat, or with another last axis
        for the components of vectors. Real and integer types are kept. A complex field becomes two, ``NAME_real`` and ``NAME_imag``.

    Raises
    ------
    FileError, InputError, ShapeError, DtypeError
        On all ranks; a file that was there before stays as it was.

    Notes
    -----
    Collective. The first axis is x. Cells of a `StencilOperator` are written as cells, and all else as points. Written aside and
    renamed when all ranks have written; ``NAME.pvti`` comes last. Points of neighbours are exchanged, since pieces of points overlap in VTK.
    All ranks must reach the same folder. Cost: the bytes of the values, and one layer of points.

    Examples
    --------
    >>> import asterism as am, numpy as np, tempfile, os
    >>> g = am.grid.Grid((20, 30))
    >>> x, y = np.moveaxis(g.coordinates(), -1, 0)
    >>> am.write_vtk(os.path.join(tempfile.mkdtemp(), "waves.vti"), g, height=np.sin(9 * x) * y)
    """
    if not isinstance(on, (Grid, StencilOperator)):
        raise InputError(
            f"write_vtk: the values lie on a {type(on).__name__}; a Grid or a stencil's operator is needed."
        )
    comm: _core.Communicator = on._comm
    with collective(comm, "write_vtk"):
        boxes = [_owned(on, r) for r in range(comm.size)]
        image, arrays = agreed(comm, lambda: _checked(path, on, boxes[comm.rank], spacing, origin, fields))
        mine = f"{path}: {image}, {[(n, str(a.dtype), a.shape[-1]) for n, a in arrays.items()]}"
        first = comm.bcast(mine, 0)
        agreed(comm, lambda: _same(mine, first))
        if not image.cells and comm.size > 1:
            arrays = _with_next(comm, boxes, image.shape, arrays)
            boxes = [_reaching(box, image.shape) for box in boxes]
        if Path(path).suffix == ".vti":
            _write_one(Path(path), comm, image, boxes, arrays)
        else:
            _write_pieces(Path(path), comm, image, boxes, arrays)


@dataclass(frozen=True)
class _Image:
    """Where the values lie."""

    shape: tuple[int, ...]
    cells: bool
    origin: tuple[float, ...]
    spacing: tuple[float, ...]

    def extent(self, box: Box) -> str:
        """Return a box of values as VTK says it: the first and the last point of x, y and z; cells lie between points."""
        ends = [(a, b if self.cells else b - 1) for a, b in box] + [(0, 0)] * (3 - len(box))
        return " ".join(f"{a} {b}" for a, b in ends)

    def element(self, kind: str) -> str:
        """Return the beginning of the element that all pieces are in."""
        d = 3 - len(self.shape)
        whole = self.extent(tuple((0, n) for n in self.shape))
        origin, spacing = (" ".join(map(repr, a)) for a in ((*self.origin, *[0.0] * d), (*self.spacing, *[1.0] * d)))
        return f'<{kind} WholeExtent="{whole}" Origin="{origin}" Spacing="{spacing}"'


def _owned(on: Grid | StencilOperator, rank: int) -> Box:
    domain, d = (on._h, len(on.shape)) if isinstance(on, Grid) else (on._domain, len(on.grid_shape))
    low, high = (b[3 - d :] for b in domain.owned(rank))
    return tuple(zip(low, high, strict=True))


def _of_points(on: Grid | StencilOperator, name: str, values: Any) -> Any:
    """Return what a vector holds in the order of points."""
    if not isinstance(values, Vector):
        return values
    if not values._h.has_own_order:
        return values.numpy()
    if not isinstance(on, StencilOperator) or not values._h.has_order_of(on._h):
        raise ShapeError(f"write_vtk: {name} is {values!r}, which is no vector of {on!r}.")
    return on.from_bricks(values.numpy())


def _checked(
    path: str | Path, on: Grid | StencilOperator, box: Box, spacing: Any, origin: Any, fields: dict[str, Any]
) -> tuple[_Image, Fields]:
    if Path(path).suffix not in (".vti", ".pvti"):
        raise FileError(f"'{path}': values on a grid are written as .vti or .pvti.")
    check_target(path, "write_vtk:")
    if not fields:
        raise InputError("write_vtk: no field is given; name each one, such as u=u.")
    if isinstance(on, Grid):
        shape, cells, between, begin = on.shape, False, on.spacing, (0.0,) * len(on.shape)
    else:
        shape, cells = on.grid_shape, on.points == "cells"
        ends = [0 if p or cells else 1 for p in on.periodic]
        between = tuple(1 / (n + e) for n, e in zip(shape, ends, strict=True))
        begin = tuple(h * e for h, e in zip(between, ends, strict=True))
    image = _Image(shape, cells, _numbers(origin, begin, "origin"), _numbers(spacing, between, "spacing"))
    if min(image.spacing) <= 0:
        raise InputError(f"write_vtk: spacing is {spacing}; it must be positive.")
    mine = tuple(b - a for a, b in box)
    arrays: Fields = {}
    for name, values in fields.items():
        a: Any = np.asarray(_of_points(on, name, values))
        if a.shape[: len(mine)] == mine and a.ndim <= len(mine) + 1:
            a = a.reshape(*mine, (*a.shape, 1)[len(mine)])
        elif a.ndim in (1, 2) and a.shape[0] == np.prod(mine):
            a = a.reshape(*mine, (*a.shape, 1)[1])
        else:
            raise ShapeError(
                f"write_vtk: {name} has the shape {a.shape}; my points have {mine}, flat ({np.prod(mine)},), or with another last axis."
            )
        if a.shape[-1] == 0:
            raise ShapeError(f"write_vtk: {name} has no components: its last axis has the length 0.")
        parts = {f"{name}_real": a.real, f"{name}_imag": a.imag} if a.dtype.kind == "c" else {name: a}
        for part, b in parts.items():
            b = b.astype(np.uint8) if b.dtype == bool else b
            if b.dtype.kind not in "iuf" or b.dtype.itemsize > 8 or b.dtype == np.float16:
                raise DtypeError(f"write_vtk: {name} has the dtype {a.dtype}; VTK has float32, float64 and integers.")
            if part in arrays:
                raise InputError(f"write_vtk: two fields get the name '{part}'.")
            arrays[part] = b.astype(b.dtype.newbyteorder("="), copy=False)
    return image, arrays


def _numbers(given: Any, default: tuple[float, ...], what: str) -> tuple[float, ...]:
    if given is None:
        return tuple(map(float, default))
    try:
        out = [float(v) for v in (given if np.iterable(given) else [given] * len(default))]
    except (TypeError, ValueError):
        out = []
    if len(out) != len(default) or not np.isfinite(out).all():
        raise InputError(
            f"write_vtk: {what} is {given!r}; {len(default)} finite numbers are needed, one for each axis."
        )
    return tuple(out)


def _same(mine: str, first: str) -> None:
    if mine != first:
        raise InputError(f"write_vtk: this rank writes {mine}; rank 0 writes {first}. All must give the same.")


def _reaching(box: Box, shape: tuple[int, ...]) -> Box:
    """Return a box with the next point along each axis: pieces of points overlap in VTK, as the cells between points must be in one."""
    return tuple((a, min(b + 1, n) if b > a else b) for (a, b), n in zip(box, shape, strict=True))


def _numbers_within(box: Box, at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of points in a box's lexicographic order, from their indices, of shape (axes, points)."""
    first = np.array([[a] for a, _ in box])
    return np.asarray(np.ravel_multi_index(tuple(at - first), tuple(b - a for a, b in box)), np.int64)


def _with_next(comm: _core.Communicator, boxes: list[Box], shape: tuple[int, ...], fields: Fields) -> Fields:
    """Return my values with those of the next points along each axis, which other ranks have. Collective."""
    own, wide = boxes[comm.rank], _reaching(boxes[comm.rank], shape)
    size, wide_size = ([b - a for a, b in box] for box in (own, wide))
    leaves, roots = [np.empty(0, np.int64)], [np.empty((0, 2), np.int64)]
    for r, box in enumerate(boxes):
        both = [(max(a, c), min(b, e)) for (a, b), (c, e) in zip(wide, box, strict=True)]
        if r == comm.rank or any(a >= b for a, b in both):
            continue
        at = np.stack(np.meshgrid(*(np.arange(a, b) for a, b in both), indexing="ij")).reshape(len(shape), -1)
        here, there = (_numbers_within(b, at) for b in (wide, box))
        leaves.append(here)
        roots.append(np.stack([np.full(there.size, r), there], axis=1))
    points, space = int(np.prod(size)), int(np.prod(wide_size))
    forest = StarForest(comm, points, np.concatenate(leaves), np.concatenate(roots), space)
    out: Fields = {}
    for name, values in fields.items():
        k = values.shape[-1]
        all_values = np.zeros((*wide_size, k), values.dtype)
        all_values[tuple(slice(n) for n in size)] = values
        forest.bcast(np.ascontiguousarray(values).reshape(points, k), all_values.reshape(space, k))
        out[name] = all_values
    return out


def _is_empty(box: Box) -> bool:
    return any(a >= b for a, b in box)


def _data_array(name: str, a: NDArray[Any], more: str = "", element: str = "DataArray") -> str:
    kind = {"f": "Float", "i": "Int", "u": "UInt"}[a.dtype.kind]
    size = 8 * a.dtype.itemsize
    return f'<{element} Name={quoteattr(name)} type="{kind}{size}" NumberOfComponents="{a.shape[-1]}"{more}/>\n'


def _head(kind: str) -> str:
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    return f'<?xml version="1.0"?>\n<VTKFile type="{kind}" version="1.0" byte_order="{order}" header_type="UInt64">\n'


def _block_bytes(box: Box, a: NDArray[Any]) -> int:
    """Return the bytes of a field in a box, with the eight before it that say how many they are."""
    return 8 + math.prod(b - a for a, b in box) * int(a.shape[-1]) * a.dtype.itemsize


def _write_header(out: IO[bytes], image: _Image, boxes: Sequence[Box], fields: Fields) -> list[int]:
    """Write an image's file but for the values; return where those of each box begin."""
    what, text, offset = "CellData" if image.cells else "PointData", [], 0
    begins = []
    for box in boxes:
        begins.append(offset)
        if _is_empty(box):
            continue
        text.append(f'<Piece Extent="{image.extent(box)}">\n<{what} Scalars={quoteattr(next(iter(fields)))}>\n')
        for name, a in fields.items():
            text.append(_data_array(name, a, f' format="appended" offset="{offset}"'))
            offset += _block_bytes(box, a)
        text.append(f"</{what}>\n</Piece>\n")
    head = f"{_head('ImageData')}{image.element('ImageData')}>\n{''.join(text)}</ImageData>\n"
    out.write(f'{head}<AppendedData encoding="raw">\n_'.encode())
    first: int = out.tell()
    out.seek(first + offset)
    out.write(b"\n</AppendedData>\n</VTKFile>\n")
    return [first + b for b in begins]


@contextmanager
def _as_file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {error.strerror or error}.") from error


def _write_values(out: IO[bytes], at: int, fields: Fields) -> None:
    """Write one box's values at their place; x is the fastest axis."""
    out.seek(at)
    for a in fields.values():
        d = a.ndim - 1
        out.write(struct.pack("=Q", a.nbytes))
        out.write(np.ascontiguousarray(a.transpose(*range(d - 1, -1, -1), d)).reshape(-1).view(np.uint8).data)


def _write_one(path: Path, comm: _core.Communicator, image: _Image, boxes: list[Box], fields: Fields) -> None:
    """Let rank 0 write the text into a file aside, and all their values. Collective."""
    mine = not _is_empty(boxes[comm.rank])
    if comm.rank == 0:
        with replacing(path, binary=True) as out:
            begins = _write_header(out, image, boxes, fields)
            out.flush()
            comm.bcast(f"{out.name} {' '.join(map(str, begins))}", 0)
            agreed(comm, lambda: _write_values(out, begins[0], fields) if mine else None)
    else:
        name, *begins_text = comm.bcast("", 0).rsplit(" ", comm.size)

        def write() -> None:
            with _as_file_errors(path), open(name, "r+b") as part:
                _write_values(part, int(begins_text[comm.rank]), fields)

        agreed(comm, lambda: write() if mine else None)
    comm.agree(None)  # renamed


def _write_pieces(path: Path, comm: _core.Communicator, image: _Image, boxes: list[Box], fields: Fields) -> None:
    """Let each rank write a piece, and rank 0 the file that names them. Collective."""
    folder = path.with_suffix("")

    def make_folder() -> None:
        with _as_file_errors(folder):
            folder.mkdir(exist_ok=True)

    agreed(comm, lambda: make_folder() if comm.rank == 0 else None)
    box = boxes[comm.rank]
    if _is_empty(box):
        comm.agree(None)
    else:
        with replacing(folder / f"{path.stem}_{comm.rank}.vti", binary=True) as out:
            (begin,) = _write_header(out, image, [box], fields)
            agreed(comm, lambda: _write_values(out, begin, fields))
    comm.agree(None)  # all pieces are renamed
    if comm.rank == 0:
        what = "PCellData" if image.cells else "PPointData"
        text = [f'{_head("PImageData")}{image.element("PImageData")} GhostLevel="0">\n']
        text.append(f"<{what} Scalars={quoteattr(next(iter(fields)))}>\n")
        text += [_data_array(name, a, element="PDataArray") for name, a in fields.items()]
        text.append(f"</{what}>\n")
        for r, b in enumerate(boxes):
            if not _is_empty(b):
                source = quoteattr(f"{path.stem}/{path.stem}_{r}.vti")
                text.append(f'<Piece Extent="{image.extent(b)}" Source={source}/>\n')
        with replacing(path) as out:
            out.write("".join(text) + "</PImageData>\n</VTKFile>\n")
    comm.agree(None)
