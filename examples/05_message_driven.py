"""A triangular solve driven by messages: a row is solved when what it needs has arrived, in whatever order that is.

Rows are dealt to the ranks at random, so that nearly every dependency crosses ranks. No rank ever waits for a level or a
barrier: it polls, and does what has become possible.

Run: mpiexec -n 4 python examples/05_message_driven.py
"""

import struct

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve_triangular

import asterism as am

try:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    me, size = comm.Get_rank(), comm.Get_size()
except ImportError:
    comm, me, size = None, 0, 1

L = sp.tril(am.gallery.poisson((24, 24)).to_scipy(), format="csr")
n = L.shape[0]
b = np.random.default_rng(1).standard_normal(n)
owner = np.random.default_rng(2).integers(0, size, n)

columns = sp.tril(L, -1, format="csc")  # column j: the rows that wait for x[j]
waits_for = np.diff(sp.tril(L, -1, format="csr").indptr)
diagonal = L.diagonal()
rest, x = b.copy(), np.zeros(n)
mine = owner == me
ready = [i for i in range(n) if mine[i] and waits_for[i] == 0]
left = int(mine.sum())
puts = 0
channels = am.Channels(comm, [(r, 16) for r in range(size) if r != me])


def arrived(j: int, value: float) -> None:
    """Subtract x[j] where my rows need it."""
    for p in range(columns.indptr[j], columns.indptr[j + 1]):
        i = columns.indices[p]
        if mine[i]:
            rest[i] -= columns.data[p] * value
            waits_for[i] -= 1
            if waits_for[i] == 0:
                ready.append(int(i))


while left:
    while ready:
        j = ready.pop()
        left -= 1
        x[j] = rest[j] / diagonal[j]
        rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
        for rank in set(owner[rows].tolist()) - {me}:
            channels.put(rank, struct.pack("qd", j, x[j]))
            puts += 1
        arrived(j, x[j])
    if left:
        arrived(*struct.unpack("qd", channels.wait().data))

if comm is not None:
    x, puts = comm.allreduce(x), comm.allreduce(puts)
error = np.abs(x - spsolve_triangular(L, b, lower=True)).max()
if me == 0:
    print(f"{n} rows on {size} ranks, {puts} messages, largest error {error:.1e}")
assert error < 1e-12
assert size == 1 or puts > n // 2
