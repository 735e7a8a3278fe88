"""Bad input and bad problems: each a clear error or a stated reason."""

import _thread
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def poisson(n=10):
    return am.gallery.poisson((n, n))


def failure(*args, **kw):
    with pytest.raises(am.ConvergenceError) as caught:
        am.solve(*args, **kw)
    return caught.value.info


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_in_the_matrix_names_the_row(value):
    S = poisson().to_scipy()
    S.data[S.indptr[42]] = value
    with pytest.raises(am.InputError, match="in row 42"):
        am.Solver(S)


def test_nan_in_b_and_x0():
    b = np.ones(100)
    b[7] = np.nan
    with pytest.raises(am.InputError, match="1 entries that are NaN or infinite; the first is in row 7"):
        am.solve(poisson(), b)
    with pytest.raises(am.InputError, match="initial guess"):
        am.solve(poisson(), np.ones(100), b)


def test_shapes():
    with pytest.raises(am.ShapeError, match=r"b has shape \(7,\); \(100,\)"):
        am.solve(poisson(), np.ones(7))
    with pytest.raises(am.ShapeError, match="3 x 5; a square one is needed"):
        am.Solver(sp.csr_array(np.ones((3, 5))))


def test_a_row_that_vanishes_beside_the_largest_entry_is_not_called_empty():
    for pair, dtype in (((1e25, 1e-22), np.float32), ((1e300, 1e-300), np.float64)):
        for pc in ("lu", "amg", "jacobi"):
            with pytest.raises(
                am.InputError, match="the entries of row 1 of the matrix are too small to be seen in float.* Scale rows"
            ):
                am.solve(sp.csr_array(np.diag(np.array(pair, dtype))), np.ones(2, dtype), pc=pc)


def test_arguments_that_are_no_numbers_matrices_or_paths(tmp_path):
    A, b = poisson(), np.ones(100)
    for kind, text, call in (
        (am.InputError, "damp='a'; a number", lambda: am.least_squares(A, b, damp="a")),
        (am.InputError, "atol=None; a number", lambda: am.least_squares(A, b, atol=None)),
        (am.InputError, "its square is finite", lambda: am.least_squares(A, b, damp=1e300)),
        (am.DtypeError, "maxiter is 2.5", lambda: am.least_squares(A, b, maxiter=2.5)),
        (am.InputError, "monitor is 3; a function", lambda: am.least_squares(A, b, monitor=3)),
        (am.DtypeError, "Vector: columns is 1.5", lambda: am.Vector(A, columns=1.5)),
        (am.ShapeError, "two dimensions", lambda: am.Matrix.from_scipy(sp.coo_array(np.ones(3)))),
        (am.InputError, "A / a: a is 0", lambda: A / 0),
        (am.InputError, "a is 1000", lambda: A * 10**400),
        (am.OutOfMemoryError, "out of memory", lambda: am.VectorAssembly(2**62, [])),
        (TypeError, "A is a csr_array; an asterism.Matrix", lambda: am.write_matrix(tmp_path / "A.mtx", A.to_scipy())),
        (TypeError, "A is a Transposed; an asterism.Matrix", lambda: am.write_matrix(tmp_path / "A.mtx", A.T)),
        (TypeError, "A is a csr_array", lambda: am.write_vector(tmp_path / "x.mtx", b, A.to_scipy())),
        (am.ShapeError, r"x has shape \(3,\); \(100,\)", lambda: am.write_vector(tmp_path / "x.npy", np.ones(3), A)),
        (am.ShapeError, "k at least 1", lambda: am.write_vector(tmp_path / "x.mtx", np.ones((100, 0)), A)),
        (am.ShapeError, "k at least 1", lambda: am.save(tmp_path / "x.ast", A=A, x=np.ones((100, 0)))),
        (am.InputError, "zero character", lambda: am.write_matrix(f"{tmp_path}/x\0.mtx", A)),
        (am.DtypeError, "block_size is 2.5", lambda: am.read_matrix(tmp_path / "A.mtx", block_size=2.5)),
        (am.InputError, "Name it FILE.ast", lambda: am.solve(A, b, ksp="cg", checkpoint=tmp_path / "c.mtx")),
        (am.OptionError, "An option without a value is 'true'", lambda: am.solve(A, b, options="-pc_type")),
        (am.OptionError, "An option without a value is 'true'", lambda: am.solve(A, b, options="-ksp_max_it")),
        (
            am.OptionError,
            "An option without a value is 'true'",
            lambda: am.solve(A, b, options="-ksp_rtol -pc_type amg"),
        ),
    ):
        with pytest.raises(kind, match=text):
            call()
    assert list(tmp_path.iterdir()) == []
    assert am.solve(A, b, options={"ksp_type": "cg", "pc_type": None})[1].preconditioner.startswith("amg")
    with pytest.raises(
        am.ConvergenceError, match="preonly applies the preconditioner once, and jacobi is no direct solve"
    ):
        am.solve(A, b, ksp="preonly", pc="jacobi")
    with pytest.raises(am.InputError, match="icc: the pivot .* Use -pc_type ilut"):
        am.solve(sp.csr_array([[0, 1.0], [1, 0]]), np.ones(2), pc="icc", ksp="cg")


def test_a_failed_solve_of_a_real_matrix_with_a_complex_b_has_its_answer():
    for b in (np.ones(100) * (1 + 2j), np.ones((100, 2)) * 1j):
        with pytest.raises(am.ConvergenceError) as caught:
            am.solve(poisson(), b, ksp="cg", pc="none", maxiter=2)
        assert caught.value.x.shape == b.shape and caught.value.x.dtype == complex


def test_a_function_that_gives_nan_is_told():
    A = am.Operator(lambda x: x * np.nan, 9)
    with pytest.raises(am.InputError, match="9 entries that are NaN or infinite; the first is in row 0"):
        am.Solver(A)


def test_an_empty_row_is_named():
    S = poisson().to_scipy().tolil()
    S[13, :] = 0
    with pytest.raises(am.InputError, match="row 13 of the matrix is empty"):
        am.Solver(S.tocsr())


def test_zero_diagonal():
    S = poisson().to_scipy().tolil()
    S[5, 5] = 0
    for pc in ("jacobi", "sor", "chebyshev"):
        with pytest.raises(am.InputError, match="diagonal entry of row 5 is zero"):
            am.Solver(S.tocsr(), ksp="gmres", pc=pc)
    x, info = am.solve(S.tocsr(), np.ones(100), ksp="gmres", pc="ilu", options="-pc_factor_shift_type nonzero")
    assert info.converged
    saddle = sp.block_array([[sp.eye_array(3), np.ones((3, 1))], [np.ones((1, 3)), None]]).tolil()
    saddle[0, 0] = 0
    with pytest.raises(am.InputError, match="ilu: the pivot of row .* Use -pc_factor_matching true"):
        am.Solver(saddle.tocsr(), ksp="gmres", pc="ilu", options="-pc_factor_matching false")
    x, info = am.solve(saddle.tocsr(), np.ones(4), ksp="gmres", pc="ilu", rtol=1e-10)
    assert np.allclose(saddle @ x, 1) and ", matched" in info.preconditioner


def test_unsymmetric_under_cg():
    A = am.gallery.convection_diffusion((10, 10), (50.0, 0.0))
    with pytest.raises(am.InputError, match="cg needs a Hermitian matrix"):
        am.Solver(A, ksp="cg", pc="jacobi")
    S = poisson(40).to_scipy().tolil()
    S[3, 4] = -1.0001  # one entry among thousands
    with pytest.raises(am.InputError, match="Hermitian"):
        am.Solver(S.tocsr(), ksp="cg", pc="jacobi")


def test_unsymmetric_preconditioner_under_cg():
    with pytest.raises(am.OptionError, match="symmetric preconditioner"):
        am.Solver(poisson(), ksp="cg", pc="sor", options={"pc_sor_symmetric": False})


def test_indefinite_matrix_and_preconditioner():
    S = (poisson().to_scipy() - 3.7 * sp.eye_array(100)).tocsr()
    info = failure(S, np.ones(100), ksp="cg", pc="none")
    assert info.reason == "DIVERGED_INDEFINITE_MAT" and "minres" in info.why
    D = sp.diags_array(np.where(np.arange(100) % 2, 1.0, -1.0)).tocsr()
    info = failure(D, np.ones(100), ksp="cg", pc="jacobi")
    assert info.reason in ("DIVERGED_INDEFINITE_PC", "DIVERGED_INDEFINITE_MAT")
    info = failure(D, np.arange(100.0)[::-1].copy(), ksp="minres", pc="jacobi")
    assert info.reason == "DIVERGED_INDEFINITE_PC"


def test_pure_neumann_is_projected_and_said(rng):
    A = am.gallery.poisson((20, 20), neumann=True)
    b = rng.standard_normal(400)
    x, info = am.solve(A, b, rtol=1e-9)
    assert info.converged
    assert any("null space" in n for n in info.notes) and any("not in the range" in n for n in info.notes)
    assert abs(x.mean()) < 1e-10
    np.testing.assert_allclose(A @ x, b - b.mean(), atol=1e-7)
    b -= b.mean()
    x, info = am.solve(A, b, ksp="cg", pc="jacobi", rtol=1e-9)
    assert not any("not in the range" in n for n in info.notes)
    np.testing.assert_allclose(A @ x, b, atol=1e-7)


def test_singular_and_inconsistent():
    S = sp.diags_array([1.0, 2, 3]).tolil()
    S[2, :] = S[1, :]  # rank 2, b not in the range
    for ksp in ("gmres", "bicgstab"):
        info = failure(S.tocsr(), np.array([1.0, 2, 5]), ksp=ksp, pc="none", maxiter=50)
        assert info.reason.startswith("DIVERGED"), info
    with pytest.raises((am.InputError, am.ConvergenceError)):
        am.solve(np.array([[1.0, 2], [2, 4]]), np.array([1.0, 3]), ksp="preonly", pc="lu")


def test_unreachable_tolerance_ends_as_stagnated():
    for ksp, pc in [("cg", "jacobi"), ("gmres", "ilu"), ("cg", "amg")]:
        info = failure(poisson(30), np.random.default_rng(0).standard_normal(900), ksp=ksp, pc=pc, rtol=1e-20)
        assert info.reason == "DIVERGED_STAGNATED" and "rounding in A x" in info.why
        assert info.true_residual < 1e-12 * info.rhs_norm


def test_divergence_is_seen():
    A = am.gallery.poisson((20, 20))
    info = failure(A, np.ones(400), ksp="richardson", pc="none", maxiter=5000)
    assert info.reason in ("DIVERGED_DTOL", "DIVERGED_NANORINF")


def test_option_typos():
    A = poisson()
    with pytest.raises(am.OptionError, match=r"unknown option -ksp_rtolx \(options\). Did you mean -ksp_rtol\?"):
        am.Solver(A, {"ksp_rtolx": 1})
    with pytest.raises(am.OptionError, match="unknown option -ksp_grmres_restart .*Did you mean -ksp_gmres_restart"):
        am.Solver(A, "-ksp_grmres_restart 50")
    with pytest.raises(am.OptionError, match="'gmre' is not one of .*Did you mean 'gmres'"):
        am.Solver(A, ksp="gmre")
    with pytest.raises(am.OptionError, match="'ten' is not an integer"):
        am.Solver(A, {"ksp_max_it": "ten"})
    with pytest.raises(am.OptionError, match="-1 is outside"):
        am.Solver(A, rtol=-1)
    with pytest.raises(am.OptionError, match="given twice in one place"):
        am.Solver(A, "-ksp_rtol 1 -ksp_rtol 2")
    with pytest.raises(am.OptionError, match="string or a dict"):
        am.Solver(A, options=["-ksp_type", "cg"])


def test_impossible_sizes():
    with pytest.raises(am.AsterismError, match="overflows"):
        am.gallery.poisson((2**31, 2**31, 2**31))
    with pytest.raises(am.AsterismError, match="do not fit in 32 bits|out of memory"):
        am.Matrix.coo((2**33, 2**33), [0], [0], [1.0])


def test_shapes_of_grids():
    assert am.gallery.poisson(5).shape == (5, 5)
    assert am.gallery.diffusion(np.int32(4)).shape == (4, 4)
    assert am.gallery.convection_diffusion(3, [1.0]).shape == (3, 3)
    with pytest.raises(am.DtypeError, match=r"poisson: shape is 2.5 \(float\); an integer"):
        am.gallery.poisson(2.5)
    with pytest.raises(am.DtypeError, match="diffusion: shape is None"):
        am.gallery.diffusion(None)
    with pytest.raises(am.AsterismError, match="1, 2 or 3 dimensions, not 4"):
        am.gallery.poisson((2, 2, 2, 2))


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize(
    ("ksp", "pc", "columns"), [("richardson", "sor", 1), ("cg", "none", 60), ("tfqmr", "none", 60)]
)
def test_ctrl_c_ends_a_long_solve(ksp, pc, columns):  # cg takes the columns together, tfqmr one after the other
    A = am.gallery.poisson((300, 300))
    b = np.random.default_rng(0).standard_normal((90_000, columns))
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        am.solve(A, b, ksp=ksp, pc=pc, rtol=1e-12, maxiter=10**6)
    timer.join()
    x, info = am.solve(A, np.ones(90_000), ksp="cg", pc="amg")  # the library is usable afterwards
    assert info.converged


def test_errors_in_a_monitor_reach_the_caller():
    def monitor(it, r):
        raise RuntimeError("from the monitor")

    with pytest.raises(RuntimeError, match="from the monitor"):
        am.solve(poisson(), np.ones(100), monitor=monitor)


def test_empty_and_one_by_one():
    x, info = am.solve(sp.csr_array((0, 0)), np.zeros(0))
    assert info.converged and x.shape == (0,)
    for pc in ("jacobi", "amg", "ilu", "lu"):
        x, info = am.solve(np.array([[4.0]]), np.array([2.0]), pc=pc)
        assert x[0] == pytest.approx(0.5)


def test_memory_has_a_cap(on_ranks):
    out = on_ranks(
        1,
        """
A = am.gallery.poisson((100, 100))
print(message(lambda: am.Solver(A, given("-pc_type amg -memory_cap 1200000"))))
am.solve(A, np.ones(10000), options=given("-memory_cap 0"))
print("GOES ON")
""",
    )
    assert "above the cap of 1200000 (-memory_cap)" in out
    assert "GOES ON" in out


@pytest.mark.parametrize("name", ["lsqr", "lsmr", "cgne"])
def test_a_method_of_least_squares_names_its_function(name):
    with pytest.raises(am.OptionError, match="am.least_squares") as e:
        am.Solver(am.gallery.poisson((4,)), ksp=name)
    assert "Did you mean" not in str(e.value)


def test_a_matrix_with_too_few_values_is_refused():
    S = sp.csr_array(sp.eye_array(1000))
    S.data = np.ones(1)
    with pytest.raises(am.ShapeError, match="1 values for the 1000 entries"):
        am.Matrix.from_scipy(S)
    S.data = np.ones(1500)  # more are spare room, as SciPy leaves it
    assert am.Matrix.from_scipy(S).nnz == 1000


@pytest.mark.parametrize(
    "words", [{"rtol": 1e-10, "ksp_rtol": 1e-3}, {"pc": "amg", "pc_type": "lu"}, {"maxiter": 3, "max_it": 4}]
)
def test_one_option_with_two_values_is_refused(words):
    first, second = words
    with pytest.raises(am.OptionError, match=f"given twice.*{words[first]}.*{words[second]}"):
        am.Solver(am.gallery.poisson((4, 4)), **words)
    am.Solver(am.gallery.poisson((4, 4)), **{first: words[first], second: words[first]})


def test_masked_values_are_refused(tmp_path):
    A = am.gallery.poisson((5, 5))
    masked = np.ma.masked_array(np.ones(25), mask=[True] * 2 + [False] * 23)
    calls = [
        lambda: am.solve(A, masked), lambda: A @ masked, lambda: am.Vector(A).copy_from(masked), lambda: am.Vector.wrap(A, masked),
        lambda: am.Matrix.coo((25, 25), range(25), range(25), masked), lambda: am.write_vector(tmp_path / "x.mtx", masked),
        lambda: am.Matrix.from_scipy(np.ma.masked_array(np.eye(25), mask=np.diag(masked.mask))),
        lambda: am.Builder((25, 25)).add(range(25), range(25), masked),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(am.InputError, match=r"has 2 masked values of \d+.*filled"):
            call()
    assert am.solve(A, np.ma.masked_array(np.ones(25)))[1].converged  # nothing is masked


@pytest.mark.parametrize("dtype", ["foo", "float16", object, 3])
def test_other_dtypes_are_named(dtype):
    A = am.gallery.poisson((5, 5))
    i = am.stencil.indices(1)[0]
    s = am.stencil.assign(am.stencil.grid("y", 1)(i), 2.0 * am.stencil.grid("x", 1)(i))
    calls = [
        lambda: A.astype(dtype), lambda: am.Vector(A, dtype=dtype), lambda: am.Builder((4, 4), dtype),
        lambda: am.Operator(lambda x: x, 4, dtype=dtype), lambda: am.stencil.operator(s, 8, dtype=dtype),
        lambda: am.stencil.compile(s, 8, dtype=dtype), lambda: s.interpret(dtype=dtype, x=np.ones(8)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(am.DtypeError, match="is none of float32, float64, complex64 and complex128"):
            call()


def test_a_solve_info_is_no_number():
    info = am.solve(am.gallery.poisson((5, 5)), np.ones(25))[1]
    for compare in (lambda: info == 0, lambda: info != 0, lambda: info == False, lambda: info == np.int64(0)):  # noqa: E712
        with pytest.raises(TypeError, match=r"use info\.converged"):
            compare()
    assert info == info and info != "0" and info is not None and len({info, info}) == 1


def test_ranks_that_distribute_different_matrices_are_told(on_ranks):
    on_ranks(
        2,
        """
S = sp.eye(10, format="csr")
A = am.Matrix.from_scipy(S, comm, distribute=True)
assert np.array_equal(A @ np.ones(5), np.ones(5))
for other in (S * (1 + rank), S if rank else sp.eye(10, k=1, format="csr"), (1 + rank) * np.eye(10)):
    text = message(lambda: am.Matrix.from_scipy(other, comm, distribute=True))
    assert "checksum of its entries" in text, text
R = sp.random_array((10, 10), density=0.5, rng=np.random.default_rng(1)).tocsr()
mixed = R[:, ::-1][:, ::-1]  # the same entries in another order, and other types
wide = sp.csr_array((R.data, R.indices.astype(np.int64), R.indptr.astype(np.int64)), R.shape)
for same in (mixed, wide, R.toarray(), R.tocoo()):  # BSR stores zeros, and is another matrix
    A = am.Matrix.from_scipy(same if rank else R, comm, distribute=True)
    assert A.block_size == 1 and np.allclose(A @ np.ones(5), R.sum(axis=1)[5 * rank : 5 * rank + 5])
""",
    )


def test_hints_of_what_was_meant(on_ranks):
    on_ranks(
        2,
        """
S = am.gallery.poisson((6, 6)).to_scipy()
lo = 18 * rank
mine = S[lo : lo + 18]
assert "am.Matrix.from_scipy(S, comm)" in message(lambda: am.solve(mine, np.ones(18)))
A = am.Matrix.from_scipy(mine, comm)
assert f"it is b[{lo}:{lo + 18}]" in message(lambda: am.solve(A, np.ones(36)))
""",
    )
    A = am.gallery.poisson((6, 6))
    with pytest.raises(am.InputError, match="b is a csc_matrix.*toarray"):
        am.solve(A, sp.csc_matrix(np.ones((36, 1))))
    with pytest.raises(am.InputError, match="2 matrices for 3 factors"):
        am.ProductPlan(A, A, A).multiply(A, A)
    for pc, text in (("hypre", "-pc_amg_type classical"), ("fieldsplit", "give it as M"), ("gasm", "asm has")):
        with pytest.raises(am.OptionError, match=text):
            am.Solver(A, pc=pc)


def test_blocks_of_scipy_are_rows_of_nodes():
    K = am.gallery.elasticity((4, 4, 4))
    assert am.Matrix.from_scipy(K.to_scipy().tobsr((3, 3))).block_size == 3
    assert (
        am.Matrix.from_scipy(K.to_scipy()).block_size
        == am.Matrix.from_scipy(K.to_scipy().tobsr((3, 1))).block_size
        == 1
    )
    assert am.Matrix.from_scipy(K.to_scipy().tobsr((3, 3)), block_size=1).block_size == 1
    assert am.Matrix.from_scipy(sp.eye_array(100).tobsr((50, 50))).block_size == 1
    with pytest.raises(am.AsterismError, match="block size"):
        am.Matrix.from_scipy(sp.eye_array(4).tocsr(), block_size=0)
    xyz = np.random.default_rng(0).random((K.shape[0] // 3, 3))
    assert am.Matrix.from_scipy(K.to_scipy().tobsr((6, 6)), coordinates=xyz).block_size == 3
