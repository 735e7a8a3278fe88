"""Who waits for another rank or thread leaves the core to others; and what a share of a busy machine is."""

import os
import subprocess
import sys

import pytest

from asterism.cli.bench_busy import fair_share

LATE = """
import time
transport = {transport!r}
n = {length}
last = size - 1
roots, edges = (n if rank == last else 0), ([(last, i) for i in range(n)] if rank != last else [])
forest = am.StarForest(comm, roots, None, edges, transport=transport)
A = am.gallery.poisson((4, 4), comm)
root, leaf = np.zeros(roots), np.zeros(len(edges))
for turn in range(3):  # the first also sets up
    comm.Barrier()
    root[:] = turn + 1 + np.arange(roots)
    if rank == last: time.sleep(0.6)
    start = time.process_time()
    forest.bcast(root, leaf)
    total = A._comm.sum(rank)
    used = time.process_time() - start
    assert total == size * last // 2
    assert (leaf == turn + 1 + np.arange(len(edges))).all()
assert rank == last or used < 0.3, (rank, used)  # who looks all the time uses 0.6 s, or what the others leave
"""


@pytest.mark.parametrize(("transport", "length"), [("shm", 1), ("shm", 1 << 17), ("p2p", 1), ("p2p", 1 << 17)])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_wait_leave_their_cores(on_ranks, ranks, transport, length):
    on_ranks(ranks, LATE.format(transport=transport, length=length))


def test_ranks_that_wait_for_a_sum_leave_their_cores(on_ranks):
    on_ranks(
        3,
        """
import time
A = am.gallery.poisson((4, 4), comm)
A._comm.sum(1)
comm.Barrier()
if rank == 1: time.sleep(0.6)
start = time.process_time()
assert A._comm.sum(rank) == 3
used = time.process_time() - start
assert used < 0.3, (rank, used)
""",
    )


@pytest.mark.parametrize("more", ["", "-ksp_asynchronous"])
def test_threads_without_work_leave_their_cores(more):
    script = f"""
import time, numpy as np, asterism as am
A = am.gallery.poisson((100, 100))
solver = am.Solver(A, {more!r}, ksp="cg", pc="amg", queue={"thread" if more else None!r})
solver.solve(np.ones(10000))
start = time.process_time()
time.sleep(0.6)
used = time.process_time() - start
assert used < 0.3, used
"""
    env = {**os.environ, "ASTERISM_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=env)


@pytest.mark.parametrize(
    ("busy", "bound", "threads", "cores", "share"),
    [
        (0, False, 4, 2, 1.0),  # idle, whatever that takes
        (1, False, 1, 2, 1.0),  # a core for each
        (1, False, 2, 2, 1.5),
        (4, False, 4, 2, 4.0),
        (1, True, 2, 2, 4 / 3),  # one and a half of two cores
        (4, True, 2, 2, 2 / 1.2),
    ],
)
def test_fair_share(busy, bound, threads, cores, share):
    assert fair_share(busy, bound, threads, cores) == pytest.approx(share)
