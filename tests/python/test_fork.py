"""A process that has solved forks: parent and child go on, whatever threads the parent had."""

import os
import sys

import pytest
from conftest import PATIENCE, run_session

CHILDREN = """
import os, signal, sys, numpy as np, asterism as am
def task(n):
    A = am.gallery.poisson((n, n))
    b = np.ones(n * n)
    x, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8)
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
def in_child(f):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try: f()
        except BaseException as e: print(repr(e), file=sys.stderr, flush=True); os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "script",
    [
        """
for round in range(4):
    assert task(120) < 2e-8
    assert in_child(lambda: [task(120) for k in range(2)] and in_child(lambda: task(100)) == 0 or 1 / 0) == 0
assert task(120) < 2e-8
""",
        """
import multiprocessing as mp
assert task(100) < 2e-8
with mp.get_context("fork").Pool(2) as pool:
    out = pool.map_async(task, [90, 100, 110, 120]).get(timeout=60)
assert max(out) < 2e-8, out
assert task(100) < 2e-8
""",
        """
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
assert task(100) < 2e-8
with ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
    assert max(pool.map(task, [90, 100, 110, 120], timeout=60)) < 2e-8
assert task(100) < 2e-8
""",
        """
import multiprocessing as mp
def fails(n):
    A = am.gallery.poisson((n, n))
    return am.solve(A, np.ones(n * n), ksp="cg", pc="none", rtol=1e-10, maxiter=3)
with mp.get_context("fork").Pool(2) as pool:
    try: pool.map_async(fails, [50, 60]).get(timeout=60)
    except am.ConvergenceError as e: assert e.info.iterations == 3, e
    else: raise AssertionError("no error")
""",
        """
q = am.Queue("thread")
A = am.gallery.poisson((60, 60))
x = am.Vector.wrap(A, np.ones(3600), q)
y = A @ x
s = am.Solver(A, ksp="cg", pc="jacobi", rtol=1e-8, queue="thread")
s.solve(np.ones(3600))
def child():
    try: A @ x
    except am.AsterismError as e: assert "before a fork" in str(e), e
    else: raise AssertionError("no error")
    task(100)
    z = am.Vector.wrap(A, np.ones(3600), am.Queue("thread"))
    assert np.array_equal((A @ z).numpy(), A @ np.ones(3600))
for round in range(5):
    y = A @ x                                      # may be under way
    assert in_child(child) == 0
assert np.array_equal(y.numpy(), A @ np.ones(3600))
assert s.solve(np.ones(3600)) is not None
""",
    ],
    ids=["os.fork", "Pool", "ProcessPoolExecutor", "error in Pool", "queues"],
)
def test_a_fork(tmp_path, script, threads):
    path = tmp_path / "script.py"
    path.write_text(CHILDREN + script)
    code, out = run_session([sys.executable, str(path)], PATIENCE, dict(os.environ, ASTERISM_NUM_THREADS=str(threads)))
    assert code == 0, out


def test_a_solver_that_another_thread_was_using(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        CHILDREN
        + """
import threading
A = am.gallery.poisson((40, 40))
s, b, solving, forked = am.Solver(A, ksp="cg", pc="jacobi", rtol=1e-8), np.ones(1600), threading.Event(), threading.Event()
def monitor(it, norm):
    solving.set()
    forked.wait(60)
thread = threading.Thread(target=lambda: s.solve(b, monitor=monitor))
thread.start()
solving.wait(60)
def child():
    try: s.solve(b)
    except am.UnsupportedError as e: assert "was using this solver when this process was forked" in str(e), e
    else: raise AssertionError("no error")
    assert np.isfinite(am.Solver(A, ksp="cg", pc="jacobi").solve(b)).all()
assert in_child(child) == 0
forked.set()
thread.join()
assert in_child(lambda: s.solve(b)) == 0
"""
    )
    code, out = run_session([sys.executable, str(path)], PATIENCE)
    assert code == 0, out


def test_what_a_child_writes_and_frees_of_shared_arrays_is_its_own(on_ranks):
    script = """
import gc, os
forest = am.StarForest(comm, 1, None, np.array([[1 - rank, 0]]))
x = am.shared_zeros(2_000_000)  # freed blocks of this size give their pages back
x[:] = 1
child = os.fork()
if child == 0:
    good = x.sum() == x.size
    x[:] = 5
    good = good and x.sum() == 5 * x.size
    del x
    gc.collect()
    try: forest.bcast(np.zeros(1), np.zeros(1)) if rank == 0 else am.StarForest(comm, 1, None, np.array([[0, 0]]))
    except am.AsterismError as e: good = good and "made by fork" in str(e)
    else: good = False
    os._exit(0 if good else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert x.sum() == x.size
y = np.zeros(1)
forest.bcast(np.array([3.0 + rank]), y)
assert y[0] == 4 - rank
print("done", flush=True)
"""
    assert on_ranks(2, script, alone=True).count("done") == 2
