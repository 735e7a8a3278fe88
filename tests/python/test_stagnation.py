"""What cannot be reached is told: soon, with the best iterate, and one residual that is the true one."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


@pytest.mark.parametrize(
    "ksp", ["cg", "minres", "gmres", "bicgstab", "tfqmr", "cgs", "idr", "cr", "pipecg", "bicg", "gcr"]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_without_a_tolerance_rounding_level_is_reached(ksp, dtype):
    A = am.gallery.poisson((20, 20)).astype(dtype)
    b = np.ones(400, dtype)
    x, info = am.solve(A, b, ksp=ksp, pc="jacobi", rtol=0)
    true = np.linalg.norm(b.astype("longdouble") - A.to_scipy().astype("longdouble") @ x.astype("longdouble"))
    assert info.reason == "CONVERGED_ROUNDING" and info.iterations < 1000
    eps = np.finfo(dtype).eps
    assert true <= 100 * eps * (8 * np.linalg.norm(x) + 20)
    assert info.true_residual == info.residual_norms[-1]
    assert true / 4 <= info.true_residual <= 4 * true + eps


@pytest.mark.parametrize("ksp", ["cg", "gmres", "bicgstab", "tfqmr", "minres"])
def test_a_tolerance_below_rounding_is_told_with_the_residual(ksp):
    A = am.gallery.poisson((20, 20))
    with pytest.raises(am.ConvergenceError, match="rounding in A x|has not fallen") as caught:
        am.solve(A, np.ones(400), ksp=ksp, pc="jacobi", rtol=1e-18)
    info = caught.value.info
    assert info.reason == "DIVERGED_STAGNATED" and info.iterations < 2000
    assert info.true_residual == info.residual_norms[-1] < 1e-12


@pytest.mark.parametrize(
    "ksp", ["cg", "bicgstab", "cgs", "tfqmr", "bicg", "idr", "gmres", "richardson", "chebyshev", "cr", "gcr", "minres"]
)
def test_the_answer_is_never_worse_than_the_start(ksp):
    """An ill-conditioned matrix with eigenvalues of both signs in places, too few iterations: whatever was best is returned."""
    rng = np.random.default_rng(7)
    Q, _ = np.linalg.qr(rng.standard_normal((150, 150)))
    S = sp.csr_array(Q @ np.diag(np.logspace(-9, 6, 150)) @ Q.T)
    b = rng.standard_normal(150)
    for x0 in (None, 1e-6 * rng.standard_normal(150)):
        start = np.linalg.norm(b if x0 is None else b - S @ x0)
        for maxiter in (1, 7, 40, 400):
            x, info = am.solve(
                S,
                b,
                x0,
                ksp=ksp,
                pc="none",
                rtol=1e-10,
                maxiter=maxiter,
                raise_on_failure=False,
                ksp_check_input="false",
            )
            true = np.linalg.norm(b - S @ x)
            assert true <= start * (1 + 1e-10)
            assert info.true_residual == pytest.approx(true, rel=1e-3)
            assert info.residual_norms[-1] == info.true_residual


def test_divergence_gives_the_best_iterate_back():
    A = am.gallery.poisson((12, 12))
    b = np.ones(144)
    x, info = am.solve(A, b, ksp="richardson", pc="none", ksp_richardson_scale=0.4, rtol=1e-8, raise_on_failure=False)
    assert not info.converged and np.linalg.norm(b - A @ x) <= np.linalg.norm(b) * (1 + 1e-12)
    with pytest.raises(am.ConvergenceError, match="grew"):
        am.solve(A, b, ksp="richardson", pc="none", ksp_richardson_scale=0.4, rtol=1e-8)


def test_methods_that_stand_still_end_early():
    """Restarted gmres makes no progress at all on a cyclic shift."""
    n = 400
    S = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)))
    b = np.zeros(n)
    b[0] = 1
    with pytest.raises(am.ConvergenceError, match="has not fallen by a tenth since iteration 0") as caught:
        am.solve(S, b, ksp="gmres", pc="none", maxiter=100000)
    assert caught.value.info.iterations <= 1000 and caught.value.info.reason == "DIVERGED_STAGNATED"
    x, info = am.solve(S, b, ksp="gmres", pc="none", ksp_gmres_restart=n)
    assert info.converged


def test_slow_methods_are_let_go_on():
    """10 % in 1500 iterations, but they will arrive."""
    A = am.gallery.poisson((40, 40))
    x, info = am.solve(
        A, np.ones(1600), ksp="richardson", pc="none", ksp_richardson_scale=0.02, rtol=1e-2, maxiter=400000
    )
    assert info.converged and info.iterations > 10000


def test_on_ranks_and_queues(on_ranks):
    on_ranks(
        2,
        """
A = am.gallery.poisson((20, 20), comm)
n = A.local_shape[0]
for ksp in ("cg", "bicgstab", "tfqmr"):
    answers = []
    for options in ("", "-queue thread", "-ksp_asynchronous"):
        x, info = am.solve(A, np.ones(n), ksp=ksp, pc="jacobi", rtol=0, options=options)
        assert info.reason == "CONVERGED_ROUNDING"
        answers.append((x, info.iterations))
        y, few = am.solve(A, np.ones(n), ksp=ksp, pc="jacobi", rtol=1e-12, maxiter=30, options=options, raise_on_failure=False)
        answers[-1] += (y,)
    for a in answers[1:]:
        assert (a[0] == answers[0][0]).all() and a[1] == answers[0][1] and (a[2] == answers[0][2]).all(), ksp
""",
    )


@pytest.mark.parametrize("keeps", [True, False])
def test_the_iterate_of_a_failed_solve_is_the_best_or_the_last_one(keeps):
    A, b = am.gallery.poisson((60, 60)), np.ones(3600)
    seen = []
    with pytest.raises(am.ConvergenceError) as caught:
        am.solve(
            A, b, ksp="cg", pc="none", rtol=1e-12, maxiter=10, ksp_keep_best=keeps, monitor=lambda i, r: seen.append(r)
        )
    left = np.linalg.norm(b - A @ caught.value.x)
    assert np.isclose(left, min(seen) if keeps else seen[-1]) and seen[-1] > 2 * min(seen)


def test_preonly_applies_the_preconditioner_once():
    """Whatever it leaves."""
    A = am.gallery.elasticity((8, 8, 8))
    b = np.ones(A.shape[0])
    count = []

    def apply(x):
        count.append(1)
        return 0.1 * x

    for options in ({"pc": "amg"}, {"M": am.Operator(apply, A.shape[0])}):
        with pytest.raises(am.ConvergenceError, match="applies the preconditioner once") as caught:
            am.solve(A, b, ksp="preonly", **options)
        assert caught.value.info.iterations == 1 and caught.value.info.resumes == 0
    assert len(count) == 1 and np.allclose(caught.value.x, 0.1 * b, rtol=1e-12)


def test_new_starts_begin_with_the_best_iterate_where_the_last_one_is_returned():
    """Each start of bicgstab adds to where it begins: from the last iterate residuals come to 1e12 to 1e26 of b, from the best one to 1e8."""
    left = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A = sp.csr_array(sp.random_array((300, 300), density=0.03, rng=rng) + 0.3 * sp.eye_array(300))
        b = rng.standard_normal(300)
        options = {"ksp_keep_best": False, "ksp_divtol": 1e300, "maxiter": 3000}
        with pytest.raises(am.ConvergenceError) as caught:
            am.solve(A, b, ksp="bicgstab", pc="none", rtol=1e-10, **options)
        assert caught.value.info.resumes > 0
        left.append(caught.value.info.relative_residual)
    assert np.median(left) < 1e11, left
