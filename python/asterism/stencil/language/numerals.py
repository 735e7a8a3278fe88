"""Numbers that a user writes in a stencil or gives to one, of Python or NumPy.

Input: any object. Output: a float, a complex number or an integer, or an `InputError` that says what was given.
"""

from __future__ import annotations

import operator
import sys

from ...errors import InputError


def simplest(value: complex) -> float | complex:
    """Return a complex number that is real as a float."""
    return value.real if value.imag == 0 else value


def as_number(value: object, what: str) -> float | complex:
    """Return a float, or a complex number that is not real; raises an `InputError` for anything else."""
    if isinstance(value, str):
        raise InputError(f"{what} is {value!r}; a number is needed.")
    try:
        return simplest(complex(value))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise InputError(f"{what} is a {type(value).__name__}; a number is needed.") from None
    except OverflowError:
        raise InputError(f"{what} is {short(value)}; the largest number is {sys.float_info.max:.2g}.") from None


def as_integer(value: object) -> int | None:
    """Return an integer, of Python or NumPy, as an int; None for anything else, also for True and False."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def short(value: object) -> str:
    """Return a number as text that is never long."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return f"an integer of about {int(value.bit_length() * 0.30103) + 1} digits"
    return repr(value) if isinstance(value, int) else f"a {type(value).__name__} beyond any float"
