"""Writes the text of stencils for GPUs, for a compiler to check: python scripts/gpu_stencils.py FOLDER"""

import itertools
import sys
from pathlib import Path

from asterism import stencil as st


def stencils():
    """One for each thing that a text can have."""
    i, j, k = at = st.indices(3)
    u, b, c, out, coarse = (st.grid(name, 3) for name in ("u", "b", "c", "out", "coarse"))
    h = st.constant("h")
    star = (st.laplacian(u, at, accuracy=2, spacing=1.0) + st.minimum(b(i, j, k), 2.0)) / (h * h)
    yield "star", st.assign(out(i, j, k), star), (8, 8, 8)
    box = sum(
        (1.0 + sum(o) % 4) * u(i + (o[0] - 2), j + (o[1] - 2), k + (o[2] - 2))
        for o in itertools.product(range(5), repeat=3)
    )
    yield "box", st.assign(out(i, j, k), box), (8, 8, 8)
    red = st.where((i + j + k) % 2 == 0, (b(i, j, k) + u(i + 1, j, k) + u(i, j, k - 1)) / c(i, j, k), u(i, j, k))
    yield "red", st.assign(u(i, j, k), red), (4, 4, 4)
    end = st.where((i == 0) | (k == k.extent - 1), 0.5 * k, abs(c(i, j, k)) * (u(i, j, k + 3) - st.sqrt(b(i, j, k))))
    both = st.fuse(st.assign(out(i, j, k), end), st.reduce("sum", "total", end), st.reduce("max", "top", out(i, j, k)))
    yield "ends", both, (3, 2, 5)
    up = st.assign(
        u(i, j, k), u(i, j, k) + 0.75 * coarse(i // 2, j // 2, k // 2) + 0.25 * coarse((i + 1) // 2, j // 2, k // 2)
    )
    yield "up", up, (4, 4, 4)
    down = sum(u(2 * i + x, 2 * j + y, 2 * k + z) for x, y, z in itertools.product(range(2), repeat=3)) * 0.125
    yield "down", st.assign(coarse(i, j, k), down), (8, 8, 8)
    (m,) = st.indices(1)
    v, w = st.grid("v", 1), st.grid("w", 1)
    yield "line", st.assign(w(m), v(m + 1) - v(m - 1)), (100,)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, stencil, brick in stencils():
        for target, dtype in itertools.product(("cuda", "hip"), ("float32", "float64")):
            text = stencil.source(target, brick, dtype)
            (folder / f"{name}_{dtype}.{'cu' if target == 'cuda' else 'hip'}").write_text(text)


if __name__ == "__main__":
    main()
