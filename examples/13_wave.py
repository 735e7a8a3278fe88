"""A wave that meets a lens in which it is slower: leapfrog steps that keep the energy; wave.png, and wave.pvti for ParaView.

Run: python examples/13_wave.py, or mpiexec -n 4 python examples/13_wave.py
"""

import numpy as np
from pictures import draw, whole

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None


def total(values):
    """Return the sum over all ranks."""
    mine = float(values.sum())
    return mine if comm is None else comm.allreduce(mine)


n, steps = 255, 560
i, j = am.stencil.indices(2)
u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
laplace = am.stencil.laplacian(u, (i, j), accuracy=4, spacing=1 / (n + 1))
L = am.stencil.operator(am.stencil.assign(out(i, j), laplace), (n, n + 1), periodic=(False, True), comm=comm)

x, y = np.moveaxis(L.coordinates(), -1, 0)
speed = np.where((x - 0.75) ** 2 + (y - 0.5) ** 2 < 0.15**2, 0.5, 1.0)
dt = 0.5 / (n + 1)
square = (speed * dt) ** 2
before = np.exp(-(((x - 0.2) / 0.025) ** 2))  # a front that goes to the right
now = np.exp(-(((x - dt - 0.2) / 0.025) ** 2))


def energy(a, b):
    """Return the energy between two steps, which leapfrog keeps to rounding."""
    return 0.5 / (n + 1) ** 2 * total(((b - a) / (speed * dt)) ** 2 - b * (L @ a))


start, frames = energy(before, now), [("t = 0", whole(L, now, comm))]
for step in range(1, steps + 1):
    before, now = now, 2 * now - before + square * (L @ now)
    if step in (steps // 2, steps):
        frames.append((f"t = {step * dt:.2f}", whole(L, now, comm)))
end = energy(before, now)
am.write_vtk("wave.pvti", L, height=now, speed=speed)
if comm is None or comm.rank == 0:
    print(f"energy {start:.6f} at the start, changed by {abs(end / start - 1):.1e} after {steps} steps")
    draw("wave.png", frames, "RdBu", limits=(-1, 1))
assert abs(end / start - 1) < 1e-11, (start, end)
