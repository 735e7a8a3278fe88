"""PyAMG's interface, on our hierarchy."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am
from asterism.pyamg import smoothed_aggregation_solver


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("accel", [None, "cg", "gmres", "bicgstab"])
def test_solve(rng, dtype, accel):
    A = am.gallery.poisson((40, 40)).to_scipy().astype(dtype)
    b = rng.standard_normal(1600).astype(dtype)
    ml = smoothed_aggregation_solver(A)
    assert len(ml.levels) > 1 and ml.levels[0] == {"rows": 1600, "entries": A.nnz}
    assert 1 < ml.operator_complexity() < 2 and 1 < ml.grid_complexity() < 1.5 and "levels" in repr(ml)
    residuals, seen = [], []
    tol = 1e-5 if dtype == "float32" else 1e-9
    x, info = ml.solve(
        b[:, None],
        tol=tol,
        accel=accel,
        residuals=residuals,
        return_info=True,
        callback=lambda x: seen.append(x.copy()),
    )
    assert info == 0 and x.shape == (1600, 1) and x.dtype == dtype
    assert np.linalg.norm(b - A @ x[:, 0]) <= 1.05 * tol * np.linalg.norm(b)
    assert residuals[0] == pytest.approx(np.linalg.norm(b), rel=1e-5) and len(seen) == len(residuals) - 1 < 40
    assert np.array_equal(ml.solve(b, x0=x[:, 0], tol=1.1 * tol, accel=accel), x[:, 0])  # nothing to do
    assert ml.solve(b, tol=1e-14, maxiter=2, accel=accel, return_info=True)[1] > 0


def test_near_null_space_options_and_preconditioner():
    K = am.gallery.elasticity((8, 6, 6))
    b = np.ones(K.shape[0])
    B, S = K.near_null_space, K.to_scipy()
    bsr = sp.bsr_array(S, blocksize=(3, 3))
    its = {}
    for name, ml in {
        "modes": smoothed_aggregation_solver(bsr, B=B),
        "translations": smoothed_aggregation_solver(bsr, B=np.tile(np.eye(3), (K.shape[0] // 3, 1))),
        "chebyshev": smoothed_aggregation_solver(bsr, B=B, presmoother=("chebyshev", {"degree": 3})),
        "theta": smoothed_aggregation_solver(
            K, B=B, strength=("symmetric", {"theta": 0.02}), smooth=("jacobi", {"omega": 1.2})
        ),
    }.items():
        residuals = []
        x, info = ml.solve(
            b, tol=1e-8, accel="cg", cycle="W" if name == "theta" else "V", residuals=residuals, return_info=True
        )
        assert info == 0 and np.linalg.norm(b - S @ x) <= 1e-8 * np.linalg.norm(b)
        its[name] = len(residuals) - 1
    assert its["modes"] < 40 and its["chebyshev"] < its["modes"]
    ml = smoothed_aggregation_solver(bsr, B=B)
    steps = []
    x, info = spla.cg(S, b, rtol=1e-8, M=ml.aspreconditioner(), callback=steps.append)
    assert info == 0 and abs(len(steps) - its["modes"]) <= 3


def test_what_is_not_offered_is_told():
    A = am.gallery.poisson((10, 10))
    for kw, text in (
        (dict(strength="evolution"), "strength='evolution' is not offered"),
        (dict(presmoother="gauss_seidel"), "'jacobi', 'chebyshev' or 'spai0'"),
        (dict(postsmoother="chebyshev"), "the same as presmoother"),
        (dict(presmoother=("jacobi", {"omega": 1})), "presmoother: omega is not offered"),
        (dict(smooth="energy"), "smooth='energy'"),
        (dict(strength=3), "a name, or a tuple"),
    ):
        with pytest.raises(am.AsterismError, match=text):
            smoothed_aggregation_solver(A, **kw)
    ml = smoothed_aggregation_solver(A)
    for kw, text in ((dict(cycle="F"), "cycle='F'"), (dict(accel="steepest"), "accel='steepest'")):
        with pytest.raises(am.UnsupportedError, match=text):
            ml.solve(np.ones(100), **kw)
    with pytest.raises(am.ShapeError, match=r"\(100,\)"):
        ml.solve(np.ones(7))
