"""Operations of star forests that are under way."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable
from typing import Any

from .. import _core

__all__ = ["Flight"]


def _say_what_is_under_way() -> None:
    """At exit, before MPI is gone: what was begun and never ended."""
    for name in _core.operations_under_way():
        logging.getLogger("asterism").warning(
            "an operation on the star forest '%s' was begun and never ended. Call end().", name
        )


atexit.register(_say_what_is_under_way)


class Flight:
    """One operation under way, made by `StarForest.bcast_begin` and the like; `end()` makes its result readable.

    One that is dropped before is ended then, with a warning.
    """

    def __init__(self, flight: _core.Flight, held: tuple[Any, ...], finish: Callable[[], None] | None = None) -> None:
        self._flight = flight
        self._held = held  # the arrays must outlive the operation
        self._finish = finish

    def __repr__(self) -> str:
        return f"<asterism.Flight, {'under way' if self._held else 'ended'}>"

    def end(self) -> None:
        """Wait for the data. Collective.

        Raises
        ------
        CommError
            It was called before; or an error of another call has given the operation up, on all ranks.
        """
        self._flight.end()
        if self._finish:
            self._finish()
        self._held = ()
