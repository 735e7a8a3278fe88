"""Symmetric positive definite systems that are nearly singular, with nothing but defaults."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def second_difference(n):
    return sp.diags_array([np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)], offsets=[-1, 0, 1]).tocsr()


def power(n, k):
    T = S = second_difference(n)
    for _ in range(k - 1):
        S = S @ T
    return S


def hilbert(n):
    return sp.csr_array(1 / (1 + np.add.outer(np.arange(n), np.arange(n))))


def shell(n):
    """A thin strip: stiff along it, 1e8 times softer in bending."""
    stretch, bend = second_difference(n), power(n, 2)
    return sp.block_array([[1e4 * stretch, 1e-2 * stretch], [1e-2 * stretch, 1e-4 * bend + 1e-8 * stretch]]).tocsr()


def graded(n):
    scale = sp.diags_array(10.0 ** np.linspace(-6, 6, n))
    return (scale @ second_difference(n) @ scale).tocsr()


CASES = {f"squares of {n}": lambda n=n: power(n, 2) for n in (100, 200, 400, 500)}
CASES |= {f"cubes of {n}": lambda n=n: power(n, 3) for n in (50, 100, 200)}
CASES |= {"Hilbert": lambda: hilbert(6), "shell": lambda: shell(200), "graded": lambda: graded(300)}
CASES |= {"biharmonic": lambda: (lambda P: P @ P)(am.gallery.poisson((20, 20)).to_scipy())}


@pytest.mark.parametrize("case", CASES)
def test_one_level_is_as_good_as_a_direct_solver(case):
    A = CASES[case]()
    b = A @ np.ones(A.shape[0])
    x, info = am.solve(A, b, rtol=1e-8, ksp="cg", pc="amg")
    assert info.method == "cg" and "amg (1 level" in info.preconditioner, info
    assert info.iterations <= 4, info
    assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


def test_a_single_level_is_in_the_matrix_own_precision_and_float32_is_kept_where_asked_for():
    A = power(400, 2)
    assert ", float64\n" in am.Solver(A, ksp="cg", pc="amg").view()
    forced = am.Solver(A, "-pc_dtype float32", ksp="cg", pc="amg")
    assert ", float32\n" in forced.view() and "(condition" not in forced.view()
    A = power(100, 2).astype("float32")
    b = A @ np.ones(100, dtype="float32")
    single = am.Solver(A, ksp="cg", pc="amg", rtol=1e-4)
    x = single.solve(b)
    assert "dense inverse, float64 (condition" in single.view() and single.info.iterations <= 3
    assert np.linalg.norm(b - A.astype(float) @ x) <= 1e-4 * np.linalg.norm(b)


NEARLY_NEUMANN = """
A = am.gallery.poisson((40, 40), comm, neumann=True)
S = A.to_scipy().tocsr()
lo, hi = A.row_range
S = S + 1e-9 * sp.csr_array((np.ones(hi - lo), np.arange(lo, hi), np.arange(hi - lo + 1)), shape=S.shape)
A = am.Matrix.from_scipy(S, comm) if size > 1 else am.Matrix.from_scipy(S)
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_coarse_level_keeps_the_precision_that_it_needs(on_ranks, n):
    """The levels are float32; with the inverse in float32 too, cg finds the preconditioner indefinite."""
    out = on_ranks(
        n,
        NEARLY_NEUMANN
        + """
b = np.sin(1.0 + np.arange(lo, hi))
s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
s.solve(b)
assert ", float32\\n" in s.view() and "dense inverse, float64 (condition" in s.view(), s.view()
first = s.info.iterations
assert first <= 16, first
s.update(A.with_values(2 * A.to_scipy().data))
s.solve(b)
assert not s.reused and abs(s.info.iterations - first) <= 1
try:
    am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8, options="-pc_dtype float32")
except am.ConvergenceError as error:
    assert error.info.reason == "DIVERGED_INDEFINITE_PC"
    print("AS ASKED FOR")
""",
    )
    assert out.count("AS ASKED FOR") == n


def test_pieces_that_float_are_left_out_and_said():
    pure = am.gallery.poisson((12, 12), neumann=True).to_scipy()
    two = sp.block_array([[pure, None], [None, pure]]).tocsr()
    s = am.Solver(two, ksp="cg", pc="amg", rtol=1e-8)
    assert "2 singular direction(s) left out" in s.view(), s.view()
    b = np.sin(np.arange(288.0))
    b[:144] -= b[:144].mean()
    b[144:] -= b[144:].mean()
    x = s.solve(b)
    assert np.linalg.norm(b - two @ x) <= 1e-8 * np.linalg.norm(b)
    held = (two + 1e-7 * sp.eye_array(288)).tocsr()  # small, but there: nothing is left out
    s = am.Solver(held, ksp="cg", pc="amg", rtol=1e-8)
    assert "left out" not in s.view()
    b = held @ np.ones(288)
    assert np.linalg.norm(b - held @ s.solve(b)) <= 1e-8 * np.linalg.norm(b)
    assert s.info.iterations <= 3


@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-160, 1e160, 1e200, 1e290])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_multigrid_does_not_depend_on_the_units(size, dtype):
    for A in (am.gallery.poisson((30, 30), dtype=dtype), am.gallery.elasticity((5, 5, 5), dtype=dtype)):
        options = "-pc_dtype float64 -pc_amg_coarse_size 50"
        want = am.Solver(A, options, ksp="gmres", pc="amg").preconditioner
        scaled = am.Matrix.from_scipy(A.to_scipy() * size, block_size=A.block_size, near_null_space=A.near_null_space)
        got = am.Solver(scaled, options, ksp="gmres", pc="amg")
        b = np.cos(np.arange(A.shape[0])).astype(dtype)
        assert np.allclose((got.preconditioner @ b) * size, want @ b, rtol=1e-9)
