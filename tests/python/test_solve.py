import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]
METHODS = ["cg", "cr", "bicg", "idr", "cgs", "gcr", "gmres", "fgmres", "bicgstab", "minres", "richardson", "chebyshev"]


def hermitian(rng, n, dtype):
    S = sp.random_array((n, n), density=0.05, rng=rng).astype(dtype)
    if np.dtype(dtype).kind == "c":
        S = S + 1j * sp.random_array((n, n), density=0.05, rng=rng)
    S = S + S.conj().T + sp.eye_array(n) * 12
    return S.tocsr().astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ksp", METHODS)
@pytest.mark.parametrize("pc", ["jacobi", "chebyshev", "ilu", "ilut", "icc", "sor", "amg", "bjacobi", "asm", "lu"])
def test_the_contract_of_every_method(rng, dtype, ksp, pc):
    """Stopping, history from step 0, verified residual, reason: the same for all."""
    if pc in ("ilut", "asm") and ksp in ("cg", "cr", "minres", "chebyshev"):
        pytest.skip("it is not symmetric")
    S = hermitian(rng, 120, dtype)
    b = rng.standard_normal(120).astype(dtype)
    rtol = 1e-4 if S.dtype.itemsize == 4 or dtype == "complex64" else 1e-9
    seen = []
    x, info = am.solve(S, b, ksp=ksp, pc=pc, rtol=rtol, maxiter=2000, monitor=lambda it, r: seen.append((it, r)))
    true, size = float(np.linalg.norm(b - S @ x)), float(np.linalg.norm(b))
    assert info.converged and info.reason == "CONVERGED_RTOL" and info.why == ""
    assert true <= 1.05 * rtol * size
    assert info.true_residual == pytest.approx(true, rel=5e-2, abs=1e-6 * size)
    assert info.residual_norms.shape == (info.iterations + 1,)
    assert info.residual_norms[0] == pytest.approx(size, rel=1e-5)
    assert [s[0] for s in seen] == list(range(info.iterations + 1))
    assert x.dtype == dtype and x.shape == b.shape


@pytest.mark.parametrize("ksp", [*METHODS, "preonly"])
def test_too_few_iterations_raise_with_x_and_info(ksp):
    A = am.gallery.poisson((30, 30))
    pc = "sor" if ksp in ("richardson", "preonly", "chebyshev") else "none"
    with pytest.raises(am.ConvergenceError) as caught:
        am.solve(A, np.ones(900), ksp=ksp, pc=pc, rtol=1e-12, maxiter=3)
    info = caught.value.info
    assert info.reason in ("DIVERGED_ITS", "DIVERGED_STAGNATED") and info.why
    assert caught.value.x.shape == (900,)
    x, info = am.solve(A, np.ones(900), ksp=ksp, pc=pc, rtol=1e-12, maxiter=3, raise_on_failure=False)
    assert not info.converged


def test_the_chebyshev_preconditioner_is_the_polynomial():
    """Against its three-term recurrence in NumPy, and: of degree 1 it is jacobi."""
    A = am.gallery.poisson((9, 8))
    S, b = A.to_scipy(), np.sin(np.arange(72.0))
    for degree in (1, 2, 5):
        s = am.Solver(
            A,
            f"-ksp_type preonly -pc_type chebyshev -pc_chebyshev_degree {degree} -pc_chebyshev_ratio 10 -ksp_max_resumes 0",
        )
        got = s.solve(b, raise_on_failure=False)
        lo, hi = (float(v) for v in s.view().split("on [")[1].split("]")[0].split(","))
        assert hi == 2 and lo == 0.2
        theta, delta = (hi + lo) / 2, (hi - lo) / 2
        x, d, rho = np.zeros(72), np.zeros(72), delta / theta
        for k in range(degree):
            r = (b - S @ x) / S.diagonal()
            new = 1 / (2 * theta / delta - rho) if k else 0.0
            d = new * rho * d + 2 * new / delta * r if k else r / theta
            rho = new if k else rho
            x = x + d
        assert np.allclose(got, x, rtol=1e-12)
    jacobi, info = am.solve(A, b, ksp="cg", pc="jacobi", rtol=1e-9)
    x, better = am.solve(A, b, ksp="cg", pc="chebyshev", rtol=1e-9)
    assert better.iterations < info.iterations / 2
    assert np.allclose(x, jacobi, atol=1e-6)


def test_unsymmetric_methods_agree_with_scipy(rng):
    A = am.gallery.convection_diffusion((25, 25), (30.0, 10.0))
    b = rng.standard_normal(625)
    exact = spla.spsolve(A.to_scipy().tocsc(), b)
    for ksp in ("gmres", "fgmres", "gcr", "bicg", "idr", "bicgstab", "cgs"):
        x, info = am.solve(A, b, ksp=ksp, pc="ilu", rtol=1e-11)
        np.testing.assert_allclose(x, exact, rtol=1e-7, atol=1e-10)
    iterations = {s: am.solve(A, b, ksp="idr", pc="none", rtol=1e-8, ksp_idr_s=s)[1].iterations for s in (1, 4, 8)}
    assert iterations[8] < iterations[4] < iterations[1]
    with pytest.raises(am.OptionError, match="-ksp_idr_s"):
        am.solve(A, b, ksp="idr", ksp_idr_s=0)
    x, info = am.solve(A, b, rtol=1e-11)
    assert info.method == "gmres"


def test_minres_on_an_indefinite_matrix(rng):
    S = (am.gallery.poisson((12, 12)).to_scipy() - 2.1 * sp.eye_array(144)).tocsr()
    b = rng.standard_normal(144)
    x, info = am.solve(S, b, ksp="minres", pc="none", rtol=1e-9, maxiter=3000)
    np.testing.assert_allclose(x, spla.spsolve(S.tocsc(), b), rtol=1e-5, atol=1e-7)
    # the recurrence of the residual is the true one
    assert info.residual_norms[-1] == pytest.approx(info.true_residual, rel=1e-3)


def test_several_right_hand_sides(rng):
    A = am.gallery.poisson((15, 15))
    B = rng.standard_normal((225, 4))
    B[:, 2] = 0
    exact = spla.spsolve(A.to_scipy().tocsc(), B)
    for ksp, pc in [("cg", "amg"), ("bicgstab", "jacobi"), ("gmres", "ilu"), ("minres", "jacobi")]:
        X, info = am.solve(A, B, ksp=ksp, pc=pc, rtol=1e-10)
        np.testing.assert_allclose(X, exact, atol=1e-7)
        assert info.residual_norms.shape == (info.iterations + 1, 4)
        assert (info.true_residual <= 1e-10 * np.linalg.norm(B, axis=0) + 1e-300).all()


def test_complex_rhs_of_a_real_matrix(rng):
    A = am.gallery.poisson((10, 10))
    b = rng.standard_normal(100) + 1j * rng.standard_normal(100)
    x, info = am.solve(A, b, rtol=1e-10)
    np.testing.assert_allclose(A.to_scipy() @ x, b, atol=1e-8)


def test_initial_guess_and_zero_rhs(rng):
    A = am.gallery.poisson((20, 20))
    b = rng.standard_normal(400)
    x, info = am.solve(A, b, rtol=1e-10)
    guess = x.copy()
    y, again = am.solve(A, b, guess, rtol=1e-8)
    assert again.iterations == 0 and (guess == x).all()
    z, info = am.solve(A, np.zeros(400), guess)
    assert info.converged and (z == 0).all()
    with pytest.raises(am.ShapeError, match=r"x0 has shape \(3,\)"):
        am.solve(A, b, np.ones(3))


def test_solver_keeps_its_set_up(rng):
    s = am.Solver(am.gallery.poisson((30, 30)), {"ksp_type": "cg", "pc_type": "amg"}, rtol=1e-9)
    for _ in range(3):
        b = rng.standard_normal(900)
        x = s.solve(b)
        assert np.linalg.norm(s.A @ x - b) <= 1e-9 * np.linalg.norm(b)


def test_float32_preconditioner_under_float64():
    A = am.gallery.poisson((40, 40))
    for pc in ("amg", "ilu", "sor"):
        x, info = am.solve(A, np.ones(1600), ksp="cg", pc=pc, rtol=1e-11, pc_dtype="float32")
        assert "float32" in info.preconditioner and info.converged
        x, info = am.solve(A, np.ones(1600), ksp="cg", pc=pc, rtol=1e-11, pc_dtype="float64")
        assert "float32" not in info.preconditioner


@pytest.mark.parametrize(
    "options",
    [
        "-pc_amg_cycle_type w",
        "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 3",
        "-mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2",
        "-pc_amg_threshold 0",
        "-pc_amg_max_levels 2",
        "-pc_amg_coarse_size 10",
        "-pc_dtype float64",
    ],
)
def test_amg_options(options):
    A = am.gallery.poisson((20, 20, 20))
    x, info = am.solve(A, np.ones(8000), ksp="cg", pc="amg", rtol=1e-9, options=options)
    assert info.iterations <= 25


def test_amg_iterations_hardly_grow_with_the_size():
    counts = []
    for n in (16, 32, 48):
        A = am.gallery.poisson((n, n, n))
        _, info = am.solve(A, np.ones(n**3), ksp="cg", pc="amg", rtol=1e-8)
        counts.append(info.iterations)
    assert max(counts) <= 20 and counts[-1] <= counts[0] + 8


def test_rigid_body_modes_pay_off():
    A = am.gallery.elasticity((8, 8, 8))
    b = np.ones(A.shape[0])
    _, with_modes = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8)
    B = am.Matrix.from_scipy(A.to_scipy(), block_size=3)
    _, without = am.solve(B, b, ksp="cg", pc="amg", rtol=1e-8)
    assert with_modes.iterations < without.iterations
    xyz = np.stack(np.meshgrid(np.arange(1, 9), np.arange(9), np.arange(9), indexing="ij"), -1).reshape(-1, 3)
    C = am.Matrix.from_scipy(A.to_scipy(), coordinates=xyz)
    _, from_coordinates = am.solve(C, b, ksp="cg", pc="amg", rtol=1e-8)
    assert abs(from_coordinates.iterations - with_modes.iterations) <= 1


def test_explain_names_every_origin(monkeypatch):
    monkeypatch.setenv("ASTERISM_OPTIONS", "-ksp_rtol 1e-7 -ksp_max_it 55")
    s = am.Solver(am.gallery.poisson((5, 5)), "-ksp_type cg -ksp_max_it 66", pc="jacobi")
    text = s.explain()
    rows = {line.split()[0]: line for line in text.splitlines()}
    assert "environment" in rows["-ksp_rtol"] and "1e-7" in rows["-ksp_rtol"]
    assert "options" in rows["-ksp_max_it"] and "66" in rows["-ksp_max_it"]
    assert "call" in rows["-pc_type"] and "default" in rows["-ksp_atol"]
    assert "jacobi" in s.view()


def test_options_file(tmp_path, monkeypatch):
    f = tmp_path / "opts"
    f.write_text("# comment\n-ksp_type cg\n-pc_type jacobi -ksp_rtol 1e-6\n")
    monkeypatch.setenv("ASTERISM_OPTIONS_FILE", str(f))
    s = am.Solver(am.gallery.poisson((5, 5)))
    assert "line 3" in s.explain()
    f.write_text("ksp_type cg\n")
    with pytest.raises(am.OptionError, match="'ksp_type' is not an option"):
        am.Solver(am.gallery.poisson((5, 5)))
    monkeypatch.setenv("ASTERISM_OPTIONS_FILE", str(tmp_path))
    with pytest.raises(am.FileError, match="is a folder"):
        am.Solver(am.gallery.poisson((5, 5)))


def test_info_has_no_truth_value():
    _, info = am.solve(am.gallery.poisson((5, 5)), np.ones(25))
    with pytest.raises(TypeError, match="info.converged"):
        bool(info)


def test_known_options_without_effect_are_said(caplog):
    with caplog.at_level("WARNING", logger="asterism"):
        am.Solver(am.gallery.poisson((5, 5)), {"ksp_gmres_restart": 9}, ksp="cg", pc="jacobi")
    assert "option -ksp_gmres_restart (options) has no effect: neither cg nor jacobi reads it" in caplog.text


@pytest.mark.parametrize("seed", range(3))
def test_the_shuffle_queue_changes_no_bit(rng, seed):
    A, b = am.gallery.poisson((14, 15)), rng.standard_normal(210)
    x, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-9, pc_amg_coarse_size=20)
    y, again = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-9, pc_amg_coarse_size=20, queue="shuffle", queue_seed=seed)
    assert (x == y).all() and again.iterations == info.iterations and again.host_waits > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "pc",
    [
        "none",
        "jacobi",
        "ilu",
        "ilut",
        "ilu -pc_factor_levels 2",
        "sor",
        "sor -pc_sor_symmetric 0 -pc_sor_its 2 -pc_sor_omega 1.3",
        "bjacobi",
        "lu",
    ],
)
def test_bicg_applies_adjoint_preconditioners(rng, dtype, pc):
    """A preconditioner whose adjoint were wrong would ruin the convergence of bicg for a matrix that is not Hermitian."""
    n = 150
    S = sp.random_array((n, n), density=0.03, rng=rng) + sp.diags_array(np.linspace(2, 6, n))
    if np.dtype(dtype).kind == "c":
        S = S + 1j * sp.random_array((n, n), density=0.03, rng=rng) + sp.diags_array(1j * np.linspace(1, 3, n))
    S = S.tocsr().astype(dtype)
    b = rng.standard_normal(n).astype(dtype)
    rtol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-9
    x, info = am.solve(S, b, options=f"-ksp_type bicg -pc_type {pc} -ksp_rtol {rtol}")
    assert np.linalg.norm(b - S @ x) <= 1.05 * rtol * np.linalg.norm(b)
    most = {"lu": 2, "none": 120, "jacobi": 60}.get(pc, 35)
    assert info.iterations <= most
    # several columns at once
    B = rng.standard_normal((n, 3)).astype(dtype)
    X, _ = am.solve(S, B, options=f"-ksp_type bicg -pc_type {pc} -ksp_rtol {rtol}")
    assert np.all(np.linalg.norm(B - S @ X, axis=0) <= 1.05 * rtol * np.linalg.norm(B, axis=0))


def test_bicg_needs_an_adjoint():
    A = am.gallery.convection_diffusion((12, 12), (20.0, -10.0), 1.0)
    with pytest.raises(am.UnsupportedError, match="a function has no adjoint"):
        am.solve(am.Operator(lambda x: A @ x, 144), np.ones(144), ksp="bicg")


def test_ilu_with_fill(data):
    """Levels and sizes of fill: against a dense reference, fewer iterations with more of it, and complete at the end."""
    import scipy.io

    A = am.gallery.convection_diffusion((9, 8), (20.0, -10.0), 1.0)
    S = A.to_scipy().toarray()
    n = len(S)

    def reference(levels):
        lev = np.where(S != 0, 0, 10**6)
        np.fill_diagonal(lev, 0)
        for i in range(n):
            for k in range(i):
                if lev[i, k] <= levels:
                    lev[i, k + 1 :] = np.minimum(lev[i, k + 1 :], lev[i, k] + lev[k, k + 1 :] + 1)
            lev[i][lev[i] > levels] = 10**6
        F = S.copy()
        for i in range(n):
            for k in range(i):
                if lev[i, k] <= levels:
                    F[i, k] /= F[k, k]
                    F[i, k + 1 :] -= np.where(lev[i, k + 1 :] <= levels, F[i, k] * F[k, k + 1 :], 0)
        return np.tril(F, -1) + np.eye(n), np.triu(F)

    b = np.cos(np.arange(n))
    for levels in (0, 1, 2, 5):
        L, U = reference(levels)
        s = am.Solver(A, ksp="preonly", pc="ilu", pc_factor_levels=levels, ksp_max_resumes=0)
        x = s.solve(b, raise_on_failure=False)
        assert np.allclose(x, np.linalg.solve(U, np.linalg.solve(L, b)), rtol=1e-10, atol=1e-12), levels
    its = {}
    for options in (
        "ilu",
        "ilu -pc_factor_levels 1",
        "ilu -pc_factor_levels 3",
        "ilut",
        "ilut -pc_ilut_drop 1e-6 -pc_ilut_fill 30",
    ):
        K = am.gallery.poisson((60, 60))
        for ksp in ("gmres", "bicg"):
            x, info = am.solve(K, np.ones(3600), options=f"-ksp_type {ksp} -pc_type {options} -ksp_rtol 1e-8")
            its[ksp, options] = info.iterations
        # nothing is dropped: it is the LU decomposition
        x, info = am.solve(
            A, b, options="-ksp_type gmres -pc_type ilut -pc_ilut_drop 0 -pc_ilut_fill 100 -ksp_rtol 1e-10"
        )
        assert info.iterations <= 2
    assert its["gmres", "ilu"] > its["gmres", "ilu -pc_factor_levels 1"] > its["gmres", "ilu -pc_factor_levels 3"]
    assert its["gmres", "ilu"] > its["gmres", "ilut"] > its["gmres", "ilut -pc_ilut_drop 1e-6 -pc_ilut_fill 30"]
    assert its["bicg", "ilu"] > its["bicg", "ilut"]
    # a real matrix on which ilu(0) is slow
    S = scipy.io.mmread(data / "sherman5.mtx.gz").tocsr()
    rhs = S @ np.ones(S.shape[0])
    counts = [
        am.solve(S, rhs, options=f"-ksp_type gmres -pc_type {o} -ksp_rtol 1e-9")[1].iterations
        for o in ("ilu", "ilu -pc_factor_levels 2", "ilut")
    ]
    assert counts[1] < counts[0] and counts[2] < counts[0], counts
    with pytest.raises(am.OptionError, match="cg needs a symmetric preconditioner"):
        am.solve(am.gallery.poisson((9, 9)), np.ones(81), ksp="cg", pc="ilut")


@pytest.mark.parametrize("ksp", ["gmres", "fgmres"])
def test_gmres_keeps_its_basis_orthogonal(ksp):
    # A M is near the identity: what one pass of classical Gram-Schmidt loses grows by a factor at each step
    A = am.gallery.poisson((31, 33))
    solver = am.Solver(
        A, options=f"-ksp_type {ksp} -ksp_rtol 1e-12 -pc_type amg -pc_amg_coarse_size 5 -pc_dtype float64"
    )
    solver.solve(np.ones(A.shape[0]))
    norms = [float(np.max(step)) for step in solver.info.residual_norms]
    rates = [now / before for before, now in zip(norms[5:-2], norms[6:-1], strict=True)]
    assert solver.info.iterations < 30 and max(rates) < 0.6, (solver.info.iterations, rates)


def test_a_solve_has_tolerances_of_its_own(rng):
    """Of one solve alone: rtol, atol and maxiter. The next one has those of the solver again."""
    A, b = am.gallery.convection_diffusion((30, 30), (5.0, 2.0), 0.1), rng.standard_normal(900)
    S, size = A.to_scipy(), np.linalg.norm(b)
    solver = am.Solver(A, ksp="gmres", pc="ilu", rtol=1e-3)
    for solve, T in ((solver.solve, S), (solver.solve_transpose, S.T)):
        rough = solve(b)
        first = solver.info.iterations
        fine = solve(b, rtol=1e-10)
        assert np.linalg.norm(b - T @ fine) <= 1.001e-10 * size and solver.info.iterations > first
        assert np.array_equal(solve(b), rough) and solver.info.iterations == first
        solve(b, rtol=0, atol=0.3 * size)
        assert solver.info.reason == "CONVERGED_ATOL" and solver.info.iterations <= first
        with pytest.raises(am.ConvergenceError, match="after 1 iterations"):
            solve(b, rtol=1e-10, maxiter=1)
        assert np.array_equal(solve(b, rtol=None), rough)
    x = solver.solve(b + 2j * b, rtol=1e-10)  # real and imaginary parts, as columns
    assert np.abs(S @ x - (1 + 2j) * b).max() <= 1e-9 * size
    assert {o["name"]: o["value"] for o in solver.options_in_force()}["ksp_rtol"] == "0.001"


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"rtol": -1}, am.InputError, "rtol is -1; a number of at least 0"),
        ({"rtol": "1e-3"}, am.InputError, "rtol is '1e-3'"),
        ({"atol": np.nan}, am.InputError, "atol is nan"),
        ({"rtol": np.inf}, am.InputError, "rtol is inf"),
        ({"maxiter": -1}, am.ShapeError, "maxiter is -1"),
        ({"maxiter": 2.5}, am.DtypeError, "maxiter is 2.5"),
    ],
)
def test_wrong_tolerances_of_a_solve(given, error, text):
    solver = am.Solver(am.gallery.poisson((5, 5)))
    for solve in (solver.solve, solver.solve_transpose):
        with pytest.raises(error, match=text):
            solve(np.ones(25), **given)
    solver.solve(np.ones(25))


def test_tolerances_of_a_solve_are_those_of_all_ranks(on_ranks):
    on_ranks(
        2,
        """
A = am.gallery.poisson((12, 12), comm)
b = np.ones(A.local_shape[0])
solver = am.Solver(A, ksp="cg", pc="jacobi", rtol=1e-3)
for given in ({"rtol": 10.0 ** -(rank + 3)}, {"maxiter": rank + 5}, {"atol": 1.0} if rank else {}):
    try:
        solver.solve(b, **given)
    except am.AsterismError as error:
        assert next(iter(given), "atol") in str(error) and "rank" in str(error), str(error)
    else:
        raise AssertionError(given)
solver.solve(b, rtol=1e-9)
assert solver.info.converged and solver.info.relative_residual <= 1e-9
""",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_diagonal_matrix_takes_its_diagonal(dtype):
    """No factors, no dense inverse, whatever its signs and phases."""
    n = 1922
    for d in (np.arange(1.0, n + 1), -np.arange(1.0, n + 1), np.where(np.arange(n) % 2, 1.0, -2.0), np.full(n, 1 + 2j)):
        if np.iscomplexobj(d) and np.dtype(dtype).kind != "c":
            continue
        D = sp.diags_array(d).tocsr().astype(dtype)
        x, info = am.solve(D, np.ones(n, dtype), rtol=1e-5)
        assert info.preconditioner.startswith("jacobi") and info.iterations <= 2
        assert np.abs(D @ x - 1).max() <= 1e-5
    solver = am.Solver(sp.csr_array((0, 0), dtype=dtype))
    assert solver.solve(np.zeros(0, dtype)).shape == (0,)
