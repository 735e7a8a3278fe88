"""Indices and counts as users give them: integers, never rounded."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DtypeError, InputError, ShapeError
from .values import unmasked

__all__ = ["as_count", "as_counts", "as_flags", "as_indices", "as_shape", "near_cube"]

_LARGEST = int(np.iinfo(np.int64).max)


def as_indices(a: Any, what: str = "indices") -> NDArray[np.int64]:
    """Return a flat, contiguous array of int64; raises a DtypeError for anything but integers, an InputError where some are masked."""
    given = unmasked(a, what)
    if given.size and given.dtype.kind not in "iu":
        hint = (
            "Give the numbers themselves: np.flatnonzero(mask)."
            if given.dtype.kind == "b"
            else "Convert them with .astype(np.int64), if they are whole numbers."
        )
        raise DtypeError(f"{what}: dtype {given.dtype}; int64, or another integer type, is needed. {hint}")
    if given.dtype == np.uint64 and given.size and given.max() > np.iinfo(np.int64).max:
        raise InputError(f"{what}: {given.max()} is above {np.iinfo(np.int64).max}, the largest index.")
    return np.ascontiguousarray(given.astype(np.int64, copy=False).reshape(-1))


def as_count(n: Any, what: str) -> int:
    """Return an int; raises a DtypeError for anything but an integer, a ShapeError for one below zero."""
    try:
        count = operator.index(n)
    except TypeError:
        raise DtypeError(f"{what} is {n!r} ({type(n).__name__}); an integer is needed.") from None
    if count < 0:
        raise ShapeError(f"{what} is {count}; it cannot be negative.")
    if count > _LARGEST:
        raise ShapeError(f"{what} is {count}; at most {_LARGEST} fits 64 bits.")
    return count


def as_shape(given: Any, what: str) -> list[int]:
    """Return the sizes of a grid; an int is that of one dimension. Raises as `as_count`."""
    return [as_count(n, what) for n in (given if np.iterable(given) else [given])]


def as_counts(given: Any, number: int, what: str) -> list[int]:
    """Return so many ints, each as of `as_count`; raises a ShapeError where there are not so many."""
    try:
        counts = list(given)
    except TypeError:
        counts = []
    if len(counts) != number:
        raise ShapeError(f"{what} is {given!r}; {number} integers are needed, such as ({', '.join(['8'] * number)}).")
    return [as_count(n, what) for n in counts]


def as_flags(periodic: bool | Sequence[bool], dimensions: int) -> tuple[bool, ...]:
    """Return one flag for each axis; raises an InputError for anything but True and False."""
    flags = tuple(periodic) if np.iterable(periodic) else (periodic,) * dimensions
    for flag in flags:
        if not isinstance(flag, (bool, np.bool_)):
            raise InputError(f"periodic has {flag!r}; True or False is needed, or one of them for each axis.")
    if len(flags) != dimensions:
        raise InputError(f"periodic has {len(flags)} flags for {dimensions} dimensions.")
    return tuple(bool(p) for p in flags)


def near_cube(n: int) -> tuple[int, int, int]:
    """Return three factors of n that are as alike as they can be, the largest first. Time: O(sqrt(n))."""
    small = [c for c in range(1, math.isqrt(n) + 1) if n % c == 0]
    divisors = sorted({*small, *(n // c for c in small)})
    found = [
        (n // (b * c), b, c)
        for c in divisors
        if c**3 <= n
        for b in divisors
        if b >= c and n // c % b == 0 and n // (b * c) >= b
    ]
    return min(found, key=sum)
