"""Arrays that kernels of bricks take as they are: others are copied first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["aligned"]


def aligned(shape: tuple[int, ...], dtype: Any, zero: bool = False) -> NDArray[Any]:
    """Return an array whose memory begins at a multiple of 64 bytes, a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = (np.zeros if zero else np.empty)(size + 64, np.uint8)
    first = -raw.ctypes.data % 64
    out: NDArray[Any] = raw[first : first + size].view(dtype).reshape(shape)
    return out
