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
    assert info.preconditioner.startswith("ldl (sparse") and info.backward_error <= 1e-15
    # where factors would take too much
    big = saddle_point(60)
    x, info = am.solve(big, np.ones(big.shape[0]), rtol=1e-8, maxiter=20, pc_factor_flop_limit=1e3)
    assert "ilut" in info.preconditioner and "matched" in info.preconditioner
    assert any("floating-point operations" in n and "and 1000 are allowed" in n for n in info.notes), info.notes
    assert np.linalg.norm(1 - big @ x) <= 1.001e-8 * np.sqrt(big.shape[0])


def test_auto_goes_on_with_a_stronger_preconditioner():
    """ilu(0) gets nowhere where eigenvalues are on both sides of zero: the next one goes on, and serves the next right-hand side."""
    n = 14**3  # in two dimensions factors are small enough to come first
    S = am.gallery.convection_diffusion((14, 14, 14), (1.0, 0.3, 0.2)).to_scipy()
    S = sp.csr_array(S - S.diagonal()[0] / 4 * sp.eye_array(n))
    s = am.Solver(S, rtol=1e-10)
    assert "ilu(0)" in s.view()
    seen = []
    x = s.solve(np.ones(n), monitor=lambda it, *_: seen.append(it))
    assert np.linalg.norm(1 - S @ x) <= 1.001e-10 * np.sqrt(n)
    assert seen == list(range(len(seen))) and len(s.info.residual_norms) == s.info.iterations + 1
    assert s.info.preconditioner.startswith("lu (sparse") and s.info.iterations > 25
    assert any(n.startswith("pc auto: lu (after") and "iterations of gmres with ilu" in n for n in s.info.notes)
    s.solve(np.arange(n, dtype=float))
    assert s.info.iterations == 1
    # new values at the same places: what did not work is not tried again
    s.update(am.Matrix.from_scipy(sp.csr_array(1.5 * S)))
    x = s.solve(np.ones(n))
    assert np.linalg.norm(1 - 1.5 * S @ x) <= 1.001e-10 * np.sqrt(n) and s.info.iterations == 1
    # the adjoint, from another solver, and few iterations: the limit holds for all attempts together
    s = am.Solver(S, rtol=1e-10)
    x = s.solve_transpose(np.ones(n))
    assert np.linalg.norm(1 - S.T @ x) <= 1.001e-10 * np.sqrt(n) and s.info.preconditioner.startswith("lu (sparse")
    _, info = am.solve(
        S, np.ones(n), rtol=1e-10, maxiter=20, raise_on_failure=False, options="-pc_factor_matching false"
    )
    assert info.iterations == 20 and info.reason == "DIVERGED_ITS" and "ilu(0)" in info.preconditioner


def shell(n):
    """Definite, with few entries beside the diagonal that are as large as all others."""
    S = am.gallery.poisson((n, n)).to_scipy()
    return sp.csr_array(S @ S)


def test_weak_diagonals_of_few_rows_are_solved_directly_at_once():
    def first(A, **options):
        return am.Solver(A, **options).view()

    helmholtz = am.gallery.convection_diffusion((20, 20), (1.0, 0.3)).to_scipy() - 2 * sp.eye_array(400)
    for S, kind in ((helmholtz, "lu (sparse"), (shell(20), "cholesky (sparse"), (-1j * helmholtz, "lu (sparse")):
        S = sp.csr_array(S)
        x, info = am.solve(S, np.ones(400), rtol=1e-8)
        assert info.preconditioner.startswith(kind) and info.iterations == 1, info
        assert any(n.startswith("pc auto:") and "400 rows" in n for n in info.notes), info.notes
        assert np.linalg.norm(1 - S @ x) <= 1e-8 * 20
    # where the diagonal is strong, iterations are few
    assert "ilu(0)" in first(am.gallery.convection_diffusion((20, 20), (1.0, 0.3)))
    assert "amg" in first(am.gallery.poisson((20, 20)))
    # of more rows: where the factors are cheap
    S = am.gallery.convection_diffusion((60, 60), (1.0, 0.3)).to_scipy()
    assert "lu (sparse, 3600 rows" in first(sp.csr_array(S - S.diagonal()[0] / 4 * sp.eye_array(3600)))
    assert "ilu(0)" in first(am.gallery.convection_diffusion((60, 60), (1.0, 0.3)))
    assert "cholesky (sparse, 3600 rows" in first(shell(60))
    elasticity = am.gallery.elasticity((12, 12, 12))
    assert "amg" in first(elasticity)  # its modes are known
    s = am.Solver(elasticity.to_scipy())
    s.solve(np.ones(elasticity.shape[0]))
    assert s.info.preconditioner.startswith("amg"), s.info
    # which is found while rows are ordered
    assert any("the factors of 6084 rows take more than" in n for n in s.info.notes), s.info.notes
    assert "amg" in first(shell(174))  # too many rows
    assert "amg" in first(shell(60), pc="amg")


@pytest.mark.parametrize("n", [2, 3])
def test_auto_ends_well_on_ranks(on_ranks, n):
    """Also where factors of all ranks are not allowed, and those of each are weak."""
    on_ranks(
        n,
        """
from test_advice import saddle_point
S = saddle_point(20)
N = S.shape[0]
lo, hi = N * rank // size, N * (rank + 1) // size
A = am.Matrix.from_scipy(S[lo:hi], comm)
x, info = am.solve(A, np.ones(hi - lo), rtol=1e-8)
whole = np.concatenate(comm.allgather(x))
assert np.linalg.norm(1 - S @ whole) <= 1.001e-8 * np.sqrt(N)
assert len(set(comm.allgather(str(info.notes)))) == 1 and info.preconditioner.startswith("ldl (sparse"), info.notes
x, info = am.solve(A, np.ones(hi - lo), rtol=1e-8, pc_factor_flop_limit=1, raise_on_failure=False)
whole = np.concatenate(comm.allgather(x))
assert np.linalg.norm(1 - S @ whole) <= 1.001e-8 * np.sqrt(N) or not info.converged
assert len(set(comm.allgather(str(info.notes)))) == 1 and "and 1 are allowed" in str(info.notes), info.notes
assert info.preconditioner.startswith("ilut")
""",
    )


def test_where_no_preconditioner_works_the_failure_is_that_of_the_solve():
    rng = np.random.default_rng(3)
    S = sp.csr_array(rng.standard_normal((40, 40)))
    S[39] = S[38]  # singular, and b is not in the range
    x, info = am.solve(S.tocsr(), np.arange(40.0), rtol=1e-8, raise_on_failure=False)
    assert not info.converged and info.why and np.isfinite(x).all()


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


@pytest.mark.parametrize("b", ["ones", "random"])
def test_auto_goes_on_where_rounding_is_in_the_way_of_multigrid_alone(b, rng):
    """A nearly singular matrix: b is small beside A times x, and factors reach more than amg does."""
    n = 50
    T = sp.diags_array([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], offsets=[-1, 0, 1])
    border = np.pad(np.zeros((n - 2, n - 2)), 1, constant_values=1e-7)
    A = (sp.kron(T, sp.eye_array(n)) + sp.kron(sp.eye_array(n), T) + sp.diags_array(border.ravel())).tocsr()
    rhs = A @ np.ones(n * n) if b == "ones" else rng.random(n * n)
    x, info = am.solve(A, rhs, rtol=1e-8)
    assert info.converged and "cholesky" in info.preconditioner, info.preconditioner
    assert np.linalg.norm(rhs - A @ x) <= 1e-6 * np.linalg.norm(rhs)


def test_what_factors_found_of_a_singular_matrix_is_said_first():
    """Not only in a note, while the weaker attempts that followed are to blame."""
    S = am.gallery.convection_diffusion((20, 20), (3.0, 1.0)).to_scipy().tolil()
    S[7] = S[8]
    rhs = np.arange(400.0)
    info = failure(S.tocsr(), rhs, rtol=1e-8, maxiter=300)
    assert "singular" in info.why.split("Try")[0] and "least_squares" in info.why, info.why
    assert "-pc_type lu" not in info.why.split("Try", 1)[-1]


def test_a_direct_solve_of_a_nearly_singular_matrix_is_noted(caplog):
    rng = np.random.default_rng(5)
    Q, R = (np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(2))
    A = Q @ np.diag(np.logspace(0, -14.1, 6)) @ R
    found = []
    for _ in range(40):
        try:
            info = am.solve(A, rng.standard_normal(6), ksp="preonly", pc="lu", rtol=1e-8)[1]
        except am.ConvergenceError as e:
            assert "singular to working precision" in str(e)
            continue
        noted = any("nearly singular" in n for n in info.notes)
        assert noted == (info.relative_residual > 1e-3)
        found.append(noted)
    assert any(found) and any("nearly singular" in r.message for r in caplog.records)


def test_what_factors_found_is_said_in_each_solve():
    """lu fails in the set-up, and weaker attempts are in use ever after."""
    n = 300
    S = sp.random_array((n, n), density=0.03, rng=np.random.default_rng(0)).toarray()
    np.fill_diagonal(S, 0)
    S[:, 5], S[17] = S[:, 6], S[18]
    solver = am.Solver(sp.csr_array(S), rtol=1e-8, maxiter=500)
    for _ in range(2):
        with pytest.raises(am.ConvergenceError) as caught:
            solver.solve(np.random.default_rng(1).standard_normal(n))
        assert "lu: the matrix is singular" in str(caught.value), caught.value
        assert "-pc_type lu" not in str(caught.value)


def two_phases(n, rng):
    """Like the Jacobian of a power flow: couplings of two unknowns in each node of a tree, far above the diagonal."""
    parent = (rng.random(n - 1) * np.arange(1, n)).astype(int)
    B = sp.coo_array((-1 - rng.random(n - 1), (np.arange(1, n), parent)), (n, n)).tocsr()
    B = B + B.T
    L = B - sp.diags_array(B.sum(axis=1) - 0.01)
    return sp.block_array([[0.1 * L, L], [-L, 0.2 * L]]).tocsr()


def test_factors_come_first_where_few_rows_are_dominated_and_fill_is_small(rng):
    S = two_phases(1500, rng)
    x, info = am.solve(S, np.ones(3000), rtol=1e-9)
    assert info.preconditioner.startswith("lu (sparse") and info.iterations == 1
    assert np.linalg.norm(1 - S @ x) <= 1.001e-9 * np.sqrt(3000)
    # not where they would cost more than iterations do
    dense = S + sp.random_array((3000, 3000), density=3e-3, rng=rng, format="csr") * 1e-3
    assert am.Solver(dense).view().find("ilu(0)") > 0


def test_factors_of_a_definite_band_come_first():
    P = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(12000, 12000))
    S = sp.csr_array(P @ P @ P + sp.eye_array(12000))  # 21 on the diagonal, beside 44: less than half
    x, info = am.solve(S, np.ones(12000), rtol=1e-9)
    assert info.preconditioner.startswith("cholesky (sparse") and info.iterations == 1
    assert np.linalg.norm(1 - S @ x) <= 1.001e-9 * np.sqrt(12000)


def test_factors_that_cost_little_come_soon_where_ilu_gets_nowhere(rng):
    def shifted(points, part):
        S = am.gallery.convection_diffusion(points, (1.0, 0.3, 0.2)[: len(points)]).to_scipy()
        return sp.csr_array(S - S.diagonal()[0] / part * sp.eye_array(S.shape[0]))

    # a strip has cheap factors, a cube has not; of so many rows ilu may go on for 163 iterations and more, the first 60 before amg is
    # looked at
    for S, before, last in ((shifted((20, 1700), 2), 60, 60), (shifted((32, 32, 32), 8), 163, 103)):
        b = rng.standard_normal(S.shape[0])
        x, info = am.solve(S, b, rtol=1e-9)
        assert info.preconditioner.startswith("lu (sparse") and info.iterations == before + 1, info
        assert any(f"pc auto: lu (after {last} iterations of gmres with ilu" in n for n in info.notes), info.notes
        assert len(info.residual_norms) == before + 2
        assert np.linalg.norm(b - S @ x) <= 1.001e-9 * np.linalg.norm(b)
    # half way after 60 iterations
    S = shifted((20, 1700), 2.2)
    x, info = am.solve(S, b := rng.standard_normal(S.shape[0]), rtol=1e-9)
    assert info.preconditioner.startswith("ilu") and 90 < info.iterations < 150, info
    assert np.linalg.norm(b - S @ x) <= 1.001e-9 * np.linalg.norm(b)


def test_factors_that_cost_little_follow_amg_too(rng):
    """A network of lines of very different lengths, held in few places: amg gets nowhere, and the factors are almost a tree's."""
    n, more = 20000, 6000
    i, j = np.arange(1, n), np.maximum(0, np.arange(1, n) - rng.integers(1, 6, n - 1))
    ends = rng.integers(0, n - 50, more)
    i, j = np.concatenate([i, ends]), np.concatenate([j, ends + rng.integers(1, 50, more)])
    lines = sp.coo_array((10.0 ** rng.uniform(-2, 2, len(i)), (i, j)), shape=(n, n))
    both = sp.csr_array(lines + lines.T)
    held = 1e-4 * (np.arange(n) % 1000 == 0)
    S = sp.csr_array(sp.diags_array(both.sum(axis=1) + held) - both)
    b = rng.standard_normal(n)
    x, info = am.solve(S, b, rtol=1e-9)
    assert any("pc auto: cholesky (after 60 iterations of cg with amg" in m for m in info.notes), info.notes
    assert info.converged and info.iterations == 61
    assert np.linalg.norm(b - S @ x) <= 1.001e-9 * np.linalg.norm(b) + 1e-15 * abs(S).max() * np.linalg.norm(x)


def test_amg_follows_ilu_where_rows_are_those_of_a_diffusion(rng):
    """Values that are held by rows of the identity leave a matrix without symmetry, and ilu needs ever more iterations."""
    S = sp.csr_array(am.gallery.poisson((30, 30, 60), neumann=True).to_scipy())
    free = np.arange(S.shape[0]) > 0
    A = sp.csr_array(sp.diags_array(free * 1.0) @ S + sp.diags_array(~free * 1.0))
    b = rng.standard_normal(A.shape[0])
    x, info = am.solve(A, b, rtol=1e-8)
    assert info.preconditioner.startswith("amg") and info.iterations < 100, info
    assert any("pc auto: amg (after 60 iterations of gmres with ilu" in n for n in info.notes), info.notes
    assert np.linalg.norm(b - A @ x) <= 1.001e-8 * np.linalg.norm(b)
    # of wind that turns around, a cycle of amg or few iterations show that it does not help
    n = 150
    y, x = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    u, v = (y * (1 - x**2)).ravel(), (-x * (1 - y**2)).ravel()
    D = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])
    wind = sp.diags_array(u) @ sp.kron(sp.eye_array(n), D) + sp.diags_array(v) @ sp.kron(D, sp.eye_array(n))
    C = sp.csr_array(1e-2 * am.gallery.poisson((n, n)).to_scipy() + wind / n)
    b = rng.standard_normal(C.shape[0])
    x, info = am.solve(C, b, rtol=1e-8)
    assert np.linalg.norm(b - C @ x) <= 1.001e-8 * np.linalg.norm(b)


def test_the_hint_for_cg_and_amg_knows_an_indefinite_matrix():
    A = am.gallery.poisson((40, 40)).to_scipy()
    B = sp.eye_array(400, 1600)
    saddle = sp.csr_array(sp.block_array([[A, B.T], [B, None]]))
    both = sp.csr_array(sp.block_diag([A, -A]))
    for S, said in ((saddle, "400 zeros"), (both, "entries of both signs")):
        b = np.zeros(S.shape[0])
        b[-400:] = 1
        with pytest.raises(am.ConvergenceError, match="INDEFINITE_PC") as e:
            am.solve(S, b, ksp="cg", pc="amg")
        assert f"has {said}: it is indefinite" in str(e.value) and "-ksp_type preonly -pc_type lu" in str(e.value)


def test_a_nested_auto_takes_no_factors_that_have_a_limit():
    """It has no other attempt, where the factors would be too large."""
    S = am.gallery.convection_diffusion((14, 14, 14), (1.0, 0.3, 0.2)).to_scipy()
    S = sp.csr_array(S - S.diagonal()[0] / 4 * sp.eye_array(14**3))
    assert "ilu(0)" in am.Solver(S, ksp="fgmres", pc="ksp").view()


def test_a_tolerance_that_a_direct_solve_of_auto_meets_is_enough():
    """Beyond a condition number of 1 / eps refinement gets nowhere; a solve for a tolerance is held to that, one by lu to its own rule."""
    t, w = np.polynomial.laguerre.laggauss(100)
    S = np.exp(np.outer(1 - np.arange(0.05, 10, 0.1), t)) * w  # of the inverse Laplace transform: Hansen's i_laplace
    rhs = np.ones(100)
    x, info = am.solve(S, rhs)
    assert info.reason == "CONVERGED_RTOL" and np.linalg.norm(rhs - S @ x) <= 1e-5 * np.linalg.norm(rhs)
    assert any("backward error" in note for note in info.notes)
    with pytest.raises(am.ConvergenceError):
        am.solve(S, rhs, ksp="preonly", pc="lu")
