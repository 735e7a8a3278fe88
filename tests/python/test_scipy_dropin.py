"""SciPy's own tests of its iterative solvers, run on ours, and what they leave out."""

import importlib

import numpy as np
import pytest

import asterism as am
import asterism.scipy as ours

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")
theirs = pytest.importorskip("scipy.sparse.linalg._isolve")

_originals = {name: getattr(theirs, name) for name in ours.__all__}
for _name in ours.__all__:
    setattr(theirs, _name, getattr(ours, _name))
try:  # their file, with our functions in place of theirs
    suite = importlib.import_module("scipy.sparse.linalg._isolve.tests.test_iterative")
except ImportError:
    pytest.skip("this SciPy comes without its tests", allow_module_level=True)
finally:
    for _name, _f in _originals.items():
        setattr(theirs, _name, _f)

globals().update({k: v for k, v in vars(suite).items() if k.startswith(("test_", "Test")) or k in ("solver", "case")})


class TestGMRES(suite.TestGMRES):
    @pytest.mark.filterwarnings("ignore:.*callback_type:DeprecationWarning")
    def test_callback(self):
        # theirs also expects the norm of M times the residual: its preconditioner is on the left
        A = sparse.diags_array([np.ones(5), -2 * np.ones(6), np.ones(5)], offsets=[-1, 0, 1]).tocsr()
        seen = []
        for M in (None, 1e-3 * np.eye(6)):
            x, info = ours.gmres(A, np.ones(6), M=M, rtol=1e-16, maxiter=1, callback=seen.append)
            assert info == 1
            assert np.isclose(np.linalg.norm(np.ones(6) - A @ x) / np.sqrt(6), seen[-1], rtol=1e-10)
        assert np.allclose(seen, np.sqrt(2 / 3), rtol=1e-10)

    def test_defective_precond_breakdown(self):
        # theirs expects a zero without rounding
        A, M, b = np.diag([2.0, 3, 4]), np.diag([1.0, 1, 0]), np.array([0.0, 1, 1])
        x, info = ours.gmres(A, b, x0=np.array([1, 0, 0]), M=M, rtol=1e-15, atol=0)
        assert info != 0 and np.allclose(M @ A @ x, M @ b, rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", ours.__all__)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_same_answers_as_scipy(rng, method, dtype):
    if method == "minres" and np.dtype(dtype).kind == "c":
        pytest.skip("SciPy's minres is for real matrices")
    f, g = getattr(ours, method), _originals[method]
    A = am.gallery.poisson((9, 8)).to_scipy().astype(dtype)
    if method not in ("cg", "minres"):
        A = A + sparse.diags_array(0.3 * np.ones(71), offsets=1, shape=A.shape)
        if np.dtype(dtype).kind == "c":
            A = A + 0.2j * sparse.eye_array(72)
    A = A.astype(dtype).tocsr()
    b = (rng.standard_normal(72) + (1j * rng.standard_normal(72) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
    single = np.finfo(dtype).eps > 1e-10
    rtol = 1e-4 if single else 1e-10
    M = sparse.diags_array(1 / A.diagonal()).tocsr()
    for kw in ({}, {"M": M}, {"M": linalg.aslinearoperator(M)}, {"x0": np.ones(72, dtype)}):
        x, info = f(A, b, rtol=rtol, **kw)
        y, _ = g(A, b, rtol=rtol, **kw)
        assert info == 0 and x.shape == (72,) and x.dtype == dtype
        assert np.linalg.norm(b - A @ x) <= 1.001 * rtol * np.linalg.norm(b)
        assert np.allclose(x, y, rtol=0, atol=(1e-2 if single else 1e-7) * abs(y).max())
    # the same of a matrix converted once, of an operator, and of integers
    z, info = f(am.Matrix.from_scipy(A), b[:, None], rtol=rtol)
    assert info == 0 and np.array_equal(z, f(A, b, rtol=rtol)[0])
    z, info = f(linalg.aslinearoperator(A), b, rtol=rtol)
    assert info == 0 and np.allclose(z, f(A, b, rtol=rtol)[0], rtol=0, atol=(1e-2 if single else 1e-7) * abs(z).max())
    z, info = f(np.eye(3, dtype=int), [1, 2, 3])
    assert info == 0 and np.allclose(z, [1, 2, 3])


@pytest.mark.parametrize("method", [m for m in ours.__all__ if m != "gmres"])
def test_callbacks_see_the_iterate(method):
    A = am.gallery.poisson((12, 12)).to_scipy()
    b = np.ones(144)
    seen = []
    x, info = getattr(ours, method)(A, b, rtol=1e-8, callback=lambda x: seen.append(np.linalg.norm(b - A @ x)))
    assert info == 0 and len(seen) > 5
    assert seen[-1] <= 1e-8 * 12 < seen[-2] and np.isclose(seen[-1], np.linalg.norm(b - A @ x), rtol=1e-5)


def test_options_of_the_functions():
    A = am.gallery.poisson((12, 12)).to_scipy()
    b = np.ones(144)
    x, info = ours.cg(A, b, maxiter=3)
    assert info == 3
    assert np.linalg.norm(b - A @ ours.cg(A, b, rtol=0, atol=1.0)[0]) <= 1.0
    x, info = ours.minres(A, b, shift=3.5, rtol=1e-10)
    assert info == 0 and np.allclose(A @ x - 3.5 * x, b)
    with pytest.raises(ValueError, match="Hermitian"):
        ours.minres(sparse.csr_array(np.triu(np.ones((4, 4)))), np.ones(4), check=True)
    indefinite = sparse.diags_array([1.0, -1.0, 2.0, 3.0]).tocsr()
    assert ours.cg(indefinite, np.array([0, 1.0, 0, 0]))[1] < 0
    for bad, kind in (
        (lambda: ours.cg(A[:100], b), "A has shape"),
        (lambda: ours.cg(A, np.ones(5)), r"b has shape \(5,\)"),
        (lambda: ours.cg(A, b, x0="no"), "x0 is 'no'"),
        (lambda: ours.cg(A, b, x0=np.ones(3)), "x0 has shape"),
        (lambda: ours.gmres(A, b, callback=print, callback_type="no"), "callback_type"),
    ):
        with pytest.raises(ValueError, match=kind):
            bad()
    with pytest.raises(TypeError, match="needed"):
        am.Solver(object())
    for name in ours.__all__:  # an error in the callback is the caller's
        with pytest.raises(ZeroDivisionError):
            getattr(ours, name)(A, b, callback=lambda x: 1 / 0, **({"callback_type": "x"} if name == "gmres" else {}))


def test_arrays_may_be_read_only():
    A = am.gallery.poisson((6, 6)).to_scipy()
    b = np.ones(36)
    for a in (b, A.data, A.indices, A.indptr):
        a.setflags(write=False)
    assert ours.cg(A, b)[1] == 0
    assert am.solve(A, b)[1].converged
    M = am.Matrix.from_scipy(A)
    assert np.allclose(M @ b, A @ b) and np.allclose(M.T @ b, A.T @ b)
