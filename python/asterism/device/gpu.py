"""What a process uses of its GPU."""

from __future__ import annotations

from typing import Any

from .. import _core

__all__ = ["gpu_state"]


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
