"""Factors that another library made, solved with by asterism: ``am.factorized(splu(A))``."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(n, dtype, rng):
    """With zeros on the diagonal."""
    A = sp.random_array((n, n), density=min(1, 5 / n), rng=rng)
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sp.random_array((n, n), density=min(1, 2 / n), rng=rng)
    return sp.csc_array((A + sp.diags_array(rng.uniform(0.5, 1, n)))[rng.permutation(n)]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 9, 130, 700])
def test_superlu(n, dtype, rng):
    A = matrix(n, dtype, rng)
    lu = splu(A)
    F = am.factorized(lu)
    assert isinstance(F, am.TakenFactors) and F.shape == (n, n) and F.dtype == dtype and F.kind == "lu"
    near = 2e3 * np.finfo(dtype).eps * np.linalg.cond(A.toarray())
    for k in (1, 2, 7, 8, 9, 17):
        b = rng.standard_normal((n, k)).astype(dtype)
        for trans in "NTH":
            x, y = F.solve(b, trans), lu.solve(b, trans)
            assert x.shape == y.shape and x.dtype == y.dtype
            assert abs(x - y).max() <= near * abs(y).max()
    b = rng.standard_normal(n).astype(dtype)
    assert abs(F.solve(b) - lu.solve(b)).max() <= near * abs(lu.solve(b)).max()
    assert abs(F.solve_transpose(b, conjugate=True) - lu.solve(b, "H")).max() <= near * abs(lu.solve(b, "H")).max()
    S = sp.random_array((n, 3), density=0.3, rng=rng, format="csc").astype(dtype)
    assert abs(F.solve(S).toarray() - lu.solve(S.toarray())).max() <= near * max(1, abs(lu.solve(S.toarray())).max())
    assert np.array_equal(F.perm_r, lu.perm_r) and np.array_equal(F.perm_c, lu.perm_c) and F.nnz == lu.L.nnz + lu.U.nnz
    assert (F.L != lu.L).nnz == 0 and (F.U != lu.U).nnz == 0 and (F.R == 1).all() and (F.C == 1).all()
    sign, log = np.linalg.slogdet(A.toarray().astype("complex128"))
    rough = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9
    assert abs(F.determinant.sign - sign) <= rough and abs(F.determinant.logabsdet - log) <= rough * (1 + abs(log))
    assert F.determinant.logabsdet == pytest.approx(log, rel=rough, abs=rough) and F.inertia is None and F.info is None
    exact = np.linalg.cond(A.toarray().astype("complex128"), 1)
    assert exact / 10 <= F.condition <= 1.1 * exact
    assert "given order" in repr(F) and F.memory_bytes >= F.nnz * np.dtype(dtype).itemsize


def test_long_and_dense_panels(rng):
    """Supernodes wider than a panel, and columns of several panels below them."""
    A = sp.csc_array(rng.standard_normal((300, 300)))
    B = sp.block_diag([A, sp.csc_array(np.diag(np.ones(5)))], format="lil")
    B[304, :] = 1
    B[:, 304] = 2
    B = sp.csc_array(B)
    lu = splu(B)
    F = am.factorized(lu)
    b = rng.standard_normal((305, 11))
    for trans in "NTH":
        assert np.allclose(F.solve(b, trans), lu.solve(b, trans), rtol=1e-8, atol=1e-10)
    A = am.gallery.poisson((14, 14, 14)).to_scipy().tocsc()
    for spec in ("NATURAL", "COLAMD", "MMD_AT_PLUS_A"):
        lu = splu(A, permc_spec=spec)
        x = am.factorized(lu).solve(np.ones((2744, 9)))
        assert abs(A @ x - 1).max() <= 1e-11
        assert am.factorized(lu).memory_bytes <= 24 * lu.nnz  # few zeros are stored


def test_ours_and_those_of_asterism_scipy(rng):
    import asterism.scipy

    A = matrix(90, "complex128", rng)
    b = rng.standard_normal(90).astype("complex128")
    x = am.factorized(asterism.scipy.splu(A)).solve(b)
    assert np.allclose(A @ x, b, atol=1e-10)


class Umfpack:
    """What scikit-umfpack documents: Pr R^-1 A Pc = L U."""

    def __init__(self, A, rng):
        self.shape = A.shape
        self._R = rng.uniform(0.5, 2, A.shape[0])
        self._lu = splu(sp.csc_array(sp.diags_array(1 / self._R) @ A))

    def solve(self, b):
        return self._lu.solve(b / self._R)

    L = property(lambda self: sp.csc_matrix(self._lu.L))
    U = property(lambda self: sp.csc_matrix(self._lu.U))
    perm_r = property(lambda self: self._lu.perm_r)
    perm_c = property(lambda self: self._lu.perm_c)
    R = property(lambda self: self._R)


Umfpack.__module__ = "scikits.umfpack.interface"


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_row_scales_of_umfpack(dtype, rng):
    A = matrix(120, dtype, rng)
    lu = Umfpack(A, rng)
    F = am.factorized(lu)
    b = rng.standard_normal((120, 3)).astype(dtype)
    for B, trans in ((A, "N"), (A.T, "T"), (A.conj().T, "H")):
        assert np.allclose(B @ F.solve(b, trans), b, atol=1e-9)
    B = sp.diags_array(F.R) @ A
    assert abs((F.L @ F.U)[F.perm_r][:, F.perm_c] - B).max() <= 1e-12
    sign, log = np.linalg.slogdet(A.toarray())
    assert abs(F.determinant.sign - sign) <= 1e-9 and F.determinant.logabsdet == pytest.approx(log)


class Cholmod:
    """What scikit-sparse 0.4 documents: L L^H = P A P^H."""

    def __init__(self, A, rng):
        self._order = rng.permutation(A.shape[0])
        self._L = np.linalg.cholesky(A.toarray()[np.ix_(self._order, self._order)])

    def L(self):
        return sp.csc_matrix(self._L)

    def P(self):
        return self._order


def definite(n, dtype, rng):
    A = matrix(n, dtype, rng)
    return sp.csc_array(A @ A.conj().T + sp.eye_array(n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("real", [False, True])
def test_cholesky_factors(dtype, real, rng):
    A = definite(80, dtype, rng)
    if real:
        sksparse = pytest.importorskip("sksparse.cholmod", reason="scikit-sparse is not installed")
        if not hasattr(sksparse, "Factor"):
            pytest.skip("scikit-sparse 0.4 has the class")
        F = am.factorized(sksparse.cholesky(sp.csc_matrix(A)))
    else:
        F = am.factorized(Cholmod(A, rng))
    b = rng.standard_normal((80, 9)).astype(dtype)
    for B, trans in ((A, "N"), (A.T, "T"), (A.conj().T, "H")):
        assert np.allclose(B @ F.solve(b, trans), b, atol=1e-8)
    sign, log = np.linalg.slogdet(A.toarray())
    assert F.kind == "cholesky" and F.inertia == (80, 0, 0)
    assert F.determinant.sign == pytest.approx(1) and F.determinant.logabsdet == pytest.approx(log)
    assert abs((F.L @ F.U)[F.perm_r][:, F.perm_c] - A).max() <= 1e-11


class Broken:
    def __init__(self, **parts):
        self.shape = (2, 2)
        one = sp.csc_array(np.eye(2))
        self.parts = {"L": one, "U": one, "perm_r": [0, 1], "perm_c": [0, 1], "R": [1.0, 1], **parts}

    def solve(self, b):
        return b

    L = property(lambda self: self.parts["L"])
    U = property(lambda self: self.parts["U"])
    perm_r = property(lambda self: self.parts["perm_r"])
    perm_c = property(lambda self: self.parts["perm_c"])
    R = property(lambda self: self.parts["R"])


def test_what_are_no_factors(rng):
    ok = sp.csc_array(np.eye(2))
    upper = sp.csc_array(np.array([[1.0, 3], [0, 1]]))
    for parts, error, text in (
        ({"L": upper}, am.InputError, "L is not triangular: it has an entry in row 0 and column 1"),
        ({"U": upper.T.tocsc()}, am.InputError, "U is not triangular: it has an entry in row 1 and column 0"),
        ({"U": sp.csc_array(np.diag([1.0, 0]))}, am.InputError, "diagonal entry of U in row 1 is zero"),
        ({"perm_r": [0, 0]}, am.InputError, "perm_r is not a permutation: 0 is there twice"),
        ({"perm_c": [0, 2]}, am.InputError, "perm_c is not a permutation: 2 is there"),
        ({"perm_c": [0]}, am.ShapeError, "perm_c has 1 entries for 2 rows"),
        ({"R": [1.0, 0]}, am.InputError, "R has the entry 0"),
        ({"U": sp.csc_array(np.eye(3))}, am.ShapeError, "U is 3 x 3"),
    ):
        with pytest.raises(error, match=text):
            am.factorized(Broken(**parts))
    F = am.factorized(Broken(L=ok))
    assert F.solve([1.0, 2]).tolist() == [1, 2]
    for call, error, text in (
        (lambda: F.solve(np.ones(3)), am.ShapeError, r"b has shape \(3,\)"),
        (lambda: F.solve(np.ones(2) * 1j), am.DtypeError, "b.real and b.imag"),
        (lambda: F.solve(np.array([1, np.nan])), am.InputError, "NaN"),
        (lambda: F.solve(np.ones(2), "X"), am.InputError, "trans is 'X'"),
        (lambda: F.update(ok), am.UnsupportedError, "came from another library"),
        (lambda: F.solver, am.UnsupportedError, "no solver"),
        (lambda: am.factorized(splu(ok), "cholesky"), am.InputError, "has factors already, so kind would"),
        (lambda: am.factorized(splu(ok), pc_factor_matching="true"), am.InputError, "pc_factor_matching would"),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("n", [2, 3])
def test_each_rank_has_its_own(on_ranks, n):
    on_ranks(
        n,
        """
import scipy.sparse as sp
from scipy.sparse.linalg import splu
if rank > 0:  # a call of this process alone
    A = am.gallery.poisson((5 + rank, 4)).to_scipy().tocsc()
    x = am.factorized(splu(A)).solve(np.ones(A.shape[0]))
    assert abs(A @ x - 1).max() <= 1e-12
""",
    )
