"""Arguments of solve and Solver: mistyped ones, what is said of the mesh, and what is refused before the work."""

import subprocess
import sys

import numpy as np
import pytest

import asterism as am

A = am.gallery.poisson((10, 10))
b = np.ones(100)


@pytest.mark.parametrize(
    "given, text",
    [
        ("rtoll", "Did you mean rtol="),
        ("tol", "Did you mean rtol="),
        ("tolerance", "Did you mean rtol="),
        ("max_iter", "Did you mean maxiter="),
        ("preconditioner", "Did you mean pc="),
        ("method", "Did you mean ksp="),
        ("near_nullspace", "Did you mean near_null_space="),
        ("blocksize", "Did you mean block_size="),
        ("ksp_rtoll", "Did you mean -ksp_rtol"),
        ("ksp_pc_side", "from the right"),
        ("sub_ksp_norm_type", "norm of b - A x"),
        ("pc_amg_treshold", "Did you mean -pc_amg_threshold"),
    ],
)
def test_a_mistyped_keyword_gets_the_nearest_name(given, text):
    for call in (lambda: am.solve(A, b, **{given: 1}), lambda: am.Solver(A, **{given: 1})):
        with pytest.raises(am.OptionError, match=text):
            call()


def test_keywords_of_other_calls_and_prefixes():
    with pytest.raises(am.OptionError, match="argument of Solver.solve: x0="):
        am.Solver(A, x0=b)
    with pytest.raises(am.OptionError, match="Did you mean monitor="):
        am.solve(A, b, callback=print)
    with pytest.raises(am.OptionError, match="unknown option -zzz"):
        am.solve(A, b, zzz=1)
    s = am.Solver(A, prefix="in_", ksp="cg", ksp_monitor=False, mg_levels_ksp_max_it=3, max_it=77)
    assert {o["name"]: o["value"] for o in s.options_in_force()}["in_ksp_max_it"] == "77"


def bar():
    """Return a bar's stiffness matrix without a word about it, the gallery's with all, and its nodes."""
    K = am.gallery.elasticity((12, 3, 3))
    nodes = np.stack(np.meshgrid(np.arange(1, 13), np.arange(4), np.arange(4), indexing="ij"), -1)
    return am.Matrix.from_scipy(K.to_scipy()), K, nodes.reshape(-1, 3).astype(float)


def test_what_is_said_of_the_mesh():
    bare, K, nodes = bar()
    load = np.ones(K.shape[0])
    options = dict(ksp="cg", pc="amg", rtol=1e-8, pc_amg_coarse_size=30)
    best = am.solve(K, load, **options)[1].iterations
    translations = np.tile(np.eye(3), (len(nodes), 1))
    worse = am.solve(K, load, near_null_space=translations, **options)[1].iterations
    assert best < worse
    for said, expected in (
        (dict(coordinates=nodes), best),
        (dict(block_size=3, near_null_space=K.near_null_space), best),
        (dict(block_size=3, near_null_space=translations), worse),
    ):
        solver = am.Solver(bare, **said, **options)
        solver.solve(load)
        assert solver.info.iterations == expected and solver.A.block_size == 3
        solver.update(bare)  # what was said holds for the new matrix too
        solver.solve(load)
        assert solver.info.iterations == expected
        for A in (bare, bare.to_scipy(), bare.toarray()):
            # without stored zeros, or by scalar rows, products are summed in another order
            assert abs(am.solve(A, load, **said, **options)[1].iterations - expected) <= (A is not bare)
        function = am.Operator(lambda x: bare @ x, len(load))
        assert abs(am.solve(function, load, P=bare, **said, **options)[1].iterations - expected) <= 1
        with pytest.raises(am.InputError, match="Give a matrix near it as P"):
            am.solve(function, load, **said, **options)
    assert bare.block_size == 1 and bare.near_null_space is None and K.near_null_space.shape[1] == 6


def test_what_is_said_of_the_mesh_must_fit():
    bare, K, nodes = bar()
    load = np.ones(K.shape[0])
    for said, text in (
        (dict(block_size=5), "block size 5 does not divide"),
        (dict(coordinates=nodes[:-1]), r"coordinates has 191 nodes where the matrix has 576 rows of 3"),
        (dict(coordinates=nodes[:, :1]), "or \\(nodes, 3\\) is needed"),
        (dict(coordinates=nodes, block_size=2), "block_size is 2, but coordinates has 3 columns"),
        (dict(coordinates=nodes, near_null_space=K.near_null_space), "both given"),
        (dict(near_null_space=load[:-1]), "near_null_space has shape"),
        (dict(near_null_space=1j * load), "complex"),
    ):
        for call in (lambda: am.solve(bare, load, **said), lambda: am.Matrix.from_scipy(K.to_scipy(), **said)):
            with pytest.raises(am.AsterismError, match=text):
                call()


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_said_of_the_mesh_on_ranks(on_ranks, ranks):
    on_ranks(
        ranks,
        """
K = am.gallery.elasticity((12, 3, 3), comm)
nodes = np.stack(np.meshgrid(np.arange(1, 13), np.arange(4), np.arange(4), indexing="ij"), -1).reshape(-1, 3)
lo, hi = K.row_range
load, options = np.ones(hi - lo), dict(ksp="cg", pc="amg", rtol=1e-8, pc_amg_coarse_size=30)
bare = am.Matrix.from_scipy(K.to_scipy(), comm)
best = am.solve(K, load, **options)[1].iterations
for said in (dict(coordinates=nodes[lo // 3 : hi // 3]), dict(block_size=3, near_null_space=K.near_null_space)):
    assert am.solve(bare, load, **said, **options)[1].iterations == best
assert bare.block_size == 1 and bare.near_null_space is None
for wrong in range(size):  # told on all ranks
    n = hi - lo
    said = dict(near_null_space=np.ones(n + 1 if rank == wrong else n))
    for call in (lambda: am.solve(bare, load, **said), lambda: am.Matrix.from_scipy(K.to_scipy(), comm, **said)):
        assert "near_null_space has shape" in message(call)
""",
    )


def test_what_can_be_refused_is_refused_before_the_set_up(monkeypatch, tmp_path):
    def never(self, *args):
        raise AssertionError("set up")

    monkeypatch.setattr(am.Solver, "_set_up", never)
    for given, error, text in (
        (dict(b=np.ones(99)), am.ShapeError, r"\(100,\)"),
        (dict(b=np.ones((100, 2, 2))), am.ShapeError, r"\(100,\)"),
        (dict(b=np.array(["x"] * 100)), am.DtypeError, "b has dtype"),
        (dict(A=A.astype("float32")), am.DtypeError, r"Use A.astype\('float64'\)"),
        (dict(A=A.astype("float32"), b=1j * b), am.DtypeError, r"Use A.astype\('float64'\)"),
        (dict(x0=np.ones(3)), am.ShapeError, "x0 has shape"),
        (dict(x0=1j * b), am.DtypeError, "x0 is complex128"),
        (dict(monitor=3), am.InputError, "monitor is 3"),
        (dict(checkpoint=tmp_path), am.FileError, "is a folder"),
        (dict(checkpoint=tmp_path / "no" / "x.ast"), am.FileError, "does not exist"),
        (dict(checkpoint=tmp_path / "x.ast", checkpoint_every=0), am.InputError, "at least 1"),
        (dict(checkpoint=tmp_path / "x.ast", b=1j * b), am.UnsupportedError, "astype"),
    ):
        with pytest.raises(error, match=text):
            am.solve(**{"A": A, "b": b, **given})


@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_complex64_side_of_a_real_float64_matrix(columns):
    side = (1 + 2j) * np.ones((100, *columns), "complex64")
    for x in (am.solve(A, side, rtol=1e-10)[0], am.factorized(A).solve(side)):
        assert x.dtype == "complex128" and np.linalg.norm(
            side - A @ x.real - 1j * (A @ x.imag)
        ) <= 1e-9 * np.linalg.norm(side)


def test_the_dtype_that_an_error_of_a_product_advises_holds_both():
    for of_A, of_x, wide in (("float64", "complex64", "complex128"), ("complex64", "float64", "complex128")):
        with pytest.raises(am.DtypeError, match=rf"Use A.astype\('{wide}'\)"):
            A.astype(of_A) @ np.ones(100, of_x)


def test_a_solver_looks_at_the_checkpoint_before_it_iterates(tmp_path):
    s, seen = am.Solver(A, ksp="cg", pc="none"), []
    with pytest.raises(am.FileError, match="does not exist"):
        s.solve(b, monitor=lambda it, norm: seen.append(it), checkpoint=tmp_path / "no" / "x.ast")
    asynchronous = am.Solver(A, "-ksp_asynchronous", ksp="cg", pc="none")
    with pytest.raises(am.UnsupportedError, match="asynchronous"):
        asynchronous.solve(b, monitor=lambda it, norm: seen.append(it), checkpoint=tmp_path / "x.ast")
    assert not seen


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_wrong_shape_on_one_rank_is_told_on_all_before_the_set_up(on_ranks, ranks):
    on_ranks(
        ranks,
        """
A = am.gallery.poisson((20, 20), comm)
n = A.local_shape[0]
for wrong in range(size):
    text = message(lambda: am.solve(A, np.ones(n + (rank == wrong)), ksp="cg"))
    assert "ShapeError" in text and f"({comm.bcast(n + 1, wrong)},)" in text, text
    text = message(lambda: am.solve(A, np.ones(n), checkpoint="/no/such/folder/x.ast" if rank == wrong else "/tmp/x.ast"))
    assert "FileError" in text and "does not exist" in text, text
x, info = am.solve(A, np.ones(n), ksp="cg")
assert info.converged
""",
    )


DENSE = """
import sys
sys.modules["scipy"] = None  # as if it were not installed
import numpy as np, asterism as am
from asterism.cli import main
D = np.diag(np.full(30, 4.0)) + np.diag(np.full(29, -1.0), 1) + np.diag(np.full(29, -2.0), -1)
for dense in (D, D.astype("float32"), D * (1 + 1j), D.astype(int), np.asfortranarray(D)):
    A = am.Matrix.from_scipy(dense)
    assert A.nnz == 88 and np.array_equal(A.toarray(), dense), A
    x, info = am.solve(dense, np.ones(30, A.dtype), rtol=1e-6)
    assert np.allclose(dense @ x, 1, atol=1e-4)
assert am.Matrix.from_scipy(np.zeros((0, 3))).shape == (0, 3)
am.write_matrix(sys.argv[1], am.Matrix.from_scipy(D))
assert main(["inspect", sys.argv[1]]) == 0
try:
    A.to_scipy()
except ImportError as error:
    assert "pip install scipy" in str(error)
"""


def test_dense_matrices_and_inspect_need_no_scipy(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DENSE, str(tmp_path / "D.mtx")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "rows diagonally dominant" in done.stdout and "symmetric pattern" in done.stdout


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_dense_matrix_is_dealt_to_the_ranks(on_ranks, ranks):
    on_ranks(
        ranks,
        """
D = np.diag(np.arange(1.0, 14)) + np.diag(np.ones(12), 1)
A = am.Matrix.from_scipy(D, comm, distribute=True)
lo, hi = A.row_range
assert np.array_equal(A.toarray(), D[lo:hi])
B = am.Matrix.from_scipy(D[lo:hi], comm)
assert np.array_equal(B.toarray(), D[lo:hi])
""",
    )


def test_products_and_arrays():
    S = A.to_scipy()
    assert np.array_equal(A.toarray(), S.toarray()) and np.array_equal(A.dot(b), A @ b)
    assert np.array_equal(A.dot(np.ones((100, 3))), A @ np.ones((100, 3)))
    v = am.Vector(A, am.Queue("inline"), fill=1.0)
    assert np.array_equal(A.dot(v).numpy(), A @ b)
    assert np.array_equal(A.dot(A).toarray(), (S @ S).toarray())
    for product in (lambda: A @ S, lambda: S @ A, lambda: A.dot(S), lambda: A.H @ S):
        with pytest.raises(am.UnsupportedError, match="to_scipy"):
            product()
    with pytest.raises(am.UnsupportedError, match=r"A\.T @ x"):
        b @ A
    for product in (lambda: A * b, lambda: b * A):
        with pytest.raises(am.UnsupportedError, match="Use A @ x"):
            product()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("restart", r"argument of Solver: restart=\."),
        ("tol", "Did you mean rtol="),
        ("x00", "Did you mean x0="),
        ("zzz", "It takes b, x0, "),
    ],
)
def test_a_solve_says_where_a_keyword_belongs(given, text):
    solver = am.Solver(A)
    for call in (solver.solve, solver.solve_transpose):
        with pytest.raises(am.OptionError, match=text):
            call(b, **{given: 1})


def test_modules_show_their_public_names_only():
    for module in (am.gallery, am.grid, am.scipy, am.pyamg, am.errors):
        assert dir(module) == sorted(module.__all__)
