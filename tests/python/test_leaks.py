"""Making, solving and dropping, again and again: memory and open files stay as they are."""

import pytest

ROUNDS = """
import gc, os, resource
def memory():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
def files():
    return len(os.listdir("/proc/self/fd"))
def rounds(n):
    for k in range(n):
        one(k)
rounds(60)
before = memory(), files()
rounds(940 if size == 1 else 300)
after = memory(), files()
assert after[1] == before[1], ("open files", before, after)
assert after[0] - before[0] < 3e6, ("memory", before, after)
"""


@pytest.mark.parametrize("n", [1, 2])
def test_solves(on_ranks, n):
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
    )


@pytest.mark.parametrize("n", [1, 2])
def test_operators_files_and_errors(on_ranks, tmp_path, n):
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
    )
