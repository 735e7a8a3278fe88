"""Incomplete factors of matched, scaled and ordered matrices: against dense inverses, their adjoints, new values."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]
EXACT = "-pc_type ilut -pc_ilut_drop 0 -pc_ilut_fill 1000"
KINDS = [
    "-pc_type ilu -pc_factor_levels 60",
    "-pc_type ilu -pc_factor_levels 60 -pc_factor_mat_ordering_type rcm",
    "-pc_type ilu -pc_factor_levels 60 -pc_factor_mat_ordering_type amd",
    "-pc_type ilu -pc_factor_levels 60 -pc_factor_order levels",
    EXACT,
    EXACT + " -pc_factor_mat_ordering_type natural",
    EXACT + " -pc_factor_mat_ordering_type rcm -pc_factor_order levels",
    EXACT + " -pc_factor_mat_ordering_type nd",
    EXACT + " -pc_factor_matching false",
    EXACT + " -pc_factor_matching false -pc_ilut_pivoting 1",
    EXACT + " -pc_ilut_pivoting 0",
]


def no_diagonal(n, dtype, seed=1, spread=4):
    """Regular, with zeros on the diagonal and entries of very different sizes."""
    rng = np.random.default_rng(seed)
    p = np.roll(rng.permutation(n), 1)
    big = sp.csr_array((rng.uniform(1, 2, n) * rng.choice([-1, 1], n), (np.arange(n), p)), shape=(n, n))
    S = sp.lil_array(
        big
        + sp.random_array(
            (n, n), density=min(1.0, 2 / n), rng=rng, data_sampler=lambda size: rng.uniform(-0.4, 0.4, size)
        )
    )
    for i in range(0, n, 2):
        if p[i] != i:
            S[i, i] = 0
    S = sp.csr_array(S)
    S.eliminate_zeros()
    if dtype.startswith("complex"):
        S = S.astype(complex)
        S.data = S.data * np.exp(2j * np.pi * rng.random(S.nnz))
    return sp.csr_array(sp.diags_array(10.0 ** rng.uniform(-spread, spread, n)) @ S).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_factors_are_the_inverse(kind, dtype):
    """With all fill one application solves, in the adjoint too, for one right-hand side and several."""
    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-8
    for n in (1, 2, 3, 30, 80):
        S = no_diagonal(n, dtype, seed=n, spread=1 if "matching false" in kind else 3)
        s = am.Solver(S, ksp="richardson", maxiter=1, rtol=1e-30, options=kind)
        rng = np.random.default_rng(n)
        x_star = (
            rng.standard_normal((n, 3)) + (1j * rng.standard_normal((n, 3)) if dtype.startswith("complex") else 0)
        ).astype(dtype)
        for x, want in (
            (s.solve(S @ x_star, raise_on_failure=False), x_star),
            (s.solve((S @ x_star)[:, 0].copy(), raise_on_failure=False), x_star[:, 0]),
            (s.solve_transpose(S.T @ x_star, raise_on_failure=False), x_star),
            (s.solve_transpose(S.conj().T @ x_star, conjugate=True, raise_on_failure=False), x_star),
        ):
            assert np.abs(np.asarray(x) - want).max() <= tolerance * np.abs(x_star).max(), (n, kind)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_each_rank_matches_its_own_rows(on_ranks, n):
    """Also on ranks without rows, and within subdomains: M is made of the inverses of blocks, and so is its adjoint."""
    on_ranks(
        n,
        """
import scipy.sparse as sp
exact = "pc_type ilut -{0}pc_factor_matching true -{0}pc_ilut_drop 0 -{0}pc_ilut_fill 1000"
for dtype in ("float64", "complex128"):
    for N in (0, 1, 5, 37):
        cuts = [0] + [N * (k + 1) // size for k in range(size)] if N != 5 else [0] + [5] * size  # all rows on rank 0
        rng = np.random.default_rng(N)
        D = rng.standard_normal((N, N)) + (1j * rng.standard_normal((N, N)) if dtype == "complex128" else 0)
        np.fill_diagonal(D, 0 if N > 1 and all(b - a != 1 for a, b in zip(cuts, cuts[1:])) else 1)
        S = sp.csr_array(D.astype(dtype))
        M = np.zeros((N, N), dtype)
        for a, b in zip(cuts, cuts[1:]):
            M[a:b, a:b] = np.linalg.inv(D[a:b, a:b])
        lo, hi = cuts[rank], cuts[rank + 1]
        A = am.Matrix.from_scipy(S[lo:hi], comm)
        x = rng.standard_normal((N, 2)).astype(dtype)
        for options in ("-" + exact.format(""), "-pc_type bjacobi -sub_" + exact.format("sub_"),
                        "-pc_type asm -pc_asm_overlap 0 -sub_" + exact.format("sub_")):
            P = am.Solver(A, options, ksp="gmres").preconditioner
            scale = 1 + abs(M).max(initial=0)
            for got, want in ((P @ x[lo:hi], M @ x), (P.rmatvec(x[lo:hi]), M.conj().T @ x)):
                assert np.abs(got - want[lo:hi]).max(initial=0) <= 1e-9 * scale**2, (options, N)
""",
    )


def test_auto_matches_where_it_helps():
    def says(S, pc="ilu", **more):
        return am.Solver(S, ksp="gmres", pc=pc, **more).view()

    good = am.gallery.convection_diffusion((12, 12), (20.0, 5.0)).to_scipy()
    assert "matched" not in says(good) and "order" not in says(good).split("note")[0]
    assert ", matched" in says(good, pc_factor_matching=True)
    none = sp.lil_array(good)
    none[7, 7] = 0
    assert ", matched" in says(none.tocsr()) and ", matched, amd order" in says(none.tocsr(), "ilut")
    weak = sp.lil_array(good)
    weak[7, 7] = 1e-9
    assert ", matched" in says(weak.tocsr())
    # rows of other units are no reason
    assert "matched" not in says(sp.csr_array(sp.diags_array(10.0 ** np.linspace(-8, 8, 144)) @ good))
    # M stays Hermitian for cg
    spd = am.gallery.poisson((12, 12)).to_scipy()
    graded = sp.csr_array(sp.diags_array(np.logspace(0, 6, 144)) @ spd @ sp.diags_array(np.logspace(0, 6, 144)))
    for order in ("natural", "rcm", "amd"):
        assert am.solve(
            graded, np.ones(144), ksp="cg", pc="ilu", rtol=1e-8, options=f"-pc_factor_mat_ordering_type {order}"
        )[1].converged


def test_a_structurally_singular_matrix_says_so():
    S = no_diagonal(40, "float64").tolil()
    S[5], S[9] = 0, 0
    S[5, 3], S[9, 3] = 1, 2  # two rows share one column
    text = am.Solver(S.tocsr(), ksp="gmres", pc="ilut").view()
    assert "matched up to its structural rank" in text and "of 40" in text


def test_zero_pivots_are_shifted_and_told(caplog):
    S = sp.csr_array(np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]))  # singular
    with caplog.at_level("INFO", "asterism"):
        s = am.Solver(S, ksp="gmres", pc="ilut")
    assert "shifted" in s.view() and any("ilut: 1 pivot(s) were shifted" in r.message for r in caplog.records)
    with pytest.raises(am.InputError, match="ilut: the pivot of row"):
        am.Solver(S, ksp="gmres", pc="ilut", pc_factor_shift_type="none")


def test_columns_are_exchanged():
    """A diagonal that elimination makes tiny: without exchanges the factors are useless."""
    rng = np.random.default_rng(4)
    n = 60
    D = rng.standard_normal((n, n))
    S = sp.csr_array(np.tril(D, -1) * 0.5 + np.triu(D, 1) * 0.5 + np.diag(np.full(n, 1e-3)))
    options = EXACT + " -pc_factor_matching false"
    x = am.Solver(S, ksp="richardson", maxiter=1, options=options).solve(S @ np.ones(n), raise_on_failure=False)
    assert np.abs(np.asarray(x) - 1).max() < 1e-8
    first = am.Solver(
        S, ksp="gmres", options="-pc_type ilut -pc_ilut_fill 1 -pc_factor_matching false", rtol=1e-8, maxiter=200
    )
    first.solve(np.ones(n), raise_on_failure=False)
    assert np.isfinite(first.info.true_residual)


@pytest.mark.parametrize("options", ["-pc_type ilu -pc_factor_levels 60", EXACT])
def test_a_matching_is_kept_while_it_suits(options):
    """Entries on two cyclic shifts: one of them is large, and later the other."""
    n = 50

    def values(first, second):
        return sp.csr_array(sp.diags_array([first, second, 0.3, 0.3], offsets=[1, 2 - n, 1 - n, 2], shape=(n, n)))

    s = am.Solver(values(1.0, 1.0), ksp="gmres", rtol=1e-10, options=options)
    assert ", matched" in s.view()

    def keeps(S):
        s.update(am.Matrix.from_scipy(S))
        x = s.solve(np.ones(n))
        assert np.linalg.norm(1 - S @ x) <= 1.001e-10 * np.sqrt(n) and ", matched" in s.view()
        return s.reused

    assert keeps(values(1.5, 0.8))
    other = values(1.5, 0.8)
    rows = np.repeat(np.arange(n), np.diff(other.indptr))
    shift = (other.indices - rows) % n
    other.data[shift == 1] = 1e-5  # what was the diagonal
    other.data[shift == 2] = 1.0
    assert not keeps(other) and keeps(other)


def test_auto_goes_on_where_a_method_took_columns_together():
    n = 600
    S = sp.csr_array(sp.diags_array([1.0, -4.0, 6.0, -4.0, 1.0], offsets=[-2, -1, 0, 1, 2], shape=(n, n)))
    rng = np.random.default_rng(0)
    b = rng.standard_normal((n, 3))
    x, info = am.solve(S, b, rtol=1e-6)
    assert info.converged and info.preconditioner.startswith("cholesky (sparse")
    assert len(info.residual_norms) == info.iterations + 1
    assert np.all(np.linalg.norm(S @ x - b, axis=0) <= 1.1e-6 * np.linalg.norm(b, axis=0))
    x, info = am.solve(S, b[:, 0] + 1j * b[:, 1], rtol=1e-6)  # two columns of a real matrix
    assert np.linalg.norm(S @ x - b[:, 0] - 1j * b[:, 1]) <= 2e-6 * np.linalg.norm(b[:, :2])


def test_auto_takes_what_a_symmetric_method_works_with():
    L = am.gallery.poisson((150,)).to_scipy()
    G = sp.eye_array(150, format="csr")[:, :100]
    K = sp.csr_array(sp.block_array([[L, G], [G.T, None]]))
    b = np.ones(250)
    x, info = am.solve(K, b, ksp="minres", rtol=1e-8)
    assert "ilu" not in info.preconditioner
    assert np.linalg.norm(K @ x - b) <= 1.1e-8 * np.linalg.norm(b)
