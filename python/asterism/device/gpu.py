"""What a process uses of its GPU, and arrays that others have there."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..errors import InputError, ShapeError

__all__ = ["gpu_array", "gpu_state"]


def gpu_state() -> dict[str, Any]:
    """Return what this process uses of its GPU.

    Returns
    -------
    dict
        ``device`` (its name, empty where none is used), ``bytes_now`` and ``bytes_most`` of arrays there; ``without_form``: how
        often each event ran on the host, with its data copied, because it has no form for the GPU; ``copies``: by event (copies
        to the device, their bytes, copies to the host, their bytes) since the start; ``graphs``: how many were ``made`` and
        ``replayed`` of the iterations of asynchronous solves, the ``kernels`` in those replayed, how many of these were
        ``changed`` (had other arguments than the time before), and the kernels that were launched ``alone``; ``products``: for which
        csr blocks our kernel and cuSPARSE were measured, and which was ``taken`` (``-mat_gpu_product``); ``stencils``: how many of their
        kernels were ``loaded``, and why the last that was not is ``missing`` (empty: all are there).
    """
    return dict(_core.gpu_state())


def gpu_array(interface: dict[str, Any] | None) -> dict[str, Any] | None:
    """Where an array lies on a GPU, checked; None if it does not."""
    if interface is None:
        return None
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise InputError(f"Vector.wrap: an array of dtype {dtype}; float32, float64, complex64 or complex128.")
    if len(shape) not in (1, 2):
        raise ShapeError(f"Vector.wrap: an array of shape {shape}; (n) or (n, k).")
    packed = tuple(int(dtype.itemsize * np.prod(shape[i + 1 :])) for i in range(len(shape)))
    if interface.get("strides") not in (None, packed):
        raise InputError(
            f"Vector.wrap: an array of strides {interface['strides']} cannot be used in place; a contiguous one can."
        )
    if interface["data"][1]:
        raise InputError("Vector.wrap: the array is read-only. Vector(A).copy_from takes it.")
    return {**interface, "shape": shape, "stream": interface.get("stream")}
