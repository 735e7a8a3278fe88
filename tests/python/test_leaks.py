"""Making, solving and dropping, again and again: memory, open files and MPI's objects stay as they are."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = """
import ctypes, gc, os, resource
def handles():  # communicators, datatypes, windows, persistent requests
    count = getattr(ctypes.CDLL(None), "asterism_test_handles", None)
    assert count is not None or "LD_PRELOAD" not in os.environ
    return [count(i) for i in range(4)] if count else []
def memory():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
def files():
    return len(os.listdir("/proc/self/fd"))
def rounds(n):
    for k in range(n):
        one(k)
rounds(42)
before = memory(), files(), handles()
rounds(420 if size == 1 else 224)
after = memory(), files(), handles()
assert after[1] == before[1], ("open files", before, after)
assert after[0] - before[0] < 2.2e6, ("memory", before, after)
assert all(a <= b for a, b in zip(after[2], before[2])), ("MPI's objects", before, after)
if after[2]: print("handles", after[2], flush=True)
"""


@pytest.fixture(scope="session")
def counted(tmp_path_factory):
    """Variables with which MPI's objects are counted, where there is a compiler for MPI."""
    compiler = Path(sys.executable).parent / "mpicc"
    found = str(compiler) if compiler.exists() else shutil.which("mpicc")
    if not found:
        return {}
    out = tmp_path_factory.mktemp("handles") / "mpi_handles.so"
    source = Path(__file__).resolve().parent / "faults/mpi_handles.c"
    libraries = Path(sys.executable).parent.parent / "lib"
    command = [found, "-O1", "-shared", "-fPIC", str(source), "-o", str(out), f"-Wl,-rpath,{libraries}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"LD_PRELOAD": str(out)} if done.returncode == 0 else {}


@pytest.mark.parametrize("n", [1, 2])
def test_solves(on_ranks, counted, n):
    on_ranks(
        n,
        """
pcs = ["amg", "ilu", "icc", "sor", "chebyshev", "asm -pc_asm_type basic"]
ksps = ["cg", "gmres", "bicgstab", "minres", "idr", "bicg"]
def one(k):
    A = am.gallery.poisson((12, 13), comm)
    b = np.ones(A.local_shape[0])
    am.solve(A, b, ksp=ksps[k % 6], options="-pc_type " + pcs[k // 6 % 6], rtol=1e-6)
    am.Solver(A, ksp="cg", ksp_asynchronous=True).solve(b)
"""
        + ROUNDS,
        alone=True,
        **counted,
    )


@pytest.mark.parametrize("n", [1, 2])
def test_operators_files_and_errors(on_ranks, counted, tmp_path, n):
    on_ranks(
        n,
        f"""
here = "{tmp_path}"
def one(k):
    A = am.gallery.poisson((8, 9), comm)
    F = am.Operator(lambda x: A @ x, A.local_shape[0], comm=comm)
    b = np.ones(A.local_shape[0])
    am.solve(F, b, P=A, monitor=lambda it, r: None)
    am.save(here + "/x.ast", comm, A=A, b=b)
    am.load(here + "/x.ast", comm)
    am.write_matrix(here + "/x.petsc", A)
    am.read_matrix(here + "/x.petsc", comm)
    for bad in (lambda: am.solve(A, b, ksp="cg", pc="none", maxiter=1, rtol=1e-12), lambda: am.read_matrix(here + "/none.mtx", comm)):
        try:
            bad()
        except am.AsterismError:
            pass
    forest = am.StarForest.all_gather(comm, 3)
    q = am.Queue("inline")
    x = am.Vector(A, q, fill=1.0)
    float(x.norm())
"""
        + ROUNDS,
        alone=True,
        **counted,
    )


def test_forests_by_every_transport(on_ranks, counted):
    # communicators, windows and persistent plans, which MPI frees collectively: in a later set-up, when all ranks have dropped them
    out = on_ranks(
        2,
        """
ways = ["p2p", "shm", "neighbor", "collective", "window_fence", "window_lock", "window_pscw"]
def one(k):
    for way in ways[k % 7 : k % 7 + 2]:
        sf = am.StarForest(comm, 5, None, [(1 - rank, i) for i in range(5)], transport=way)
        a, b = np.arange(5.0), np.zeros(5)
        sf.bcast(a, b); sf.reduce(b, a, "sum")
    with_messages = am.Channels(comm, [(1 - rank, 64)])
    with_messages.put(1 - rank, b"hello"); with_messages.wait()
    del with_messages
def rest():  # the last ones are freed by a set-up that follows their end
    gc.collect(); comm.barrier()
    for _ in range(3): am.StarForest(comm, 1, None, [(rank, 0)], transport="window_lock")
"""
        + ROUNDS.replace("rounds(42)\n", "rounds(42); rest()\n").replace("else 224)", "else 224); rest()"),
        alone=True,
        **counted,
    )
    assert out.count("handles [") == (2 if counted else 0), out


def test_communicators_of_ones_own(on_ranks, counted):
    out = on_ranks(
        2,
        """
ways = ["p2p", "shm", "neighbor", "window_fence"]
def one(k):
    c = comm.Dup()
    A = am.gallery.poisson((8, 9), c)
    am.solve(A, np.ones(A.local_shape[0]), ksp="cg", rtol=1e-6)
    sf = am.StarForest(c, 5, None, [(1 - rank, i) for i in range(5)], transport=ways[k % 4])
    sf.bcast(np.arange(5.0), np.zeros(5))
    del A, sf
    gc.collect()
    c.Free()
"""
        + ROUNDS
        + "\nprint('done', flush=True)",
        alone=True,
        **counted,
    )
    assert out.count("done") == 2
