"""Heat in a plate whose border is kept at 0, by implicit steps with geometric multigrid; heat.png, and heat.pvti for ParaView.

Run: python examples/11_heat.py, or mpiexec -n 4 python examples/11_heat.py
"""

import numpy as np
from pictures import draw, whole

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

n, steps, dt = 127, 40, 1e-4
i, j = am.stencil.indices(2)
u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
h, tau = am.stencil.constant("h"), am.stencil.constant("tau")
minus_laplace = (4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)) / (h * h)
stencil = am.stencil.assign(out(i, j), u(i, j) + tau * minus_laplace)

L = am.stencil.operator(stencil, (n, n), comm=comm, h=1 / (n + 1), tau=dt)
solver = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-10)
x, y = np.moveaxis(L.coordinates(), -1, 0)
ring = np.abs(np.hypot(x - 0.4, y - 0.45) - 0.2) < 0.04
values = start = np.where(ring | ((x > 0.75) & (y > 0.7)), 1.0, 0.0)
most, frames = 0, [("t = 0", whole(L, start, comm))]
for step in range(1, steps + 1):
    values = solver.solve(values, x0=values)
    most = max(most, solver.info.iterations)
    if step in (steps // 8, steps):
        frames.append((f"t = {step * dt:g}", whole(L, values, comm)))

# whatever the start, its share of the lowest mode decays by a known factor each step
mode = np.sin(np.pi * x) * np.sin(np.pi * y)
eigenvalue = 8 * np.sin(np.pi / (2 * (n + 1))) ** 2 * (n + 1) ** 2
factor = (1 + dt * eigenvalue) ** -steps
before, after = (float((mode * a).sum()) for a in (start, values))
if comm is not None:
    before, after = comm.allreduce(before), comm.allreduce(after)
am.write_vtk("heat.pvti", L, start=start, temperature=values)
if comm is None or comm.rank == 0:
    print(
        f"at most {most} iterations a step; the lowest mode has {after / before:.6f} of its height, exactly {factor:.6f}"
    )
    draw("heat.png", frames, "inferno", limits=(0, 1))
assert abs(after / before - factor) < 1e-7 and most <= 8, (after / before, factor, most)
