"""``am.factorized``: solves of all kinds, and the factors themselves."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am
import asterism.scipy

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(rng, dtype, n=120, hermitian=False):
    A = sp.random_array((n, n), density=4 / n, rng=rng)
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sp.random_array((n, n), density=2 / n, rng=rng)
    if hermitian:
        A = A + A.conj().T
    A = sp.csr_array(A + sp.diags_array(rng.uniform(-1, 1, n)))
    if hermitian:
        D = sp.diags_array(10.0 ** rng.integers(-3, 4, n))
        return sp.csr_array(D @ A @ D).astype(dtype)
    return sp.csr_array((sp.diags_array(10.0 ** rng.integers(-6, 6, n)) @ A)[rng.permutation(n)]).astype(dtype)


def check_product(F, A):
    n = A.shape[0]
    Pr, Pc = np.zeros((n, n)), np.zeros((n, n))
    Pr[F.perm_r, np.arange(n)] = 1
    Pc[np.arange(n), F.perm_c] = 1
    left = Pr @ np.diag(F.R) @ A.toarray() @ np.diag(F.C) @ Pc
    L, U = F.L.toarray(), F.U.toarray()
    size = abs(L) @ abs(U)
    assert (abs(left - L @ U) <= 100 * np.finfo(A.dtype).eps * (size.max() if F.kind == "ldl" else size)).all()
    assert not np.triu(L, 1).any() and not np.tril(U, -2 if F.kind == "ldl" else -1).any()
    assert np.array_equal(np.log2(abs(F.R)), np.round(np.log2(abs(F.R))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["lu", "cholesky", "ldl"])
def test_factors_are_those_of_the_scaled_and_permuted_matrix(rng, dtype, kind):
    A = matrix(rng, dtype, hermitian=kind != "lu")
    if kind == "cholesky":
        A = sp.csr_array(A + sp.diags_array(1 + abs(A).sum(axis=1))).astype(dtype)
    F = am.factorized(A, "lu" if kind == "lu" else "cholesky")
    assert F.kind == kind and F.shape == (120, 120) and F.dtype == F.L.dtype == F.U.dtype == dtype
    check_product(F, A)
    if kind == "cholesky":
        assert abs(F.L - F.U.conj().T).max() == 0
    else:
        assert (F.L.diagonal() == 1).all()
    # dense blocks have some zeros besides
    assert 0 < F.L.nnz + (F.U.nnz - 120 if kind == "lu" else 0) <= F.nnz + 120
    assert F.memory_bytes >= F.nnz * np.dtype(dtype).itemsize


def scales(A):
    """Of rows and columns: with them the sums of magnitudes are about one (Ruiz 2001)."""
    size = abs(A).astype("float64")
    r, c = np.ones(A.shape[0]), np.ones(A.shape[1])
    for _ in range(12):
        rows, columns = r * (size @ c), c * (size.T @ r)
        r, c = r / np.sqrt(rows), c / np.sqrt(columns)
        if max(abs(np.log10(rows)).max(), abs(np.log10(columns)).max()) < 1:
            break
    return r, c


def backward_error(B, b, x, scale):
    """Componentwise (Oettli and Prager 1964); rows that nearly vanish beside norms (Arioli, Demmel and Duff 1989)."""
    small = 1000 * len(b) * np.finfo(b.dtype).eps
    B, b, x = (v.astype(np.promote_types(v.dtype, "float64")) for v in (B, b, x))
    residual, product = abs(b - B @ x), abs(B) @ abs(x)
    norms = np.multiply.outer((abs(x).T / scale).max(axis=-1), abs(B) @ scale).T
    usual = product + abs(b) > small * (norms + abs(b))
    errors = residual / np.where(usual, product + abs(b), product + norms)
    return np.where(usual, errors, 0).max(axis=0) + np.where(usual, 0, errors).max(axis=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solves(rng, dtype):
    A = matrix(rng, dtype)
    F = am.factorized(A)
    eps = np.finfo(dtype).eps
    r, c = scales(A)
    for shape in ((120,), (120, 1), (120, 70)):
        b = rng.standard_normal(shape).astype(dtype)
        for trans, B in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = F.solve(b, trans)
            assert x.shape == shape and x.dtype == dtype
            error = backward_error(B, b, x, c if trans == "N" else r)
            assert np.max(error) <= 5 * eps
            # the solver rounds the residual that it judges
            assert np.max(abs(error - F.info.backward_error)) <= 5 * eps
    assert np.array_equal(F.solve_transpose(b), F.solve(b, trans="T"))
    assert np.array_equal(F.solve_transpose(b, conjugate=True), F.solve(b, trans="H"))


def test_sparse_right_hand_sides(rng):
    A = sp.block_diag([matrix(rng, "float64", 40), matrix(rng, "float64", 30)], format="csr")
    F = am.factorized(A)
    X = sp.random_array((70, 100), density=0.05, rng=rng, format="csc")
    for b in (sp.csc_array(A @ X), sp.coo_matrix(A @ X)):
        x = F.solve(b)
        assert isinstance(x, sp.csc_array) and np.allclose(A @ x.toarray(), b.toarray())
    upper = sp.eye_array(70, 40, format="csc")
    x = F.solve(upper, trans="T")
    assert x.nnz <= 40 * 40 and np.allclose((A.T @ x).toarray(), upper.toarray())  # the other block is untouched
    assert F.solve(sp.csc_array((70, 0))).shape == (70, 0)
    with pytest.raises(am.ShapeError, match=r"b has shape \(3, 3\); \(70, k\) is needed"):
        F.solve(sp.eye_array(3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_right_hand_side(rng, dtype):
    A = matrix(rng, dtype, 30)
    for F in (am.factorized(A), am.factorized(am.factorized(A))):
        for trans in ("N", "T", "H"):
            x = F.solve(np.ones((30, 0), dtype), trans)
            assert x.shape == (30, 0) and x.dtype == dtype
    for ksp in ("gmres", "bicgstab"):
        x, info = am.solve(A, np.ones((30, 0), dtype), ksp=ksp)
        assert x.shape == (30, 0) and info.converged and info.iterations == 0 and "relative residual none" in str(info)
    assert am.factorized(A.real).solve(1j * np.ones((30, 0), A.real.dtype)).dtype.kind == "c"


def test_a_complex_b_of_a_real_matrix(rng):
    A = matrix(rng, "float64")
    b = A @ (rng.standard_normal((120, 2)) + 1j * rng.standard_normal((120, 2)))
    x = am.factorized(A).solve(b)
    assert np.allclose(A @ x, b) and np.allclose(am.factorized(A).solve(sp.csc_array(b)).toarray(), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinant_inertia_and_condition(rng, dtype):
    A = matrix(rng, dtype, n=60, hermitian=True)
    for kind, sign in (("lu", 1), ("cholesky", 1), ("cholesky", -1)):
        B = sp.csr_array(sign * A)
        F = am.factorized(B, kind)
        s, log = np.linalg.slogdet(B.toarray().astype(np.complex128))
        rough = 1e-2 if np.finfo(dtype).eps > 1e-10 else 1e-8
        assert abs(F.determinant.sign - s) < rough and F.determinant.logabsdet == pytest.approx(log, abs=rough)
        assert isinstance(F.determinant.sign, complex if np.dtype(dtype).kind == "c" else float)
        if kind == "lu":
            assert F.inertia is None
        else:
            # a congruence does not change the signs
            values = np.linalg.eigvalsh(np.diag(F.R) @ B.toarray().astype(np.complex128) @ np.diag(abs(F.R)))
            positive = int((values * np.sign(F.R[0]) > 0).sum())
            assert F.inertia == (positive, 60 - positive, 0)
        S = np.diag(F.R) @ B.toarray().astype(np.complex128) @ np.diag(F.C)
        true = np.linalg.cond(S, 1)
        assert true / 5 <= F.condition <= 1.1 * true


def test_a_negative_definite_matrix():
    A = sp.csr_array(-am.gallery.poisson((7, 7)).to_scipy())
    F = am.factorized(A, "cholesky")
    assert F.kind == "cholesky" and F.inertia == (0, 49, 0) and F.determinant.sign == -1
    check_product(F, A)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_wild_units(rng, dtype):
    A = sp.csr_array(matrix(rng, "float64") * 1e30).astype(dtype)
    F = am.factorized(A)
    check_product(F, A.astype("float64") if dtype == "float64" else A)
    x = np.ones(120, dtype)
    assert F.determinant.logabsdet == pytest.approx(np.linalg.slogdet(A.toarray().astype(float))[1], rel=1e-4)
    assert F.solve(A @ x).dtype == dtype


def test_update(rng):
    A = am.Matrix.from_scipy(matrix(rng, "float64"))
    F = am.factorized(A)
    before, L = F.determinant.logabsdet, F.L
    F.update(A.with_values(3 * A.to_scipy().data))
    assert F.solver.reused and F.determinant.logabsdet == pytest.approx(before + 120 * np.log(3))
    check_product(F, sp.csr_array(3 * A.to_scipy()))
    assert L is not F.L and np.allclose(F.solve(3 * (A @ np.ones(120))), 1)


def test_singular_and_nearly(rng):
    D = rng.standard_normal((20, 20))
    for singular in (np.ones((3, 3)), np.zeros((1, 1)), np.diag([1.0, 0, 1])):
        with pytest.raises(am.InputError, match="singular"):
            am.factorized(singular)
    # so near to a singular matrix that x may have no digit: said, and x solves a system near this one
    D[3] = D[5] + D[7] + 1e-15 * rng.standard_normal(20)
    F = am.factorized(D)
    F.solve(D @ np.ones(20))
    assert F.info.backward_error <= 1e-15 and F.condition > 1e14
    assert any("nearly singular: its condition number, after scaling, is about" in n for n in F.info.notes)
    with pytest.raises(am.ConvergenceError, match="singular to working precision: its condition number"):
        F.solve(np.ones(20))
    assert not any("nearly singular" in n for n in am.factorized(D + np.eye(20)).solver._h.notes())
    # Neumann: constants are left out of b and x
    N = np.diag(np.r_[1, 2 * np.ones(6), 1.0]) - np.eye(8, k=1) - np.eye(8, k=-1)
    b = np.arange(8.0) - 3.5
    x = am.factorized(N).solve(b)
    assert np.allclose(N @ x, b) and abs(x.sum()) < 1e-12


def test_small_sizes():
    F = am.factorized(np.array([[4.0]]))
    assert F.solve([2.0]) == [0.5] and F.L.toarray() == [[1]] and F.determinant == (1, np.log(4)) and F.condition == 1
    assert abs(F.U.toarray()[0, 0] / (F.R * F.C)[0]) == 4
    E = am.factorized(sp.csr_array((0, 0)))
    assert E.solve(np.ones(0)).shape == (0,) and E.L.shape == (0, 0) and E.determinant == (1, 0) and len(E.perm_r) == 0


def test_bad_input(rng):
    A = matrix(rng, "float64")
    F = am.factorized(A)
    bad = A.copy()
    bad.data[7] = np.nan
    narrow = am.factorized(np.eye(3, dtype="float32"))
    for call, kind, text in (
        (lambda: am.factorized(A[:, :50]), am.ShapeError, "square"),
        (lambda: am.factorized(bad), am.InputError, "NaN"),
        (lambda: am.factorized(A.astype("longdouble")), am.DtypeError, "longdouble|float128"),
        (lambda: am.factorized(A, "qr"), am.InputError, "kind is 'qr'; one of lu, cholesky"),
        (lambda: am.factorized(A, "cholesky"), am.InputError, "not Hermitian"),
        (lambda: am.factorized(am.Operator(lambda x: x, 5)), am.UnsupportedError, "made of the entries"),
        (
            lambda: am.factorized(A, pc_factor_memory_limit=100, pc_factor_mat_ordering_type="amd"),
            am.OutOfMemoryError,
            r"allowed. Use -pc_factor_mat_ordering_type nd \(less fill\), -pc_dtype float32, or an iterative method",
        ),
        (  # what is in force is not advised
            lambda: am.factorized(A.astype("float32"), pc_factor_memory_limit=100, pc_factor_mat_ordering_type="rcm"),
            am.OutOfMemoryError,
            r"Use -pc_factor_mat_ordering_type nd \(less fill\), or an iterative method",
        ),
        (lambda: am.factorized(A, pc_lu_type="dense").L, am.UnsupportedError, "no sparse factors. Use -pc_type lu"),
        (lambda: am.factorized(A, no_such=1), am.OptionError, "no_such"),
        (lambda: F.solve(np.ones(7)), am.ShapeError, r"b has shape \(7,\)"),
        (lambda: F.solve(np.ones((120, 2, 2))), am.ShapeError, r"b has shape \(120, 2, 2\)"),
        (lambda: F.solve(np.full(120, np.nan)), am.InputError, "NaN"),
        (lambda: F.solve(np.ones(120), trans="C"), am.InputError, "trans is 'C'"),
        (lambda: F.solve(np.ones(120, "longdouble")), am.DtypeError, "longdouble|float128"),
        (lambda: narrow.solve(np.ones(3)), am.DtypeError, "float64"),
        (lambda: F.update(np.eye(3)), am.ShapeError, "3"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_it_is_told_and_pickled(rng):
    A = matrix(rng, "float64")
    F = am.factorized(A, pc_factor_mat_ordering_type="amd", pc_factor_pivot_threshold=1.0)
    assert repr(F).startswith("<asterism.Factors lu of 120 x 120, float64, ") and repr(F).endswith("amd order>")
    G = pickle.loads(pickle.dumps(F))
    assert np.array_equal(G.solve(np.ones(120)), F.solve(np.ones(120)))


@pytest.mark.parametrize("n", [2, 3])
def test_on_several_ranks(on_ranks, n):
    on_ranks(
        n,
        """
import scipy.sparse as sp
A = am.gallery.poisson((14, 13), comm)
lo, hi = A.row_range
F = am.factorized(A, "cholesky")
b = np.cos(np.arange(2 * 182.0)).reshape(182, 2)[lo:hi]
assert np.allclose(A @ F.solve(b), b) and F.inertia == (182, 0, 0)
assert np.allclose(A @ F.solve(sp.csc_array(b)).toarray(), b)
assert all(f == F.determinant for f in comm.allgather(F.determinant))
assert abs(F.L - F.U.T).max() == 0 and F.L.shape == (182, 182)
text = message(lambda: F.solve(sp.csc_array(b if comm.rank else b[:2])))
assert "b has shape (2, 2)" in text, text
""",
    )


def test_real_matrices(data):
    """Every square matrix of the collection is factored, or refused with its rank; backward errors are at rounding level."""
    done = 0
    for path in sorted(data.glob("*.mtx.gz")):
        A = am.read_matrix(path)
        if A.shape[0] != A.shape[1] or A.shape[0] > 20000 or path.stem.startswith("cage"):
            continue
        try:
            F = am.factorized(A)
        except am.InputError as error:
            assert "singular" in str(error), path
            continue
        x = np.cos(np.arange(1, A.shape[0] + 1.0)).astype(A.dtype)
        for trans, b in (("N", A @ x), ("H", A.H @ x)):
            F.solve(b, trans)
            assert F.info.backward_error <= 1e-15, (path, trans, F.info)
        done += 1
    assert done > 15


@pytest.mark.parametrize("n", [1, 2])
def test_triangles_that_do_not_fit_are_refused_on_all_ranks(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.poisson((30, 30), comm)
F = am.factorized(A)
am.configure(memory_cap=10**6)  # the factors are there; L and U would need more
text = message(lambda: F.L)
assert all(t == text for t in comm.allgather(text)) and "lu: L and U on a rank need" in text, text
am.configure(memory_cap=0)
assert F.L.shape == (900, 900)
""",
    )


def test_one_rank_may_look_at_factors(on_ranks):
    script = """
A = am.gallery.poisson((40, 40), comm)
F = am.factorized(A, "cholesky")
if rank == 1: print(F, F.nnz > 1600, F.kind, F.memory_bytes > 0, F.condition > 1)
x = F.solve(np.ones(A.local_shape[0]))
F.update(2 * A)
if rank == 0: print(repr(F), F.nnz)
assert np.allclose(2 * F.solve(np.ones(A.local_shape[0])), x)
print("LOOKED")
"""
    assert on_ranks(2, script).count("LOOKED") == 2


def path(rng, n):
    """The Laplacian of a path of n nodes with random weights."""
    w = rng.uniform(0.5, 2, n - 1)
    first = sp.diags_array([np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
    return sp.csr_array(first.T @ sp.diags_array(w) @ first)


def test_inertia_and_determinant_of_singular_matrices(rng):
    L = am.gallery.poisson((10, 10)).to_scipy()
    grid = sp.csr_array(L - sp.diags_array(np.asarray(L.sum(1)).ravel()))
    for A in (grid, *(path(rng, n) for n in (20, 31, 50))):
        F = am.factorized(A, "cholesky")
        n = A.shape[0]
        assert F.inertia == (n - 1, 0, 1) and F.determinant == (0, -np.inf)
        negated = am.factorized(-A, "cholesky")
        assert negated.inertia == (0, n - 1, 1)
        with pytest.raises(RuntimeError, match="singular"):
            asterism.scipy.splu(A)
    for _ in range(5):
        two = sp.csr_array(sp.block_diag([path(rng, 20), path(rng, 30)]))
        Z = np.zeros((50, 2))
        Z[:20, 0] = Z[20:, 1] = 1
        F = am.factorized(two, "cholesky", null_space=Z)
        assert F.inertia == (48, 0, 2) and F.determinant == (0, -np.inf)
        b = two @ rng.standard_normal(50)
        assert np.linalg.norm(two @ F.solve(b) - b) <= 1e-12 * np.linalg.norm(b)


def test_a_second_null_vector_is_told(rng):
    """A free beam: constants are found, and straight lines are null vectors too. Of two parts both null vectors are found."""
    D = sp.diags_array([np.ones(48), -2 * np.ones(48), np.ones(48)], offsets=[0, 1, 2], shape=(48, 50))
    beam = sp.csr_array(D.T @ sp.diags_array(rng.uniform(0.1, 10, 48)) @ D)
    F = am.factorized(beam, "cholesky")
    F.solve(beam @ np.cos(np.arange(50.0)))
    assert any("another null vector" in note for note in F.info.notes)
    two = sp.csr_array(sp.block_diag([path(rng, 20), path(rng, 30)]))
    for A, zero in ((path(rng, 50), 1), (two, 2)):
        one = am.factorized(A, "cholesky")
        one.solve(np.zeros(50))
        assert not any("another null vector" in note for note in one.info.notes) and one.inertia[2] == zero


def test_arguments_of_other_solvers_are_told():
    with pytest.raises(am.errors.OptionError, match="no argument ksp=, as it factors"):
        am.factorized(np.eye(2), ksp="gmres")


def test_inertia_of_singular_matrices_on_ranks(on_ranks):
    script = """
L = am.gallery.poisson((101, 101)).to_scipy()
rng = np.random.default_rng(3)
for _ in range(3):
    d = rng.uniform(0.5, 2, L.shape[0])
    E = sp.diags_array(d) @ L @ sp.diags_array(d)
    off = E - sp.diags_array(E.diagonal())
    N = sp.csr_array(off - sp.diags_array(np.asarray(off.sum(1)).ravel()))
    for A, want in ((N, (10200, 0, 1)), (sp.csr_array(-N), (0, 10200, 1))):
        B = am.Matrix.from_scipy(A, comm, distribute=True)
        F = am.factorized(B, "cholesky", null_space=np.ones(B.local_shape[0]))
        assert F.inertia == want, F.inertia
        assert F.determinant == (0, -np.inf)
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3
