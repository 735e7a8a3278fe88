"""Right-hand sides and matrices of any size: what overflows or underflows in squares is no reason to fail, or to say that zero is right."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import QUEUES

import asterism as am
from asterism import _core

METHODS = [
    "cg",
    "cr",
    "pipecg",
    "bicg",
    "bicgstab",
    "cgs",
    "tfqmr",
    "idr",
    "gcr",
    "gmres",
    "fgmres",
    "minres",
    "richardson",
    "chebyshev",
]
SCALES = {
    "float32": [1e-36, 1e-25, 1e-20, 1e19, 1e30, 1e36],
    "float64": [1e-300, 1e-200, 1e-162, 1e160, 1e300],
    "complex64": [1e-25, 1e19],
    "complex128": [1e-250, 1e250],
}


def relative_residual(A, x, b):
    """In extended precision, of numbers brought near 1 first."""
    size = np.abs(b).max(axis=0)
    wide = np.clongdouble if np.iscomplexobj(x) else np.longdouble
    r = b.astype(wide) / size - (A.to_scipy().toarray().astype(wide) @ (x.astype(wide) / size))
    return np.linalg.norm(r.astype(complex), axis=0) / np.linalg.norm((b.astype(wide) / size).astype(complex), axis=0)


@pytest.mark.parametrize("columns", [None, 2, 5])
@pytest.mark.parametrize("dtype", SCALES)
def test_right_hand_sides_of_any_size(dtype, columns):
    A = am.gallery.poisson((8, 7)).astype(dtype)
    for ksp in METHODS:
        s = am.Solver(A, ksp=ksp, pc="ilu" if ksp == "richardson" else "jacobi", rtol=1e-4)
        for scale in SCALES[dtype]:
            b = (np.sin(np.arange(56.0)) + 2).astype(dtype) * np.array(scale, dtype)
            if columns:
                b = np.stack([b * np.array(2.0**-j, dtype) for j in range(columns)], 1)
            x = s.solve(b)
            assert (relative_residual(A, x, b) <= 1.1e-4).all(), (ksp, scale)
            assert (s.info.rhs_norm > 0) if columns is None else (s.info.rhs_norm > 0).all()
            assert np.allclose(s.info.residual_norms[0], s.info.rhs_norm, rtol=1e-5)


def test_columns_of_very_different_sizes():
    A = am.gallery.poisson((9, 9))
    B = np.outer(np.cos(np.arange(81)), [1e-300, 1.0, 1e300, 0.0, 5e-324 * 2**40])
    for ksp in ("cg", "bicgstab", "tfqmr", "gmres"):
        X, info = am.solve(A, B, ksp=ksp, pc="amg", rtol=1e-8)
        keep = [0, 1, 2]
        assert (relative_residual(A, X[:, keep], B[:, keep]) <= 1.1e-8).all()
        assert (X[:, 3] == 0).all() and info.rhs_norm[3] == 0


@pytest.mark.parametrize(
    "pc", ["none", "jacobi", "ilu", "ilut", "icc", "sor", "amg", "chebyshev", "lu", "asm", "bjacobi"]
)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e300])
def test_matrices_of_any_size(pc, scale):
    A = am.gallery.poisson((11, 10))
    S = A.to_scipy()
    b = np.ones(110) * min(1.0, scale)  # so that x has no numbers beyond the range
    ksp = "gmres" if pc in ("ilut", "asm") else "cg"
    x, info = am.solve(S * scale, b, ksp=ksp, pc=pc, rtol=1e-9)
    assert np.allclose(S @ (x * (scale / b[0])), 1, atol=1e-7), info
    assert any("scaled by 2^" in n for n in info.notes)
    assert info.true_residual <= 1e-9 * info.rhs_norm
    x, info = am.solve(
        am.Matrix.from_scipy((S * (1e-30 if scale < 1 else 1e30)).astype("float32")),
        b=np.ones(110, "float32"),
        pc=pc,
        ksp=ksp,
        rtol=1e-4,
    )
    assert info.converged


def test_a_solution_beyond_the_range_is_no_success():
    S = am.gallery.poisson((6, 6)).to_scipy()
    with pytest.raises(am.ConvergenceError, match="float64 does not have"):
        am.solve(S * 1e-200, np.full(36, 1e200), ksp="cg", pc="jacobi")
    tiny = np.full(36, 1e-310)
    x, info = am.solve(S * 1e10, tiny, ksp="cg", pc="jacobi", raise_on_failure=False)
    assert not info.converged and "few digits" in info.why


def test_functions_of_any_size():
    S = am.gallery.poisson((9, 9)).to_scipy()
    for scale in (1e-250, 1e-120, 1e120, 1e250):
        A = am.Operator(lambda x, s=scale: (S @ x) * s, 81)
        x, info = am.solve(A, np.ones(81) * min(1.0, scale), ksp="cg", rtol=1e-8)
        assert np.allclose(S @ (x * scale / min(1.0, scale)), 1, atol=1e-6)


def test_updates_and_m_of_another_solver_keep_their_scale():
    A = am.gallery.poisson((20, 20))
    S = A.to_scipy()
    s = am.Solver(S * 1e-200, ksp="cg", pc="amg", rtol=1e-9)
    for scale in (1e-200, 1.0, -1.0, 1e180):
        s.update(S * scale)
        x = s.solve(np.full(400, abs(scale)))
        assert np.allclose(S @ x * np.sign(scale), 1, atol=1e-7)
    other = am.Solver(-S * 1e-180, ksp="cg", pc="amg", rtol=1e-9)
    M = other.preconditioner
    z = M @ (-S @ np.ones(400))
    assert 0.3 < np.median(z) / 1e180 < 1.7


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("dtype", SCALES)
def test_norms_of_vectors(queue, dtype):
    n = 9001
    A, q = am.Matrix.from_scipy(sp.eye_array(n).tocsr().astype(dtype)), am.Queue(queue)
    big = 1e300 if dtype in ("float64", "complex128") else 1e30
    ordinary, mixed = np.linspace(1, 2, n), np.where(np.arange(n) % 3 == 0, 1.0, 1e-9)
    for values in (ordinary, mixed, np.zeros(n)):
        for scale in (1 / big, 1.0, 1e-5, big):
            for k in (1, 3):
                x = np.outer(values * scale, 2.0 ** -np.arange(k)).astype(dtype)
                x = np.ascontiguousarray(x[:, 0] if k == 1 else x)
                got = am.Vector.wrap(A, x.copy(), q).norm()
                got = np.array([complex(got).real] if k == 1 else got.values().real)
                want = np.linalg.norm(x.astype(np.clongdouble) / scale, axis=0).astype(float)
                assert np.allclose(got / scale, want, rtol=1e-6 if big < 1e100 else 1e-13, atol=0), (scale, k)
    # the plain sum is NaN or infinite where an entry is
    for bad in (np.nan, np.inf):
        x = np.ones(n, dtype)
        x[n // 2] = bad
        assert not np.isfinite(complex(am.Vector.wrap(A, x, q).norm()))


def test_least_squares_of_any_size(rng):
    S = sp.random_array((60, 30), density=0.2, rng=rng).tocsr() + sp.eye_array(60, 30)
    b = rng.standard_normal(60)
    want, ref = am.least_squares(S, b, atol=1e-12, btol=1e-12)
    for of_A, of_b in ((1e-300, 1e-300), (1e150, 1e200), (1.0, 1e-200), (1e-200, 1.0)):
        for method in ("lsmr", "lsqr"):
            x, info = am.least_squares(S * of_A, b * of_b, atol=1e-12, btol=1e-12, method=method)
            assert np.allclose(x * (of_A / of_b), want, rtol=1e-8, atol=1e-10)
            assert np.isclose(info.residual_norm / of_b, ref.residual_norm, rtol=1e-6)


def test_on_ranks(on_ranks):
    on_ranks(
        2,
        """
A = am.gallery.poisson((10, 10), comm)
n = A.local_shape[0]
for scale in (1e-300, 1e250):
    for k in (1, 3):
        b = np.ones(n if k == 1 else (n, k)) * scale
        if rank == 1 and scale < 1: b[:] = 0      # all of it is on one rank
        x, info = am.solve(A, b, ksp="cg", pc="jacobi", rtol=1e-8)
        assert info.converged and (info.iterations > 3)
        r = (b - A @ x) / scale
        assert comm.allreduce(float((r**2).sum())) ** 0.5 <= 1.1e-8 * comm.allreduce(float(((b / scale)**2).sum())) ** 0.5
""",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_norms_of_columns_that_are_not_finite(dtype, bad):
    A = am.gallery.poisson((70,), dtype=dtype)
    x = np.ones((70, 3), dtype)
    x[5, 1] = bad
    norms = _core.norms(A._h.rows, x)
    assert not np.isfinite(norms[1]) and np.allclose([norms[0], norms[2]], np.sqrt(70))


@pytest.mark.parametrize("columns", [1, 2])
def test_an_answer_that_the_dtype_does_not_have_is_no_answer(columns):
    A = am.Matrix.from_scipy(sp.diags_array(np.geomspace(1e-10, 1, 12)).tocsr().astype(np.float32))
    b = np.full((12, columns), 1e30, np.float32)
    x, info = am.solve(A, b, ksp="cg", pc="lu", raise_on_failure=False)
    assert not info.converged and "does not have" in info.why, info
