"""Factors of other libraries: ``-pc_factor_mat_solver_type``."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]
PEERS = ["umfpack", "superlu", "mumps", "cholmod"]
ORDERINGS = ["auto", "natural", "amd", "rcm"]


def kind_of(peer):
    return "cholesky" if peer == "cholmod" else "lu"


def is_here(peer):
    A = am.gallery.poisson((4, 4))
    try:
        am.Solver(A, ksp="preonly", pc=kind_of(peer), pc_factor_mat_solver_type=peer)
    except am.UnsupportedError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module", params=PEERS)
def peer(request):
    """A library that is installed."""
    if why := is_here(request.param):
        pytest.skip(why)
    return request.param


def matrix(peer, n, dtype, rng):
    """With zeros on the diagonal, except for cholmod: of a Hermitian positive definite kind."""
    A = sp.random_array((n, n), density=min(1, 4 / n), rng=rng)
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sp.random_array((n, n), density=min(1, 2 / n), rng=rng)
    if peer == "cholmod":
        A = A + A.conj().T
        return sp.csr_array(A + sp.diags_array(abs(A).sum(axis=0) + 0.5)).astype(dtype)
    return sp.csr_array((A + sp.diags_array(rng.uniform(0.5, 1, n)))[rng.permutation(n)]).astype(dtype)


def backward_error(A, x, b):
    wide = np.clongdouble if A.dtype.kind == "c" else np.longdouble
    A, x, b = (np.asarray(a).astype(wide) for a in (A.toarray(), x, b))
    return float(np.max(abs(b - A @ x) / (abs(A) @ abs(x) + abs(b))))


def refused(peer, dtype):
    return peer in ("umfpack", "cholmod") and np.dtype(dtype).itemsize < (16 if np.dtype(dtype).kind == "c" else 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 230])
def test_answers_transposes_determinant_and_new_values(peer, dtype, n, rng):
    A = matrix(peer, n, dtype, rng)
    b = rng.standard_normal((n, 3)).astype(dtype)
    more = {"ksp": "preonly", "pc": kind_of(peer), "pc_factor_mat_solver_type": peer}
    if refused(peer, dtype):
        with pytest.raises(am.DtypeError, match=f"{peer} takes float64 and complex128, .*{dtype}.*-pc_dtype float64"):
            am.Solver(A, **more)
        more["pc_dtype"] = "float64"
    s = am.Solver(A, **more)
    level = 20 * np.finfo(dtype).eps

    def check(B):
        for C, x in (
            (B, s.solve(b)),
            (B.T, s.solve_transpose(b)),
            (B.conj().T, s.solve_transpose(b, conjugate=True)),
            (B, s.solve(b[:, 0])[:, None]),
        ):
            assert s.info.converged and backward_error(C, x, b[:, : x.shape[1]]) <= level
        f = s.factors
        sign, log = np.linalg.slogdet(B.toarray().astype("complex128"))
        rough = 3e-3 if np.finfo(dtype).eps > 1e-10 and "pc_dtype" not in more else 1e-8
        assert abs(f["sign"] - sign) <= rough and abs(f["logabsdet"] - log) <= rough * (1 + abs(log))
        assert peer in f["solver_type"].lower() and f["kind"] == kind_of(peer) and f["entries"] >= n and not f["dense"]
        assert f["memory_bytes"] >= 4 * n

    check(A)
    text = s.view()
    assert f"{kind_of(peer)} by {peer} (sparse, {n} rows" in text and "made by" in text and "ordering: " in text
    C = A.copy()
    C.data = C.data * 3
    s.update(C)
    assert s.reused
    check(C)
    condition = np.linalg.cond(A.toarray().astype("complex128"), 1)
    assert s.factors["condition"] <= 1.01 * condition * n  # of the scaled matrix, from below


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_orderings(peer, ordering, rng):
    A = am.gallery.poisson((17, 13, 3)).to_scipy()
    s = am.Solver(
        A, ksp="preonly", pc=kind_of(peer), pc_factor_mat_solver_type=peer, pc_factor_mat_ordering_type=ordering
    )
    b = rng.standard_normal(663)
    assert backward_error(A, s.solve(b)[:, None], b[:, None]) <= 1e-15
    said = s.factors["ordering"]
    assert said == ordering if ordering != "auto" else said not in ("", "auto")
    assert f"ordering: {said}" in s.view()
    if ordering == "natural":
        best = am.Solver(A, pc=kind_of(peer), pc_factor_mat_solver_type=peer)
        assert s.factors["entries"] > best.factors["entries"]


def test_cholesky_has_the_fill_of_ours(rng):
    if why := is_here("cholmod"):
        pytest.skip(why)
    A = am.gallery.poisson((12, 12, 12))
    entries = {
        peer: am.Solver(A, pc="cholesky", pc_factor_mat_solver_type=peer, pc_factor_mat_ordering_type="amd").factors[
            "entries"
        ]
        for peer in ("asterism", "cholmod")
    }
    assert 0.6 <= entries["asterism"] / entries["cholmod"] <= 1.25


def test_no_rows(peer):
    s = am.Solver(sp.csr_array((0, 0)), ksp="preonly", pc=kind_of(peer), pc_factor_mat_solver_type=peer)
    assert s.solve(np.zeros(0)).shape == (0,) and s.factors["sign"] == 1 and s.factors["logabsdet"] == 0


def test_pivot_threshold_is_the_peers(rng):
    for peer in ("umfpack", "superlu", "mumps"):
        if is_here(peer):
            continue
        A = sp.csr_array(sp.random_array((400, 400), density=0.01, rng=rng) + sp.diags_array(np.full(400, 0.05)))
        entries = [
            am.Solver(A, pc="lu", pc_factor_mat_solver_type=peer, pc_factor_pivot_threshold=t).factors["entries"]
            for t in (0.001, 1.0)
        ]
        assert entries[0] != entries[1], peer


def test_refined_as_a_preconditioner_and_badly_scaled(peer, rng):
    n = 60
    A = matrix(peer, n, "float64", rng)
    d = sp.diags_array(10.0 ** rng.uniform(-60, 60, n))
    B = sp.csr_array(d @ A @ d)
    s = am.Solver(B, ksp="preonly", pc=kind_of(peer), pc_factor_mat_solver_type=peer)
    b = abs(d @ rng.standard_normal(n))
    assert backward_error(B, s.solve(b)[:, None], b[:, None]) <= 1e-14
    g = am.Solver(A, ksp="gmres", pc=kind_of(peer), pc_factor_mat_solver_type=peer, rtol=1e-12)
    g.solve(np.ones(n))
    assert g.info.converged and g.info.iterations <= 2


def test_singular_matrices_are_refused(peer, rng):
    more = {"ksp": "preonly", "pc": kind_of(peer), "pc_factor_mat_solver_type": peer}
    A = sp.lil_array(matrix(peer, 40, "float64", rng))
    A[7] = 0
    A[:, 7] = 0
    with pytest.raises(
        am.AsterismError, match=r"structural rank is 39 of 40|not positive definite: the pivot of row 7"
    ):
        am.Solver(sp.csr_array(A), ksp_check_input=False, **more)
    free = am.gallery.poisson((9,)).to_scipy().tolil()
    free[0, 0] = free[8, 8] = 1
    with pytest.raises(am.AsterismError, match="entries of each row sum to zero.*-pc_factor_mat_solver_type asterism"):
        am.Solver(sp.csr_array(free), **{**more, "ksp_null_space": "none"})
    with pytest.raises(am.UnsupportedError, match=f"{peer} takes no null space"):
        am.Solver(sp.csr_array(free), null_space=np.ones(9), **more)


def test_an_update_that_fails_leaves_no_factors(peer, rng):
    A = matrix(peer, 30, "float64", rng)
    s = am.Solver(A, ksp="preonly", pc=kind_of(peer), pc_factor_mat_solver_type=peer, ksp_check_input=False)
    zero = A.copy()
    zero.data = zero.data * 0
    with pytest.raises(am.AsterismError):
        s.update(zero)
    with pytest.raises(am.InputError, match="the last update"):
        s.solve(np.ones(30))
    s.update(A)
    s.solve(np.ones(30))
    assert s.info.converged


def test_an_indefinite_matrix_is_ours():
    if why := is_here("cholmod"):
        pytest.skip(why)
    A = sp.csr_array(am.gallery.poisson((9, 9)).to_scipy() - 3 * sp.eye_array(81))
    for n in (9, 40):  # by columns, and by supernodes
        A = sp.csr_array(am.gallery.poisson((n, n)).to_scipy() - 3 * sp.eye_array(n * n))
        with pytest.raises(
            am.BreakdownError, match=r"cholmod: the matrix is not positive definite: the pivot of row \d+"
        ):
            am.Solver(A, pc="cholesky", pc_factor_mat_solver_type="cholmod")
    assert am.Solver(A, pc="cholesky").factors["kind"] == "ldl"


@pytest.mark.parametrize(
    "options, text",
    [
        ("-pc_type lu -pc_factor_mat_solver_type cholmod", "CHOLMOD factors Hermitian matrices: -pc_type cholesky"),
        ("-pc_type cholesky -pc_factor_mat_solver_type umfpack", "offered for -pc_type lu"),
        ("-pc_type lu -pc_factor_mat_solver_type superlu_dist", "asterism shares factors among the ranks"),
        ("-pc_type lu -pc_factor_mat_solver_type umfpak", "Did you mean 'umfpack'"),
        ("-pc_type lu -pc_factor_mat_solver_type umfpack -pc_factor_matching true", "pc_factor_matching means nothing"),
        (
            "-pc_type lu -pc_factor_mat_solver_type umfpack -pc_factor_block_size 3",
            "block_size means nothing to umfpack",
        ),
        ("-pc_type lu -pc_factor_mat_solver_type umfpack -pc_factor_layout 1x1", "umfpack factors on rank 0, so '1x1'"),
        ("-pc_type lu -pc_factor_mat_solver_type umfpack -pc_lu_type dense", "umfpack has no dense factors"),
        ("-pc_type cholesky -pc_factor_mat_solver_type cholmod -pc_cholesky_type indefinite", "cholmod has no L D L"),
        (
            "-pc_type cholesky -pc_factor_mat_solver_type cholmod -pc_factor_pivot_threshold 1",
            "means nothing to cholmod",
        ),
    ],
)
def test_what_a_peer_does_not_have_is_refused(options, text):
    with pytest.raises(am.OptionError, match=text):
        am.Solver(am.gallery.poisson((5, 5)), options, ksp="preonly")


def test_memory_is_refused_before_it_is_taken(peer):
    A = am.gallery.poisson((20, 20))
    more = {"ksp": "preonly", "pc": kind_of(peer), "pc_factor_mat_solver_type": peer, "pc_factor_memory_limit": 1000}
    if peer == "superlu":
        with pytest.raises(am.OptionError, match="superlu does not say before how much memory"):
            am.Solver(A, **more)
        return
    with pytest.raises(am.OutOfMemoryError, match=f"{peer}: the factors of 400 rows need .* are allowed"):
        am.Solver(A, **more)


ABSENT = """
import asterism as am
try:
    am.Solver(am.gallery.poisson((5, 5)), ksp="preonly", pc={pc!r}, pc_factor_mat_solver_type={peer!r})
except am.UnsupportedError as e:
    assert "-pc_factor_mat_solver_type {peer}: the library was not found" in str(e) and {reason!r} in str(e), e
    assert {package!r} in str(e) and "ASTERISM_{name}" in str(e), e
else:
    raise SystemExit("no error")
"""


@pytest.mark.parametrize("path, reason", [("none", "is none"), ("/no/such.so", "cannot open")])
@pytest.mark.parametrize(
    "peer, package",
    [
        ("umfpack", "libsuitesparse-dev"),
        ("cholmod", "libsuitesparse-dev"),
        ("superlu", "libsuperlu-dev"),
        ("mumps", "libmumps-seq-5.5"),
    ],
)
def test_a_missing_library_names_the_package(peer, package, path, reason):
    name = peer.upper()
    script = ABSENT.format(pc=kind_of(peer), peer=peer, reason=reason, package=package, name=name)
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, f"ASTERISM_{name}": path}, timeout=120
    )


def test_another_library_under_its_name():
    script = """
import asterism as am
for peer in ("umfpack", "superlu", "mumps"):
    try:
        am.Solver(am.gallery.poisson((5, 5)), ksp="preonly", pc="lu", pc_factor_mat_solver_type=peer)
    except am.UnsupportedError as e:
        assert "libm.so.6" in str(e) and "has no " in str(e), e
    else:
        raise SystemExit("no error")
"""
    names = {f"ASTERISM_{p.upper()}": "libm.so.6" for p in PEERS}
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, **names}, timeout=120)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_on_ranks_with_empty_ones(on_ranks, n):
    on_ranks(
        n,
        f"""
import scipy.sparse as sp
os.environ["ASTERISM_MUMPS"] = "none"
for rows in ((1, 2, 40), (11, 0, 30), (2, 2, 0)):
    rows = rows[:n] if (n := {n}) > 1 else rows[2:] if rows[2] else rows[:1]
    own = rows[rank] if rank < len(rows) else 0
    total = sum(comm.allgather(own))
    for dtype in ("float32", "float64", "complex64", "complex128"):
        S = am.gallery.poisson((total,)).to_scipy().astype(dtype)
        lo = sum(comm.allgather(own)[:rank])
        A = am.Matrix.from_scipy(S[lo : lo + own], comm=comm)
        b = (np.arange(total) + 1.0).astype(dtype)[lo : lo + own]
        for pc, peer in (("lu", "umfpack"), ("lu", "superlu"), ("cholesky", "cholmod"), ("lu", "mumps")):
            more = dict(ksp="preonly", pc=pc, pc_factor_mat_solver_type=peer)
            if peer in ("umfpack", "cholmod") and dtype in ("float32", "complex64"):
                assert message(lambda: am.Solver(A, **more)).startswith("DtypeError")
                more["pc_dtype"] = "float64"
            try:
                s = am.Solver(A, **more)
            except am.UnsupportedError as e:  # on all ranks, with the package
                texts = comm.allgather(str(e))
                assert all(t == texts[0] and "Debian" in t for t in texts), texts
                continue
            assert peer != "mumps"
            for x in (s.solve(b), s.solve_transpose(b)):
                assert s.info.converged and s.info.backward_error <= (1e-6 if dtype in ("float32", "complex64") else 1e-15)
                whole = np.concatenate(comm.allgather(x))
                assert abs(S @ whole - np.arange(total) - 1).max() <= (1e-2 if S.dtype.itemsize < 16 and dtype != "float64" else 1e-9)
            f = s.factors
            assert all(repr(g) == repr(f) for g in comm.allgather(f)) and peer in f["solver_type"].lower()
            s.update(A.with_values(A.to_scipy().data * 2))
            assert s.reused and abs(s.solve(2 * b) - x).max(initial=0) <= 1e-3 * max(1, abs(whole).max())
            if size > 1:
                assert "on rank 0)" in s.view()
                text = message(lambda: am.Solver(A, **more, pc_factor_layout="square"))
                assert f"{{peer}} factors on rank 0, so 'square' is not possible" in text
""",
    )
