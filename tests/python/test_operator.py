"""Operators that are functions, and approximate inverses of the user's."""

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from conftest import HOST_QUEUES, QUEUES

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ksp", ["cg", "bicg", "gmres", "minres", "tfqmr", "gcr"])
def test_a_function_solves_as_its_matrix(rng, dtype, ksp):
    A = am.gallery.poisson((9, 10)).astype(dtype)
    F = am.Operator(lambda x: A @ x, 90, dtype=dtype, adjoint=lambda x: A @ x, name="five points")
    assert F.shape == A.shape and F.dtype == dtype and "five points" in repr(F)
    b = rng.standard_normal((90, 2)).astype(dtype)
    assert np.array_equal(F @ b, A @ b) and np.array_equal(F.rmatvec(b[:, 0]), A @ b[:, 0])
    rtol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-9
    for rhs in (b, b[:, 0]):
        x, info = am.solve(F, rhs, ksp=ksp, rtol=rtol)
        y, same = am.solve(A, rhs, ksp=ksp, pc="none", rtol=rtol)
        assert info.iterations == same.iterations and np.array_equal(x, y)


def test_preconditioners_of_a_function():
    A = am.gallery.poisson((40, 40))
    L = spla.aslinearoperator(A.to_scipy())
    b = np.ones(1600)
    plain, alone = am.solve(L, b, ksp="cg", rtol=1e-8)
    x, near = am.solve(L, b, P=A, rtol=1e-8)
    assert "amg" in near.preconditioner and near.method == "cg"
    assert near.iterations < alone.iterations / 3 and np.allclose(x, plain, rtol=1e-5)
    lu = spla.splu(A.to_scipy().tocsc())
    for M, most in (
        (spla.LinearOperator(A.shape, lu.solve), 2),
        (am.Operator(lu.solve, 1600), 2),
        (np.eye(1600) / 4, alone.iterations),
    ):
        x, info = am.solve(A, b, M=M, rtol=1e-8, ksp="cg")
        assert np.allclose(x, plain, rtol=1e-5) and info.iterations <= most
    for bad, text in (
        (lambda: am.Solver(L, pc="amg"), "-pc_type amg needs a matrix, and A is .*LinearOperator. Give P"),
        (lambda: am.Solver(A, M=L, pc="amg"), "M is an approximate inverse already"),
        (lambda: am.Solver(L, P=am.gallery.poisson((3, 3))), "P is 9 x 9, and A 1600 x 1600"),
        (lambda: am.Solver(am.Operator(lambda x: x, 5, 4)), "5 x 4"),
        (lambda: am.Solver("a matrix"), "A is a str"),
    ):
        with pytest.raises((am.AsterismError, TypeError), match=text):
            bad()


@pytest.mark.parametrize("queue", HOST_QUEUES)
def test_a_function_takes_its_turn_in_the_queue(queue):
    A = am.gallery.poisson((12, 12))
    calls = []

    def apply(x):
        calls.append(x.flags.writeable)
        return A @ x

    x, info = am.solve(am.Operator(apply, 144), np.ones(144), ksp="cg", rtol=1e-9, queue=queue, ksp_asynchronous=True)
    y, same = am.solve(A, np.ones(144), ksp="cg", pc="none", rtol=1e-9)
    assert np.array_equal(x, y) and info.iterations == same.iterations
    assert len(calls) >= info.iterations and not any(calls)


@pytest.mark.parametrize("queue", QUEUES)
def test_operators_apply_to_vectors_of_queues(queue):
    A = am.gallery.poisson((12, 12))
    x = am.Vector(A, am.Queue(queue), fill=2.0)
    f = am.Operator(lambda v: A @ v, 144)
    assert np.array_equal((f @ x).numpy(), A @ np.full(144, 2.0))
    assert np.array_equal((A @ (f @ x)).numpy(), A @ (A @ np.full(144, 2.0)))


def test_what_a_function_gets_wrong():
    def raises(x):
        raise KeyError("inside")

    b = np.ones(10)
    for queue in ("inline", "thread"):
        with pytest.raises(KeyError, match="inside"):
            am.solve(am.Operator(raises, 10), b, ksp="cg", queue=queue)
    with pytest.raises(am.ShapeError, match=r"the short one returned shape \(3,\) where \(10,\)"):
        am.solve(am.Operator(lambda x: x[:3], 10, name="the short one"), b, ksp="cg")
    with pytest.raises(am.InputError, match=r"returned None where an array of shape \(10,\)"):
        am.solve(am.Operator(lambda x: None, 10), b, ksp="cg")
    with pytest.raises(am.InputError, match="returned complex128 where float64"):
        am.solve(am.Operator(lambda x: 1j * x, 10), b, ksp="cg")
    with pytest.raises(ValueError, match="read-only"):
        am.solve(am.Operator(lambda x: x.__imul__(2), 10), b, ksp="cg")


@pytest.mark.parametrize("n", [2, 3])
def test_functions_on_ranks(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.poisson((14, 15), comm)
rows = A.local_shape[0]
F = am.Operator(lambda x: A @ x, rows, comm=comm)
b = np.ones(rows)
x, info = am.solve(F, b, ksp="cg", rtol=1e-9)
y, same = am.solve(A, b, ksp="cg", pc="none", rtol=1e-9)
assert np.array_equal(x, y) and info.iterations == same.iterations
x, info = am.solve(F, b, P=A, rtol=1e-9)
assert info.iterations < same.iterations / 2, info
# one rank's function fails in its third call: all are told, the others with its rank
calls = []
def fails(x):
    calls.append(1)
    y = A @ x
    if rank == 1 and len(calls) == 3:
        raise KeyError("of one rank")
    return y
try:
    am.solve(am.Operator(fails, rows, comm=comm, name="mine"), b, ksp="cg")
    raise SystemExit("no error")
except KeyError:
    assert rank == 1
except am.InputError as e:
    assert rank != 1 and "rank 1: " in str(e) and "of one rank" in str(e), e
""",
    )


def test_solvers_of_scipy_take_operators(rng):
    A = am.gallery.poisson((12, 12))
    S, b = A.to_scipy(), rng.standard_normal(144)
    solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-12)
    inverse = am.Operator(solver.solve, 144)
    for of in (A, am.Operator(lambda x: S @ x, 144)):
        x, info = spla.cg(of, b, rtol=1e-10, M=inverse)
        assert info == 0 and np.linalg.norm(b - S @ x) <= 1e-10 * np.linalg.norm(b)
        assert np.allclose(spla.aslinearoperator(of) @ np.ones((144, 3)), S @ np.ones((144, 3)))
    assert np.allclose(spla.lsqr(A, b, atol=1e-12, btol=1e-12)[0], x)  # by rmatvec
    smallest = spla.eigsh(A, k=3, sigma=0, OPinv=spla.aslinearoperator(inverse), return_eigenvectors=False)
    assert np.allclose(np.sort(smallest), np.linalg.eigvalsh(S.toarray())[:3])


def test_an_operator_of_scipy_of_integers_is_taken():
    second = spla.LaplacianNd((12,), boundary_conditions="dirichlet")  # int8
    x, info = am.least_squares(second, np.ones(12), atol=1e-12, btol=1e-12)
    assert info.converged and np.allclose(second @ x, 1)
    x, info = am.solve(second, np.ones(12), ksp="gmres", pc="none", rtol=1e-10)
    assert np.allclose(second @ x, 1)
