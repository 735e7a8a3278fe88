"""Large entries, as penalties are, hide nothing: a matrix that is not Hermitian in its other rows is not taken for one."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am


def convection(n, penalty, dtype="float64"):
    """Upwind differences of -laplace(u) + u_x + u_y, with the first n points held by a penalty."""
    one = np.ones(n)
    second = sp.diags_array([2 * one, -one[1:], -one[1:]], offsets=[0, 1, -1])
    first = sp.diags_array([one, -one[1:]], offsets=[0, -1])
    eye = sp.eye_array(n)
    A = sp.kron(second, eye) + sp.kron(eye, second) + 5 / n * (sp.kron(first, eye) + sp.kron(eye, first))
    return sp.csr_array(A + sp.diags_array(np.where(np.arange(n * n) < n, penalty, 0.0))).astype(dtype)


@pytest.mark.parametrize(
    ("penalty", "dtype"), [(1e14, "float64"), (1e30, "float64"), (1e6, "float32"), (1e12, "complex64")]
)
def test_penalties_leave_a_nonsymmetric_matrix_nonsymmetric(penalty, dtype):
    A = convection(30, penalty, dtype)
    level = 50 * np.finfo(dtype).eps
    wide = A.astype(np.promote_types(dtype, "float64"))
    x, info = am.solve(A, np.where(np.arange(900) < 30, 0, 1).astype(dtype), rtol=1e-5)
    assert info.converged and not any("is wrong there" in note for note in info.notes)
    b = A.T @ np.ones(900, dtype)
    for y in (
        am.factorized(A).solve(b, trans="T"),
        am.Solver(A, ksp="gmres", pc="ilu", rtol=100 * level).solve_transpose(b),
    ):
        assert np.linalg.norm(wide.T @ y - b) <= 200 * level * np.linalg.norm(b)
    with pytest.raises(am.InputError, match="not Hermitian"):
        am.factorized(A, "cholesky")


@pytest.mark.parametrize(("penalty", "told"), [(1.0, False), (1e3, False), (1e9, True), (1e30, True)])
def test_a_tolerance_that_says_nothing_of_most_rows_is_told(penalty, told, caplog):
    A = convection(30, penalty)
    x, info = am.solve(A, A @ np.ones(900), ksp="gmres", pc="ilu", rtol=1e-8)
    error = abs(x - 1).max()
    assert any("x is wrong there" in note for note in info.notes) == told
    assert ("x is wrong there" in caplog.text) == told
    assert (error > 0.1) == told
    y = am.solve(A, A @ np.ones(900), ksp="preonly", pc="lu")[0]
    assert abs(y - 1).max() < 1e-10 and not any(
        "% of the rows" in note for note in am.solve(A, A @ np.ones(900), pc="lu")[1].notes
    )


def smooth(n):
    """P1 elements of -laplace(u) = 1 on the unit square, and where its boundary is."""
    A = sp.csr_array(am.gallery.poisson((n, n)).to_scipy())
    i, j = np.divmod(np.arange(n * n), n)
    return A, (i == 0) | (j == 0) | (i == n - 1) | (j == n - 1), np.full(n * n, 1 / n**2)


@pytest.mark.parametrize("penalty", [1e10, 1e30])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_smooth_error_beside_penalties_is_told(penalty, columns, caplog):
    # |r_i| is b_i, h^2, everywhere inside: small beside the entries, but all that b asks for
    A, fixed, b = smooth(120)
    A = sp.csr_array(A + sp.diags_array(np.where(fixed, penalty, 0.0)))
    b = np.where(fixed, penalty * 1.0, b)
    exact = spla.spsolve(A.tocsc(), b)
    B = b if columns == 1 else np.stack([b, 2 * b], axis=1)
    X, info = am.solve(A, B, ksp="cg", pc="amg", rtol=1e-8)
    x = X if columns == 1 else X[:, 1] / 2
    assert info.converged and abs(x - exact).max() > 0.1
    assert any("ask of them: x is wrong there" in note for note in info.notes)
    assert "x is wrong there" in caplog.text
    solved = am.solve(A, B, ksp="preonly", pc="lu")[1]
    assert not any("is wrong there" in note for note in solved.notes)


def test_penalties_of_zero_values_are_solved_without_a_warning(caplog):
    A, fixed, b = smooth(120)
    A = sp.csr_array(A + sp.diags_array(np.where(fixed, 1e30, 0.0)))
    b = np.where(fixed, 0.0, b)
    x, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8)
    assert abs(x - spla.spsolve(A.tocsc(), b)).max() < 1e-6 * abs(x).max()
    assert not any("is wrong there" in note for note in info.notes)


def test_rows_that_are_small_and_solved_are_no_warning(caplog):
    D = sp.csr_array(sp.diags_array(np.where(np.arange(100) < 10, 1.0, 1e-10)))
    solver = am.Solver(D, ksp="cg", pc="jacobi", rtol=1e-5)
    for b in (D @ np.ones(100), np.zeros(100), D @ np.ones((100, 3))):
        solver.solve(b)
        solver.solve_transpose(b)
        assert not any("is wrong there" in note for note in solver.info.notes)
    assert "is wrong there" not in caplog.text


def test_sizes_beyond_their_squares_hide_nothing():
    for small in (1e-150, 1e-160, 1e-300):
        assert not am._core.look(am.Matrix.from_scipy(sp.csr_array([[1, -1], [0, small]]))._h)["Hermitian"]


@pytest.mark.parametrize("rows", [[[1e4, 0], [0.5, 1]], [[1e10, 0], [1e-4, 1e-6]], [[1e30, -1], [0, 4]]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_matrices_with_one_large_entry(rows, dtype):
    A = np.array(rows, dtype)
    F = am.factorized(A)
    b = np.ones(2, dtype)
    for trans, of in (("N", A), ("T", A.T)):
        want = np.linalg.solve(of.astype("float64"), b)
        np.testing.assert_allclose(F.solve(b, trans=trans), want, rtol=20 * np.finfo(dtype).eps)


def test_hermitian_matrices_of_uneven_rows_stay_hermitian(rng):
    # as penalties, contrasts and scaled unknowns make them
    A = am.gallery.poisson((20, 20)).to_scipy()
    for scale in (10.0 ** rng.uniform(-6, 6, 400), np.where(np.arange(400) % 7 == 0, 1e15, 1.0)):
        S = sp.csr_array(sp.diags_array(scale) @ A @ sp.diags_array(scale))
        assert am.factorized(S, "cholesky").kind == "cholesky"
        assert am._core.look(am.Matrix.from_scipy(S)._h)["Hermitian"]
    P = sp.csr_array(A + sp.diags_array(np.where(np.arange(400) < 20, 1e30, 0.0)))
    assert am._core.look(am.Matrix.from_scipy(P)._h)["Hermitian"] and am.factorized(P, "cholesky").kind == "cholesky"


def test_they_are_seen_on_any_number_of_ranks(on_ranks):
    code = """
from test_large_entries import convection
S = convection(12, 1e16)
A = am.Matrix.from_scipy(S, comm, distribute=True)
assert not am._core.look(A._h)["Hermitian"]
print("done", flush=True)
"""
    assert on_ranks(3, code).count("done") == 3
