"""``-pc_type lu`` against LAPACK's own answers, on matrices that are unkind to elimination."""

import _thread
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

CASES = """
from scipy.linalg import lu_factor, lu_solve

def cases(n, dtype):
    g = np.random.default_rng(7)
    R = g.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        R = R + 1j * g.standard_normal((n, n))
    single = np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4
    big = 8.0 if single else 100.0  # decades
    fall = 10.0 ** -np.linspace(0, 0.3 * big, n)
    wild = 10.0 ** g.uniform(-big, big, n)
    W = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    W[:, -1] = 1
    yield "random", R
    yield "graded rows", R * fall[:, None]
    yield "graded columns", R * fall
    yield "rows in wild units", R * wild[:, None]
    yield "columns in wild units", R * wild
    yield "tiny", R * 10.0 ** -(3 * big if not single else 30)
    yield "huge", R * 10.0 ** (2 * big)
    yield "zero diagonal", R - np.diag(np.diag(R))
    yield "permuted", np.eye(n)[g.permutation(n)] * wild
    yield "one small pivot", np.block([[np.full((1, 1), 1e-25), np.ones((1, n - 1))], [np.ones((n - 1, 1)), R[1:, 1:]]])
    yield "Wilkinson's growth", W

def errors(A, x, b):
    # the residual's largest entry against norms, and its largest part of |A| |x| + |b|
    wide = np.clongdouble if A.dtype.kind == "c" else np.longdouble
    A, x, b = (a.astype(wide) for a in (A, x, b))
    r = abs(b - A @ x)
    size = abs(A) @ abs(x) + abs(b)
    norms = abs(A).sum(axis=1).max() * abs(x).max(axis=0) + abs(b).max(axis=0)
    return float((r.max(axis=0) / norms).max()), float((r / size).max())
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_backward_errors_are_lapacks(on_ranks, n):
    on_ranks(
        n,
        CASES
        + """
N = 61
cuts = [0] + [N * (r + 1) ** 2 // size**2 for r in range(size)]
lo, hi = cuts[rank], cuts[rank + 1]
def whole(x): return np.concatenate(comm.allgather(x))
for dtype in map(np.dtype, ("float32", "float64", "complex64", "complex128")):
    eps = np.finfo(dtype).eps
    for name, A in cases(N, dtype):
        A = A.astype(dtype)
        M = am.Solver(am.Matrix.from_scipy(sp.csr_array(A)[lo:hi], comm), "-pc_type lu", ksp="gmres").preconditioner
        g = np.random.default_rng(1)
        for columns in ((), (3,)):
            x = g.standard_normal((N, *columns)).astype(dtype)
            for B, trans, solve in ((A, 0, lambda b: M @ b), (A.conj().T, 2, M.rmatvec)):
                with np.errstate(all="ignore"):
                    b = B @ x
                lapack = np.linalg.solve(A, b) if trans == 0 else lu_solve(lu_factor(A), b, trans)
                ours, lapack = errors(B, whole(solve(b[lo:hi])), b), errors(B, lapack, b)
                assert ours[0] <= 10 * lapack[0] + 20 * eps, (name, dtype, columns, ours, lapack)
                assert ours[1] <= 30 * lapack[1] + 200 * eps, (name, dtype, columns, ours, lapack)
""",
    )


def test_blocks_are_factored_alike(rng):
    n = 300
    A = rng.standard_normal((n, n)) * 10.0 ** -np.linspace(0, 12, n)[:, None]
    x = rng.standard_normal(n)
    got, info = am.solve(A, A @ x, ksp="preonly", pc="lu", rtol=1e-12)
    assert info.converged and np.allclose(A @ got, A @ x, rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_singular_matrix_is_refused_with_its_row(on_ranks, n):
    out = on_ranks(
        n,
        """
g = np.random.default_rng(0)
A = np.triu(g.standard_normal((300, 300))) + 5 * np.eye(300)
A[200, 200] = 0  # its row and its column have other entries
order = g.permutation(300)
A = A[order]
lo, hi = 300 * rank // size, 300 * (rank + 1) // size
M = am.Matrix.from_scipy(sp.csr_array(A)[lo:hi], comm)
text = message(lambda: am.Solver(M, ksp="gmres", pc="lu"))
assert "lu: the matrix is singular: column 200 is a combination of the columns before it" in text, text
row = int(text.split("leaves zero for the pivot in row ")[1].split(".")[0])
assert order[row] >= 200  # one of those that elimination has not used up
A[order == 200, 200] = 1
M = am.Matrix.from_scipy(sp.csr_array(A)[lo:hi], comm)
x, info = am.solve(M, A[lo:hi] @ np.ones(300), ksp="preonly", pc="lu", rtol=1e-10)
assert np.allclose(A[lo:hi] @ np.concatenate(comm.allgather(x)), A[lo:hi] @ np.ones(300))
print("REFUSED")
""",
    )
    assert out.count("REFUSED") == n


def test_singular_to_working_precision_is_said(caplog):
    A = np.vander(np.linspace(0, 1, 30))
    with caplog.at_level("WARNING", "asterism"):
        s = am.Solver(A, ksp="gmres", pc="lu")
    told = [r.getMessage() for r in caplog.records if "singular to working precision" in r.getMessage()]
    assert len(told) == 1 and "reciprocal condition number is about" in told[0]
    assert "singular to working precision" in s.view()
    caplog.clear()
    with caplog.at_level("WARNING", "asterism"):
        s = am.Solver(np.vander(np.linspace(0, 1, 6)), ksp="gmres", pc="lu")
    assert not caplog.records and "reciprocal condition number" in s.view()
    rcond = float(s.view().split("reciprocal condition number ")[1].split()[0])
    assert rcond == pytest.approx(1 / np.linalg.cond(np.vander(np.linspace(0, 1, 6)), 1), rel=2)


def test_entries_near_the_largest_number_are_scaled_before():
    A = np.full((4, 4), 1.5e308)
    A[np.diag_indices(4)] = -1.5e308
    b = np.array([1e308, -1e300, 3e307, 0])
    x = am.Solver(A, ksp="preonly", pc="lu").solve(b)
    assert np.allclose((A * 2.0**-1000) @ x, b * 2.0**-1000, rtol=0, atol=1e-13 * 2.0**-1000 * 1e308)


@pytest.mark.parametrize("n", [1, 3])
def test_pure_neumann(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.poisson((9, 8), comm, neumann=True)
lo, hi = A.row_range
x = np.cos(np.arange(72.0))
x = (x - x.mean())[lo:hi]
got, info = am.solve(A, A @ x, ksp="cg", pc="lu", rtol=1e-12)
assert info.iterations <= 2 and np.allclose(got, x)
s = am.Solver(A, ksp="gmres", pc="lu")
assert "constants are in the null space and left out" in s.view(), s.view()
S = A.to_scipy()
S.data[S.indices == np.repeat(np.arange(lo, hi), np.diff(S.indptr))] += 1e-5  # not any more
B = am.Matrix.from_scipy(S, comm) if size > 1 else am.Matrix.from_scipy(S)
s = am.Solver(B, ksp="gmres", pc="lu", rtol=1e-8)
assert "left out" not in s.view()
assert np.allclose(s.solve(B @ np.ones(hi - lo)), 1, rtol=1e-3)
""",
    )


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_the_factorisation(rng):
    n = 3500
    A = am.Matrix.from_scipy(sp.csr_array(rng.standard_normal((n, n))))
    solver = None
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt, match=r"lu: dense factors of 3500 rows, 98 MB, \d+ % done"):
        solver = am.Solver(A, ksp="gmres", pc="lu", options={"ksp_check_input": "false"})
    timer.join()
    assert solver is None
