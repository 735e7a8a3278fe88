"""SciPy's own tests of its direct solvers, run on ours, and what they leave out."""

import numpy as np
import pytest
from scipy_suites import named_tests, suite_on

import asterism as am
import asterism.scipy as ours

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")
theirs = pytest.importorskip("scipy.sparse.linalg._dsolve")

NAMES = ["factorized", "splu", "spsolve", "spsolve_triangular"]
suite = suite_on(ours, NAMES, theirs, "scipy.sparse.linalg._dsolve.tests.test_linsolve")
globals().update({k: v for k, v in named_tests(suite).items() if k not in ("TestSplu", "TestGstrsErrors")})


class TestSplu(suite.TestSplu):
    # these test spilu, which asterism.scipy does not have: pc="ilut" is the way to it
    test_spilu_smoketest = test_spilu_drop_rule = test_spilu_nnz0 = test_superlu_dlamch_i386_nan = None
    # that perm_r and perm_c borrow memory from an object in C
    test_lu_refcount = None

    def test_lu_attr(self, monkeypatch):
        # theirs expects the rounding of partial pivoting, which is what a threshold of 1 asks for
        monkeypatch.setattr(suite, "splu", lambda A: ours.splu(A, diag_pivot_thresh=1.0))
        super().test_lu_attr()

    def test_natural_permc(self):
        # theirs also expects that NATURAL leaves all columns where they are; ours makes a postorder, which has the same fill
        A = sparse.random_array((500, 500), density=0.01, rng=np.random.default_rng(42)) + 501 * sparse.eye_array(500)
        x = np.linspace(0, 1, 500)
        natural, usual = ours.splu(A, permc_spec="NATURAL"), ours.splu(A)
        assert natural.nnz > 1.2 * usual.nnz
        assert np.allclose(natural.solve(A @ x), x)

    def test_bad_inputs(self):
        # theirs tests spilu too
        A = self.A.tocsc()
        with pytest.raises(ValueError, match="can only factor square matrices"):
            ours.splu(A[:, :4])
        lu = ours.splu(A)
        for shape in ((42,), (42, 3), (self.n, 3, 9)):
            with pytest.raises(ValueError, match=r"incompatible size|too deep"):
                lu.solve(np.ones(shape))
        for dtype in (np.complex64, np.complex128):
            with pytest.raises(TypeError, match="Cannot cast array data"):
                lu.solve(np.ones(self.n, dtype))

    def test_threads_parallel(self):
        # theirs counts spilu too
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(20) as pool:
            for done in [pool.submit(self.test_splu_basic) for _ in range(20)]:
                done.result()


def system(rng, dtype, n=150):
    A = sparse.random_array((n, n), density=4 / n, rng=rng) + sparse.diags_array(rng.uniform(2, 3, n))
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sparse.random_array((n, n), density=2 / n, rng=rng)
    A = sparse.diags_array(10.0 ** rng.integers(-8, 8, n)) @ A  # rows in wild units
    return sparse.csc_array(A.tocsr()[rng.permutation(n)]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_factors_are_those_of_the_matrix(rng, dtype):
    A = system(rng, dtype)
    lu = ours.splu(A)
    assert lu.L.dtype == lu.U.dtype == dtype and lu.shape == A.shape and lu.nnz == lu.L.nnz + lu.U.nnz
    assert np.array_equal(lu.L.diagonal(), np.ones(150)) and sparse.triu(lu.L, 1).nnz == sparse.tril(lu.U, -1).nnz == 0
    permuted = sparse.csr_array(A)[np.argsort(lu.perm_r)][:, np.argsort(lu.perm_c)]
    error, size = abs(lu.L @ lu.U - permuted), abs(lu.L) @ abs(lu.U)
    assert (error.toarray() <= 100 * np.finfo(dtype).eps * size.toarray()).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.filterwarnings("ignore:CSC or CSR matrix format is required")
def test_same_answers_as_scipy(rng, dtype):
    A = system(rng, dtype)
    eps = np.finfo(dtype).eps

    def solves(B, x, b):
        return (abs(b - B @ x) <= 100 * eps * (abs(B) @ abs(x) + abs(b))).all()

    b = A @ rng.standard_normal((150, 3)).astype(dtype)
    for of_b in (b, b[:, 0], b[:, :1], sparse.csc_array(b[:, :1])):
        x, y = ours.spsolve(A, of_b), linalg.spsolve(A, of_b)
        dense = of_b.toarray() if sparse.issparse(of_b) else of_b
        assert x.shape == y.shape and x.dtype == y.dtype and solves(A, x, dense.reshape(x.shape))
    B = sparse.csc_array(b * (rng.random((150, 3)) < 0.3))
    x, y = ours.spsolve(A, B), linalg.spsolve(A, B)
    assert type(x) is type(y) and x.dtype == y.dtype and solves(A, x.toarray(), B.toarray())
    T = sparse.tril(A, format="csr") + sparse.diags_array(abs(A).sum(axis=1)).astype(dtype)
    for lower, of_T in ((True, T), (False, T.T), (False, sparse.csc_array(T.T)), (True, T.toarray())):
        for of_b in (b, b[:, 0], b[::-1, 1]):
            x, y = (f(of_T, of_b, lower=lower) for f in (ours.spsolve_triangular, linalg.spsolve_triangular))
            assert x.shape == y.shape and x.dtype == y.dtype and solves(of_T, x, of_b)
    assert solves(A, ours.factorized(A)(b[:, 0]), b[:, 0])
    assert solves(A.conj().T, ours.splu(am.Matrix.from_scipy(A)).solve(b[:, 0], "H"), b[:, 0])


def test_arguments():
    A = sparse.csc_array(am.gallery.poisson((20, 20)).to_scipy())
    b = np.ones(400)
    for permc in ("NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD", None):
        assert np.allclose(A @ ours.spsolve(A, b, permc), b)
    # a larger threshold delays more pivots to larger fronts
    weak = sparse.random_array((200, 200), density=0.02, rng=np.random.default_rng(1)) + 0.3 * sparse.eye_array(200)
    loose, tight = (ours.splu(weak, diag_pivot_thresh=t) for t in (0.01, 1))
    assert loose.nnz < 0.9 * tight.nnz and abs(tight.L).max() < abs(loose.L).max()
    assert np.array_equal(
        ours.splu(A, options={"ColPerm": "MMD_AT_PLUS_A"}).perm_c, ours.splu(A, "MMD_AT_PLUS_A").perm_c
    )
    for options in ({"Equil": False, "IterRefine": "SINGLE"}, {"SymmetricMode": True, "DiagPivotThresh": 0.0}):
        assert np.allclose(A @ ours.splu(A, options=options).solve(b), b)
    N = sparse.csc_array(np.where(np.eye(4) > 0, np.nan, 0))
    for bad, kind, text in (
        (lambda: ours.splu(A, "AMD"), ValueError, "permc_spec is 'AMD'; one of NATURAL"),
        (lambda: ours.splu(A, options={"Trans": True}), am.UnsupportedError, "options has Trans; of SuperLU's ColPerm"),
        (lambda: ours.splu(A).solve(sparse.csc_array(b[:, None])), ValueError, r"rhs is a csc_array.*toarray\(\)"),
        (lambda: ours.splu(N), ValueError, "NaN"),
        (lambda: ours.spsolve(A, np.ones(3)), ValueError, r"b has shape \(3,\)"),
        (lambda: ours.spsolve_triangular(A, b), np.linalg.LinAlgError, "A is not lower triangular"),
        (lambda: ours.spsolve_triangular(sparse.eye_array(3), np.ones((3, 1, 1))), ValueError, "b has shape"),
        (lambda: ours.splu(np.ones((3, 3))), RuntimeError, "singular, or to working precision"),
    ):
        with pytest.raises(kind, match=text):
            bad()


def test_small_sizes():
    assert ours.spsolve(sparse.csc_array([[4.0]]), np.array([2.0])) == [0.5]
    assert ours.splu(sparse.csc_array((0, 0))).solve(np.ones(0)).shape == (0,)
    assert ours.splu(sparse.eye_array(3)).solve(np.ones((3, 0))).shape == (3, 0)
    assert ours.spsolve(sparse.eye_array(3), np.ones((3, 0))).shape == (3, 0)
    assert ours.spsolve_triangular(sparse.csc_array((0, 0)), np.ones(0)).shape == (0,)
    assert ours.spsolve_triangular(sparse.csc_array([[2.0]]), [3]) == [1.5]
    with pytest.warns(linalg.MatrixRankWarning, match="Matrix is exactly singular"):
        assert np.isnan(ours.spsolve(np.zeros((1, 1)), np.ones(1))).all()
    for shape in ((1,), (1, 2)):
        with pytest.warns(linalg.MatrixRankWarning):
            assert ours.spsolve(np.zeros((1, 1)), np.ones(shape)).shape == shape


def test_long_and_masked_numbers():
    A = sparse.csc_array(np.array([[2, 1j], [0, 3]], np.clongdouble))
    b = np.array([1, 1j])
    for x in (ours.spsolve(A, b), ours.splu(A).solve(b), ours.spsolve_triangular(A, b, lower=False)):
        assert x.dtype == np.complex128 and np.allclose(A @ x, b)
    assert np.allclose(A @ ours.spsolve(A, b.astype(np.clongdouble)), b)
    masked = np.ma.array(np.ones(2), mask=[True, False])
    for call in (
        lambda: ours.spsolve(A, masked),
        lambda: ours.splu(A).solve(masked),
        lambda: ours.spsolve_triangular(A, masked, lower=False),
        lambda: ours.splu(np.ma.array(np.eye(2), mask=np.eye(2))),
    ):
        with pytest.raises(am.InputError, match="masked values"):
            call()
