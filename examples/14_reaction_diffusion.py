"""Spots that grow and divide: the reaction of Gray and Scott, with diffusion by a stencil; spots.png, and spots.vti for ParaView.

Run: python examples/14_reaction_diffusion.py, or mpiexec -n 4 python examples/14_reaction_diffusion.py
"""

import numpy as np
from pictures import draw, whole

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

n, steps, feed, kill, du, dv = 128, 4000, 0.035, 0.062, 0.16, 0.08
i, j = am.stencil.indices(2)
w, out = am.stencil.grid("w", 2), am.stencil.grid("out", 2)
near = w(i - 1, j) + w(i + 1, j) + w(i, j - 1) + w(i, j + 1)
laplace = am.stencil.assign(out(i, j), near - 4 * w(i, j))
L = am.stencil.operator(laplace, (n, n), periodic=True, comm=comm)

x, y = np.moveaxis(L.coordinates(), -1, 0)
seed = (abs(x - 0.5) < 0.06) & (abs(y - 0.5) < 0.06) | (abs(x - 0.2) < 0.04) & (abs(y - 0.3) < 0.04)
both = np.stack([np.where(seed, 0.5, 1.0), np.where(seed, 0.25, 0.0)], axis=-1)  # food and what eats it
diffusion, frames = np.array([du, dv]), []
for step in range(1, steps + 1):
    u, v = both[..., 0], both[..., 1]
    eaten = u * v * v
    both = both + diffusion * (L @ both)  # both columns in one pass
    both[..., 0] += feed * (1 - u) - eaten
    both[..., 1] += eaten - (feed + kill) * v
    if step in (steps // 4, steps):
        frames.append((f"step {step}", whole(L, both[..., 1], comm)))
am.write_vtk("spots.vti", L, spacing=1.0, u=both[..., 0], v=both[..., 1])

mean = float(both[..., 1].sum()) / n**2
if comm is not None:
    mean = comm.allreduce(mean)
if comm is None or comm.rank == 0:
    print(f"after {steps} steps the mean of v is {mean:.6f}")
    draw("spots.png", frames)
assert both.min(initial=1.0) > 0 and both.max(initial=0.0) <= 1 + 1e-12
assert abs(mean - 0.11943) < 2e-3, mean
