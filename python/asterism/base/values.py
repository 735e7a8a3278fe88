"""Values as users give them: which dtypes there are, and no masks."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DtypeError, InputError

__all__ = ["DTYPES", "dtype_name", "is_number", "unmasked"]

DTYPES = ("float32", "float64", "complex64", "complex128")


def dtype_name(dtype: Any, what: str) -> str:
    """Return the name of one of the four dtypes; raises a DtypeError for anything else."""
    try:
        name: str | None = np.dtype(dtype).name
    except TypeError:
        name = None
    if name is None or name not in DTYPES:
        raise DtypeError(
            f"{what}: dtype {dtype if name is None else name!r} is none of float32, float64, complex64 and complex128."
        )
    return name


def is_number(value: object) -> bool:
    """Return whether it is a real number that a float can hold, NumPy's too; True and False are none."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def unmasked(values: Any, what: str) -> NDArray[Any]:
    """Return an array; raises an InputError where values are masked, as their numbers mean nothing."""
    if isinstance(values, np.ma.MaskedArray) and (masked := np.count_nonzero(np.ma.getmaskarray(values))):
        raise InputError(
            f"{what} has {masked} masked values of {values.size}. Say what they are: values.filled(0.0), for instance."
        )
    return np.asarray(values)
