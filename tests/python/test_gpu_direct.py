"""-pc_type lu and cholesky on a GPU: solves there by the message-driven kernels, or on the host, with the reason."""

import os
import re

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import HAS_GPU

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
from test_gpu_direct import close, hard, numbers, on_host, ONCE
rng = np.random.default_rng(3)
grid = am.gallery.poisson((12, 11, 10)).to_scipy()
for dtype in ("float32", "float64", "complex64", "complex128"):
    for pc in ("lu", "cholesky", "cholesky -pc_cholesky_type indefinite"):
        cases = [grid.astype(dtype)] + ([] if pc == "cholesky" else [hard(rng, 500, dtype, pc != "lu")])
        for i, a in enumerate(cases):
            A = am.Matrix.from_scipy(a, comm, distribute=True)
            first, last = A.row_range
            for layout in {layouts}:
                options = given(f"{ONCE} -pc_type {pc} -pc_factor_layout {layout} -pc_factor_block_size 24" + (" -pc_lu_type sparse" if pc == "lu" else ""))
                host, there = am.Solver(A, options), am.Solver(A, options + " -device cuda -pc_factor_gpu_solve true")
                seen = there.view()
                assert comm.rank > 0 or "solves: on the GPU" in seen, seen
                for columns in (1, 11):
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
