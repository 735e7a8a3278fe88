"""SciPy's own tests of its iterative solvers, run on ours, and what they leave out."""

import importlib
import itertools

import numpy as np
import pytest
from scipy_suites import named_tests, suite_on

import asterism as am
import asterism.scipy as ours
from asterism.scipy import iterative

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")
theirs = pytest.importorskip("scipy.sparse.linalg._isolve")

NAMES = iterative.__all__
METHODS = [m for m in NAMES if m not in ("lsmr", "lsqr")]
suite = suite_on(ours, NAMES, theirs, "scipy.sparse.linalg._isolve.tests.test_iterative")
lsmr_suite = importlib.import_module("scipy.sparse.linalg._isolve.tests.test_lsmr")
lsmr_suite.lsmr = ours.lsmr
lsqr_suite = importlib.import_module("scipy.sparse.linalg._isolve.tests.test_lsqr")
lsqr_suite.lsqr = ours.lsqr
for part in (named_tests(lsqr_suite), named_tests(lsmr_suite), named_tests(suite, "solver", "case")):
    globals().update(part)


def test_convergence(case):  # noqa: F811
    # theirs expects methods to fail where SciPy's do: ours start again where they break down, and may converge
    single = case.A.dtype.char not in "dD"
    rtol = 1e-2 if single else 1e-8
    x, info = case.solver(case.A, case.b, x0=0 * case.b, rtol=rtol)
    residual = np.linalg.norm(case.A @ x - case.b)
    assert info == 0 or not case.convergence
    assert residual <= np.linalg.norm(case.b) * (rtol if info == 0 else 1)


@pytest.mark.parametrize("case", suite.IterativeParams().cases)
def test_show(case, capsys):
    # theirs also expects that tfqmr fails for the lower bidiagonal matrix; ours starts again, and rounding decides whether it converges
    x, info = ours.tfqmr(case.A, case.b, rtol=1e-4, show=True)
    expected = "converged due to reach TOL" if info == 0 else "not converged due to reach MAXIT"
    assert capsys.readouterr().out == f"TFQMR: Linear solve {expected} iterations\n"
    residual = np.linalg.norm(case.A @ x - case.b)
    assert residual <= np.linalg.norm(case.b) * (1.001e-4 if info == 0 else 1)
    assert info == 0 or case.name.startswith(("nonsymposdef", "sym-nonpd"))


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_same_answers_as_scipy(rng, method, dtype):
    if method == "minres" and np.dtype(dtype).kind == "c":
        pytest.skip("SciPy's minres is for real matrices")
    f, g = getattr(ours, method), getattr(theirs, method)
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


@pytest.mark.parametrize("method", [m for m in METHODS if m != "gmres"])
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
    assert ours.cg(indefinite, np.array([0, 1.0, 0, 0]))[1] == 0  # as SciPy's
    assert ours.cg(indefinite, np.array([1.0, 1.0, 0, 0]))[1] < 0  # p^H A p is zero
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
    for name in METHODS:  # an error in the callback is the caller's
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


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(40, 25), (25, 40), (30, 30)])
@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
def test_least_squares_against_numpy(rng, dtype, shape, method):
    A = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    A[:, 3] = A[:, 4]  # rank deficient
    A, b = A.astype(dtype), rng.standard_normal(shape[0]).astype(dtype)
    single = np.finfo(dtype).eps > 1e-10
    tol = 1e-5 if single else 1e-12
    seen = []
    x, info = am.least_squares(
        A, b, method=method, atol=tol, btol=tol, conlim=0, maxiter=200, monitor=lambda *a: seen.append(a)
    )
    want = np.linalg.lstsq(A, b, rcond=1e-4 if single else 1e-10)[0]
    assert info.converged and np.allclose(x, want, atol=(5e-2 if single else 1e-6) * abs(want).max())
    assert x.dtype == dtype and seen[0][0] == 0 and len(seen) == info.iterations + 1
    assert np.isclose(info.residual_norm, np.linalg.norm(b - A @ x), rtol=1e-3, atol=1e-3)
    assert np.isclose(info.normal_norm, np.linalg.norm(A.conj().T @ (b - A @ x)), atol=1e-2 if single else 1e-8)
    assert np.isclose(info.norm_x, np.linalg.norm(x), rtol=1e-4)
    if method == "lsqr":  # the least residual in every step: it never grows
        assert all(later <= before * (1 + 1e-6) for (_, before, _), (_, later, _) in itertools.pairwise(seen))
    damp, n = 0.5, shape[1]
    x, info = am.least_squares(linalg.aslinearoperator(A), b, method=method, damp=damp, atol=tol, btol=tol)
    exact = np.linalg.solve(A.conj().T @ A + damp**2 * np.eye(n), A.conj().T @ b)
    assert info.converged and np.allclose(x, exact, atol=(1e-2 if single else 1e-8) * abs(exact).max())
    assert np.isclose(info.residual_norm, np.hypot(np.linalg.norm(b - A @ x), damp * np.linalg.norm(x)), rtol=1e-4)


@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
def test_least_squares_on_real_matrices_and_ranks(data, on_ranks, method):
    import scipy.io

    S = scipy.io.mmread(data / "well1850.mtx.gz").tocsr()
    b = np.asarray(scipy.io.mmread(data / "well1850_rhs1.mtx.gz")).ravel()
    x, info = am.least_squares(S, b, method=method, atol=1e-12, btol=1e-12, maxiter=2000)
    want = np.linalg.lstsq(S.toarray(), b, rcond=None)[0]
    assert info.converged and np.linalg.norm(x - want) <= 1e-6 * np.linalg.norm(want)
    lp = scipy.io.mmread(data / "lp_e226.mtx.gz").tocsr()
    x, info = am.least_squares(lp, lp @ np.ones(472), method=method, atol=1e-13, btol=1e-13, maxiter=5000, conlim=0)
    shortest = np.linalg.lstsq(lp.toarray(), lp @ np.ones(472), rcond=None)[0]
    assert info.converged and np.linalg.norm(x - shortest) <= 1e-5 * np.linalg.norm(shortest)
    on_ranks(
        3,
        f"""
A = am.read_matrix("{data}/well1850.mtx.gz", comm)
b = am.read_vector("{data}/well1850_rhs1.mtx.gz", A)
x, info = am.least_squares(A, b, method="{method}", atol=1e-12, btol=1e-12, maxiter=2000)
whole = np.concatenate(comm.allgather(x))
one, same = am.least_squares(am.read_matrix("{data}/well1850.mtx.gz"), am.read_vector("{data}/well1850_rhs1.mtx.gz"), method="{method}", atol=1e-12, btol=1e-12, maxiter=2000)
assert info.converged and np.linalg.norm(whole - one) <= 1e-7 * np.linalg.norm(one)
""",
    )


@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_what_least_squares_says_is_true_of_its_answer(data, on_ranks, method, ranks):
    """Rounding makes the methods' own estimate of norm(A), and with it what they stop at, several times too large here."""
    on_ranks(
        ranks,
        f"""
import math
for name in ("lp_e226", "well1850"):
    A = am.read_matrix(f"{data}/{{name}}.mtx.gz", comm)
    S = np.concatenate(comm.allgather(A.toarray()))
    sizes = np.linalg.svd(S, compute_uv=False)
    sizes = sizes[sizes > 1e-10 * sizes[0]]
    norm = np.linalg.norm(S)
    for b in (A @ np.ones(A.local_shape[1]), np.sin(np.arange(*A.row_range))):
        for tol in (1e-4, 1e-8):
            x, info = am.least_squares(A, b, method="{method}", atol=tol, btol=tol, conlim=0, maxiter=5000)
            whole, rhs = np.concatenate(comm.allgather(x)), np.concatenate(comm.allgather(b))
            r = rhs - S @ whole
            size = np.linalg.norm(r)
            assert math.isclose(info.residual_norm, size, rel_tol=1e-6), (info, size)
            assert math.isclose(info.normal_norm, np.linalg.norm(S.T @ r), rel_tol=1e-3), info
            assert math.isclose(info.relative_residual, size / np.linalg.norm(rhs), rel_tol=1e-6)
            assert math.isclose(info.residual_limit, tol * (np.linalg.norm(rhs) + norm * np.linalg.norm(whole)), rel_tol=1e-6)
            assert math.isclose(info.normal_limit, tol * norm * size, rel_tol=1e-6)
            assert info.converged, vars(info)
            assert size <= 1.02 * info.residual_limit or np.linalg.norm(S.T @ r) <= 1.02 * info.normal_limit, vars(info)
            if "{method}" == "lsmr":
                assert info.cond_A <= 1.01 * sizes[0] / sizes[-1], (info.cond_A, sizes[0] / sizes[-1])
x, info = am.least_squares(A, b, method="{method}", atol=1e-12, btol=1e-12, maxiter=20)
assert not info.converged and info.iterations == 20 and info.stop == 7 and info.residual_norm > info.residual_limit
""",
    )


def test_least_squares_goes_on_where_its_estimates_deceive(data):
    A = am.read_matrix(data / "lp_e226.mtx.gz")
    seen = []
    x, info = am.least_squares(
        A, A @ np.ones(472), atol=1e-8, btol=1e-8, maxiter=5000, monitor=lambda it, r, n: seen.append(it)
    )
    assert info.converged and info.residual_norm <= 1.02 * info.residual_limit
    assert seen[-1] == info.iterations and all(0 <= b - a <= 1 for a, b in zip(seen, seen[1:], strict=False))
    damped = am.least_squares(A, A @ np.ones(472), damp=0.1, atol=1e-8, btol=1e-8, maxiter=5000)[1]
    assert damped.converged == ("but not by" not in damped.reason)


def test_least_squares_bad_input():
    A = np.ones((4, 3))
    for call, text in (
        (lambda: am.least_squares(A, np.ones(3)), r"b has shape \(3,\)"),
        (lambda: am.least_squares(A, np.ones(4), x0=np.ones(4)), "x0 has shape"),
        (lambda: am.least_squares(A, np.ones(4), damp=-1), "damp=-1"),
        (lambda: am.least_squares(A, np.ones(4), method="qr"), "method 'qr' is not one of lsmr, lsqr"),
        (lambda: ours.lsqr(A, np.ones(4), iter_lim=0), "maxiter=0; at least 1"),
        (lambda: ours.lsmr(A, np.ones(4), maxiter=0), "maxiter=0; at least 1"),
        (lambda: ours.lsqr(A, np.ones(4), calc_var=True), "calc_var=True is not offered"),
        (lambda: am.least_squares(A, np.array([1, np.nan, 0, 0])), "b has 1 entries that are NaN"),
        (lambda: am.least_squares(am.Operator(lambda x: A @ x, 4, 3), np.ones(4)), "has no adjoint"),
    ):
        with pytest.raises(am.AsterismError, match=text):
            call()
    want, got = (f(np.eye(4)[:, :3], np.arange(4.0), damp=0.3) for f in (theirs.lsqr, ours.lsqr))
    assert all(np.allclose(a, b, rtol=1e-6) for a, b in zip(want, got, strict=True)), (want, got)
    x, info = am.least_squares(A, np.zeros(4))
    assert info.stop == 0 and not x.any()
    assert am.least_squares(A, np.arange(4.0), maxiter=1, atol=0, btol=0)[1].iterations == 1


@pytest.mark.parametrize("method", ["cg", "bicg", "bicgstab", "cgs", "gmres"])
@pytest.mark.parametrize("steps", [3, 10, 30])
def test_a_solve_that_is_cut_off_returns_the_last_iterate_as_scipy(method, steps):
    """Residuals of cg grow at first while its error falls: the smallest one is that of x = 0."""
    import scipy.sparse.linalg as theirs

    A, b = am.gallery.poisson((60, 60)).to_scipy(), np.ones(3600)
    x, info = getattr(ours, method)(A, b, rtol=1e-12, maxiter=steps)
    options = {"restart": 20} if method == "gmres" else {}
    want, _ = getattr(theirs, method)(A, b, rtol=1e-12, maxiter=steps, **options)
    assert info > 0 and np.allclose(x, want, rtol=1e-6, atol=1e-6 * abs(want).max())


@pytest.mark.parametrize("method", ["bicg", "bicgstab", "cg", "cgs", "gmres", "minres", "tfqmr"])
def test_no_iteration_is_no_success(method):
    A, b = np.diag([1.0, 2.0, 3.0]), np.ones(3)
    kinds = [{}, *({"callback": print, "callback_type": kind} for kind in ("x", "pr_norm", "legacy"))]
    for more in kinds if method == "gmres" else kinds[:1]:
        x, info = getattr(ours, method)(A, b, maxiter=0, **more)
        assert info > 0 and not x.any(), more
        x, info = getattr(ours, method)(A, b, x0=b / [1, 2, 3], maxiter=0, **more)
        assert info == 0, more


@pytest.mark.parametrize("method", METHODS)
def test_half_and_long_numbers_are_taken(method):
    A, b = np.diag(np.arange(1.0, 9)) + 0.1, np.ones(8)
    for dtype in (np.float16, np.longdouble):
        exact = np.linalg.solve(A.astype(dtype).astype(float), b)
        for of in (A.astype(dtype), linalg.aslinearoperator(A.astype(dtype))):
            x, info = getattr(ours, method)(of, b.astype(dtype), rtol=1e-10, M=np.eye(8, dtype=dtype))
            assert info == 0 and x.dtype == np.float64 and np.allclose(x, exact, rtol=1e-8)
    long = (A + 0.05j * np.triu(A, 1) - 0.05j * np.tril(A, -1)).astype(np.clongdouble)
    x, info = getattr(ours, method)(long, b, rtol=1e-10)
    assert info == 0 and x.dtype == np.complex128 and np.allclose(long @ x, b)


def test_least_squares_of_half_numbers_and_of_nothing():
    A = np.eye(4, dtype=np.float16)[:, :3]
    for f in (ours.lsqr, ours.lsmr):
        assert np.allclose(f(A, np.arange(4, dtype=np.longdouble))[0], [0, 1, 2])
        assert f(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)


def test_iterates_of_minres_may_be_kept():
    A, b = am.gallery.poisson((9, 9)).to_scipy(), np.ones(81)
    for f in (ours.minres, theirs.minres):
        seen = []
        f(A, b, rtol=1e-8, callback=seen.append)
        assert len({np.linalg.norm(b - A @ x) for x in seen}) == len(seen) > 5


def test_matrices_of_other_precision_are_converted():
    A = am.gallery.poisson((9, 9))
    M = am.Matrix.from_scipy(0.25 * sparse.eye_array(81))
    for of_A, of_M, of_b in (("f", "f", "d"), ("f", "d", "f"), ("d", "f", "D")):
        x, info = ours.cg(A.astype(of_A), np.ones(81, of_b), M=M.astype(of_M), rtol=1e-4)
        assert info == 0 and x.dtype == np.result_type(of_A, of_b) and np.allclose(A.toarray() @ x, 1, atol=1e-3)
