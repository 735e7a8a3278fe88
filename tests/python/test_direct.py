"""Sparse direct solves: ``-pc_type lu`` and ``cholesky``."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def sparse(n, rng, dtype):
    A = sp.random_array((n, n), density=5 / n, rng=rng) + sp.diags_array(rng.uniform(0.5, 1, n))
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sp.random_array((n, n), density=2 / n, rng=rng)
    return sp.csr_array(A[rng.permutation(n)]).astype(dtype)  # with zeros on the diagonal


def backward_error(A, x, b):
    wide = np.clongdouble if A.dtype.kind == "c" else np.longdouble
    A, x, b = (np.asarray(a).astype(wide) for a in (A.toarray(), x, b))
    return float(np.max(abs(b - A @ x) / (abs(A) @ abs(x) + abs(b))))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_answers_have_a_backward_error_at_rounding_level(rng, dtype):
    A = sparse(300, rng, dtype)
    b = rng.standard_normal((300, 3)).astype(dtype)
    s = am.Solver(A, ksp="preonly", pc="lu")
    for B, x in ((A, s.solve(b)), (A.T, s.solve_transpose(b)), (A.conj().T, s.solve_transpose(b, conjugate=True))):
        assert s.info.converged and s.info.backward_error.max() <= 5 * np.finfo(dtype).eps
        assert backward_error(B, x, b) <= 10 * np.finfo(dtype).eps
    assert "sparse" in s.view() and not s.factors["dense"]


def test_the_backward_error_is_that_of_its_definition(rng):
    A = sparse(60, rng, "float64")
    b = rng.standard_normal(60)
    s = am.Solver(A, ksp="preonly", pc="lu")
    x = s.solve(b)
    assert abs(s.info.backward_error - backward_error(A, x, b)) <= 1e-15
    assert f"backward error {s.info.backward_error:.1e}" in repr(s.info)


def test_determinant_inertia_and_kind(rng):
    A = am.gallery.poisson((12, 11)).to_scipy()
    for pc, shift, kind in (("lu", 0, "lu"), ("cholesky", 0, "cholesky"), ("cholesky", 3.05, "ldl")):
        B = sp.csr_array(A - shift * sp.eye_array(132))
        f = am.Solver(B, pc=pc).factors
        sign, log = np.linalg.slogdet(B.toarray())
        assert f["kind"] == kind
        assert f["sign"] == pytest.approx(sign) and f["logabsdet"] == pytest.approx(log, rel=1e-10)
        if kind != "lu":
            assert f["negative"] == (np.linalg.eigvalsh(B.toarray()) < 0).sum()
    assert am.Solver(A, pc="jacobi").factors is None


@pytest.mark.parametrize("n", [50, 300])
def test_inertia_beside_a_null_space_by_factors_of_another_precision(n):
    """A pivot that stands for the null vector is as often negative as positive."""
    for seed in range(4):
        w = 0.1 + np.random.default_rng(seed).random(n - 1)
        D = sp.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
        A = am.Matrix.from_scipy((D.T @ sp.diags_array(w) @ D).tocsr())
        for dtype in ("auto", "float32"):
            s = am.Solver(A, f"-pc_cholesky_type indefinite -pc_dtype {dtype}", pc="cholesky", null_space=np.ones(n))
            assert (s.factors["negative"], s.factors["zero"]) == (0, 1), (seed, dtype)


def test_cholesky_refuses_what_is_not_hermitian(rng):
    with pytest.raises(am.InputError, match=r"cholesky: the matrix is not Hermitian: the entry in row \d+, column \d+"):
        am.Solver(sparse(50, rng, "float64"), ksp="preonly", pc="cholesky")
    A = sp.csr_array(am.gallery.poisson((9, 9)).to_scipy() - 3 * sp.eye_array(81))
    with pytest.raises(am.BreakdownError, match="not positive definite"):
        am.Solver(A, ksp="preonly", pc="cholesky", pc_cholesky_type="positive_definite")
    with pytest.raises(am.OptionError, match="-pc_factor_matching: L L.H takes its pivots from the diagonal"):
        am.Solver(A, pc="cholesky", options="-pc_cholesky_type positive_definite -pc_factor_matching true")


def test_structurally_singular(rng):
    A = sparse(80, rng, "float64").tolil()
    A[17] = 0
    with pytest.raises(am.InputError, match="structurally singular"):
        am.Solver(sp.csr_array(A), ksp="preonly", pc="lu", ksp_check_input=False)


@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_wild_units(rng, scale):
    D = sp.diags_array(scale ** rng.uniform(-1, 1, 200))
    A = sp.csr_array(D @ sparse(200, rng, "float64"))
    b = A @ np.ones(200)
    s = am.Solver(A, ksp="preonly", pc="lu", pc_lu_type="sparse")
    x = s.solve(b)
    assert s.info.backward_error <= 1e-15 and np.allclose(x, 1, rtol=1e-8)


def test_float32_factors_serve_float64(rng):
    n = 200
    A = sp.csr_array(sparse(n, rng, "float64") @ sp.diags_array(np.logspace(0, 4, n)))
    s = am.Solver(A, ksp="preonly", pc="lu", pc_dtype="float32")
    s.solve(rng.standard_normal(n))
    assert s.info.converged and s.info.backward_error <= 1e-15
    assert any("refinement" in note for note in s.info.notes)


def test_update_keeps_the_symbolic_phase(rng):
    A = am.Matrix.from_scipy(am.gallery.poisson((15, 15)).to_scipy())
    for pc in ("lu", "cholesky"):
        s = am.Solver(A, pc=pc)
        B = A.with_values(A.to_scipy().data * 2.5)
        s.update(B)
        assert s.reused
        assert np.allclose(B @ s.solve(np.ones(225)), 1)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("pc", ["lu", "cholesky"])
def test_on_several_ranks(on_ranks, n, pc):
    on_ranks(
        n,
        f"""
A = am.gallery.poisson((14, 13), comm)
lo, hi = A.row_range
s = am.Solver(A, ksp="preonly", pc="{pc}")
b = np.cos(np.arange(2 * 182.0)).reshape(182, 2)[lo:hi]
x = s.solve(b)
assert s.info.converged and s.info.backward_error.max() <= 1e-15
assert np.allclose(A @ x, b) and "on rank 0" in s.view()
f = s.factors
assert all(g == f for g in comm.allgather(f)) and f["entries"] > 0
text = message(lambda: am.Solver(A, ksp="preonly", pc="{pc}", pc_factor_memory_limit=1000))
assert all(t == text for t in comm.allgather(text)) and "and 1 kB are allowed" in text, text
""",
    )


def test_auto_takes_sparse_factors_if_they_fit(rng):
    A = sparse(2500, rng, "float64")
    b = A @ np.ones(2500)
    weak = {"pc_ilut_drop": 0.9, "pc_ilut_fill": 1, "rtol": 1e-10}
    x, info = am.solve(A, b, **weak)
    assert info.method == "preonly" and info.preconditioner.startswith("lu (sparse, 2500 rows")
    assert info.backward_error <= 1e-15 and any(n.startswith("pc auto: lu (") for n in info.notes)
    s = am.Solver(A, pc_factor_memory_limit=1e4, **weak)
    s.solve(b, raise_on_failure=False)
    told = [n for n in s.info.notes if n.startswith("pc auto: ilut") and "(lu: the factors of 2500 rows need " in n]
    assert len(told) == 1 and "and 10 kB are allowed" in told[0], s.info.notes
    assert s.info.method == "gmres" and s.factors is None
    assert any(n.startswith("pc auto: jacobi by sums of rows") for n in s.info.notes), s.info.notes


@pytest.mark.parametrize("kind", ["lu", "cholesky", "dense"])
def test_work_is_refused_before_it_begins(kind):
    A = am.gallery.poisson((30, 30))
    options = {"pc": "lu", "pc_lu_type": "dense"} if kind == "dense" else {"pc": kind}
    for limit in (1, 1e3):
        with pytest.raises(
            am.AsterismError, match=f"of 900 rows take .* floating-point operations.* and {limit:g} are"
        ):
            am.Solver(A, ksp="preonly", pc_factor_flop_limit=limit, **options)
    s = am.Solver(A, ksp="preonly", pc_factor_flop_limit=1e9, **options)
    assert np.allclose(A @ s.solve(np.ones(900)), 1)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("kind", ["lu", "cholesky"])
def test_the_same_bits_for_any_number_of_threads(kind, dtype):
    A = am.gallery.poisson((22, 22, 22))
    A = am.Matrix.from_scipy(A.to_scipy().astype(dtype))
    b = np.random.default_rng(3).standard_normal((A.shape[0], 3)).astype(dtype)
    before, found = am._core.team_size(), []
    try:
        for threads in (1, 2, 3):
            am._core.set_team_size(threads)
            F = am.factorized(A, kind)
            assert F.nnz > 1e6  # so that threads take subtrees in the solve
            found.append([F.solve(b), F.solve(b[:, 0]), F.solve(b, trans="T")])
    finally:
        am._core.set_team_size(before)
    for others in found[1:]:
        for x, y in zip(found[0], others, strict=True):
            assert np.array_equal(x, y)


def interior_point(variables, constraints, twice=0, regularised=0.0):
    """The matrix of a step of an interior point method: full rows, and a barrier with entries from 1e-6 to 1e6."""
    rng = np.random.default_rng(2)
    B = (rng.random((constraints, variables)) < 0.5) * rng.integers(1, 9, (constraints, variables))
    B = sp.csr_array(np.vstack([B, B[:twice]]).astype(float))
    barrier = sp.diags_array(-(10.0 ** rng.uniform(-6, 6, variables)))
    lower = regularised * sp.eye_array(B.shape[0]) if regularised else None
    return sp.csr_array(sp.block_array([[barrier, B.T], [B, lower]]))


def test_small_entries_of_a_barrier_are_pivots_and_are_not_delayed(rng):
    A = interior_point(1500, 10)
    b = rng.standard_normal(A.shape[0])
    by_matching, plain = (
        am.Solver(A, ksp="preonly", pc="cholesky", options=f"-pc_factor_matching {matching}")
        for matching in ("auto", "false")
    )
    negative = np.count_nonzero(np.linalg.eigvalsh(A.toarray()) < 0)
    for s in (by_matching, plain):
        assert backward_error(A, s.solve(b), b) <= 1e-15
        assert s.factors["negative"] == negative
    assert by_matching.factors["delayed"] == 0 and "scaled by a matching" in by_matching.view()
    assert 10 * by_matching.factors["entries"] < plain.factors["entries"]
    d = 10.0 ** rng.uniform(-3, 3, A.shape[0])
    other = sp.csr_array(sp.diags_array(d) @ A @ sp.diags_array(d))  # new values are scaled anew
    by_matching.update(other)
    assert by_matching.reused and by_matching.factors["delayed"] == 0
    assert backward_error(other, by_matching.solve(b), b) <= 1e-15


def test_scales_that_hide_a_regularisation_are_not_kept(rng):
    A = interior_point(300, 20, twice=10, regularised=1e-8)
    b = rng.standard_normal(A.shape[0])
    s = am.Solver(A, ksp="preonly", pc="cholesky")
    assert backward_error(A, s.solve(b), b) <= 1e-15
    assert not any("singular" in note for note in s.info.notes)
    hidden = am.Solver(A, ksp="preonly", pc="cholesky", options="-pc_factor_matching true")
    assert hidden.factors["condition"] > 100 * s.factors["condition"]


@pytest.mark.parametrize(("seed", "variables"), [(0, 900), (1, 900), (2, 1500), (3, 1500)])
def test_other_scales_are_not_tried_where_they_cannot_be_better(seed, variables):
    """Nearly singular by any scales. The diagonal of ones is small beside the constraints, so pivots would be delayed."""
    rng = np.random.default_rng(seed)
    B = sp.random_array((60, variables), density=0.12, rng=rng)
    B.data = 10.0 ** rng.uniform(-1, 2, B.nnz) * rng.choice([-1, 1], B.nnz)
    B = B.toarray()
    B[-1] = B[0] + B[1]
    A = sp.csr_array(sp.block_array([[sp.eye_array(variables), B.T], [sp.csr_array(B), None]]))
    entries = {
        matching: am.Solver(A, ksp="preonly", pc="cholesky", options=f"-pc_factor_matching {matching}").factors[
            "entries"
        ]
        for matching in ("auto", "true", "false")
    }
    assert entries["false"] > 10 * entries["true"] and entries["auto"] < 3 * entries["true"]
