"""Deal a system's rows to the ranks anew, solve it there, bring the answer back, and see what was sent.

mpiexec -n 3 python examples/07_move_and_report.py
"""

import numpy as np

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None
rank, size = (comm.rank, comm.size) if comm else (0, 1)

A = am.gallery.poisson((40, 40), comm=comm)
b = A.make_vector(fill=1.0)

# every rank says where its rows are to go: here by columns of the grid instead of by rows of it
rows = np.arange(*A.row_range)
move = am.Redistribution(A, rows % 40 * size // 40)
B = move.matrix(A)

am.comm_report(comm, reset=True)
x, info = am.solve(B, move.forward(b), ksp="cg", pc="amg", rtol=1e-8)
report = am.comm_report(comm)

residual = b - A @ move.back(x)
assert abs(residual).max() < 1e-6 * abs(b).max()

# a part of it: the rows and columns of the grid's first line, on rank 0
line = A.submatrix(np.arange(40) if rank == 0 else [], np.arange(40) if rank == 0 else [])
assert line.shape == (40, 40)

if rank == 0:
    print(f"{info.reason} after {info.iterations} iterations on {size} rank(s)")
    print(report)
