"""Rows of a matrix as users have them: of SciPy, or dense."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.values import unmasked
from ..errors import DtypeError, ShapeError
from .operator import Operator, as_values

__all__ = [
    "Csr",
    "as_coordinates",
    "as_csr",
    "checksum",
    "from_rows",
    "own_rows",
    "rows_of_a_block",
    "shape_of",
    "whole",
]

_MOST_ROWS_OF_A_BLOCK = 8  # other blocks are those of a method, not of nodes


class Csr(NamedTuple):
    """Rows as SciPy has them: offsets, columns, values."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]


def whole(array: Any, rows: int, name: str) -> NDArray[Any]:
    """Return an array that every rank has whole."""
    given = unmasked(array, name)
    if given.shape[:1] != (rows,):
        raise ShapeError(
            f"{name} has shape {given.shape}; with distribute=True all {rows} rows are needed on every rank."
        )
    return given


def shape_of(S: Any) -> tuple[int, int]:
    """Return the shape of what can become a matrix."""
    if isinstance(S, Operator):
        if hasattr(S, "to_scipy"):
            raise TypeError("this is an asterism.Matrix already")
        raise TypeError(f"{S!r} is known by its products alone; entries are needed here.")
    if not (hasattr(S, "tocsr") or isinstance(S, np.ndarray) and S.ndim == 2):
        raise TypeError(f"a SciPy sparse matrix or a 2-D array is needed, not {type(S).__name__}.")
    unmasked(S, "the matrix")
    if len(S.shape) != 2:
        raise ShapeError(f"a matrix has two dimensions, not the shape {S.shape}.")
    return int(S.shape[0]), int(S.shape[1])


def as_csr(S: Any, part: slice) -> Csr:
    """Return these rows of a sparse matrix, or of a dense array without its zeros."""
    if hasattr(S, "tocsr"):
        csr = S.tocsr()
        csr = csr if part == slice(0, csr.shape[0]) else csr[part]
        if csr.indices.dtype not in (np.int32, np.int64):
            raise DtypeError(f"index dtype {csr.indices.dtype}; int32 or int64 is needed.")
        return Csr(csr.indptr, csr.indices, csr.data)
    places = np.nonzero(rows := np.asarray(S)[part])
    ptr = np.concatenate([[0], np.cumsum(np.bincount(places[0], minlength=len(rows)))])
    return Csr(ptr.astype(np.int64), places[1].astype(np.int64), rows[places])


def own_rows(comm: Any, n: int, m: int, shape: Any) -> Any:
    """Return who owns which rows where each rank gives n of its own with m columns. Collective."""
    square = comm.sum(int(n == m))
    if square == comm.size and n > 0 and shape is None:
        raise ShapeError(
            f"from_scipy: every rank passed a square {n} x {m} matrix. With a communicator, S is my rows with "
            "global columns: add the number of your first row to those of a diagonal block. Pass "
            "distribute=True if S is the whole matrix on every rank, and shape=(rows, columns) if it is rectangular "
            "and each rank has as many of its rows as columns."
        )
    if comm.max(float(m)) != m or comm.max(float(-m)) != -m:
        raise ShapeError(f"from_scipy: rank {comm.rank} passed {m} columns, others not; all must agree.")
    return _core.Layout(comm, n)


def rows_of_a_block(S: Any, comm: Any) -> int:
    """Return the size of the square blocks of a few rows that a matrix is stored by on all ranks, or 1. Collective."""
    rows, columns = getattr(S, "blocksize", (1, 1))
    mine = int(rows) if rows == columns and rows <= _MOST_ROWS_OF_A_BLOCK else 1
    return mine if comm.size == 1 or comm.max(float(mine)) == -comm.max(float(-mine)) else 1


def checksum(S: Any) -> str:
    """Return a number that tells whether ranks have the same entries, in whichever order and types. Cost: some passes over them."""
    csr = S.tocsr() if hasattr(S, "tocsr") else None
    if csr is not None and not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    ptr, col, val = as_csr(S if csr is None else csr, slice(0, S.shape[0]))
    out = 0
    for part in (ptr.astype(np.int64), col.astype(np.int64), as_values(val, "the matrix")):
        out = zlib.crc32(np.ascontiguousarray(part).data, out)
    return f"{out:08x}"


def from_rows(rows: Any, cols: Any, csr: Csr) -> Any:
    """Return the handle of a matrix with these rows on this rank."""
    narrow = csr.indices.dtype == np.int32
    index = np.int32 if narrow else np.int64
    build = _core.Matrix.from_rows32 if narrow else _core.Matrix.from_rows64
    ptr, col = (np.ascontiguousarray(a, dtype=index) for a in (csr.indptr, csr.indices))
    return build(rows, cols, ptr, col, as_values(csr.data, "the matrix"))


def as_coordinates(coordinates: Any) -> NDArray[np.float64]:
    """Return the coordinates of nodes, shape (nodes, 2) or (nodes, 3)."""
    xyz = np.ascontiguousarray(unmasked(coordinates, "coordinates"), dtype=np.float64)
    if xyz.ndim != 2 or xyz.shape[1] not in (2, 3):
        raise ShapeError(f"coordinates has shape {xyz.shape}; (nodes, 2) or (nodes, 3) is needed.")
    return xyz
