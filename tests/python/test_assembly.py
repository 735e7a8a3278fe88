"""Matrices from entries whose places are known once and whose values come many times."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import HAS_GPU, QUEUES

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]

# entries of which a fifth repeat others, a tenth are ignored, and 30 % lie in other ranks' rows
ENTRIES = """
def entries(rng, shape, count, rank=0, size=1):
    n, m = shape
    bounds = [n * r // size for r in range(size + 1)]
    mine = rng.integers(bounds[rank], max(bounds[rank + 1], bounds[rank] + 1), count)
    i = np.where(rng.random(count) < 0.3, rng.integers(0, n, count), np.minimum(mine, n - 1))
    j = rng.integers(0, m, count)
    if count:
        again = rng.integers(0, count, count // 5)
        i[: len(again)], j[: len(again)] = i[again], j[again]
    i[rng.random(count) < 0.05] = -1
    j[rng.random(count) < 0.05] = -7
    return i, j
"""
exec(ENTRIES)


def values_of(rng, count, dtype):
    v = rng.standard_normal(count)
    if np.dtype(dtype).kind == "c":
        v = v + 1j * rng.standard_normal(count)
    return v.astype(dtype)


def by_scipy(shape, i, j, v):
    keep = (i >= 0) & (j >= 0)
    return sp.coo_array((v[keep], (i[keep], j[keep])), shape=shape).toarray()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20, 15), (15, 40), (31, 31), (1, 1), (7, 1)])
@pytest.mark.parametrize("count", [0, 1, 400])
def test_both_modes_agree_with_scipy_again_and_again(rng, shape, dtype, count):
    i, j = entries(rng, shape, count)  # noqa: F821
    kept = i.copy(), j.copy()
    plan = am.Assembly(shape, i, j)
    assert np.array_equal(i, kept[0]) and np.array_equal(j, kept[1])
    i0, j0 = i.copy(), j.copy()
    i[:], j[:] = 0, 0  # they are not kept
    close = {"rtol": 1e-4, "atol": 1e-4} if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else {}
    sum_of_all = np.zeros(shape)
    A = None
    for _ in range(3):
        v = values_of(rng, count, dtype)
        once = plan.matrix(v)
        A = plan.matrix(v, add_to=A) if A is not None else once
        sum_of_all = sum_of_all + by_scipy(shape, i0, j0, v)
        assert once.dtype == dtype and np.allclose(once.to_scipy().toarray(), by_scipy(shape, i0, j0, v), **close)
        assert np.array_equal(once.to_scipy().toarray(), am.Matrix.coo(shape, i0, j0, v).to_scipy().toarray())
        assert np.allclose(A.to_scipy().toarray(), sum_of_all, **close)
    assert plan.nnz == A.nnz == len({(a, b) for a, b in zip(i0, j0, strict=True) if a >= 0 and b >= 0})
    assert plan.entries == count and plan.shape == shape


def test_values_given_in_another_order_make_the_same_matrix(rng):
    i, j = entries(rng, (50, 60), 3000)  # noqa: F821
    v = rng.integers(-8, 8, 3000).astype(float)  # sums are exact in any order
    order = rng.permutation(3000)
    A = am.Assembly((50, 60), i, j).matrix(v).to_scipy()
    B = am.Assembly((50, 60), i[order], j[order]).matrix(v[order]).to_scipy()
    assert (
        np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices) and np.array_equal(A.data, B.data)
    )


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_queues_give_the_same_bits(rng, queue, dtype):
    i, j = entries(rng, (40, 40), 900)  # noqa: F821
    v = [values_of(rng, 900, dtype) for _ in range(2)]
    x = values_of(rng, 40, dtype)
    plan = am.Assembly((40, 40), i, j)
    want = [plan.matrix(v[0]), plan.matrix(v[1], add_to=plan.matrix(v[0]))]
    q = am.Queue(queue)
    values = am.Vector(plan, q, dtype=dtype)
    values.copy_from(am.Vector.wrap(plan, v[0].copy(), q))
    first = plan.matrix(values)
    values.copy_from(am.Vector.wrap(plan, v[1].copy(), q))  # ordered after the sums of the first
    second = plan.matrix(values, add_to=first)
    for A, B in zip(want, (first, second), strict=True):
        on_queue = B @ am.Vector.wrap(B, x.copy(), q)
        assert np.allclose(on_queue.numpy(), A @ x, rtol=1e-5, atol=1e-5)
        assert np.array_equal(B.to_scipy().data, A.to_scipy().data)
        assert np.array_equal(B.diagonal(), A.diagonal())
        assert np.array_equal(B @ x, A @ x) or queue == "cuda"
        assert np.allclose(B.T @ x, A.T @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("queue", QUEUES)
def test_matrices_that_are_kept_keep_their_values(rng, queue):
    plan = am.Assembly((50, 50), np.arange(50), np.arange(50))
    q, other = am.Queue(queue), am.Queue("inline")
    kept = []
    for k in range(12):
        A = plan.matrix(
            am.Vector(plan, other if k % 5 == 4 else q, fill=float(k), dtype="float32" if k % 6 == 5 else "float64")
        )
        if k % 3 == 0:
            kept.append((k, A))
    for k, B in kept:
        assert np.array_equal(B.to_scipy().data, np.full(50, float(k))), k


@pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one")
@pytest.mark.parametrize(
    "first_use", ["diagonal", "product", "transpose", "rows", "astype", "with_values", "half", "norm"]
)
def test_values_on_a_gpu_come_to_the_host_for_whoever_asks_first(rng, first_use):
    i = np.concatenate([np.arange(30), np.arange(29), np.arange(1, 30)])
    j = np.concatenate([np.arange(30), np.arange(1, 30), np.arange(29)])
    v = np.concatenate([4 + rng.random(30), np.full(58, -1.0)])
    plan = am.Assembly((30, 30), i, j)
    A, B = plan.matrix(v), plan.matrix(am.Vector.wrap(plan, v.copy(), am.Queue("cuda")))
    uses = {
        "diagonal": lambda M: M.diagonal(),
        "product": lambda M: M @ np.ones(30),
        "transpose": lambda M: M.T @ np.ones(30),
        "rows": lambda M: M.to_scipy().data,
        "astype": lambda M: M.astype("float32") @ np.ones(30, "float32"),
        "with_values": lambda M: M.with_values(2 * v[: M.nnz]) @ np.ones(30),
        "half": lambda M: M.with_storage("symmetric") @ np.ones(30),
        "norm": lambda M: am.solve(M, np.ones(30), ksp="cg", pc="jacobi")[1].true_residual,
    }
    assert np.allclose(uses[first_use](A), uses[first_use](B), rtol=1e-13)


@pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one")
def test_on_a_gpu_only_what_the_host_asks_for_is_copied(rng):
    n = 60
    i, j = np.concatenate([np.arange(n), np.arange(n - 1)]), np.concatenate([np.arange(n), np.arange(1, n)])
    plan = am.Assembly((n, n), i, j)
    q = am.Queue("cuda")
    values = am.Vector(plan, q, fill=1.0)
    x = am.Vector(plan.matrix(values), q, fill=2.0)  # the plan is there now

    def copies():
        return sum(c[1] + c[3] for c in am.gpu_state()["copies"].values())

    A = plan.matrix(values)
    y = A @ x  # the pattern is there now
    before, without = copies(), am.gpu_state()["without_form"]
    for k in range(3):
        values.fill(1.0 + k)
        A = plan.matrix(values, add_to=A)
        y = A @ x
    assert copies() == before and am.gpu_state()["without_form"] == without
    assert np.array_equal(y.numpy()[:-1], np.full(n - 1, 2 * 2 * (1.0 + 1 + 2 + 3)))
    solver = am.Solver(A, "-ksp_type bicgstab -pc_type jacobi -device cuda -ksp_asynchronous -ksp_rtol 1e-9")
    tent = np.where(np.arange(2 * n - 1) < n, 3.0, 0.25)
    T = plan.matrix(am.Vector.wrap(plan, tent, q))
    solver.update(T)
    z = solver.solve(np.ones(n))
    assert solver.info.converged and np.allclose(T.to_scipy() @ z, 1, atol=1e-7)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_on_ranks(on_ranks, n):
    out = on_ranks(
        n,
        ENTRIES
        + """
for shape in ((23, 23), (2, 9), (40, 17), (1, 1)):
    for count in (600, 40 * rank, 0):
        rng = np.random.default_rng(7 + rank)
        i, j = entries(rng, shape, count, rank, size)
        plan = am.Assembly(shape, i, j, comm)
        for dtype in ("float32", "float64", "complex64", "complex128"):
            v = [(rng.standard_normal(count) + (1j * rng.standard_normal(count) if dtype[0] == "c" else 0)).astype(dtype) for _ in range(2)]
            A = plan.matrix(v[0])
            B = plan.matrix(v[1], add_to=A)
            once = am.Matrix.coo(shape, i, j, v[0], comm)
            assert A.nnz == once.nnz == plan.nnz and np.array_equal(A.to_scipy().toarray(), once.to_scipy().toarray())
            both = sum(sp.coo_array((w[(k >= 0) & (l >= 0)], (k[(k >= 0) & (l >= 0)], l[(k >= 0) & (l >= 0)])), shape=shape).toarray()
                       for k, l, vs in comm.allgather((i, j, v)) for w in vs)
            first, last = B.row_range
            assert np.allclose(B.to_scipy().toarray(), both[first:last], rtol=1e-4, atol=1e-4)
            x = np.arange(B.local_shape[1]).astype(dtype)
            for kind in ("thread", "strict", "shuffle") + (("cuda",) if GPU else ()):
                q = am.Queue(kind)
                values = [am.Vector.wrap(plan, w.copy(), q) for w in v]
                C = plan.matrix(values[0])
                D = plan.matrix(values[1], add_to=C)
                y = D @ x if kind == "shuffle" or shape[0] != shape[1] else (D @ am.Vector.wrap(D, x.copy(), q)).numpy()
                assert np.allclose(y, B @ x, rtol=1e-4, atol=1e-3), kind
                assert np.array_equal(C.to_scipy().data, A.to_scipy().data) and np.array_equal(D.to_scipy().data, B.to_scipy().data), kind
                del q, values, C, D
if rank == 0: print("good")
""".replace("GPU", repr(HAS_GPU)),
    )
    assert "good" in out


@pytest.mark.parametrize("n", [1, 2, 3])
def test_bad_input_is_told_on_all_ranks(on_ranks, n):
    out = on_ranks(
        n,
        """
from numpy import array
last = rank == size - 1
def told(text, f):
    got = message(f)
    assert text in got, got
told("Assembly: entry 1 is at (9, 0), outside the 9 x 9 matrix", lambda: am.Assembly((9, 9), [0, 9 if last else 1], [0, 0], comm))
told("Assembly: i and j have shapes (2,) and (3,)" if last else "", lambda: am.Assembly((9, 9), [0, 1], [0, 1, 2] if last else [0, 1], comm))
plan = am.Assembly((9, 9), [0, 1, 2], [0, 1, 2], comm)
told("values of shape (2, 1) for 3 entries", lambda: plan.matrix(np.ones(2 if last else 3)))
told("values of shape (3, 2) for 3 entries", lambda: plan.matrix(np.ones((3, 2))))
told("values of shape (1, 1) for 3 entries", lambda: plan.matrix(np.float64(1)))
A = plan.matrix(np.ones(3))
other = am.Assembly((9, 9), [0, 1, 2], [0, 1, 2], comm).matrix(np.ones(3))
told("did not come from this assembly", lambda: plan.matrix(np.ones(3), add_to=other))
told("did not come from this assembly", lambda: plan.matrix(np.ones(3), add_to=A.with_storage("symmetric")))
told("float32 values are added to a float64 matrix", lambda: plan.matrix(np.ones(3, "float32"), add_to=A))
if size > 1:
    told("the values of this rank are float64, and float32 on another", lambda: plan.matrix(np.ones(3, "float64" if last else "float32")))
    told("adds to a matrix, another does not", lambda: plan.matrix(np.ones(3), add_to=A if last else None))
assert np.array_equal(plan.matrix(np.ones(3)).to_scipy().toarray(), A.to_scipy().toarray())
if rank == 0: print("good")
""",
    )
    assert "good" in out


def test_arrays_have_the_shape_of_the_places():
    i, j = np.array([[0, 1], [2, 0]]), np.asfortranarray([[0, 1], [2, 3]])
    plan = am.Assembly((4, 4), i, j)
    for values in (
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1.0, 3.0], [2.0, 4.0]]).T,
        np.array([1.0, 2.0, 3.0, 4.0]),
    ):
        A = plan.matrix(values).toarray()
        assert [A[0, 0], A[1, 1], A[2, 2], A[0, 3]] == [1, 2, 3, 4]
    for shape in ((2, 1), (1, 4)):
        with pytest.raises(am.ShapeError, match="4 entries"):
            plan.matrix(np.ones(shape))
    with pytest.raises(am.ShapeError, match=r"i and j have shapes \(2, 2\) and \(4,\)"):
        am.Assembly((4, 4), i, j.ravel())
    with pytest.raises(am.ShapeError, match=r"i, j and v have shapes \(1,\), \(1,\) and \(\)"):
        am.Matrix.coo((4, 4), [0], [0], 1.0)
    assert am.Matrix.coo((4, 4), 0, 1, 2.0).toarray()[0, 1] == 2


def test_what_is_no_entry_or_value_is_refused():
    plan = am.Assembly((4, 4), [0, 1], [0, 1])
    with pytest.raises(am.OptionError, match="remote is 'None'"):
        am.VectorAssembly(4, [0], remote=None)
    with pytest.raises(am.OptionError, match="remote is 'None'"):
        am.Builder((4, 4), remote=None)
    with pytest.raises(am.InputError, match="add_to is 3"):
        plan.matrix([1.0, 2.0], add_to=3)
    with pytest.raises(am.DtypeError, match="values has dtype"):
        plan.matrix(["a", "b"])
    for shape in ((4,), 4, (4, 4, 4)):
        with pytest.raises(am.ShapeError, match="Assembly: shape is .*; 2 integers are needed"):
            am.Assembly(shape, [0], [0])
    with pytest.raises(am.ShapeError, match="the ranks' rows are 3"):
        am.Assembly((4, 4), [0], [0], local_rows=3)


def test_finite_elements_solve_step_by_step(rng):
    """Linear elements for -div(c grad u) on the unit square, whose coefficient changes: amg keeps its pattern."""
    n = 24
    grid = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = grid[:-1, :-1].ravel(), grid[:-1, 1:].ravel(), grid[1:, :-1].ravel(), grid[1:, 1:].ravel()
    triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([d, c, b], 1)])
    element = np.array([[1.0, -0.5, -0.5], [-0.5, 0.5, 0], [-0.5, 0, 0.5]])
    inner = np.full((n + 1) ** 2, -1)
    inner[grid[1:-1, 1:-1].ravel()] = np.arange((n - 1) ** 2)  # the boundary is ignored
    i, j = inner[np.repeat(triangles, 3, 1).ravel()], inner[np.tile(triangles, (1, 3)).ravel()]
    plan = am.Assembly(((n - 1) ** 2,) * 2, i, j)
    poisson = plan.matrix(np.tile(element.ravel(), len(triangles)))
    assert np.allclose(poisson.to_scipy().toarray(), am.gallery.poisson((n - 1, n - 1)).to_scipy().toarray())
    solver = am.Solver(poisson, ksp="cg", pc="amg", rtol=1e-10)
    for _ in range(2):
        A = plan.matrix(np.outer(1 + rng.random(len(triangles)), element.ravel()).ravel())
        solver.update(A)
        x = solver.solve(np.ones((n - 1) ** 2))
        assert solver.info.converged and np.linalg.norm(A @ x - 1) < 1e-7
    assert solver.reused
