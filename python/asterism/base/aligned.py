"""Arrays that kernels of bricks take as they are: others are copied first."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["aligned"]

_PLACES = cycle((0, 2048, 1024, 3072))  # of a page, as the core's own arrays


def aligned(shape: tuple[int, ...], dtype: Any, zero: bool = False) -> NDArray[Any]:
    """Return an array whose memory begins at a multiple of 64 bytes, a cache line; large ones at different places of a page."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    page, place = (4096, next(_PLACES)) if size >= 65536 else (64, 0)
    raw = (np.zeros if zero else np.empty)(size + page, np.uint8)
    first = (place - raw.ctypes.data) % page
    out: NDArray[Any] = raw[first : first + size].view(dtype).reshape(shape)
    return out
