"""Draws values on a grid for the examples: rank 0 collects what all ranks have."""

import numpy as np
from matplotlib.figure import Figure


def whole(L, values, comm):
    """Return the values of the whole grid on rank 0, None on others."""
    parts = [(L.owned, values)] if comm is None else comm.gather((L.owned, values))
    if parts is None:
        return None
    out = np.empty(L.grid_shape)
    for owned, part in parts:
        out[owned] = part
    return out


def draw(path, panels, cmap="viridis", limits=(None, None)):
    """Write a row of pictures of titles and arrays; the first axis goes to the right."""
    low, high = limits
    figure = Figure(figsize=(3.4 * len(panels), 3.4), layout="constrained")
    for axes, (title, values) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        image = axes.imshow(values.T, origin="lower", cmap=cmap, vmin=low, vmax=high, extent=(0, 1, 0, 1))
        axes.set_title(title)
        figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, dpi=110)
    print("wrote", path)
