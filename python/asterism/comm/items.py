"""Items of star forests: what a dtype and an operation are for the core."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import InputError, ShapeError
from .communicator import InputTypeError

__all__ = ["TYPES", "Op", "address_of", "item_type", "operation_of", "plain_items"]

Op = str | Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] | Any

TYPES = {name: number for number, name in enumerate(_core.item_type_names())}


@functools.cache
def item_type(dtype: np.dtype[Any]) -> int:
    """The core's number of a dtype; structured ones other than (value, index) pairs are moved as bytes."""
    if dtype.names is not None:
        fields = [dtype[name] for name in dtype.names]
        if len(fields) == 2 and dtype.isnative:
            name = f"({fields[0].name}, {fields[1].name})"
            size = {"(float64, int32)": 16}.get(name, fields[0].itemsize + fields[1].itemsize)
            if name in TYPES and dtype.itemsize == size:
                return int(TYPES[name])
        return int(TYPES["bytes"])
    return int(TYPES.get(dtype.name, TYPES["bytes"])) if dtype.isnative else int(TYPES["bytes"])


def view_at(address: int, n: int, like: NDArray[Any]) -> NDArray[Any]:
    """N values at an address, of the same dtype and columns as `like`."""
    shape = (n, *like.shape[1:])
    size = int(np.prod(shape)) * like.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype=like.dtype, buffer=memory)


def address_of(a: NDArray[Any]) -> int:
    """Where an array's values lie."""
    return int(a.__array_interface__["data"][0])


def operation_of(op: Op, like: NDArray[Any]) -> Any:
    """The number of a built-in operation, or a function of addresses."""
    if isinstance(op, str):
        return _core.reduce_op(op)
    try:
        from mpi4py import MPI
    except ImportError:
        MPI = None  # type: ignore[assignment]
    if MPI is not None and isinstance(op, MPI.Op):
        names = {
            "SUM": "sum",
            "PROD": "prod",
            "MIN": "min",
            "MAX": "max",
            "LAND": "logical_and",
            "LOR": "logical_or",
            "LXOR": "logical_xor",
            "BAND": "bitwise_and",
            "BOR": "bitwise_or",
            "BXOR": "bitwise_xor",
            "MINLOC": "minloc",
            "MAXLOC": "maxloc",
            "REPLACE": "replace",
        }
        for theirs, ours in names.items():
            if op == getattr(MPI, theirs):
                return _core.reduce_op(ours)

        def with_mpi(source: int, target: int, n: int) -> None:
            op.Reduce_local(view_at(source, n, like), view_at(target, n, like))

        return with_mpi
    if not callable(op):
        raise InputError(
            f"op is {op!r}; a name such as 'sum', a function of two arrays, or an MPI.Op of mpi4py is needed."
        )

    def with_function(source: int, target: int, n: int) -> None:
        inout = view_at(target, n, like)
        inout[...] = op(inout, view_at(source, n, like))

    return with_function


def plain_items(**arrays: tuple[Any, int, bool]) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """Return the addresses of arrays, and their items' type, size and number.

    Parameters
    ----------
    **arrays : (array, int, bool)
        Under the name that errors say: the array, the rows that it must have, and whether it is written.
    """
    if plain := _core.plain_arrays(*arrays.values()):
        return plain  # type: ignore[no-any-return]
    first: tuple[str, NDArray[Any]] | None = None
    for name, (a, rows, written) in arrays.items():
        if not isinstance(a, np.ndarray) or not a.flags.c_contiguous:
            raise InputTypeError(name, a)
        if a.dtype.hasobject:
            raise InputTypeError(f"{name} (of dtype {a.dtype})", a)
        if written and not a.flags.writeable:
            raise ShapeError(f"{name} is read-only, but the operation writes to it.")
        if a.ndim not in (1, 2) or a.shape[0] < rows:
            raise ShapeError(f"{name} has shape {a.shape}, but {rows} rows are needed.")
        if first is None:
            first = name, a
        elif a.dtype != first[1].dtype or a.shape[1:] != first[1].shape[1:]:
            raise ShapeError(f"{first[0]} and {name} differ: {first[1].shape} {first[1].dtype}, {a.shape} {a.dtype}.")
    assert first is not None
    a = first[1]
    addresses = tuple(address_of(entry[0]) for entry in arrays.values())
    return addresses, (item_type(a.dtype), a.itemsize, a.shape[1] if a.ndim == 2 else 1)
