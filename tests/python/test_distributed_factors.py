"""Sparse factors that all ranks share, through the solver."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ASTERISM_DATA", "/nowhere"))
RANKS = [2, 3, 4]


@pytest.mark.parametrize("n", RANKS)
def test_every_layout_and_dtype(on_ranks, n):
    on_ranks(
        n,
        f"""
for dtype in ("float32", "float64", "complex64", "complex128"):
    level = 1e-6 if dtype in ("float32", "complex64") else 1e-15
    rng = np.random.default_rng(4)
    for pc in ("lu", "cholesky"):
        A = am.gallery.poisson((9, 8, 5), comm, dtype=dtype) if pc == "cholesky" else am.gallery.convection_diffusion(
            (9, 8, 5), (30.0, -4.0, 1.0), comm=comm, dtype=dtype)
        lo, hi = A.row_range
        b = rng.standard_normal((360, 10)).astype(dtype)[lo:hi]
        for turn, layout in enumerate(("square", "Px1", "1xP"), size):
            for more in ({{}}, [{{"pc_factor_subtrees": False}}, {{"pc_factor_block_size": 3}}][turn % 2]):
                s = am.Solver(A, ksp="preonly", pc=pc, pc_factor_layout=layout, **more)
                assert "on {n} ranks)" in s.view(), s.view()
                x = s.solve(b)
                assert s.info.converged and s.info.backward_error.max() <= level, (layout, more, s.info)
                s.solve_transpose(b[:, 0].copy())
                assert s.info.converged
        f = s.factors
        assert all(g == f for g in comm.allgather(f)) and f["entries"] > 0 and not f["replaced"]
        s.update(A.with_values(A.to_scipy().data * 3))
        assert s.reused
""",
    )


@pytest.mark.parametrize("n", [2, 3])
def test_auto_shares_large_factors(on_ranks, n):
    on_ranks(
        n,
        f"""
A = am.gallery.poisson((22, 22, 22), comm)
s = am.Solver(A, ksp="preonly", pc="cholesky")
b = A.make_vector(fill=1.0)
x = s.solve(b)
assert "symbolic phase: on rank 0, which" in s.view() and "on {n} ranks)" in s.view() and "work in subtrees" in s.view(), s.view()
assert s.info.backward_error <= 1e-15
small = am.Solver(am.gallery.poisson((20, 20), comm), ksp="preonly", pc="cholesky")
assert "on rank 0)" in small.view()
f32 = am.Solver(A, ksp="preonly", pc="cholesky", pc_dtype="float32")
f32.solve(b)
assert "on {n} ranks)" in f32.view() and f32.info.backward_error <= 1e-15
cg = am.Solver(A, ksp="cg", pc="lu")
cg.solve(b)
assert cg.info.iterations <= 2
""",
    )


@pytest.mark.parametrize("n", RANKS)
def test_indefinite_matrices_in_every_layout_and_dtype(on_ranks, n):
    on_ranks(
        n,
        f"""
N = 300
for dtype in ("float32", "float64", "complex64", "complex128"):
    level = 1e-6 if dtype in ("float32", "complex64") else 1e-15
    rng = np.random.default_rng(7)
    K = sp.random_array((N, N), density=0.008, rng=rng).astype(dtype)
    K.data *= 0.6 + 0.8j if dtype.startswith("complex") else 1
    near = sp.diags_array([np.full(N - 1, 0.3)], offsets=[1])
    d = np.where(np.arange(N) % 3, 3.0, -4.0)
    H = sp.csr_array(K + K.conj().T + near + near.T + sp.diags_array(d)).astype(dtype)
    negative = int((np.linalg.eigvalsh(H.toarray().astype(np.complex128)) < 0).sum())
    sign, log = np.linalg.slogdet(H.toarray().astype(np.complex128))
    A = am.Matrix.from_scipy(H, comm=comm, distribute=True)
    lo, hi = A.row_range
    X = rng.standard_normal((N, 10)).astype(dtype)
    for turn, layout in enumerate(("square", "Px1", "1xP"), size):
        for more in ({{}}, {{"pc_factor_subtrees": False}}, {{"pc_factor_block_size": 3}}):
            kind = ("auto", "indefinite")[(turn + len(more)) % 2]
            s = am.Solver(A, ksp="preonly", pc="cholesky", pc_cholesky_type=kind, pc_factor_layout=layout, **more)
            assert "on {n} ranks)" in s.view() and "ldl (sparse" in s.view(), s.view()
            x = s.solve((H @ X)[lo:hi])
            assert s.info.converged and s.info.backward_error.max() <= level, (layout, more, s.info)
            assert np.abs(x - X[lo:hi]).max() <= 1e4 * level
            s.solve_transpose((H.T @ X)[lo:hi, 0].copy())
            assert s.info.converged
            f = s.factors
            assert f["kind"] == "ldl" and f["negative"] == negative and not f["replaced"], f
            assert abs(f["sign"] - sign) < 1e-3 and abs(f["logabsdet"] - log) < 1e-4 * abs(log), (f, sign, log)
            assert f"{{N - negative}} positive, {{negative}} negative" in s.view()
    s.update(A.with_values(A.to_scipy().data * -2))
    assert s.reused and s.factors["negative"] == N - negative
""",
    )


@pytest.mark.parametrize("n", RANKS)
def test_stokes_stays_on_all_ranks(on_ranks, n):
    """Of the staggered grid: half of the rows are made of zeros but for the divergence."""
    on_ranks(
        n,
        f"""
m = 24
def second(a, b):
    T = lambda k: sp.diags_array([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], offsets=[-1, 0, 1])
    return sp.kron(T(a), sp.eye_array(b)) + sp.kron(sp.eye_array(a), T(b))
D = sp.diags_array([np.ones(m - 1), -np.ones(m - 1)], offsets=[0, -1], shape=(m, m - 1))
B = sp.hstack([sp.kron(D, sp.eye_array(m)), sp.kron(sp.eye_array(m), D)]).tocsr()[1:]  # one pressure is given
K = sp.csr_array(sp.block_array([[sp.block_diag([second(m - 1, m), second(m, m - 1)]), B.T], [B, None]]))
A = am.Matrix.from_scipy(K, comm=comm, distribute=True)
for more in ({{}}, {{"pc_factor_subtrees": False}}, {{"pc_factor_subtrees": False, "pc_factor_block_size": 1}}):
    s = am.Solver(A, ksp="preonly", pc="cholesky", pc_factor_layout="square", **more)
    s.solve(A.make_vector(fill=1.0))
    f = s.factors
    assert "on {n} ranks)" in s.view() and s.info.backward_error <= 1e-15, (more, s.info)
    assert f["negative"] == B.shape[0] and not f["replaced"], f
""",
    )


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the test matrices")
@pytest.mark.parametrize("name, negative", [("c-41", 4320), ("ACTIVSg200_kkt", 1876)])
def test_saddle_points_stay_on_all_ranks(on_ranks, name, negative):
    on_ranks(
        2,
        f"""
import scipy.io
A = am.Matrix.from_scipy(sp.csr_array(scipy.io.mmread({str(DATA / f"{name}.mtx.gz")!r})), comm=comm, distribute=True)
s = am.Solver(A, ksp="preonly", pc="cholesky", pc_cholesky_type="indefinite", pc_factor_layout="square")
s.solve(A.make_vector(fill=1.0))
f = s.factors
assert "on 2 ranks)" in s.view() and s.info.backward_error <= 1e-15, s.info
assert f["negative"] == {negative} and f["two_by_two"] > 0 and not f["replaced"], f
""",
    )


@pytest.mark.parametrize("n", RANKS)
def test_factors_are_there_after_an_error(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.convection_diffusion((9, 8, 5), (30.0, -4.0, 1.0), comm=comm)
b = A.make_vector(fill=1.0)
for more in ({}, {"pc_factor_subtrees": False}):
    for layout in ("square", "Px1", "1xP"):
        F = am.factorized(A, pc_factor_layout=layout, **more)
        x = F.solve(b)
        for wrong in (np.ones((len(b), 1 + (rank == 0))), b[1:] if rank == 0 else b):
            message(lambda: F.solve(wrong))
            assert np.array_equal(F.solve(b), x)
            assert F.determinant.sign == 1 and F.info.backward_error <= 1e-15
        y = F.solve(b, "T")
        message(lambda: F.solve(b, "N" if rank == 0 else "T"))
        assert np.array_equal(F.solve(b, "T"), y)
""",
    )


@pytest.mark.parametrize("n", [2, 3])
def test_colamd_on_several_ranks(on_ranks, n):
    on_ranks(
        n,
        f"""
from test_ordering import why_no_colamd
if not why_no_colamd():
    A = am.gallery.convection_diffusion((20, 21), (30.0, -4.0), comm=comm)
    s = am.Solver(A, ksp="preonly", pc="lu", pc_factor_layout="square", pc_factor_mat_ordering_type="colamd")
    s.solve(A.make_vector(fill=1.0))
    assert s.info.backward_error <= 1e-15 and "on {n} ranks)" in s.view() and "colamd by SuiteSparse" in s.view(), s.view()
""",
    )


def test_without_colamd_all_ranks_say_so(on_ranks):
    on_ranks(
        2,
        """
A = am.gallery.poisson((9, 9), comm)
text = message(lambda: am.Solver(A, pc="lu", pc_factor_layout="square", pc_factor_mat_ordering_type="colamd"))
assert "libcolamd2" in text and all(t == text for t in comm.allgather(text)), text
""",
        ASTERISM_COLAMD="none",
    )


@pytest.mark.parametrize("n", RANKS)
def test_triangles_are_gathered(on_ranks, n):
    on_ranks(
        n,
        """
import zlib
from test_factorized import check_product, matrix
N = 150
for dtype in ("float32", "float64", "complex64", "complex128"):
    rng = np.random.default_rng(3)
    H = matrix(rng, dtype, N, hermitian=True)  # whose rows are exchanged
    definite = sp.csr_array(H + sp.diags_array(1 + abs(H).sum(axis=1))).astype(dtype)
    for turn, (kind, S) in enumerate((("lu", matrix(rng, dtype, N)), ("cholesky", definite), ("ldl", H)), size):
        A = am.Matrix.from_scipy(S, comm=comm, distribute=True)
        ways = ({"pc_factor_layout": "gathered"}, {"pc_factor_layout": "square", "pc_factor_block_size": 7},
                {"pc_factor_layout": "1xP", "pc_factor_checksums": True}, {"pc_factor_layout": "Px1", "pc_factor_subtrees": False, "pc_factor_block_size": 20})
        for more in ways[turn % 2 :: 2]:
            F = am.factorized(A, "lu" if kind == "lu" else "cholesky", **more)
            assert ("on rank 0)" if "gathered" in more.values() else f"on {size} ranks)") in F.solver.view(), (kind, dtype, more)
            assert F.kind == kind and F.L.shape == F.U.shape == (N, N) and F.L.dtype == F.U.dtype == dtype
            check_product(F, S)
            assert F.L.nnz + (F.U.nnz - N if kind == "lu" else 0) <= F.nnz + N
            parts = [getattr(F.L, a) for a in ("data", "indices", "indptr")] + [F.U.data, F.U.indices, F.perm_r, F.perm_c, F.R, F.C]
            mark = zlib.crc32(b"".join(np.ascontiguousarray(p).tobytes() for p in parts))
            assert all(m == mark for m in comm.allgather(mark))
            F.update(A.with_values(A.to_scipy().data * 2))
            check_product(F, sp.csr_array(S * np.dtype(dtype).type(2)))
A = am.gallery.poisson((5, 5), comm)
text = message(lambda: am.factorized(A, pc_lu_type="dense").L)
assert "has no sparse factors" in text and all(t == text for t in comm.allgather(text)), text
""",
    )


def test_the_same_bits_again(on_ranks):
    on_ranks(
        3,
        """
A = am.gallery.convection_diffusion((30, 31), (3.0, 1.0), comm=comm)
b = np.cos(np.arange(930.0))[slice(*A.row_range)]
found = []
for again in range(4):
    s = am.Solver(A, ksp="preonly", pc="lu", pc_factor_layout="square", pc_factor_block_size=8, pc_factor_checksums=again % 2 == 1)
    found += [s.solve(b) for again in range(3)]
assert all(np.array_equal(x, found[0]) for x in found)
""",
    )


def test_what_the_ranks_cannot_share_is_made_on_the_first(on_ranks):
    on_ranks(
        2,
        """
shared = dict(ksp="preonly", pc_factor_layout="square")
# singular: constants
A = am.gallery.poisson((9, 9), comm, neumann=True)
s = am.Solver(A, pc="cholesky", **shared)
b = np.cos(np.arange(81.0)); b -= b.mean()
x = s.solve(b[slice(*A.row_range)])
assert "on rank 0)" in s.view() and s.info.converged
# what is left of a pivot is zero, and its partner in another block of the top
n = 201
K = sp.csr_array(sp.block_diag([np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])] * 67))
A = am.Matrix.from_scipy(K, comm=comm, distribute=True)
s = am.Solver(A, pc="cholesky", pc_factor_subtrees=False, pc_factor_block_size=1, pc_factor_mat_ordering_type="natural", **shared)
s.solve(A.make_vector(fill=1.0))
assert any("ldl: 134 pivots within blocks" in note for note in s.info.notes), s.info.notes  # two of three: 1 - 1 1, after 1 instead of 0
assert s.info.converged and s.factors["kind"] == "ldl" and s.factors["negative"] == 67
n = 200
# pivots that no row of the block can give
K = sp.random_array((n, n), density=0.05, rng=np.random.default_rng(1)) + sp.diags_array(np.full(n, 1e-13))
K = K + 8 * sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)))
A = am.Matrix.from_scipy(sp.csr_array(K), comm=comm, distribute=True)
s = am.Solver(A, pc="lu", pc_factor_matching="false", pc_factor_subtrees=False, pc_factor_block_size=1, **shared)
s.solve(A.make_vector(fill=1.0))
assert s.info.converged and s.info.backward_error <= 1e-15
assert any("made again on rank 0" in note for note in s.info.notes), s.info.notes
# new values that are not Hermitian
A = am.gallery.poisson((9, 9), comm)
s = am.Solver(A, pc="cholesky", **shared)
values = A.to_scipy().data
if rank == 1: values[1] = 0.25
text = message(lambda: s.update(A.with_values(values)))
assert "not Hermitian" in text and all(t == text for t in comm.allgather(text)), text
# singular without a known null space
K = sp.lil_array(sp.eye_array(n)); K[7, 7] = 1; K[7, 8] = 1; K[8, 7] = 1; K[8, 8] = 1
A = am.Matrix.from_scipy(sp.csr_array(K), comm=comm, distribute=True)
text = message(lambda: am.Solver(A, pc="lu", **shared))
assert "singular to working precision" in text, text
""",
    )


def test_a_layout_that_the_ranks_do_not_fit(on_ranks):
    on_ranks(
        3,
        """
A = am.gallery.poisson((9, 9), comm)
for layout, part in (("2x2", "that is 4 ranks, and there are 3"), ("tall", "write rows x columns as in 2x3")):
    text = message(lambda: am.Solver(A, ksp="preonly", pc="lu", pc_factor_layout=layout))
    assert all(t == text for t in comm.allgather(text)) and part in text, text
text = message(lambda: am.Solver(A, ksp="preonly", pc="lu", pc_factor_layout="square", pc_factor_flop_limit=1000))
assert all(t == text for t in comm.allgather(text)) and "operations" in text and "1000 are allowed" in text, text
text = message(lambda: am.Solver(A, ksp="preonly", pc="lu", pc_factor_layout="square", pc_factor_memory_limit=1000))
assert "need" in text and "are allowed" in text, text
""",
    )
