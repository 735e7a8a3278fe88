"""A^T x = b and A^H x = b from the set-up for A."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from conftest import QUEUES

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]
PRECONDITIONERS = [
    "none",
    "jacobi",
    "sor -pc_sor_omega 1.2",
    "sor -pc_sor_symmetric false",
    "ilu",
    "ilu -pc_factor_levels 1",
    "ilut",
    "bjacobi",
    "asm",
    "asm -pc_asm_type basic",
    "lu",
    "chebyshev",
    "amg",
    "amg -pc_amg_coarse_size 20 -pc_amg_cycle_type w",
    "amg -pc_amg_coarse_size 20 -mg_levels_ksp_type chebyshev",
    "ksp -ksp_ksp_type gmres -ksp_ksp_rtol 1e-2",
]


def windy(n, dtype):
    """A grid's matrix with a wind, and a phase where it is complex."""
    S = am.gallery.poisson((n, n)).to_scipy()
    wind = sp.diags_array(np.full(n * n - 1, 0.5), offsets=1)
    S = S + (wind * (1 + 0.5j) if np.dtype(dtype).kind == "c" else wind)
    return S.tocsr().astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pc", PRECONDITIONERS)
def test_each_preconditioner(rng, dtype, pc):
    S = windy(12, dtype)
    b = (rng.standard_normal((144, 2)) + (1j * rng.standard_normal((144, 2)) if S.dtype.kind == "c" else 0)).astype(
        dtype
    )
    single = np.finfo(dtype).eps > 1e-10
    ksp = "fgmres" if pc.startswith("ksp") else "gmres"
    solver = am.Solver(S, f"-ksp_type {ksp} -pc_type {pc}", rtol=1e-4 if single else 1e-10)
    solver.solve(b[:, 0])
    forward = solver.info.iterations
    want = {
        conjugate: np.linalg.solve((S.conj().T if conjugate else S.T).toarray().astype(complex), b)
        for conjugate in (False, True)
    }
    for conjugate in (False, True):
        for rhs, expected in ((b, want[conjugate]), (b[:, 0], want[conjugate][:, 0])):
            x = solver.solve_transpose(rhs, conjugate=conjugate)
            assert x.dtype == dtype and x.shape == rhs.shape
            assert np.allclose(x, expected, rtol=0, atol=(1e-2 if single else 1e-8) * np.abs(expected).max())
        assert solver.info.converged and solver.info.iterations <= 3 * forward + 5
    assert np.allclose(S @ solver.solve(b[:, 0]), b[:, 0], atol=1e-2 if single else 1e-8)  # the solver is as it was


@pytest.mark.parametrize(
    "ksp", sorted(set(am._core.component_names()[0]) - {"cg", "pipecg", "cr", "minres", "chebyshev", "preonly"})
)
def test_each_method(ksp):
    S = windy(10, "float64")
    solver = am.Solver(S, ksp=ksp, pc="ilu", rtol=1e-9)
    x = solver.solve_transpose(np.ones(100))
    assert np.linalg.norm(S.T @ x - 1) <= 1e-9 * 10


def test_a_hermitian_matrix_is_its_own_adjoint(rng):
    P = am.gallery.poisson((12, 12))
    b = rng.standard_normal(144)
    solver = am.Solver(P, ksp="cg", pc="amg", rtol=1e-9)
    x, its = solver.solve(b), solver.info.iterations
    assert np.array_equal(x, solver.solve_transpose(b)) and np.array_equal(x, solver.solve_transpose(b, conjugate=True))
    assert solver.info.iterations == its
    S = windy(12, "complex128")
    H = (S + S.conj().T).tocsr()
    assert abs(H - H.T).max() > 0.1
    solver = am.Solver(H, ksp="cg", pc="amg", rtol=1e-9)
    assert np.array_equal(solver.solve(b), solver.solve_transpose(b, conjugate=True))
    x = solver.solve_transpose(b + 2j * b)
    assert np.linalg.norm(H.T @ x - b - 2j * b) <= 1e-9 * np.linalg.norm(b + 2j * b)


def test_a_matrix_that_is_not_looked_at_is_not_taken_for_hermitian():
    S = windy(12, "float64")
    for pc in ("ilu", "amg -pc_amg_coarse_size 20"):
        solver = am.Solver(S, f"-ksp_check_input false -ksp_type gmres -pc_type {pc}", rtol=1e-9)
        assert np.linalg.norm(S.T @ solver.solve_transpose(np.ones(144)) - 1) <= 1e-9 * 12
    P = am.gallery.poisson((12, 12))
    solver = am.Solver(P, "-ksp_check_input false -ksp_type cg -pc_type amg -pc_amg_coarse_size 20", rtol=1e-9)
    assert np.array_equal(solver.solve_transpose(np.ones(144)), solver.solve(np.ones(144)))


@pytest.mark.parametrize(
    "pc", ["amg -pc_amg_coarse_size 20", "chebyshev", "ilu", "sor", "ksp -ksp_ksp_type gmres -ksp_pc_type ilu"]
)
def test_after_an_update_that_changes_the_symmetry(pc):
    S = windy(12, "float64")
    symmetric, general = (S + S.T).tocsr(), (S + S.T).tocsr()
    general.data = general.data * np.where(np.arange(general.nnz) % 3 == 0, 1.1, 1.0)
    solver = am.Solver(symmetric, f"-ksp_type {'fgmres' if pc.startswith('ksp') else 'gmres'} -pc_type {pc}", rtol=1e-9)
    for A in (symmetric, general, general, symmetric, general):
        solver.update(A)
        for matrix, solve in ((A, solver.solve), (A.T, solver.solve_transpose)):
            assert np.linalg.norm(matrix @ solve(np.ones(144)) - 1) <= 1e-9 * 12


def test_guesses_monitors_failures_and_complex_sides(rng):
    S = windy(12, "float64")
    b = rng.standard_normal(144)
    solver = am.Solver(S, ksp="gmres", pc="ilu", rtol=1e-10)
    want = spla.spsolve(S.T.tocsc(), b)
    solver.solve_transpose(b, want)
    assert solver.info.iterations == 0
    seen = []
    solver.solve_transpose(b, monitor=lambda it, norm: seen.append((it, norm)))
    assert [it for it, _ in seen] == list(range(solver.info.iterations + 1)) and seen[-1][1] <= 1e-10 * np.linalg.norm(
        b
    )
    x = solver.solve_transpose(b + 1j * b[::-1])
    assert np.allclose(S.T @ x, b + 1j * b[::-1], atol=1e-8)
    short = am.Solver(S, ksp="gmres", pc="none", rtol=1e-12, maxiter=2)
    with pytest.raises(am.ConvergenceError) as failed:
        short.solve_transpose(b)
    assert failed.value.info.true_residual == pytest.approx(np.linalg.norm(b - S.T @ failed.value.x))
    assert (
        not np.isfinite(short.solve_transpose(b, raise_on_failure=False)).all() or short.info.reason == "DIVERGED_ITS"
    )
    for bad in (np.ones(7), np.full(144, np.nan), "b"):
        with pytest.raises((am.AsterismError, ValueError, TypeError)):
            solver.solve_transpose(bad)


@pytest.mark.parametrize(("scale", "of_b"), [(1e-200, 1e-150), (1e-200, 1e50), (1e200, 1e150), (1e200, 1.0)])
def test_numbers_at_the_ends_of_the_range(rng, scale, of_b):
    S, b = windy(10, "float64"), rng.standard_normal(100)
    x = am.Solver(S * scale, ksp="gmres", pc="ilu", rtol=1e-9).solve_transpose(b * of_b)
    want = spla.spsolve(S.T.tocsc(), b)
    assert np.allclose(x * (scale / of_b), want, rtol=0, atol=1e-7)


def test_functions():
    S = windy(10, "complex128")
    D = S.conj().T.tocsr()
    b = np.ones(100, dtype=complex)
    A = am.Operator(
        lambda x: S @ x, 100, dtype="complex128", adjoint=lambda x: D @ x, diagonal=S.diagonal(), name="windy"
    )
    for options in ("-pc_type jacobi", "-pc_type none", "-pc_type chebyshev"):
        solver = am.Solver(A, f"-ksp_type gmres -ksp_rtol 1e-9 {options}")
        assert np.linalg.norm(S.T @ solver.solve_transpose(b) - b) <= 1e-8
        assert np.linalg.norm(D @ solver.solve_transpose(b, conjugate=True) - b) <= 1e-8
    without = am.Operator(lambda x: S @ x, 100, dtype="complex128", name="windy")
    for solver in (am.Solver(without, ksp="gmres"), am.Solver(S, ksp="gmres", M=without)):
        with pytest.raises(am.UnsupportedError, match="windy has no adjoint"):
            solver.solve_transpose(b)
        assert solver._h.method == "gmres"
    # its own solver as an operator: a Schur complement
    inner = am.Solver(S, ksp="gmres", pc="ilu", rtol=1e-12)
    inverse = am.Operator(
        inner.solve, 100, dtype="complex128", adjoint=lambda v: inner.solve_transpose(v, conjugate=True)
    )
    x, info = am.solve(inverse, b, ksp="bicg", rtol=1e-9)
    assert np.allclose(x, S @ b, atol=1e-6)


def test_a_diagonal_that_does_not_fit():
    with pytest.raises(am.ShapeError, match=r"diagonal has shape \(3,\); \(5,\) is needed"):
        am.Operator(lambda x: x, 5, diagonal=np.ones(3))
    with pytest.raises(am.ShapeError, match="of a square operator"):
        am.Operator(lambda x: x, 5, 4, diagonal=np.ones(5))
    with pytest.raises(am.DtypeError, match="diagonal is complex128, the operator float64"):
        am.Operator(lambda x: x, 5, diagonal=np.ones(5) * 1j)
    with pytest.raises(am.AsterismError, match="diagonal entry of row 2 is zero"):
        am.Solver(am.Operator(lambda x: x, 5, diagonal=[1, 1, 0, 1, 1]), pc="jacobi")
    with pytest.raises(am.UnsupportedError, match="a function does not tell its diagonal. Give one"):
        am.Solver(am.Operator(lambda x: x, 5), pc="jacobi")


def test_singular(rng):
    """The range of A^H is orthogonal to the null space of A: b is projected, and x is one of many."""
    S = windy(9, "float64").tolil()
    for i in range(81):
        S[i, i] -= S[i].sum()
    S = S.tocsr()
    assert np.abs(S @ np.ones(81)).max() < 1e-13
    b = rng.standard_normal(81)
    solver = am.Solver(S, ksp="gmres", pc="jacobi", null_space=np.ones(81), rtol=1e-9)
    x = solver.solve_transpose(b)
    assert solver.info.converged and any("not in the range" in note for note in solver.info.notes)
    assert np.linalg.norm(S.T @ x - (b - b.mean())) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("queue", QUEUES)
def test_on_any_queue(queue):
    S = windy(12, "complex128")
    b = np.ones(144, dtype=complex)
    where = "-device cuda" if queue == "cuda" else f"-queue {queue}"
    for pc in ("jacobi", "amg -pc_amg_coarse_size 20", "chebyshev"):
        here, inline = (am.Solver(S, f"-ksp_type bicgstab -pc_type {pc} {more}", rtol=1e-9) for more in (where, ""))
        for conjugate in (False, True):
            x, y = (s.solve_transpose(b, conjugate=conjugate) for s in (here, inline))
            assert np.array_equal(x, y) if queue != "cuda" else np.allclose(x, y, rtol=1e-6)


SCRIPT = """
P = am.gallery.poisson((11, 12)).to_scipy()
wind = sp.diags_array(np.full(131, 0.5), offsets=1)
S = (P + wind * (1 + 0.5j)).tocsr()
A = am.Matrix.from_scipy(S, comm, distribute=True)
first, n = A._h.rows.begin, A.local_shape[0]
b = np.exp(1j * np.arange(132))
for pc in ("jacobi", "ilu", "sor", "asm", "asm -pc_asm_type basic", "bjacobi", "lu", "chebyshev", "amg -pc_amg_coarse_size 20", "ksp"):
    s = am.Solver(A, f"-ksp_type {'fgmres' if pc == 'ksp' else 'gmres'} -pc_type {pc}", rtol=1e-10)
    for conjugate in (False, True):
        x = np.concatenate(comm.allgather(s.solve_transpose(b[first:first + n], conjugate=conjugate)))
        T = S.conj().T if conjugate else S.T
        assert np.linalg.norm(T @ x - b) <= 1.1e-10 * np.linalg.norm(b), (pc, conjugate)
if size > 1:
    told = message(lambda: s.solve_transpose(b[first:first + n], conjugate=rank == 0))
    assert "conjugate is false on rank" in told and "true on rank 0" in told, told
    told = message(lambda: s.solve_transpose(np.ones(n + (rank == 1), dtype=complex)))
    assert "b has shape" in told and ("rank 1" in told or rank == 1), told
s.solve_transpose(b[first:first + n])
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_on_ranks(on_ranks, ranks):
    on_ranks(ranks, SCRIPT)


def test_a_norm_that_only_rounding_keeps_above_the_target(on_ranks):
    """By products with A it may be below, by those with A^T above: the method must not end where it starts."""
    on_ranks(
        2,
        """
S = sp.random_array((900, 900), density=0.03, rng=np.random.default_rng(0))
S = S + S.T
S = (S + sp.diags_array(np.asarray(abs(S).sum(axis=1)) * 1.01 + 0.01)).tocsr().astype("float32")
A = am.Matrix.from_scipy(S, comm, distribute=True)
for ksp in ("cr", "bicgstab"):
    s = am.Solver(A, ksp=ksp, pc="jacobi", rtol=1e-4)
    for seed in range(8):
        b = np.random.default_rng(seed).standard_normal(900).astype("float32")[slice(*A.row_range)]
        s.solve_transpose(b)
        norm = float(s.info.true_residual)
        for less in (3e-7, 1e-6, 3e-6, 1e-5):
            s.solve_transpose(b, rtol=0, atol=norm * (1 - less))  # raises where it does not converge
            assert s.info.iterations > 0
""",
    )


@pytest.mark.parametrize("largest", [1e16, 1e20])
def test_asymmetry_that_a_large_entry_hides_is_no_silent_wrong_answer(largest):
    # beside its largest entry the matrix looks Hermitian, and A would be solved for A^T
    S = am.gallery.convection_diffusion((50,), (20.0,)).to_scipy().tolil()
    S[0, 0] = largest
    S = sp.csr_array(S.tocsr())
    b = np.ones(50)
    solver = am.Solver(S, rtol=1e-8)
    x = solver.solve_transpose(b, raise_on_failure=False)
    true = np.linalg.norm(b - S.T @ x)
    assert not solver.info.converged or true <= 1.1e-8 * np.linalg.norm(b)
    assert solver.info.true_residual == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_of_a_matrix_that_is_hermitian_to_rounding(dtype):
    """A coupling of one direction that is nothing beside its rows, and much beside b: scaled unknowns have such."""
    c = 1e-15 if np.finfo(dtype).eps > 1e-10 else 1e-30
    A = np.array([[1, -c], [0, 1]], dtype)
    F = am.factorized(A)
    b = np.array([1 / c, 1], dtype)
    for trans in "TH":
        assert np.allclose(F.solve(b, trans), [1 / c, 2], rtol=1e-5, atol=0)
    assert np.allclose(F.solve(np.array([1, 1 / c], dtype)), [2, 1 / c], rtol=1e-5, atol=0)


@pytest.mark.parametrize("method", ["gmres", "cg"])
def test_a_skew_part_that_products_do_not_show(method):
    """One of a hundredth, in float32: A x = b was solved instead, and called converged."""
    n = 20000
    S = sp.diags_array([-1.01, 2.2, -0.99], offsets=[-1, 0, 1], shape=(n, n), dtype=np.float32).tocsr()
    T, b = S.T.tocsr(), np.random.default_rng(0).standard_normal(n).astype(np.float32)
    solver = am.Solver(
        am.Operator(lambda x: S @ x, n, adjoint=lambda x: T @ x, dtype=np.float32), ksp=method, rtol=1e-4
    )
    y = solver.solve_transpose(b, raise_on_failure=False)
    assert not solver.info.converged or np.linalg.norm(T @ y - b) <= 1.1e-4 * np.linalg.norm(b)
    assert solver.info.converged or method == "cg"
    alone = am.Solver(am.Operator(lambda x: S @ x, n, dtype=np.float32), ksp=method, rtol=1e-4)  # of what it seems
    assert np.linalg.norm(S @ alone.solve_transpose(b) - b) <= 1.1e-4 * np.linalg.norm(b)
