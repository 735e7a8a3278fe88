"""Products, sums and multiples of matrices against SciPy's, on 1 to 3 ranks; wrong factors are errors. The core is tested in C++."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]

ON_RANKS = """
import scipy.sparse as sp
rng = np.random.default_rng(5)
def whole(n, m, seed):
    S = sp.random(n, m, 0.2, format="csr", random_state=seed).astype("complex128")
    S.data += 1j * np.arange(len(S.data))
    S[3] = 0
    return sp.csr_array(S)
S, Q = whole(30, 30, 1), whole(30, 11, 2)
A = am.Matrix.from_scipy(S, comm, distribute=True)
P = am.Matrix.from_scipy(Q, comm, distribute=True)
def check(C, wanted, what):
    begin, end = C.row_range
    error = abs(C.to_scipy() - sp.csr_array(wanted)[begin:end]).max()
    assert error < 1e-13 * abs(wanted).max(), (what, error)
check(A @ P, S @ Q, "A P")
check(P.T @ A, Q.T @ S, "P^T A")
check(P.H @ A.T @ P, Q.conj().T @ S.T @ Q, "P^H A^T P")
check(A @ A.H, S @ S.conj().T, "A A^H")
check(am.ptap(A, P), Q.T @ S @ Q, "P^T A P")
check(am.rap(P.H, A, P), Q.conj().T @ S @ Q, "P^H A P")
check(A + A.T, S + S.T, "A + A^T")
check(2 * A - A / 4, 1.75 * S, "multiples")
check(P.transpose(conjugate=True), Q.conj().T, "P^H")
K = am.gallery.elasticity((3, 3, 3), comm=comm)
for C in (K + K, K.T - K, K.transpose(), K.T @ K, am.ProductPlan(K, K).matrix):
    assert C.block_size == 3 and np.array_equal(C.coordinates, K.coordinates)
plan = am.ProductPlan(P.H, A, P)
B = A.with_values(A.to_scipy().data ** 2)
T = sp.csr_array((S.data ** 2, S.indices, S.indptr), shape=S.shape)
check(plan.multiply(P.H, B, P), Q.conj().T @ T @ Q, "a plan")
assert (plan.multiply(P.H, A, P).to_scipy() != plan.matrix.to_scipy()).nnz == 0
x, info = am.solve(A.H @ A + am.Matrix.from_scipy(sp.eye_array(30, format="csr") + 0j, comm, distribute=True), P.make_vector(fill=1.0), rtol=1e-8)
assert info.converged
print("done", flush=True)
"""


@pytest.mark.parametrize("dtype", DTYPES)
def test_against_scipy(dtype):
    S = sp.random(60, 60, 0.1, format="csr", random_state=3).astype(dtype)
    Q = sp.random(60, 9, 0.3, format="csr", random_state=4).astype(dtype)
    A, P = am.Matrix.from_scipy(S), am.Matrix.from_scipy(Q)
    atol = 1e-5 if np.dtype(dtype).itemsize in (4, 8) and dtype != "float64" else 1e-13
    for found, wanted in [
        (A @ P, S @ Q),
        (P.T @ A, Q.T @ S),
        (P.T @ A.T, (S @ Q).T),
        (am.ptap(A, P), Q.T @ S @ Q),
        (A + A, 2 * S),
        (A - 3 * A, -2 * S),
        (-A / 2, -0.5 * S),
        (np.float32(2) * A, 2 * S),
        (A.transpose(), S.T),
        (A.T.T, S),
        (A.H.H, S),
        (sum([A, A, A]), 3 * S),
        (A.T + A / 2, S.T + S / 2),
        (A - A.T / 4, S - S.T / 4),
        (-A.T, -S.T),
    ]:
        assert found.dtype == dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found.toarray(), wanted.toarray(), atol=atol)
    assert (1j * A).dtype == np.result_type(dtype, "complex64")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_on_ranks(on_ranks, ranks):
    assert on_ranks(ranks, ON_RANKS).count("done") == ranks


def test_a_plan_of_many_factors():
    A = am.gallery.poisson((7, 7))
    S = A.to_scipy()
    plan = am.ProductPlan(A, A.T, A, A)
    assert abs(plan.matrix.to_scipy() - S @ S.T @ S @ S).max() < 1e-12
    B = A.with_values(A.to_scipy().data * 3)
    assert abs(plan.multiply(B, A.T, B, A).to_scipy() - 9 * plan.matrix.to_scipy()).max() < 1e-11
    assert "4 factors" in repr(plan)


@pytest.mark.parametrize("columns", [256, 257, 70_000])  # places in a row of the product take 1, 2 and 4 bytes
def test_a_plan_with_long_rows(columns):
    rng = np.random.default_rng(1)
    A = sp.random_array((300, 300), density=0.02, rng=rng, format="csr") + sp.eye_array(300, format="csr")
    B = sp.csr_array(
        np.outer(rng.standard_normal(300), np.arange(columns) % 7 < 3)
        if columns > 300
        else rng.standard_normal((300, columns))
    )
    plan = am.ProductPlan(am.Matrix.from_scipy(A), am.Matrix.from_scipy(B))
    C = plan.multiply(am.Matrix.from_scipy(3.0 * A), am.Matrix.from_scipy(2.0 * B))
    assert abs(C.to_scipy() - 6.0 * (A @ B)).max() <= 1e-13 * abs(A @ B).max()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_alike_and_rows_that_are_not(dtype):
    """Rows of a grid, rows of a kind each, more than is held of them, and the grid again; rows without entries among both."""
    rng = np.random.default_rng(2)
    n = 20_000
    band = sp.diags_array([1.0, 2.0, -1.0, 3.0], offsets=[-7, -1, 0, 5], shape=(n, n), format="csr")
    wild = sp.random_array((6000, n), density=100 / n, rng=rng, format="csr")
    kept = sp.diags_array(np.where(np.arange(n) % 17 == 3, 0.0, 1.0), format="csr")
    B = kept @ sp.diags_array([np.ones(n)] * 9, offsets=range(-4, 5), shape=(n, n), format="csr")
    A = sp.vstack([band, wild, sp.csr_array((5, n)), kept @ band], format="csr")

    def values(S):
        S = sp.csr_array(S)
        S.eliminate_zeros()
        S = S.astype(dtype)
        S.data[:] = rng.standard_normal(S.nnz)
        if S.dtype.kind == "c":
            S.data += 1j * rng.standard_normal(S.nnz)
        return S

    A, B = values(A), values(B)
    old = am.Matrix.from_scipy(A), am.Matrix.from_scipy(B)
    plan = am.ProductPlan(*old)
    new = old[0].with_values(old[0].to_scipy().data * 3), old[1].with_values(old[1].to_scipy().data[::-1].copy())
    for factors in (old, new, old):
        S, Q = (M.to_scipy() for M in factors)
        wanted = sp.csr_array(S @ Q)
        wanted.sort_indices()
        one_go, again = (factors[0] @ factors[1]).to_scipy(), plan.multiply(*factors).to_scipy()
        for found in (one_go, again):
            np.testing.assert_array_equal(found.indptr, wanted.indptr)
            np.testing.assert_array_equal(found.indices, wanted.indices)
            bound = abs(S) @ abs(Q)
            error = abs(found - wanted) - 20 * np.finfo(dtype).eps * bound
            assert error.max() <= 0
        np.testing.assert_array_equal(one_go.data, again.data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "entries", [1, 2, 7, 8, 9, 16, 17, 40, 60, 61, 64, 65]
)  # rows of vectors, whole or not, and longer ones
def test_rows_of_every_length(dtype, entries):
    """Rows alike, and rows that are not; single ones and several with the same columns."""
    rng = np.random.default_rng(entries)
    n = 700
    B = sp.diags_array([np.ones(n)] * entries, offsets=range(-3, entries - 3), shape=(n, n), format="csr")
    B = sp.csr_array(
        sp.vstack([B[: n // 2], sp.csr_array((n - n // 2, n))]) + sp.random_array((n, n), density=0.001, rng=rng)
    )
    A = sp.diags_array([1.0, 2.0, -1.0, 3.0, 1.0], offsets=[-9, -1, 0, 1, 30], shape=(n, n), format="csr")
    A = A[
        np.sort(np.append(np.arange(n), [5, 6, 6, 100, 101, 101, 101, 400]))
    ]  # some have the columns of the one before
    S, Q = (sp.csr_array(M, dtype=dtype) for M in (A, B))
    for M in (S, Q):
        M.data[:] = rng.standard_normal(M.nnz)
        if M.dtype.kind == "c":
            M.data += 1j * rng.standard_normal(M.nnz)
    one, other = am.Matrix.from_scipy(S), am.Matrix.from_scipy(Q)
    plan = am.ProductPlan(one.with_values(0 * S.data), other)
    again, whole = plan.multiply(one, other).to_scipy(), (one @ other).to_scipy()
    np.testing.assert_array_equal(again.data, whole.data)
    bound = 20 * np.finfo(dtype).eps * (abs(S) @ abs(Q))
    assert (abs(again - S @ Q) - bound).max() <= 0


def test_a_plan_outlives_its_factors():
    A = am.gallery.poisson((40, 40))
    values = A.to_scipy().data.copy()
    plan = am.ProductPlan(A, A)
    wanted = plan.matrix.to_scipy().data.copy()
    del A
    for factor in (1.0, 2.0):
        again = am.gallery.poisson((40, 40)).with_values(factor * values)
        np.testing.assert_array_equal(plan.multiply(again, again).to_scipy().data, factor**2 * wanted)


def test_products_of_a_plan_stay_as_they_are():
    """Its memory is used again only when nobody has the product, nor an array of it."""
    A = am.gallery.poisson((30, 30))
    plan = am.ProductPlan(A, A)
    S = A.to_scipy()
    made, arrays = [], []
    for i in range(1, 8):
        B = A.with_values(i * A.to_scipy().data)
        C = plan.multiply(B, A)
        (made if i % 2 else arrays).append((i, C if i % 2 else C.to_scipy()))
        del C
    for i, C in made + arrays:
        C = C.to_scipy() if hasattr(C, "to_scipy") else C
        assert abs(C - i * (S @ S)).max() < 1e-11
    assert abs(plan.matrix.to_scipy() - S @ S).max() < 1e-12


def test_what_is_known_of_the_rows_stays():
    """amg takes half as many iterations again without coordinates, and says nothing."""
    K = am.gallery.elasticity((3, 3, 3))
    n = K.shape[0]
    one, none = am.Matrix.from_scipy(sp.eye_array(n)), am.Matrix.from_scipy(sp.csr_array((n, n)))
    plan = am.ProductPlan(K.T, K)
    of_all = [
        K + K,
        none + K,
        K - one,
        2 * K,
        K.transpose(),
        K.T + K,
        one + K.H,
        K @ K,
        K.T @ K,
        K.T @ one @ K,
        K @ K.T,
    ]
    for C in [*of_all, one @ K, plan.matrix, plan.multiply(K.T, 2 * K)]:
        assert C.block_size == 3
        np.testing.assert_array_equal(C.coordinates, K.coordinates)
    assert (K @ one).block_size == 3 and (K @ one).coordinates is None  # which maps other vectors to zero
    P = am.Matrix.from_scipy(sp.csr_array(np.ones((n, 7))))
    assert am.ptap(K, P).block_size == (P.T @ K).block_size == (P + P).block_size == P.transpose().block_size == 1
    modes = am.Matrix.from_scipy(sp.eye_array(6), near_null_space=np.arange(1.0, 7.0))
    np.testing.assert_array_equal((modes.T + modes).near_null_space[:, 0], np.arange(1.0, 7.0))


@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_multiples_keep_a_symmetric_storage(dtype, kind):
    S = sp.random(40, 40, 0.2, format="csr", random_state=3).astype(dtype)
    if np.iscomplexobj(S):
        S = S * np.exp(np.arange(1, 41) * 1j)[:, None].astype(dtype)
    S = sp.csr_array(S + (S.conj() if kind == "hermitian" else S).T).astype(dtype)
    half = am.Matrix.from_scipy(S).with_storage(kind)
    for a in (2, -0.5, 3 + 0j, 2j):
        found = a * half
        general = kind == "hermitian" and np.iscomplexobj(S) and a == 2j  # that is not Hermitian
        storage = "symmetric" if a == 2j else kind
        assert found.storage == ("csr" if general else storage)
        assert np.iscomplexobj(found.to_scipy()) == (np.iscomplexobj(S) or a == 2j)
        assert abs(found.to_scipy() - S * (a if a == 2j else np.real(a))).max() == 0


def test_multiples_are_rounded_once():
    v = np.array([1e-20, 3e-20, 1e-5], dtype="float32")
    S = sp.csr_array((v, np.arange(3), np.arange(4)))
    for dtype in ("float32", "complex64"):
        found = am.Matrix.from_scipy(S.astype(dtype)) * 1e39
        np.testing.assert_array_equal(found.to_scipy().data[:2], (v[:2].astype("float64") * 1e39).astype(dtype))
    wide = am.Matrix.from_scipy(sp.csr_array(np.array([[1e308 + 1j]]))) * 10 * 2
    assert wide.to_scipy().data[0].imag == 20  # beside an infinite real part
    assert (am.Matrix.from_scipy(S) / (2 + 0j)).dtype == np.float32


@pytest.mark.parametrize("a", [float("inf"), float("nan"), -np.inf, complex(0, np.inf), np.float32("nan")])
def test_factors_that_are_not_finite_are_errors(a):
    A = am.gallery.poisson((4,))
    for call in (lambda: A * a, lambda: A / a, lambda: a * A.T):
        with pytest.raises(am.InputError, match="would not be finite"):
            call()


@pytest.mark.parametrize("a", [0, 0j, 1e-309, 5e-324, 1e-309j, np.float64(1e-310)])
def test_divisors_whose_inverse_is_not_finite_are_errors(a):
    with pytest.raises(am.InputError, match="A / a: a is .* would not be finite"):
        am.gallery.poisson((4,)) / a


def test_misuse_is_an_error():
    A, P = am.gallery.poisson((4, 4)), am.Matrix.from_scipy(sp.csr_array(np.ones((16, 3))))
    plan = am.ProductPlan(P.T, A)
    operator = am.Operator(lambda x: x, 16)
    for call, kind, text in [
        (lambda: P @ P, am.ShapeError, "a 16 x 3 matrix times a 16 x 3 matrix"),
        (lambda: A + P, am.ShapeError, "sum of a 16 x 16 and a 16 x 3 matrix"),
        (lambda: A @ A.to_scipy(), am.UnsupportedError, "Matrix.from_scipy"),
        (lambda: A @ operator, am.UnsupportedError, "no entries"),
        (lambda: A.T @ operator, am.UnsupportedError, "no entries"),
        (lambda: A * np.ones(16), am.UnsupportedError, "Use A @ x"),
        (lambda: A * A, am.UnsupportedError, "Use A @ x"),
        (lambda: np.ones(16) @ A.T, am.UnsupportedError, "x @ A.T of a ndarray .* Use A @ x"),
        (lambda: A.to_scipy() @ A.H, am.UnsupportedError, "x @ A.H of a csr_array .* Use \\(A @ x.conj"),
        (lambda: A / A, am.UnsupportedError, "A number is needed"),
        (lambda: A + 1, am.UnsupportedError, "A \\+ B with a int"),
        (lambda: am.ptap(A, P.T), TypeError, "am.rap takes transposes"),
        (lambda: am.rap(P.T, A, 3), TypeError, "factor 3 is a int"),
        (lambda: am.ProductPlan(A), TypeError, "1 factor"),
        (lambda: am.ProductPlan(), TypeError, "0 factor"),
        (lambda: plan.multiply(P, A), TypeError, "factor 1 is plain"),
        (lambda: plan.multiply(P.T), am.InputError, "1 matrices for 2 factors"),
        (lambda: plan.multiply(P.T, 2 * A @ A), am.InputError, "factor 2 has entries at other places"),
        (lambda: plan.multiply(P.T, 1j * A), am.DtypeError, "factor 2 is complex128"),
    ]:
        with pytest.raises(kind, match=text):
            call()
