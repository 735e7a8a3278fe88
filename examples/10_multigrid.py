"""Flow through a medium whose conductivity varies by 20, by geometric multigrid: the iterations are those of a grid half as fine.

Run: python examples/10_multigrid.py, or mpiexec -n 4 python examples/10_multigrid.py
"""

import numpy as np

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

i, j = am.stencil.indices(2)
u, a, out = (am.stencil.grid(name, 2) for name in ("u", "a", "out"))
h = am.stencil.constant("h")


def flux(di: int, dj: int, end: am.stencil.Expr) -> am.stencil.Expr:
    """Return what flows to a neighbour; through the border u = 0, half a cell away."""
    inside = 0.5 * (a(i, j) + a(i + di, j + dj)) * (u(i, j) - u(i + di, j + dj))
    return am.stencil.where(end, 2.0 * a(i, j) * u(i, j), inside)


total = flux(-1, 0, i == 0) + flux(1, 0, i == i.extent - 1) + flux(0, -1, j == 0) + flux(0, 1, j == j.extent - 1)
stencil = am.stencil.assign(out(i, j), total / (h * h))


def solve(n: int) -> tuple[int, float]:
    """Return the iterations and the mean of u on n x n cells."""
    L = am.stencil.operator(
        stencil,
        (n, n),
        comm=comm,
        points="cells",
        h=1 / n,
        a=lambda x, y: np.exp(1.5 * np.sin(9 * x) * np.cos(7 * y)),
    )
    solver = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-9)
    x = solver.solve(np.ones(L.local_grid_shape))
    if comm is None or comm.rank == 0:
        print(solver.info)
    sums = x.sum() / n**2
    return solver.info.iterations, float(sums if comm is None else comm.allreduce(sums))


coarse, fine = solve(64), solve(256)
assert abs(fine[0] - coarse[0]) <= 2 and fine[0] <= 14, (coarse, fine)
assert abs(fine[1] - coarse[1]) < 1e-3 * fine[1], (coarse, fine)
