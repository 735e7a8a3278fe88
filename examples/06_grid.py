"""Heat on a periodic grid, each rank a box of it; neighbours' points are exchanged while the inner points are computed.

Run: python examples/06_grid.py, or mpiexec -n 4 python examples/06_grid.py
"""

import numpy as np

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

n, steps, r = 48, 200, 0.2
grid = am.grid.Grid((n, n), comm, periodic=True)
x, y = (2 * np.pi * np.arange(s.start, s.stop) / n for s in grid.owned)
u = grid.local()
u[grid.interior] = np.sin(x)[:, None] * np.cos(2 * y)[None, :]
start = u[grid.interior].copy()


def step(rows: slice) -> None:
    """Advance some rows of the own points by one explicit step."""
    a, b = rows.start, rows.stop
    own = u[a:b, 1:-1]
    around = u[a - 1 : b - 1, 1:-1] + u[a + 1 : b + 1, 1:-1] + u[a:b, :-2] + u[a:b, 2:]
    new[a - 1 : b - 1] = own + r * (around - 4 * own)


new = grid.globals()
last = u.shape[0] - 1
for _ in range(steps):
    exchange = grid.exchange_begin(u)
    inner = slice(2, last - 1)
    own = u[inner, 2:-2]  # needs no ghost point
    around = u[1 : last - 2, 2:-2] + u[3:last, 2:-2] + u[inner, 1:-3] + u[inner, 3:-1]
    new[1:-1, 1:-1] = own + r * (around - 4 * own)
    exchange.end()
    step(slice(1, 2))
    step(slice(last - 1, last))
    new[:, 0] = u[1:-1, 1] + r * (u[:-2, 1] + u[2:, 1] + u[1:-1, 0] + u[1:-1, 2] - 4 * u[1:-1, 1])
    new[:, -1] = u[1:-1, -2] + r * (u[:-2, -2] + u[2:, -2] + u[1:-1, -3] + u[1:-1, -1] - 4 * u[1:-1, -2])
    u[grid.interior] = new

# a Fourier mode decays by a known factor each step
factor = 1 - 2 * r * (1 - np.cos(2 * np.pi / n)) - 2 * r * (1 - np.cos(4 * np.pi / n))
error = np.abs(u[grid.interior] - factor**steps * start).max()
if comm is None or comm.rank == 0:
    print(grid.view().splitlines()[0])
    print(f"after {steps} steps the mode has {factor**steps:.3f} of its height, largest error {error:.1e}")
assert error < 1e-12
