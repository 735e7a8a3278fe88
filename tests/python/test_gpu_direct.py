"""-pc_type lu and cholesky on a GPU: solves there by the message-driven kernels, or on the host, with the reason."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import HAS_GPU, PATIENCE

import asterism as am

pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one (make test-cpp builds it)")
REAL = os.environ.get("ASTERISM_TEST_GPU") == "1"
DTYPES = ["float32", "float64", "complex64", "complex128"]
ONCE = "-ksp_type richardson -ksp_max_it 1 -ksp_error_if_not_converged 0"  # one application of the factors


def numbers(rng, shape, dtype):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def hard(rng, n, dtype, hermitian):
    """Pivots are delayed, or come in pairs; rows are matched."""
    A = sp.random(n, n, min(1, 5 / n), random_state=rng, format="csr")
    A = A.astype(dtype)
    A.data[:] = numbers(rng, A.nnz, dtype)
    if hermitian:
        A = (A + A.conj().T).tolil()
        A.setdiag(rng.choice([0, 0, 1e-3, 1], n) if n > 1 else [2])
        if n > 1:
            A.setdiag(1, 1), A.setdiag(1, -1)
        return A.tocsr().astype(dtype)
    return (A + sp.eye(n, format="csr")[rng.permutation(n)] * 3).tocsr().astype(dtype)


def wrong(dtype):
    return 2e-4 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4 else 1e-10


def close(x, y, dtype, growth=1):
    return np.linalg.norm(x - y) <= growth * wrong(dtype) * np.linalg.norm(y)


def on_host(info):
    return [n for n in info.notes if "solves on the host" in n or "without a form" in n]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "pc, seldom",
    [
        ("lu -pc_lu_type sparse", "rows matched"),
        ("lu -pc_lu_type sparse -pc_factor_matching false", r"[1-9]\d* delayed"),
        ("cholesky", "cholesky"),
        ("cholesky -pc_cholesky_type indefinite", r"[1-9]\d* blocks of two"),
    ],
)
def test_an_application_is_that_of_the_host(rng, dtype, pc, seldom):
    grid = (13, 12, 5)
    cases = [am.gallery.poisson(grid).to_scipy().astype(dtype)]
    if pc != "cholesky":
        cases += [hard(rng, n, dtype, "cholesky" in pc) for n in (1, 7, 300)]
    for a in cases:
        A, n = am.Matrix.from_scipy(a), a.shape[0]
        host = am.Solver(A, f"{ONCE} -pc_type {pc}")
        there = am.Solver(A, f"{ONCE} -pc_type {pc} -device cuda")
        seen = there.view()
        assert n == 1 or "solves: on the GPU" in seen
        assert n != 300 or re.search(seldom, seen), seen
        for columns in (1, 3, 11):
            b = numbers(rng, (n, columns) if columns > 1 else n, dtype)
            for how in ("solve", "solve_transpose"):
                for more in ({},) if how == "solve" else ({}, {"conjugate": True}):
                    x = getattr(host, how)(b, raise_on_failure=False, **more)
                    y = getattr(there, how)(b, raise_on_failure=False, **more)
                    assert not on_host(there.info), there.info.notes
                    assert close(y, x, dtype), (n, columns, how, more, np.linalg.norm(y - x) / np.linalg.norm(x))
                    assert np.array_equal(y, getattr(there, how)(b, raise_on_failure=False, **more)), "other bits"


RANKS = """
import os
from test_gpu_direct import close, hard, numbers, on_host, ONCE
rng = np.random.default_rng(3)
grid = am.gallery.poisson((12, 11, 10)).to_scipy()
real = os.environ.get("ASTERISM_TEST_GPU") == "1"  # ranks that share it take turns, a slice of time for each message: a few solves
for dtype in ("float64",) if real else ("float32", "float64", "complex64", "complex128"):
    for pc in ("lu", "cholesky", "cholesky -pc_cholesky_type indefinite"):
        cases = [grid.astype(dtype)] + ([] if real or pc == "cholesky" else [hard(rng, 500, dtype, pc != "lu")])
        for i, a in enumerate(cases):
            A = am.Matrix.from_scipy(a, comm, distribute=True)
            first, last = A.row_range
            for layout in {layouts}:
                options = given(f"{ONCE} -pc_type {pc} -pc_factor_layout {layout} -pc_factor_block_size 24" + (" -pc_lu_type sparse" if pc == "lu" else ""))
                host, there = am.Solver(A, options), am.Solver(A, options + " -device cuda -pc_factor_gpu_solve true")
                seen = there.view()
                assert comm.rank > 0 or "solves: on the GPU" in seen, seen
                for columns in (1,) if real else (1, 11):
                    b = numbers(rng, (a.shape[0], columns) if columns > 1 else a.shape[0], dtype)[first:last]
                    for how, more in (("solve", {}), ("solve_transpose", {}), ("solve_transpose", {"conjugate": True})):
                        x = getattr(host, how)(b, raise_on_failure=False, **more)
                        y = getattr(there, how)(b, raise_on_failure=False, **more)
                        assert not on_host(there.info), there.info.notes
                        assert close(y, x, dtype, 1000 if i else 1), (dtype, pc, i, layout, columns, how, more, abs(y - x).max())
                        assert np.array_equal(y, getattr(there, how)(b, raise_on_failure=False, **more)), "other bits"
print("SAME")
"""


@pytest.mark.parametrize(
    "n, layouts",
    [(2, ["gathered", "2x1 -pc_factor_subtrees false", "1x2"]), (3, ["3x1", "1x3 -pc_factor_subtrees false"])],
)
def test_ranks_share_the_solve(on_ranks, n, layouts):
    assert on_ranks(n, RANKS.replace("{layouts}", repr(layouts))).count("SAME") == n


def test_answers_are_refined_to_rounding_and_new_values_are_copied(rng):
    a = hard(rng, 300, "float64", False)
    s = am.Solver(am.Matrix.from_scipy(a), "-pc_type lu -pc_lu_type sparse -device cuda")
    b = rng.standard_normal(300)
    for factor in (1.0, -3.0, 1e150):  # the last one scales the matrix, too
        x = s.solve(b)
        assert s.info.backward_error <= 1e-15 and not on_host(s.info), s.info.notes
        assert np.linalg.norm(a @ x - b) <= 1e-10 * np.linalg.norm(b)
        a = sp.csr_array(a * factor)
        a.data *= rng.uniform(0.5, 2, a.nnz)
        s.update(am.Matrix.from_scipy(a))
    low = am.Solver(am.Matrix.from_scipy(a), "-pc_type lu -pc_lu_type sparse -pc_dtype float32 -device cuda")
    assert np.linalg.norm(a @ low.solve(b) - b) <= 1e-10 * np.linalg.norm(b) and not on_host(low.info), low.info.notes


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("ksp", ["cg", "gmres", "cg -ksp_asynchronous -ksp_check_every 2"])
@pytest.mark.parametrize("pc", ["cholesky", "bjacobi -sub_pc_type cholesky"])
def test_iterations_use_it_too(rng, columns, ksp, pc):
    A = am.gallery.poisson((12, 11, 10))
    b = rng.standard_normal((1320, columns) if columns > 1 else 1320)
    x, info = am.solve(A, b, options=f"-ksp_type {ksp} -ksp_rtol 1e-10 -pc_type {pc} -device cuda")
    assert info.iterations <= 3 and not on_host(info), info.notes
    assert np.linalg.norm(A @ x - b) <= 1e-9 * np.linalg.norm(b)


def test_why_a_solve_is_on_the_host(rng):
    A = am.gallery.poisson((12, 11, 10))
    b = rng.standard_normal(1320)
    neumann = sp.csr_array(am.gallery.poisson((12, 11)).to_scipy())
    neumann.setdiag(0), neumann.setdiag(-neumann.sum(axis=1))
    neumann = am.Matrix.from_scipy(neumann)
    for matrix, more, why in [
        (neumann, "", "constants are left out"),
        (A, "-pc_factor_gpu_solve false", None),
    ]:
        n = matrix.shape[0]
        rhs = b[:n] - b[:n].mean()
        x, info = am.solve(
            matrix, rhs, options=f"-pc_type lu -pc_lu_type sparse -ksp_null_space none -device cuda {more}"
        )
        told = [t for t in info.notes if "solves on the host" in t]
        assert bool(told) == (why is not None) and (not told or why in told[0]), info.notes
        assert any("PCApplyDirect" in t for t in info.notes if "without a form" in t), info.notes
        assert np.linalg.norm(matrix @ x - rhs) <= 1e-10 * np.linalg.norm(rhs)


def test_too_little_memory_of_the_gpu_leaves_solves_on_the_host():
    code = """
import asterism as am, numpy as np
A = am.gallery.poisson((12, 11, 10))
x, info = am.solve(A, np.ones(1320), options="-pc_type cholesky -device cuda")
told = [t for t in info.notes if "solves on the host" in t]
assert told and "gpu_memory_cap" in told[0], info.notes
assert info.backward_error <= 1e-15
"""
    env = {**os.environ, "ASTERISM_OPTIONS": "-gpu_memory_cap 3000000"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert out.returncode == 0, out.stderr


@pytest.mark.skipif(REAL, reason="the emulated device is told to be one for all")
def test_ranks_that_share_a_gpu_solve_on_the_host(on_ranks):
    out = on_ranks(
        2,
        """
A = am.gallery.poisson((12, 11, 10), comm)
b = np.cos(np.arange(*A.row_range))
for more, told in (("", True), (" -pc_factor_gpu_solve true", False), (" -pc_factor_layout gathered", False)):
    layout = "" if "layout" in more else " -pc_factor_layout square"
    x, info = am.solve(A, b, options=given("-pc_type cholesky -device cuda" + layout + more))
    assert any("solves on the host: ranks share a GPU" in t for t in info.notes) == told, info.notes
    assert info.backward_error <= 1e-15, info
print("TOLD")
""",
        ASTERISM_EMULATED_SHARED="1",
    )
    assert out.count("TOLD") == 2


def test_ranks_refine_update_and_leave_what_is_singular_to_the_first(on_ranks):
    out = on_ranks(
        3,
        """
from test_gpu_direct import on_host
A = am.gallery.convection_diffusion((40, 30), (3.0, 1.0), comm=comm)
b = np.cos(np.arange(*A.row_range))
s = am.Solver(A, given("-pc_type lu -pc_factor_layout 3x1 -device cuda -pc_factor_gpu_solve true"))
for factor in (1.0, 2.0, 5.0):
    s.update(A.with_values(factor * A.to_scipy().data))
    x = s.solve(b)
    assert s.info.backward_error <= 1e-15 and not on_host(s.info), s.info.notes
    r = s.A @ x - b
    assert np.sqrt(comm.allreduce(r @ r)) <= 1e-10
x, info = am.solve(A, b, options=given("-ksp_type cg -ksp_max_it 2 -ksp_error_if_not_converged 0 -pc_type bjacobi -sub_pc_type lu -sub_pc_lu_type sparse -device cuda -ksp_check_input false"), raise_on_failure=False)
assert not on_host(info), info.notes
print("DONE")
""",
    )
    assert out.count("DONE") == 3
