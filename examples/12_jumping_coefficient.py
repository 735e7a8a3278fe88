"""Current through a block with balls that conduct 1000 times less, by geometric multigrid; potential.png, and potential.vti for ParaView.

Run: python examples/12_jumping_coefficient.py, or mpiexec -n 4 python examples/12_jumping_coefficient.py
"""

import numpy as np
from pictures import draw, whole

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

n = 64
at = am.stencil.indices(3)
u, a, out = (am.stencil.grid(name, 3) for name in ("u", "a", "out"))
h = am.stencil.constant("h")
BALLS = [(0.3, 0.3, 0.5, 0.22), (0.7, 0.35, 0.5, 0.17), (0.45, 0.75, 0.45, 0.2), (0.8, 0.8, 0.4, 0.15)]


def flux(axis, step):
    """What flows to a neighbour: two half cells in series. Beyond an end u and a are 0: nothing flows, but along x through half a cell."""
    there = [k + step * (m == axis) for m, k in enumerate(at)]
    between = 2 * a(*at) * a(*there) / (a(*at) + a(*there))
    if axis == 0:
        between = am.stencil.where(at[0] == (0 if step < 0 else at[0].extent - 1), 2 * a(*at), between)
    return between * (u(*at) - u(*there))


total = flux(0, -1) + flux(0, 1) + flux(1, -1) + flux(1, 1) + flux(2, -1) + flux(2, 1)
stencil = am.stencil.assign(out(*at), total / (h * h))
x, y, z = np.meshgrid(*[(np.arange(n) + 0.5) / n] * 3, indexing="ij")
balls = np.logical_or.reduce([(x - p) ** 2 + (y - q) ** 2 + (z - r) ** 2 < radius**2 for p, q, r, radius in BALLS])
everywhere = np.where(balls, 0.001, 1.0)  # as an array it is averaged on coarse grids
L = am.stencil.operator(stencil, (n, n, n), comm=comm, points="cells", h=1 / n, a=everywhere)
conductivity, x = everywhere[L.owned], x[L.owned]
b = np.where(x < 1 / n, 2 * conductivity * n * n, 0.0)  # the potential is 1 at x = 0, and 0 at x = 1
solver = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-9)
potential = solver.solve(b)

# what flows in flows out
current_in, current_out = (
    float((2 * conductivity * jump)[end].sum() / n)
    for jump, end in ((1 - potential, x < 1 / n), (potential, x > 1 - 1 / n))
)
if comm is not None:
    current_in, current_out = comm.allreduce(current_in), comm.allreduce(current_out)
am.write_vtk("potential.vti", L, potential=potential, conductivity=conductivity.astype(np.float32))
pictures = [whole(L, values, comm) for values in (conductivity, potential)]
if comm is None or comm.rank == 0:
    print(solver.info)
    print(f"current in {current_in:.8f}, out {current_out:.8f}")
    conducts, height = (values[:, :, n // 2] for values in pictures)
    current = conducts * np.hypot(*np.gradient(height, 1 / n))
    draw("potential.png", [("conductivity", conducts), ("potential", height), ("current in this plane", current)])
assert solver.info.iterations <= 20, solver.info
assert abs(current_in - current_out) < 1e-7 and 0.7 < current_in < 0.95, (current_in, current_out)
