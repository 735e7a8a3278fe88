"""The roofline: what bandwidth and peak allow a kernel.

Input: bandwidth, peak, and the work of a kernel. Output: rates and fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..base.values import is_number
from ..errors import InputError
from ..stencil.language.cost import Cost

__all__ = ["Roofline"]


@dataclass(frozen=True)
class Roofline:
    """What bandwidth and peak allow a kernel.

    Attributes
    ----------
    bandwidth : float
        Of the memory, in bytes per second.
    peak : float
        In flops per second; infinite by default: memory alone limits.

    Raises
    ------
    InputError
        One of them is not positive.

    Notes
    -----
    Source: Williams, Waterman and Patterson, "Roofline", 2009.

    Examples
    --------
    >>> import asterism as am
    >>> i, = am.stencil.indices(1)
    >>> u, out = am.stencil.grid("u", 1), am.stencil.grid("out", 1)
    >>> cost = am.stencil.assign(out(i), u(i + 1) - u(i - 1)).cost()
    >>> am.models.Roofline(1420e9).points_per_second(cost) / 1e9
    88.75
    """

    bandwidth: float
    peak: float = math.inf

    def __post_init__(self) -> None:
        for name, value in (("bandwidth", self.bandwidth), ("peak", self.peak)):
            if not (is_number(value) and value > 0):
                raise InputError(f"a roofline's {name} is {value!r}; a positive number is needed.")

    @classmethod
    def measured(cls) -> Roofline:
        """Return that of this machine: the bandwidth of the STREAM triad with all threads.

        Returns
        -------
        Roofline

        Notes
        -----
        Measured once on a machine, in about a second, and then read from ``~/.cache/asterism/machine.json``.
        """
        from ..base.machine import memory_bandwidth

        return cls(memory_bandwidth())

    def flops_per_second(self, intensity: float) -> float:
        """Return the most that a kernel reaches: min(peak, bandwidth * intensity).

        Parameters
        ----------
        intensity : float
            Flops a byte.

        Returns
        -------
        float

        Raises
        ------
        InputError
            ``intensity`` is not positive.
        """
        if not (is_number(intensity) and intensity > 0):
            raise InputError(f"the intensity is {intensity!r}; a positive number of flops a byte is needed.")
        return min(self.peak, self.bandwidth * intensity)

    def points_per_second(self, cost: Cost) -> float:
        """Return the most points that a stencil reaches in a second; of coarse points, if it has two spaces.

        Parameters
        ----------
        cost : Cost
            ``am.stencil.Stencil.cost()``: flops and bytes at a point.

        Returns
        -------
        float
        """
        by_flops = self.peak / cost.flops if cost.flops else math.inf
        return min(by_flops, self.bandwidth / cost.bytes)

    def fraction(self, flops: float, bytes_moved: float, seconds: float) -> float:
        """Return what a kernel reached, of the most that its measured intensity allows.

        Parameters
        ----------
        flops, bytes_moved, seconds : float
            What was counted and measured of a launch.

        Returns
        -------
        float
            1 on the roofline. More is often data in the cache.

        Raises
        ------
        InputError
            ``bytes_moved`` or ``seconds`` is not positive, or ``flops`` is negative.
        """
        known = all(map(is_number, (flops, bytes_moved, seconds)))
        if not (known and seconds > 0 and bytes_moved > 0 and flops >= 0):
            raise InputError(
                f"{flops!r} flops and {bytes_moved!r} bytes in {seconds!r} s: positive bytes and seconds are needed."
            )
        return max(bytes_moved / self.bandwidth, flops / self.peak) / seconds
