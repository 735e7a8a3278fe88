"""What is suggested after a failure is not what is in use, and can work."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def failure(A, b, **options):
    with pytest.raises(am.ConvergenceError) as caught:
        am.solve(A, b, **options)
    return caught.value.info


@pytest.mark.parametrize("pc", ["none", "jacobi", "ilu", "ilut", "icc", "amg", "sor", "chebyshev", "bjacobi", "asm"])
@pytest.mark.parametrize("ksp", ["gmres", "bicgstab", "cg", "minres"])
def test_no_hint_names_what_is_in_use(ksp, pc):
    if ksp in ("cg", "minres") and pc in ("ilut", "asm"):
        pytest.skip("it is not symmetric")
    A = am.gallery.poisson((40, 40))
    info = failure(A, np.ones(1600), ksp=ksp, pc=pc, rtol=1e-14, maxiter=2)
    hint = info.why.split("Try", 1)[1]
    assert not re.search(rf"-pc_type ([a-z]+, )*([a-z]+ or )?{pc}\b", hint), hint
    assert f"-ksp_type {ksp}" not in hint


def test_multigrid_that_fails_is_not_advised():
    A = am.gallery.elasticity((5, 5, 5)).to_scipy()
    info = failure(A, np.ones(A.shape[0]), ksp="cg", pc="amg", rtol=1e-12, maxiter=3)
    assert "-pc_type amg" not in info.why and "block_size" in info.why


def saddle_point(n=30):
    K = am.gallery.poisson((n, n)).to_scipy()
    B = sp.random_array((n, n * n), density=0.02, rng=np.random.default_rng(1)) + sp.eye_array(n, n * n)
    return sp.block_array([[K, B.T], [B, None]]).tocsr()


def test_a_zero_diagonal_makes_auto_choose_what_works():
    S = saddle_point()
    b = np.ones(S.shape[0])
    x, info = am.solve(S, b, rtol=1e-8)
    assert np.linalg.norm(b - S @ x) <= 1.001e-8 * np.linalg.norm(b)
    assert any("30 entries of the diagonal are zero" in n for n in info.notes)
    # larger than what a dense lu is for: nothing is raised in the set-up
    big = saddle_point(60)
    s = am.Solver(big, maxiter=20)
    assert "jacobi (rowl1)" in s.view()
    s.solve(np.ones(big.shape[0]), raise_on_failure=False)
    assert np.isfinite(s.info.true_residual)


def test_a_pivot_that_vanishes_on_the_way_makes_auto_choose_again():
    S = sp.csr_array(np.array([[1.0, 2, 0, 0], [0.5, 1, 3, 0], [0, 1, 5, 1], [0, 0, 1, 4]]))
    x, info = am.solve(S, np.ones(4), rtol=1e-10)
    assert np.allclose(S @ x, 1)
    assert any("pc auto: lu" in n and "pivot of row 1" in n for n in info.notes)


def test_unstable_factors_are_seen():
    rng = np.random.default_rng(3)
    n = 300
    S = sp.random_array((n, n), density=0.03, rng=rng).tocsr() + sp.diags_array(np.where(np.arange(n) % 2, 1e-7, 1.0))
    x, info = am.solve(S, np.ones(n), rtol=1e-8)
    assert info.converged and np.linalg.norm(1 - S @ x) <= 1e-7 * np.sqrt(n)


def test_a_singular_matrix_is_told_from_a_broken_preconditioner():
    S = sp.diags_array(np.r_[np.ones(20), 0.0]).tolil()
    S[20, 0] = 2
    info = failure(S.tocsr(), np.ones(21), ksp="gmres", pc="none", rtol=1e-10)
    assert "singular" in info.why and "null_space" in info.why
