"""The same script on one process and on several; the hierarchy is the same.

Run: python examples/04_ranks.py, or mpiexec -n 3 python examples/04_ranks.py
"""

import numpy as np

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
except ImportError:
    comm = None

A = am.gallery.poisson((30, 30, 30), comm)
first, end = A.row_range  # the rows of this rank
b = np.sin(np.arange(first, end))
x, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-9)
if comm is None or comm.rank == 0:
    print(info.iterations, "iterations on", A.comm_size, "rank(s)")
assert 12 <= info.iterations <= 16, info.iterations
