"""Errors, infos, matrices and solvers in worker processes, and copied."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am


def classes(base):
    for cls in base.__subclasses__():
        yield cls
        yield from classes(cls)


def sent(x):
    return pickle.loads(pickle.dumps(x))


def test_every_error_can_be_pickled():
    from asterism.comm.communicator import InputTypeError

    found = sorted(set(classes(am.AsterismError)), key=lambda c: c.__name__)
    assert {am.ConvergenceError, am.FileError, InputTypeError} <= set(found)
    for cls in found:
        error = {am.ConvergenceError: lambda: cls("text", 1, 2), InputTypeError: lambda: cls("b", 3)}.get(
            cls, lambda: cls("text")
        )()
        error.note = "kept"
        back = sent(error)
        assert type(back) is cls and str(back) == str(error) and back.note == "kept", cls
        assert str(copy.copy(error)) == str(error)


def test_infos_and_a_failed_solve():
    A = am.gallery.poisson((10, 10))
    for b in (np.ones(100), np.ones((100, 2))):
        with pytest.raises(am.ConvergenceError) as e:
            am.solve(A, b, ksp="cg", pc="none", maxiter=3)
        back = sent(e.value)
        assert np.array_equal(back.x, e.value.x) and str(back) == str(e.value)
        for name, value in vars(e.value.info).items():
            assert np.array_equal(getattr(back.info, name), value), name
    _, info = am.least_squares(A, np.ones(100))
    assert sent(info) == info


WORKERS = """
import multiprocessing, sys, numpy as np, asterism as am
from concurrent.futures import ProcessPoolExecutor

def work(n):
    A = am.gallery.poisson((n, n))
    return am.solve(A, np.ones(n * n), ksp="cg", pc="none", maxiter=2)

def with_matrix(A):
    return float(np.linalg.norm(A @ np.ones(A.shape[1])))

def with_solver(s):
    return s.solve(np.ones(s.A.shape[0]))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    A = am.gallery.poisson((12, 12))
    s = am.Solver(A, "-ksp_gmres_restart 7", ksp="gmres", pc="ilu", rtol=1e-9)
    pool = context.Pool(1) if sys.argv[1] == "pool" else ProcessPoolExecutor(1, mp_context=context)
    call = pool.apply if sys.argv[1] == "pool" else lambda f, args: pool.submit(f, *args).result()
    with pool:
        try:
            call(work, (9,))
            raise SystemExit("no error")
        except am.ConvergenceError as error:
            assert error.x.shape == (81,) and error.info.iterations == 2 and "DIVERGED_ITS" in str(error), error
        assert call(with_matrix, (A,)) == with_matrix(A)
        assert np.array_equal(call(with_solver, (s,)), with_solver(s))
    print("done")
"""


@pytest.mark.parametrize("kind", ["pool", "executor"])
def test_a_worker_process_tells_what_happened(kind, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    done = subprocess.run([sys.executable, str(script), kind], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("storage", ["auto", "symmetric", "hermitian"])
def test_a_matrix(dtype, storage):
    A = am.gallery.elasticity((3, 2, 2), dtype=dtype)
    assert A.near_null_space is not None
    A = A.with_storage(storage)
    for B in (sent(A), copy.copy(A), copy.deepcopy(A), A.astype(dtype)):
        assert B.dtype == A.dtype and B.shape == A.shape and B.block_size == 3
        assert (B.storage == A.storage) and (A.storage == storage or storage == "auto")
        assert np.array_equal(B.toarray(), A.toarray()) and np.array_equal(B.near_null_space, A.near_null_space)
        B.block_size = 1
        B.near_null_space = np.ones(A.shape[0])
        assert A.block_size == 3 and A.near_null_space.shape[1] == 6


def test_a_rectangular_matrix_with_stored_zeros_and_an_empty_one():
    A = am.Matrix.from_scipy(sp.csr_array(([1.0, 0.0, np.nan, -2.0], ([0, 1, 3, 3], [6, 0, 2, 3])), shape=(4, 7)))
    B = sent(A)
    assert B.nnz == 4 and np.array_equal(B.toarray(), A.toarray(), equal_nan=True)
    assert sent(am.Matrix.coo((0, 0), [], [], [])).shape == (0, 0)


def test_a_solver_is_its_matrix_and_settings():
    A = am.gallery.elasticity((4, 4, 4))
    b = np.ones(A.shape[0])
    P = A.with_values(1.1 * A._rows()[2])
    for s in (
        am.Solver(A, {"pc_amg_threshold": 0.02}, ksp="cg", pc="amg", rtol=1e-9),
        am.Solver(A, "-in_pc_type jacobi", "in_", ksp="cg"),
        am.Solver(A, P=P, ksp="cg", pc="ilu"),
        am.Solver(A, M=am.Matrix.coo(A.shape, range(A.shape[0]), range(A.shape[0]), 1 / A.diagonal()), ksp="cg"),
        am.Solver(A, ksp="cg", block_size=1, near_null_space=b),
    ):
        x = s.solve(b)
        for t in (sent(s), copy.copy(s), copy.deepcopy(s)):
            assert t.info.iterations == s.info.iterations
            assert np.array_equal(t.solve(b), x) and t.info.iterations == s.info.iterations
            mine, theirs = ({o["name"]: o["value"] for o in u.options_in_force()} for u in (s, t))
            assert mine == theirs
        if s._P is None and s._M is None:
            t.update(A.with_values(2 * A._rows()[2]))
            assert np.allclose(t.solve(b), x / 2, rtol=1e-3, atol=1e-6 * abs(x).max())


def test_options_of_the_process_that_reads_it_do_not_change_a_solver(monkeypatch):
    data = pickle.dumps(am.Solver(am.gallery.poisson((8, 8)), ksp="cg", pc="jacobi"))
    monkeypatch.setenv("ASTERISM_OPTIONS", "-ksp_type gmres -pc_jacobi_type rowl1")
    assert {o["name"]: o["value"] for o in pickle.loads(data).options_in_force()}["pc_jacobi_type"] != "rowl1"


def test_options_of_the_process_that_wrote_it_stay_there(monkeypatch):
    monkeypatch.setenv("ASTERISM_OPTIONS", "-sf_debug -ksp_rtol 1e-9")
    solver = am.Solver(am.gallery.poisson((5, 5)), ksp="cg")
    monkeypatch.delenv("ASTERISM_OPTIONS")
    known = {o["name"]: o["value"] for o in sent(solver).options_in_force()}
    assert float(known["ksp_rtol"]) == 1e-9


def test_what_belongs_to_this_process_says_so():
    A = am.Operator(lambda x: 2 * x, 5, name="twice")
    for thing in (A, am.Solver(A, ksp="cg")):
        with pytest.raises(am.UnsupportedError, match="twice.* cannot be pickled"):
            pickle.dumps(thing)
    assert np.array_equal(copy.deepcopy(A) @ np.ones(5), 2 * np.ones(5))


@pytest.mark.parametrize("ranks", [2, 3])
def test_on_several_ranks(on_ranks, ranks):
    out = on_ranks(
        ranks,
        """
import copy, pickle
A = am.gallery.elasticity((4, 3, 3), comm)
b = np.ones(A.local_shape[0])
s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
for thing, what in ((A, "matrix"), (s, "solver")):
    text = message(lambda: pickle.dumps(thing))
    assert f"a {what} on {size} ranks cannot be pickled" in text, text
for B in (copy.copy(A), copy.deepcopy(A)):
    assert np.array_equal(B @ b, A @ b) and B.block_size == 3
x = s.solve(b)
for t in (copy.copy(s), copy.deepcopy(s)):
    assert np.array_equal(t.solve(b), x)
mine = am.Solver(am.gallery.poisson((6, 6)), ksp="cg")  # of this process alone
assert np.array_equal(pickle.loads(pickle.dumps(mine)).solve(np.ones(36)), mine.solve(np.ones(36)))
""",
    )
    assert out == ""


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_change_of_a_copy_does_not_change_the_other(copied):
    A = am.gallery.poisson((10, 10))
    twice = A.with_values(2 * A.to_scipy().data)
    v = am.Vector(A, fill=1.0)
    copied(v).fill(3.0)
    assert float(v.norm()) == 10
    F = am.factorized(A)
    copied(F).update(twice)
    assert np.allclose(A @ F.solve(np.ones(100)), 1)
    for other in (am.Builder((3, 3)), am.Submatrix(A)):
        with pytest.raises(am.UnsupportedError, match="cannot be copied"):
            copied(other)
    with pytest.raises(am.UnsupportedError, match="copy_from"):
        pickle.dumps(v)


def test_transposes():
    A = am.gallery.convection_diffusion((10, 10), (5.0, 1.0), 0.1)
    for T in (A.T, A.H):
        for back in (sent(T), copy.copy(T), copy.deepcopy(T)):
            assert np.array_equal(back @ np.arange(100.0), T @ np.arange(100.0))


def test_what_holds_memory_of_this_process_says_so():
    A = am.gallery.poisson((4, 4))
    for make in (
        lambda: am.Assembly((2, 2), [0, 1], [0, 1]),
        lambda: am.VectorAssembly(2, [0, 1]),
        lambda: am.ProductPlan(A, A),
        lambda: am.StarForest(None, 2, None, [(0, 0), (0, 1)]),
        lambda: am.Queue("thread"),
        lambda: am.models.FactorPattern(A, "amd"),
    ):
        kept = make()
        name = type(kept).__name__
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(am.UnsupportedError, match=f"{name} cannot be pickled or copied: .* make another one"):
                copied(kept)
