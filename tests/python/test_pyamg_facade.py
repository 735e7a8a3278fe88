"""PyAMG's interface, on our hierarchy."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am
import asterism.pyamg as facade
from asterism.pyamg import smoothed_aggregation_solver


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("accel", [None, "cg", "gmres", "bicgstab"])
def test_solve(rng, dtype, accel):
    A = am.gallery.poisson((40, 40)).to_scipy().astype(dtype)
    b = rng.standard_normal(1600).astype(dtype)
    ml = smoothed_aggregation_solver(A, presmoother="jacobi", max_coarse=400)
    assert len(ml.levels) > 1 and ml.levels[0] == {"rows": 1600, "entries": A.nnz}
    assert 1 < ml.operator_complexity() < 2 and 1 < ml.grid_complexity() < 1.5 and "levels" in repr(ml)
    residuals, seen = [3.0], []
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
        "modes": smoothed_aggregation_solver(bsr, B=B, presmoother="jacobi"),
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
    ml = smoothed_aggregation_solver(bsr, B=B, presmoother="jacobi")
    steps = []
    x, info = spla.cg(S, b, rtol=1e-8, M=ml.aspreconditioner(), callback=steps.append)
    assert info == 0 and abs(len(steps) - its["modes"]) <= 3


def test_what_is_not_offered_is_told():
    A = am.gallery.poisson((10, 10))
    for kw, text in (
        (dict(strength="affinity"), "strength='affinity' is not offered"),
        (dict(strength=("evolution", {"k": 4})), "k=2"),
        (dict(strength=("evolution", {"epsilon": 0.5})), "at least 1"),
        (dict(strength=("classical", {"norm": "min"})), "norm='abs'"),
        (dict(presmoother="schwarz"), "'jacobi', 'chebyshev' or 'spai0'"),
        (dict(aggregate="lloyd"), "aggregate='lloyd' is not offered; 'standard'"),
        (dict(symmetry="nonsymmetric"), "symmetry='nonsymmetric'"),
        (dict(keep=True), "keep=True"),
        (dict(diagonal_dominance=True), "diagonal_dominance=True"),
        (dict(coarse_solver="jacobi"), "coarse_solver='jacobi' is not offered; 'pinv'"),
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
    with pytest.raises(am.ShapeError, match=r"A has shape \(3, 2\); a square matrix"):
        smoothed_aggregation_solver(np.ones((3, 2)))


def test_a_coupling_that_equals_theta_is_strong_as_in_pyamg():
    A = am.gallery.poisson((40, 40)).to_scipy()
    for scale in (1.0, 1 / 3):
        ml = smoothed_aggregation_solver(sp.csr_array(A * scale), strength=("symmetric", {"theta": 0.25}))
        assert len(ml.levels) > 2, ml


def test_arguments_are_pyamgs_own():
    pyamg = pytest.importorskip("pyamg")
    theirs = inspect.signature(pyamg.smoothed_aggregation_solver).parameters
    ours = inspect.signature(smoothed_aggregation_solver).parameters
    named = [p for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert list(ours)[: len(named)] == [p.name for p in named]
    assert all(ours[p.name].default == p.default for p in named)
    default = {p.name: p.default for p in named if p.name != "A"}
    b, A = np.ones(900), am.gallery.poisson((30, 30)).to_scipy()
    ml = smoothed_aggregation_solver(A, **default)
    theirs, ours = (inspect.signature(c.solve).parameters for c in (pyamg.multilevel.MultilevelSolver, type(ml)))
    assert list(theirs) == list(ours) and all(theirs[n].default == ours[n].default for n in theirs)
    x = ml.solve(b, **{n: p.default for n, p in theirs.items() if n not in ("self", "b")})
    assert np.linalg.norm(b - A @ x) <= 1e-5 * np.linalg.norm(b)


def test_the_first_call_of_pyamgs_page():
    pyamg = pytest.importorskip("pyamg")
    A = pyamg.gallery.poisson((120, 120), format="csr")
    ml = smoothed_aggregation_solver(A)
    theirs, ours = [], []
    b = np.random.default_rng(0).random(A.shape[0])
    pyamg.smoothed_aggregation_solver(A).solve(b, tol=1e-10, residuals=theirs)
    x = ml.solve(b, tol=1e-10, residuals=ours)
    assert np.linalg.norm(b - A @ x) <= 1e-10 * np.linalg.norm(b)
    assert len(ours) < 1.6 * len(theirs), (len(ours), len(theirs))
    x, info = spla.cg(A, b, rtol=1e-8, maxiter=30, M=ml.aspreconditioner(cycle="V"))
    assert info == 0


def test_what_takes_the_place_of_a_default_is_said_once(monkeypatch):
    monkeypatch.setattr(facade, "_said", set())
    A = am.gallery.poisson((12, 12))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(3):
            smoothed_aggregation_solver(A)
    texts = [str(w.message) for w in found]
    assert len(texts) == 2 and "block_gauss_seidel is not offered" in texts[0] and "not improved" in texts[1], texts
    assert all(w.filename == __file__ for w in found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smoothed_aggregation_solver(A, presmoother="spai0", improve_candidates=None)


def test_a_solve_that_does_not_converge_warns():
    A = am.gallery.poisson((40, 40))
    ml = smoothed_aggregation_solver(A)
    for accel in (None, "cg", "gmres"):
        with pytest.warns(
            RuntimeWarning, match=r"did not converge to tol=1e-12: DIVERGED_ITS after 2 iterations, norm\(b - A x\) is"
        ):
            ml.solve(np.ones(1600), tol=1e-12, maxiter=2, accel=accel)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ml.solve(np.ones(1600), tol=1e-6, accel=accel)
            assert ml.solve(np.ones(1600), tol=1e-12, maxiter=2, accel=accel, return_info=True)[1] == 2


def test_a_zero_right_hand_side_takes_an_absolute_tolerance():
    ml = smoothed_aggregation_solver(am.gallery.poisson((40, 40)))
    x, info = ml.solve(np.zeros(1600), x0=np.ones(1600), tol=1e-6, accel="cg", return_info=True)
    assert info == 0 and np.linalg.norm(ml.A @ x) <= 1e-6
    assert not ml.solve(np.zeros(1600)).any()


def test_options_reach_the_hierarchy():
    A = am.gallery.poisson((40, 40), epsilon=(1.0, 0.01))
    weak, strong = (smoothed_aggregation_solver(A, strength=s) for s in (("symmetric", {"theta": 0.25}), None))
    assert weak.levels[1]["rows"] > 1.5 * strong.levels[1]["rows"]  # coarsened along the strong couplings alone
    assert smoothed_aggregation_solver(A, max_levels=2).levels[2:] == []
    assert smoothed_aggregation_solver(A, max_coarse=400).levels[-1]["rows"] <= 400
    P, its = am.gallery.poisson((60, 60)), {}
    for smooth in (None, "jacobi"):
        smoothed_aggregation_solver(P, smooth=smooth).solve(np.ones(3600), tol=1e-8, accel="cg", residuals=(r := []))
        its[smooth] = len(r) - 1
    assert its["jacobi"] < 0.8 * its[None], its


def test_strength_measures_are_those_of_the_options():
    A = am.gallery.rotated_anisotropy((60, 60))
    for strength, options in (
        ("classical", "-pc_amg_strength classical -pc_amg_threshold 0.1"),
        (("classical", {"theta": 0.4}), "-pc_amg_strength classical -pc_amg_threshold 0.4"),
        ("evolution", "-pc_amg_strength evolution -pc_amg_threshold 0.25"),
        (("evolution", {"epsilon": 2.0}), "-pc_amg_strength evolution -pc_amg_threshold 0.5"),
    ):
        ml = smoothed_aggregation_solver(A, strength=strength, max_coarse=50)
        options += " -pc_amg_agg_type mis2 -pc_amg_coarse_size 50 -pc_amg_max_levels 10"
        s = am.Solver(A, options, ksp="cg", pc="amg")
        rows = [int(line.split()[1]) for line in s.view().splitlines() if line.strip()[:1].isdigit()]
        assert [level["rows"] for level in ml.levels] == rows and len(rows) > 2


@pytest.mark.filterwarnings("ignore:smoothed_aggregation_solver")
def test_the_preconditioner_has_the_adjoint_of_a_nonsymmetric_matrix(rng):
    A = am.gallery.poisson((20, 20)).to_scipy() + sp.diags_array(0.3 * np.ones(399), offsets=1)
    M = smoothed_aggregation_solver(sp.csr_array(A)).aspreconditioner()
    x, y = rng.standard_normal((2, 400))
    assert abs(y @ (M @ x) - (M.H @ y) @ x) < 1e-5 * np.linalg.norm(x) * np.linalg.norm(y)


@pytest.mark.filterwarnings("ignore:smoothed_aggregation_solver")
def test_guesses_that_cannot_be(rng):
    ml = smoothed_aggregation_solver(am.gallery.poisson((20, 20)).to_scipy())
    with pytest.raises(am.InputError, match="imaginary part would be lost"):
        ml.solve(np.ones(400), x0=1j * np.ones(400))
    with pytest.raises(am.errors.ShapeError, match=r"x0 has shape \(3,\)"):
        ml.solve(np.ones(400), x0=np.ones(3))
