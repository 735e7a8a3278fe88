"""Matrices that hold half of themselves: the same products, solves and rows as the whole ones, and errors where they cannot."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import QUEUES

import asterism as am

TOLERANCE = {"float32": 2e-5, "float64": 1e-13, "complex64": 2e-5, "complex128": 1e-13}
DTYPES = list(TOLERANCE)


def mirrored(rng, n, kind, dtype, entries=4):
    """A random matrix with A^T = A or A^H = A, some rows of which have no diagonal, in scattered columns."""

    def part():
        m = entries * n
        ij = (rng.integers(0, max(n, 1), m), rng.integers(0, max(n, 1), m))
        return sp.coo_matrix((rng.standard_normal(m), ij), shape=(n, n)).tocsr()

    S = part() + (1j * part() if dtype.startswith("complex") else 0)
    S = S + (S.T if kind == "symmetric" else S.conj().T)
    return S.tocsr().astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
@pytest.mark.parametrize("n", [0, 1, 2, 511, 513, 5000, 40000])
def test_products_are_those_of_the_whole(rng, n, kind, dtype):
    S = mirrored(rng, n, kind, dtype)
    A = am.Matrix.from_scipy(S)
    H = A.with_storage(kind)
    assert H.storage == kind
    for shape in ((n,), (n, 1), (n, 4)):
        x = rng.standard_normal(shape).astype(dtype)
        want = S @ x
        assert np.linalg.norm(H @ x - want) <= TOLERANCE[dtype] * max(np.linalg.norm(want), 1e-30)
    assert np.array_equal(H.diagonal(), A.diagonal()) and H.nnz == A.nnz
    assert np.allclose(H.T @ x, S.T @ x, rtol=1e-3, atol=1e-3)
    assert (H.to_scipy() != A.to_scipy()).nnz == 0
    back = H.with_storage("auto")
    assert back.storage not in ("symmetric", "hermitian") and (back.to_scipy() != A.to_scipy()).nnz == 0


def test_it_holds_less_than_half():
    A = am.gallery.elasticity((12, 12, 12))
    H = A.with_storage("symmetric")
    _ = A @ np.ones(A.shape[0]), H @ np.ones(A.shape[0])
    assert H.nnz == A.nnz and H._h.memory_bytes < 0.46 * A._h.memory_bytes
    am.solve(H, np.ones(A.shape[0]), ksp="cg", pc="jacobi", rtol=1e-4)
    am.solve(H, np.ones(A.shape[0]), ksp="cg", pc="chebyshev", rtol=1e-4)
    assert H._h.memory_bytes < 0.46 * A._h.memory_bytes, "something made its rows"


def test_a_dense_row_takes_wide_columns(rng):
    n = 70_000
    S = sp.lil_matrix((n, n))
    S[0, :] = 1.0 + np.arange(n)
    S = (S + S.T + sp.eye(n)).tocsr()
    H = am.Matrix.from_scipy(S).with_storage("symmetric")
    x = rng.standard_normal(n)
    assert np.linalg.norm(H @ x - S @ x) <= 1e-12 * np.linalg.norm(S @ x)


def test_what_is_not_symmetric_is_told(rng):
    S = mirrored(rng, 50, "symmetric", "float64").tolil()
    S[3, 7], S[7, 3] = 1.0, 1.0 + 1e-10
    with pytest.raises(am.InputError, match=r"A\^T = A, but entry \(3, 7\) and its mirror image differ by 1\S*e-10,"):
        am.Matrix.from_scipy(S.tocsr()).with_storage("symmetric")
    S[7, 3] = 1.0 + 1e-15
    am.Matrix.from_scipy(S.tocsr()).with_storage("symmetric")
    S[7, 3] = np.nan
    with pytest.raises(am.InputError, match=r"NaN or infinite at \(3, 7\)"):
        am.Matrix.from_scipy(S.tocsr()).with_storage("symmetric")
    S = sp.csr_matrix(([1.0, 2.0, 3.0], ([0, 1, 0], [0, 1, 1])), shape=(2, 2))
    with pytest.raises(am.InputError, match=r"of \(0, 1\) and \(1, 0\) only one has an entry"):
        am.Matrix.from_scipy(S).with_storage("symmetric")
    C = mirrored(rng, 30, "hermitian", "complex128")
    with pytest.raises(am.InputError, match=r"A\^T = A"):
        am.Matrix.from_scipy(C).with_storage("symmetric")
    with pytest.raises(am.InputError, match="Storages: auto, symmetric"):
        am.Matrix.from_scipy(C).with_storage("half")
    with pytest.raises(am.ShapeError, match="3 x 4"):
        am.Matrix.from_scipy(sp.random(3, 4, 0.5, format="csr")).with_storage("symmetric")


@pytest.mark.parametrize("pc", ["none", "jacobi", "chebyshev", "amg", "ilu", "sor", "icc", "bjacobi", "lu"])
def test_solves_are_those_of_the_whole(pc):
    A = am.gallery.poisson((9, 8, 7), epsilon=(1.0, 0.3, 0.7))
    b = np.arange(504.0) % 7
    x, info = am.solve(A, b, ksp="cg", pc=pc, rtol=1e-10)
    y, half = am.solve(A.with_storage("symmetric"), b, ksp="cg", pc=pc, rtol=1e-10)
    assert half.converged and abs(half.iterations - info.iterations) <= 1
    assert np.allclose(x, y, rtol=1e-7)


def test_new_values_keep_the_storage(rng):
    A = am.gallery.poisson((15, 14))
    H = A.with_storage("symmetric")
    s = am.Solver(H, ksp="cg", pc="jacobi", rtol=1e-10)
    x = s.solve(np.ones(210))
    H2 = H.with_values(2 * A.to_scipy().data)
    assert H2.storage == "symmetric"
    s.update(H2)
    assert np.allclose(s.solve(np.ones(210)), x / 2, rtol=1e-8)
    assert H.astype("float32").dtype == np.float32


@pytest.mark.parametrize("queue", QUEUES)
def test_on_queues(rng, queue):
    S = mirrored(rng, 3000, "hermitian", "complex128")
    H = am.Matrix.from_scipy(S).with_storage("hermitian")
    q = am.Queue(queue)
    z = rng.standard_normal(3000) + 1j * rng.standard_normal(3000)
    x = am.Vector(H, q)
    x.copy_from(z)
    y = H @ x
    y = H @ y
    want = S @ (S @ z)
    assert np.linalg.norm(y.numpy() - want) <= 1e-12 * np.linalg.norm(want)


def test_on_ranks(on_ranks):
    script = """
rng = np.random.default_rng(5)
n = 700 * size + 13
m = 5 * n
for kind in ("symmetric", "hermitian"):
    S = sp.coo_matrix((rng.standard_normal(m) + 1j * rng.standard_normal(m), (rng.integers(0, n, m), rng.integers(0, n, m))), (n, n)).tocsr()
    S = (S + (S.T if kind == "symmetric" else S.conj().T)).tocsr()
    first = 0 if rank == 0 else 300 + (n - 300) // size * rank if rank < size - 1 else n   # the last rank has nothing
    bounds = comm.allgather(first) + [n]
    A = am.Matrix.from_scipy(S[bounds[rank]:bounds[rank + 1]], comm=comm)
    H = A.with_storage(kind)
    x = rng.standard_normal((n, 2))
    mine = slice(bounds[rank], bounds[rank + 1])
    assert np.linalg.norm(H @ x[mine] - (S @ x)[mine]) <= 1e-12 * np.linalg.norm(S @ x)
    assert (H.to_scipy() != A.to_scipy()).nnz == 0
A = am.gallery.poisson((20, 20, 8), comm=comm)
b = np.ones(A._h.rows.local_size)
x, i = am.solve(A, b, ksp="cg", pc="chebyshev", rtol=1e-9)
y, j = am.solve(A.with_storage("symmetric"), b, ksp="cg", pc="chebyshev", rtol=1e-9)
assert abs(i.iterations - j.iterations) <= 1 and np.allclose(x, y, rtol=1e-6)
z, _ = am.solve(A.with_storage("symmetric"), b, ksp="cg", pc="amg", rtol=1e-9)
assert np.allclose(x, z, rtol=1e-6)
# one rank's block is not symmetric: all are told
S = sp.identity(10 * size, format="lil")
S[10 * size - 1, 10 * size - 2] = 5.0
whole = am.Matrix.from_scipy(S.tocsr()[10 * rank:10 * rank + 10], comm=comm)
told = message(lambda: whole.with_storage("symmetric"))
assert f"({10 * size - 2}, {10 * size - 1})" in told, told
told = message(lambda: A.with_storage("symmetric" if rank == 0 else "auto")) if size > 1 else "another on others"
assert "another on others" in told, told
told = message(lambda: A.with_storage("auto" if rank else "half"))
assert "no storage 'half'" in told, told
# new values, of another kind of number, keep what was asked for
R = am.gallery.poisson((7, 6), comm=comm).with_storage("hermitian")
C = R.with_values(R.to_scipy().data * (1 + 0j))
assert C.storage == "hermitian" and R.astype("float32").storage not in ("symmetric", "hermitian")
print("fine")
"""
    for n in (1, 2, 3, 4):
        assert on_ranks(n, script).count("fine") == n


def test_the_command_line_stores_it_so(tmp_path, capsys):
    from asterism.cli.main import main

    am.write_matrix(str(tmp_path / "A.mtx"), am.gallery.poisson((12, 12)))
    assert main(["solve", str(tmp_path / "A.mtx"), "--storage", "symmetric", "--ksp", "cg", "--pc", "jacobi"]) == 0
    assert "symmetric" in capsys.readouterr().out
