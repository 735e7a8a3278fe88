"""Diffusion with a coefficient that jumps by 1000: a stencil in flux form, as an operator on any number of processes.

Run: python examples/09_stencil.py, or mpiexec -n 4 python examples/09_stencil.py
"""

import numpy as np

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

n = 64
i, j = am.stencil.indices(2)
u, a, out = (am.stencil.grid(name, 2) for name in ("u", "a", "out"))
h = am.stencil.constant("h")


def flux(di: int, dj: int) -> am.stencil.Expr:
    """Return what flows to a neighbour: the coefficient between two points is their mean, or the point's own at a border."""
    there = a(i + di, j + dj)
    between = am.stencil.where(there > 0, 0.5 * (a(i, j) + there), a(i, j))
    return between * (u(i, j) - u(i + di, j + dj))


total = (flux(1, 0) + flux(-1, 0) + flux(0, 1) + flux(0, -1)) / (h * h)
L = am.stencil.operator(
    am.stencil.assign(out(i, j), total),
    (n, n),
    comm=comm,
    h=1 / (n + 1),
    a=lambda x, y: np.where((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1, 1000.0, 1.0),
)
b = np.ones(L.local_grid_shape)
x, info = am.solve(L, b, ksp="cg", pc="jacobi", rtol=1e-8)
residual = np.abs(L @ x - b).max(initial=0.0)
highest = x.max(initial=0.0)
if comm is not None:
    residual, highest = comm.allreduce(residual, MPI.MAX), comm.allreduce(highest, MPI.MAX)
if comm is None or comm.rank == 0:
    print(L)
    print(f"{info.iterations} iterations, highest value {highest:.6f}, largest residual {residual:.1e}")
# the same on any number of processes: the disc is nearly flat, at the height that its rim has
assert abs(highest - 0.047) < 0.001 and residual < 1e-4, (highest, residual)
