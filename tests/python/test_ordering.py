"""Maximum product matching, its scalings and orderings, against SciPy."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

import asterism as am
from asterism import _core

DATA = Path(os.environ.get("ASTERISM_DATA", "/nowhere"))
DTYPES = ["float32", "float64", "complex64", "complex128"]


def matching(S):
    """Rank, partners of rows and of columns, scalings, the first empty row and column."""
    A = am.Matrix.from_scipy(sp.csr_array(S))
    rank, of_row, of_column, r, c, row, column = _core.matching(A._h)
    return rank, np.array(of_row, int), np.array(of_column, int), np.array(r), np.array(c), row, column


def check(S, optimum=True):
    S = sp.csr_array(S)
    S.eliminate_zeros()
    n, m = S.shape
    rank, of_row, of_column, r, c, empty_row, empty_column = matching(S)
    lengths, heights = np.diff(S.indptr), np.bincount(S.indices, minlength=m)
    assert empty_row == (np.flatnonzero(lengths == 0)[0] if (lengths == 0).any() else -1)
    assert empty_column == (np.flatnonzero(heights == 0)[0] if (heights == 0).any() else -1)
    assert rank == (of_row >= 0).sum() == (of_column >= 0).sum()
    assert rank == (maximum_bipartite_matching(S) >= 0).sum()
    rows = np.flatnonzero(of_row >= 0)
    assert np.array_equal(of_column[of_row[rows]], rows)
    # in logarithms: neither the products nor the scalings need fit a double
    coo = S.tocoo()
    i, j = coo.coords
    size = np.log(np.abs(coo.data.astype(np.complex128))) + np.log(r)[i] + np.log(c)[j]
    rounding = 1e-13 * (1 + np.abs(np.log(np.abs(coo.data.astype(np.complex128)))).max(initial=0)) * (1 + n)
    assert size.max(initial=0) <= rounding
    matched = of_row[i] == j
    assert matched.sum() == rank and np.abs(size[matched]).max(initial=0) <= rounding
    if optimum and n == m == rank > 0:
        cost = np.log(np.abs(coo.data.astype(np.complex128)))
        shift = cost.max() + 1  # SciPy takes no zero weights
        weights = sp.csr_array((shift - cost, (i, j)), shape=S.shape)
        best = weights[min_weight_full_bipartite_matching(weights)].sum()
        assert (shift - cost)[matched].sum() == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_patterns(dtype):
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 5, 8, 13, 40, 120):
        for turn in range(12):
            m = n if turn % 3 else int(rng.integers(1, 2 * n + 1))
            S = sp.random_array((n, m), density=min(1.0, rng.uniform(0.5, 5) / n), rng=rng).tocsr()
            spread = 8 if dtype in ("float32", "complex64") else 40
            phase = (
                np.exp(2j * np.pi * rng.random(S.nnz)) if dtype.startswith("complex") else rng.choice([-1, 1], S.nnz)
            )
            S.data = phase * 10.0 ** rng.uniform(-spread, spread, S.nnz)
            check(S.astype(dtype))
            if n == m:  # a permutation hides in it: full rank
                hidden = sp.csr_array((10.0 ** rng.uniform(-3, 3, n), (np.arange(n), rng.permutation(n))), shape=(n, n))
                check((S + hidden).astype(dtype))


def test_no_rows_zeros_and_ties():
    check(sp.csr_array((0, 0)))
    check(sp.csr_array((3, 3)))
    check(sp.csr_array(np.ones((7, 7))))
    S = sp.csr_array(np.array([[0.0, 2, 0], [3, 0, 0], [0, 0, 4]]))
    S = sp.csr_array((np.r_[S.data, 0.0], np.r_[S.indices, 0], np.r_[S.indptr[:-1], S.nnz + 1]), shape=(3, 3))
    assert matching(S)[1].tolist() == [1, 0, 2]  # zeros that are stored are no entries
    # of equals the diagonal
    assert matching(sp.diags_array([1.0, 1, 1], offsets=[-1, 0, 1], shape=(50, 50)))[1].tolist() == list(range(50))
    # scaled rows and columns change nothing but the scalings
    rng = np.random.default_rng(5)
    S = sp.csr_array(sp.random_array((60, 60), density=0.1, rng=rng) + sp.eye_array(60))
    scaled = sp.diags_array(10.0 ** rng.uniform(-100, 100, 60)) @ S @ sp.diags_array(10.0 ** rng.uniform(-100, 100, 60))
    assert np.array_equal(matching(S)[1], matching(scaled)[1])
    check(scaled, optimum=False)


def test_what_is_not_finite_is_an_error():
    S = sp.csr_array(np.array([[1.0, 2], [np.nan, 1]]))
    with pytest.raises(am.AsterismError, match="row 1 has an entry that is NaN or infinite"):
        matching(S)


def real_matrices():
    return sorted(p.name[:-7] for p in DATA.glob("*.mtx.gz"))


@pytest.mark.parametrize("name", real_matrices())
def test_real_matrices(name):
    S = scipy.io.mmread(DATA / f"{name}.mtx.gz")
    if not sp.issparse(S):
        pytest.skip("a vector")
    check(S, optimum=S.shape[0] < 1300)  # SciPy takes minutes for others; the scalings prove the optimum too


def fill(S, order):
    """Entries of the Cholesky factor of the pattern of S + S^T in that order."""
    P = sp.csr_array(abs(S) + abs(S.T))[order][:, order]
    n = P.shape[0]
    parent, seen, count = np.full(n, -1), np.full(n, -1), 0
    for k in range(n):
        seen[k] = k
        for i in P.indices[P.indptr[k] : P.indptr[k + 1]]:
            while i < k and seen[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                seen[i], count = k, count + 1
                i = parent[i]
    return count


def ordering(S, kind):
    return np.array(_core.ordering(am.Matrix.from_scipy(sp.csr_array(S))._h, kind), int)


def why_no_colamd():
    try:
        ordering(sp.eye_array(3), "colamd")
    except am.UnsupportedError as error:
        return str(error)
    return ""


needs_colamd = pytest.mark.skipif(bool(why_no_colamd()), reason=why_no_colamd())


@pytest.mark.parametrize("kind", ["rcm", "amd", "nd", pytest.param("colamd", marks=needs_colamd)])
def test_orderings_are_permutations(kind):
    rng = np.random.default_rng(2)
    for n in (0, 1, 2, 3, 10, 50, 200):
        for density in (0, 1, 2, 5, n / 2):
            S = sp.random_array((n, n), density=min(1.0, density / max(n, 1)), rng=rng)
            order = ordering(S, kind)
            assert np.array_equal(np.sort(order), np.arange(n))
            assert np.array_equal(order, ordering(S, kind))  # nothing is left to chance


@pytest.mark.parametrize("kind", ["rcm", "amd"])
def test_orderings_end_when_the_time_is_over(kind):  # as after Ctrl-C
    A = am.gallery.poisson(
        (1200, 1200), stencil="box"
    )  # a second of minimum degree, 0.2 s of the other; asked every 50 ms
    _core.set_time_limit(0.0)
    try:
        with pytest.raises(am.TimeLimitError, match="the time is over: .* ordering"):
            _core.ordering(A._h, kind)
    finally:
        _core.set_time_limit(np.inf)


def test_rcm_has_a_small_bandwidth():
    S = am.gallery.poisson((15, 15)).to_scipy()
    p = np.random.default_rng(3).permutation(225)
    shuffled = sp.csr_array(S)[p][:, p].tocoo()
    order = ordering(shuffled, "rcm")
    place = np.argsort(order)
    i, j = shuffled.coords
    assert np.abs(place[i] - place[j]).max() <= 20 < np.abs(i - j).max()


def test_amd_has_little_fill():
    S = am.gallery.poisson((24, 24)).to_scipy()
    assert fill(S, ordering(S, "amd")) < 0.55 * fill(S, np.arange(576))
    # trees and arrows have none
    arrow = sp.lil_array(sp.eye_array(400))
    arrow[0, :] = arrow[:, 0] = 1
    assert fill(arrow.tocsr(), ordering(arrow, "amd")) == 399
    parent = [int(np.random.default_rng(k).integers(0, k)) for k in range(1, 300)]
    tree = sp.csr_array((np.ones(299), (np.arange(1, 300), parent)), shape=(300, 300))
    assert fill(tree, ordering(tree, "amd")) == 299
    # alike rows are one: a dense block on each edge of a path
    blocks = sp.kron(sp.diags_array([1.0, 1, 1], offsets=[-1, 0, 1], shape=(30, 30)), np.ones((4, 4)))
    assert fill(blocks, ordering(blocks, "amd")) == fill(blocks, np.arange(120))


def test_nested_dissection_is_that_of_metis():
    pymetis = pytest.importorskip("pymetis")
    rng = np.random.default_rng(7)
    for S in (am.gallery.poisson((9, 8, 7)).to_scipy(), sp.random_array((300, 300), density=0.01, rng=rng)):
        G = sp.csr_array(abs(S) + abs(S.T))
        G.setdiag(0)
        G.eliminate_zeros()
        G.sort_indices()
        order, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(G.indptr, G.indices))
        assert np.array_equal(order, ordering(S, "nd"))


def test_nested_dissection_has_less_fill_in_three_dimensions():
    S = am.gallery.poisson((24, 24, 24)).to_scipy()
    assert 0 < fill(S, ordering(S, "nd")) < 0.9 * fill(S, ordering(S, "amd"))


@needs_colamd
@pytest.mark.parametrize("dtype", DTYPES)
def test_colamd_has_the_fill_of_superlus(dtype):
    rng = np.random.default_rng(11)
    for n, density in ((60, 0.06), (300, 0.012), (700, 0.005)):
        S = sp.random_array((n, n), density=density, rng=rng) + sp.diags_array(np.full(n, 3.0))
        S = sp.csc_array(S[rng.permutation(n)]).astype(dtype)
        product = sp.csr_array(abs(S)).T @ abs(S)
        theirs = np.argsort(scipy.sparse.linalg.splu(S, permc_spec="COLAMD").perm_c)
        ours = ordering(S, "colamd")
        assert fill(product, ours) <= 1.02 * fill(product, theirs)
        # that order bounds the factors whatever rows are exchanged
        A = am.Matrix.from_scipy(sp.csr_array(S))
        F = am.factorized(A, pc_factor_mat_ordering_type="colamd")
        assert F.L.nnz + F.U.nnz - n <= 2 * (fill(product, ours) + n)
        F.solve(np.ones(n, dtype))
        assert F.info.backward_error <= (1e-15 if np.dtype(dtype).itemsize >= 8 and dtype != "complex64" else 1e-6)
        assert "colamd by SuiteSparse" in F.solver.view() and F.solver.factors["ordering"] == "colamd"


@needs_colamd
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the test matrices")
@pytest.mark.parametrize(
    "name", ["1138_bus", "bayer10", "west0479", "orsirr_1", "sherman5", "cavity14", "young1c", "qc324"]
)
def test_lu_in_the_order_of_colamd_has_the_entries_of_superlus(name):
    S = sp.csc_array(scipy.io.mmread(DATA / f"{name}.mtx.gz"))
    theirs = scipy.sparse.linalg.splu(S, permc_spec="COLAMD")
    F = am.factorized(sp.csr_array(S), pc_factor_mat_ordering_type="colamd")
    F.solve(np.ones(S.shape[0], S.dtype))
    assert F.info.backward_error <= 1e-15
    assert F.L.nnz + F.U.nnz <= 1.1 * ((theirs.L != 0).nnz + (theirs.U != 0).nnz)  # without zeros in dense blocks


def test_colamd_is_of_lu():
    A = am.gallery.poisson((5, 5))
    with pytest.raises(am.OptionError, match="offered for -pc_type lu"):
        am.Solver(A, pc="cholesky", pc_factor_mat_ordering_type="colamd")
    with pytest.raises(am.OptionError, match="auto, natural, rcm, amd, nd"):
        am.Solver(A, pc="ilu", pc_factor_mat_ordering_type="colamd")


@pytest.mark.parametrize("file, reason", [("none", "ASTERISM_COLAMD is none"), ("/no/such.so", "cannot open")])
def test_without_colamd(file, reason):
    script = """
import asterism as am
try:
    am.factorized(am.gallery.poisson((5, 5)), pc_factor_mat_ordering_type="colamd")
except am.UnsupportedError as e:
    assert "REASON" in str(e) and "libcolamd2" in str(e) and "ASTERISM_COLAMD" in str(e) and "amd" in str(e), e
else:
    raise SystemExit("no error")
""".replace("REASON", reason)
    env = {**os.environ, "ASTERISM_COLAMD": file}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ABSENT = """
import asterism as am
from asterism import _core
A = am.gallery.poisson((5, 5))
assert _core.metis_library() == ""
for make in (lambda: _core.ordering(A._h, "nd"), lambda: am.solve(A, [1.0] * 25, pc="ilu", options="-pc_factor_mat_ordering_type nd")):
    try:
        make()
    except am.UnsupportedError as e:
        assert "needs METIS" in str(e) and "REASON" in str(e) and "pip install pymetis" in str(e) and "amd" in str(e), e
    else:
        raise SystemExit("no error")
assert sorted(_core.ordering(A._h, "amd")) == list(range(25))
"""


@pytest.mark.parametrize(
    "metis, reason",
    [("none", "ASTERISM_METIS is none"), ("libm.so.6", "has no METIS_NodeND"), ("/no/such.so", "cannot open")],
)
def test_without_metis(metis, reason):
    env = {**os.environ, "ASTERISM_METIS": metis}
    done = subprocess.run(
        [sys.executable, "-c", ABSENT.replace("REASON", reason)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
