"""Matrices of the sign that finite-volume codes assemble: -A is solved as A is."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am
import asterism.scipy as drop_in


def test_auto_solves_minus_a_as_a(rng):
    A = am.gallery.poisson((40, 40))
    b = rng.standard_normal(1600)
    x, info = am.solve(A, b, rtol=1e-9)
    y, negative = am.solve(-A.to_scipy(), -b, rtol=1e-9)
    assert (x == y).all() and negative.iterations == info.iterations
    assert negative.method == "cg" and "amg" in negative.preconditioner
    assert any("-A x = -b is solved" in note for note in negative.notes)


@pytest.mark.parametrize("ksp", ["cg", "minres", "pipecg", "cr", "chebyshev", "gmres"])
@pytest.mark.parametrize("pc", ["none", "jacobi", "amg", "icc", "sor", "ilu"])
def test_every_method_and_preconditioner(ksp, pc):
    S = -am.gallery.poisson((15, 15)).to_scipy()
    x, info = am.solve(S, np.ones(225), ksp=ksp, pc=pc, rtol=1e-8)
    assert np.linalg.norm(1 - S @ x) <= 1.001e-8 * 15
    X, info = am.solve((S * (1 + 0j)).tocsr(), np.ones((225, 2)) * 1j, ksp=ksp, pc=pc, rtol=1e-8)
    assert np.allclose(S @ X, 1j, atol=1e-6)


def test_the_users_m_and_p_keep_their_sign():
    S = -am.gallery.poisson((20, 20)).to_scipy()
    b = np.ones(400)
    M = spla.LinearOperator(S.shape, matvec=lambda r: r / S.diagonal(), dtype=float)
    x, info = am.solve(S, b, ksp="cg", M=M, rtol=1e-9)
    y, same = am.solve(S, b, ksp="cg", pc="jacobi", rtol=1e-9)
    assert np.allclose(x, y, rtol=1e-6) and abs(info.iterations - same.iterations) <= 1
    x, info = am.solve(am.Operator(lambda v: S @ v, 400), b, ksp="cg", P=S, pc="amg", rtol=1e-9)
    assert np.linalg.norm(b - S @ x) <= 1.001e-9 * 20
    s = am.Solver(S, rtol=1e-9)
    seen = []
    s.solve(b, monitor=lambda it, r: seen.append(r))
    assert seen[0] == pytest.approx(20)


def test_other_diagonals_are_left_alone():
    d = -np.ones(50)
    for odd in (0.0, 1.0):
        d[7] = odd
        S = sp.diags_array(d) + sp.eye_array(50, k=1) + sp.eye_array(50, k=-1)
        assert not any("-A x" in n for n in am.Solver(S)._h.notes())
    unsymmetric = -am.gallery.convection_diffusion((10, 10), (20.0, 0.0), 1.0).to_scipy()
    assert not any("-A x" in n for n in am.Solver(unsymmetric)._h.notes())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_drop_in_converges_where_scipys_does(dtype):
    S = (-am.gallery.poisson((14, 14)).to_scipy()).astype(dtype).tocsr()
    b = np.ones(196, dtype)
    rtol = 1e-4 if dtype == "float32" else 1e-9
    for M in (None, sp.diags_array(1 / S.diagonal()).tocsr()):
        x, info = drop_in.cg(S, b, rtol=rtol, M=M)
        assert info == 0 and np.linalg.norm(b - S @ x) <= 1.01 * rtol * 14
        assert spla.cg(S, b, rtol=rtol, M=M)[1] == 0
    # indefinite ones too, as long as nothing is zero
    T = (S + sp.diags_array(np.where(np.arange(196) == 3, 30.0, 0.0))).astype(dtype).tocsr()
    theirs = spla.cg(T, b, rtol=rtol)[1]
    assert theirs == 0 and drop_in.cg(T, b, rtol=rtol)[1] == 0


def test_on_ranks(on_ranks):
    on_ranks(
        3,
        """
A = am.gallery.poisson((24, 24), comm)
S = A.to_scipy()
B = am.Matrix.from_scipy(-S, comm)
n = A.local_shape[0]
x, info = am.solve(A, np.ones(n), rtol=1e-9)
y, negative = am.solve(B, -np.ones(n), rtol=1e-9)
assert (x == y).all() and info.iterations == negative.iterations and negative.method == "cg"
""",
    )
