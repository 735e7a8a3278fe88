"""A tolerance relative to ||b|| says nothing of rows far smaller than others: auto solves those by factors, if they cost little."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_large_entries import convection, smooth

import asterism as am


def interior_point(n, m, rng):
    """[-D A^T; A d] of a barrier method near its end: D over sixteen decades. Some rows are far larger than most."""
    A = sp.random_array((m, n), density=4 / n, rng=rng) + sp.eye_array(m, n)
    D = 10.0 ** rng.uniform(-8, 8, n)
    return sp.csr_array(sp.block_array([[-sp.diags_array(D), A.T], [A, 1e-8 * sp.eye_array(m)]]))


@pytest.mark.parametrize("n", [150, 3000])  # below and above the rows of which factors may cost anything
@pytest.mark.parametrize("columns", [1, 2])
def test_barriers_are_solved_in_all_rows(n, columns, rng, caplog):
    A = interior_point(n, n // 2, rng)
    x = np.ones(A.shape[0]) if columns == 1 else np.stack([np.ones(A.shape[0]), np.arange(A.shape[0])], axis=1)
    solver = am.Solver(A)
    for _ in range(2):  # the second solve has the factors from the start
        y, info = solver.solve(A @ x), solver.info
        assert info.converged and abs(y - x).max() < 1e-3 * abs(x).max()
        assert "wrong there" not in caplog.text + " ".join(info.notes)
    solver.update(am.Matrix.from_scipy(2 * A))
    y = solver.solve(2 * (A @ x))
    assert solver.info.converged and abs(y - x).max() < 1e-3 * abs(x).max()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_penalties_are_solved_in_all_rows(dtype, caplog):
    penalty = 1e6 if np.finfo(dtype).eps > 1e-10 else 1e12
    A = convection(50, penalty, dtype)
    x, info = am.solve(A, A @ np.ones(2500, dtype))
    assert info.converged and abs(x - 1).max() < 2e-2 and "wrong there" not in caplog.text
    assert "lu" in info.preconditioner and any("pc auto: lu (after" in note for note in info.notes)


def test_a_smooth_error_beside_penalties_is_solved(caplog):
    A, fixed, b = smooth(120)
    A = sp.csr_array(A + sp.diags_array(np.where(fixed, 1e10, 0.0)))
    b = A @ np.cos(np.arange(len(b)) / 1000)
    x, info = am.solve(A, b)
    assert info.converged and abs(x - np.cos(np.arange(len(b)) / 1000)).max() < 1e-4
    assert "wrong there" not in caplog.text


def test_what_was_named_is_not_left(caplog):
    A = convection(30, 1e12)
    for named in ({"pc": "ilu"}, {"ksp": "gmres"}, {"ksp": "gmres", "pc": "ilu"}):
        caplog.clear()
        x, info = am.solve(A, A @ np.ones(900), **named)
        assert "ilu" in info.preconditioner and "x is wrong there" in caplog.text


def test_without_factors_the_answer_and_the_warning_stay(caplog):
    A = convection(60, 1e12)
    solver = am.Solver(A, options="-pc_factor_flop_limit 1000")
    for _ in range(2):
        x = solver.solve(A @ np.ones(3600))
        assert solver.info.converged and "ilu" in solver.info.preconditioner
        assert any("x is wrong there" in note for note in solver.info.notes)
    assert caplog.text.count("x is wrong there") == 1
    assert abs(x - 1).max() > 1e-3


@pytest.mark.parametrize("n", [40, 100])
def test_singular_dense_matrices_are_called_so(n):
    """Of rank 1. lu finds it, then ilu a pivot of zero: the first says what is wrong."""
    A = np.outer(2.0 ** (np.arange(n) % 3), 2.0 ** (np.arange(n) % 2))
    with pytest.raises(am.InputError, match="^lu: the matrix is singular"):
        am.solve(sp.csr_array(A), np.ones(n))


@pytest.mark.parametrize("n", [2, 3])
def test_ranks_solve_small_rows_alike(on_ranks, n):
    on_ranks(
        n,
        """
from test_large_entries import convection
S = convection(24, 1e12)
A = am.Matrix.from_scipy(S, comm, distribute=True)
ones = A.make_vector(fill=1.0)
x, info = am.solve(A, A @ ones)
assert info.converged and abs(np.asarray(x) - 1).max() < 1e-8, info
assert not any("wrong there" in note for note in info.notes), info.notes
""",
    )
