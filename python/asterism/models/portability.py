"""Performance portability (Pennycook, Sewall, Lee, 2019), and the speed-up that is still possible.

Input: efficiencies between 0 and 1. Output: numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.values import is_number
from ..errors import InputError

__all__ = ["performance_portability", "potential_speedup"]


def performance_portability(efficiencies: Iterable[float | None]) -> float:
    """Return the harmonic mean of the efficiencies on all platforms, or 0 if one is not supported.

    Parameters
    ----------
    efficiencies : iterable of float or None
        Each in (0, 1]; None or 0 where the application does not run.

    Returns
    -------
    float

    Raises
    ------
    InputError
        There is no platform, or an efficiency is not between 0 and 1.

    Notes
    -----
    Source: Pennycook, Sewall and Lee (2019).

    Examples
    --------
    >>> import asterism as am
    >>> round(am.models.performance_portability([0.98, 0.88, 0.86]), 2)
    0.9
    >>> am.models.performance_portability([0.98, None])
    0.0
    """
    values = list(efficiencies)
    if not values:
        raise InputError("performance portability of no platform: give at least one efficiency.")
    for e in values:
        if e is not None and not (is_number(e) and 0 <= e <= 1):
            raise InputError(
                f"the efficiency {e!r} is not between 0 and 1. More than 1 is often data in the cache: take larger sizes."
            )
    if not all(values):
        return 0.0
    return len(values) / sum(1 / e for e in values if e)


def potential_speedup(roofline: float, intensity: float) -> float:
    """Return the speed-up of a perfect kernel: 1 / (fraction of roofline * fraction of theoretical intensity).

    Parameters
    ----------
    roofline, intensity : float
        The fractions that a kernel reaches, in (0, 1].

    Returns
    -------
    float
        1 or more.

    Raises
    ------
    InputError
        A fraction is not in (0, 1].

    Notes
    -----
    Source: Antepara, Williams, Johansen and Hall (2024), Fig. 7.

    Examples
    --------
    >>> import asterism as am
    >>> am.models.potential_speedup(0.5, 0.8)
    2.5
    """
    for name, value in (("roofline", roofline), ("theoretical intensity", intensity)):
        if not (is_number(value) and 0 < value <= 1):
            raise InputError(f"the fraction of the {name} is {value!r}; it must be above 0, and at most 1.")
    return 1 / (roofline * intensity)
