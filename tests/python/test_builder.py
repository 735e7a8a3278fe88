"""Matrices from entries that come one after the other with their values; vectors from entries."""

import numpy as np
import pytest
from conftest import QUEUES

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]

# what one process makes of the same calls: (turn, rank, position), a turn being adds or inserts between flushes
ORACLE = """
def values_of(rng, shape, dtype):
    v = rng.integers(-8, 9, shape)    # sums are exact in any order
    return (v + 1j * rng.integers(-8, 9, shape) if dtype[0] == "c" else v).astype(dtype)

def random_calls(rng, n, m, dtype, count):
    calls = []
    for k in range(count):
        if k and k % 4 == 0:
            calls.append(("flush",))
        turn = "insert" if k % 4 == 3 else "add"
        kind = rng.integers(0, 4)
        index = lambda size, shape: np.where(rng.random(shape) < 0.1, -1 - rng.integers(0, 5, shape), rng.integers(0, size, shape))
        if kind == 0:
            i, j, shape = int(index(n, ())), int(index(m, ())), ()
        elif kind == 1:
            shape = (int(rng.integers(0, 30)),)
            i, j = index(n, shape), index(m, shape)
        elif kind == 2:
            shape = (int(rng.integers(1, 5)), int(rng.integers(1, 7)))
            i, j = index(n, shape[:1]), index(m, shape[1:])
        else:
            shape = (int(rng.integers(0, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 5)))
            i, j = index(n, shape[:2]), index(m, (shape[0], shape[2]))
        calls.append((turn, i, j, values_of(rng, shape, dtype)))
    return calls

def give(builder, calls):
    for name, *given in calls:
        getattr(builder, name)(*given)

def by_order(n, m, dtype, calls_of_ranks):
    turns = {}
    for calls in calls_of_ranks:
        flushes = 0
        for name, *given in calls:
            if name == "flush":
                flushes += 1
                continue
            i, j, v = (np.asarray(g) for g in given)
            if v.ndim > i.ndim:
                i, j = np.broadcast_arrays(i[..., :, None], j[..., None, :])
            turns.setdefault((flushes, name), []).append((i.ravel(), j.ravel(), v.ravel()))
    A, there = np.zeros((n, m), dtype), np.zeros((n, m), bool)
    for turn in sorted(turns):
        for given in turns[turn]:
            for i, j, v in zip(*given):
                if i >= 0 and j >= 0:
                    A[i, j] = v if turn[1] == "insert" else A[i, j] + v
                    there[i, j] = True
    return A, int(there.sum())
"""
exec(ORACLE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20, 15), (15, 40), (31, 31), (1, 1), (7, 1), (0, 0)])
def test_any_calls_give_what_one_after_the_other_gives(rng, shape, dtype):
    for count in (0, 1, 25):
        calls = random_calls(rng, *shape, dtype, count if shape[0] else 0)  # noqa: F821
        builder = am.Builder(shape, dtype)
        give(builder, calls)  # noqa: F821
        assert builder.entries == sum(np.size(c[3]) for c in calls if len(c) == 4)
        A = builder.matrix()
        want, nnz = by_order(*shape, dtype, [calls])  # noqa: F821
        assert A.dtype == dtype and A.nnz == nnz and builder.entries == 0
        assert np.array_equal(A.to_scipy().toarray(), want)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_on_ranks(on_ranks, n):
    out = on_ranks(
        n,
        ORACLE
        + """
for shape in ((23, 23), (2, 9), (40, 17), (1, 1)):
    for trial, dtype in enumerate(("float32", "float64", "complex64", "complex128")):
        builder = am.Builder(shape, dtype, comm)
        for count in (12 * (rank % 2), 9):    # ranks that give nothing; then others
            flushes = max(0, (9 if count == 9 else 12) - 1) // 4
            calls = random_calls(np.random.default_rng(7 * rank + trial), *shape, dtype, count)
            calls += [("flush",)] * (flushes - calls.count(("flush",)))
            want, nnz = by_order(*shape, dtype, comm.allgather(calls))
            previous = None
            for again in range(3):            # the places are found once
                give(builder, calls)
                A = builder.matrix()
                first, last = A.row_range
                assert A.nnz == nnz and np.array_equal(A.to_scipy().toarray(), want[first:last]), (shape, dtype, count, again)
                assert A.row_range == builder.row_range
                B = am.Builder(shape, dtype, comm)
                give(B, calls)
                assert np.array_equal(B.matrix().to_scipy().data, A.to_scipy().data)
if rank == 0: print("good")
""",
    )
    assert "good" in out


@pytest.mark.parametrize("n", [2, 3, 4])
def test_elements_in_the_order_of_ranks_give_the_bits_of_one_process(on_ranks, n):
    out = on_ranks(
        n,
        """
rng = np.random.default_rng(3)
nodes = np.sort(rng.integers(0, 60, (200, 4)), axis=0)    # neighbours share nodes, across ranks too
values, loads = rng.standard_normal((200, 4, 4)), rng.standard_normal((200, 4))
mine = slice(200 * rank // size, 200 * (rank + 1) // size)
builder, alone = am.Builder((60, 60), comm=comm), am.Builder((60, 60))
builder.add(nodes[mine], nodes[mine], values[mine])
alone.add(nodes, nodes, values)
A, B = builder.matrix(), alone.matrix().to_scipy()
first, last = A.row_range
assert np.array_equal(A.to_scipy().toarray(), B.toarray()[first:last])
b = am.VectorAssembly(60, nodes[mine], comm).vector(loads[mine])
assert np.array_equal(b, am.VectorAssembly(60, nodes).vector(loads)[first:last])
if rank == 0: print("good")
""",
    )
    assert "good" in out


def test_elements_solve_with_boundary_conditions(rng):
    """-u'' = 1 on (0, 1), u(0) = 0, u(1) = 2: linear elements, in chunks, one by one, or all together."""
    n = 40
    nodes = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    element = n * np.array([[1.0, -1.0], [-1.0, 1.0]])
    matrices = []
    for size in (1, 7, n):
        builder = am.Builder((n + 1, n + 1))
        for k in range(0, n, size):
            part = nodes[k : k + size]
            builder.add(part, part, np.broadcast_to(element, (len(part), 2, 2)))
        for node in (0, n):
            builder.insert([node], np.arange(max(node - 1, 0), min(node + 2, n + 1)), np.zeros((1, 2)))
            builder.insert(node, node, 1.0)
        matrices.append(builder.matrix())
    b = am.VectorAssembly(n + 1, nodes).vector(np.full((n, 2), 0.5 / n))
    b[[0, n]] = 0, 2
    x, info = am.solve(matrices[0], b, ksp="gmres", pc="ilu", rtol=1e-12)
    t = np.linspace(0, 1, n + 1)
    assert info.converged and np.allclose(x, t * (1 - t) / 2 + 2 * t)
    for A in matrices[1:]:
        assert np.array_equal(A.to_scipy().toarray(), matrices[0].to_scipy().toarray())


def test_the_same_places_again_find_their_places_once(rng):
    nodes = rng.integers(0, 30, (50, 3))
    builder = am.Builder((30, 30))
    with am.Trace() as trace:
        data = []
        for k in range(4):
            for part in (slice(0, 20 + k), slice(20 + k, 50)):  # how they come in calls does not matter
                builder.add(nodes[part], nodes[part], np.full((50, 3, 3), 1.0 + k)[part])
            data.append(builder.matrix().to_scipy().data)
    assert [span["name"] for span in trace.spans].count("MatPreallocateCOO") == 1
    assert all(np.array_equal(d, (1 + k) * data[0]) for k, d in enumerate(data))

    calls = [
        [("add", nodes[:20], np.ones((20, 3, 3)))],  # fewer
        [("add", nodes[:20], np.ones((20, 3, 3))), ("add", nodes[:5], np.ones((5, 3, 3)))],  # more
        [("add", nodes[:20], np.ones((20, 3, 3))), ("insert", nodes[:5], np.ones((5, 3, 3)))],  # in another way
        [("add", nodes[:20], np.ones((20, 3, 3))), ("insert", nodes[1:6], np.ones((5, 3, 3)))],  # elsewhere
        [],
        [("add", nodes[:20, 0], np.ones(20))],
    ]
    for some in calls:
        alone = am.Builder((30, 30))
        for name, at, v in some:
            getattr(builder, name)(at, at, v)
            getattr(alone, name)(at, at, v)
        assert np.array_equal(builder.matrix().to_scipy().toarray(), alone.matrix().to_scipy().toarray())


def test_given_arrays_may_change_afterwards_and_other_forms_are_taken():
    builder = am.Builder((4, 4), "complex128")
    i, j, v = np.array([0, 1], np.int32), [2, 3], np.array([1, 2])
    builder.add(i, j, v)
    i[:], v[:] = 3, 9
    builder.add(np.uint8(3), 0, True)
    builder.add(np.array([[1, 2]]).T[:, 0], np.arange(4)[::2], np.float32([[1, 2], [3, 4]]).T)
    want = np.zeros((4, 4))
    want[0, 2], want[1, 3], want[3, 0] = 1, 2, 1
    want[1:3, 0:4:2] += [[1, 3], [2, 4]]
    assert np.array_equal(builder.matrix().to_scipy().toarray(), want)


def test_what_does_not_fit_is_refused_and_nothing_is_added():
    builder = am.Builder((4, 5))
    builder.add(0, 0, 1.0)
    for bad in (([0, 1], [0], [1.0]), ([0, 1], [0, 1], 1.0), ([0, 1], [0, 1, 2], np.ones((3, 2))), (0, [0, 1], [1.0, 1.0]),
                ([[0, 1]], [0, 1], np.ones((1, 2, 2)))):  # fmt: skip
        with pytest.raises(am.ShapeError, match="i, j and v have shapes"):
            builder.add(*bad)
    for i, j, told in ((4, 0, r"entry 0, \(4, 0, 2.5\), is outside the 4 x 5 matrix"),
                       (0, 5, r"entry 0, \(0, 5, 2.5\), is outside the 4 x 5 matrix")):  # fmt: skip
        with pytest.raises(am.InputError, match=told):
            builder.add(i, j, 2.5)
    with pytest.raises(am.InputError, match=r"Builder.insert: entry 9, \(2, 9, 109\), is outside"):
        builder.insert([[0, 1], [2, 3]], [[0, 1, 2, 3], [4, 9, 0, 0]], np.arange(100.0, 116.0).reshape(2, 2, 4))
    with pytest.raises(am.InputError, match=r"entry 1, \(3, 2, nan\), is NaN or infinite"):
        builder.add([1, 3], [1, 2], [1.0, np.nan])
    with pytest.raises(am.DtypeError, match="v is complex128, the matrix float64"):
        builder.add(0, 0, 1j)
    with pytest.raises(am.DtypeError, match="Builder.add: i: dtype float64"):
        builder.add([0.0], [0], [1.0])
    with pytest.raises(am.OptionError, match="remote is 'ignore'; 'send' or 'error' is needed"):
        am.Builder((2, 2), remote="ignore")
    with pytest.raises(am.AsterismError, match="float16"):
        am.Builder((2, 2), "float16")
    for i, j, v in ((-1, 9, 1.0), (0, -1, np.inf)):  # ignored, if nothing else is wrong
        with pytest.raises(am.InputError, match="is outside|is NaN or infinite"):
            builder.add(i, j, v)
    builder.insert(1, 1, 2.0)
    with pytest.raises(am.InputError, match="Builder.add after Builder.insert"):
        builder.add(1, 1, 2.0)
    builder.flush()
    builder.add(1, 1, 3.0)
    A = builder.matrix()
    assert A.nnz == 2 and A.to_scipy()[1, 1] == 5
    with pytest.raises(am.InputError, match=r"Builder.add: entry 0, \(7, 1, 0 \+ 1i\), is outside"):
        am.Builder((2, 2), "complex64").add([7], [1], [1j])


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">c8", ">c16"])
def test_the_other_order_of_bytes(dtype):
    builder = am.Builder((2, 2), dtype)
    builder.add([0, 1], [0, 1], np.array([1.0, 2.0], dtype))
    A = builder.matrix()
    assert A.dtype == np.dtype(dtype).newbyteorder("=") and np.array_equal(A.toarray(), np.diag([1.0, 2.0]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("narrow, wide", [("float32", "float64"), ("complex64", "complex128")])
def test_values_too_large_for_the_dtype(narrow, wide):
    builder = am.Builder((2, 2), narrow)
    values = np.array([[1.0, 2.0], [1e300, np.inf]], wide)
    for put in (builder.add, builder.insert):
        with pytest.raises(am.InputError, match=rf"value 2, .*1e\+300.*, is too large for {narrow}.* '{wide}'"):
            put([0, 1], [0, 1], values)
    with pytest.raises(am.InputError, match="NaN or infinite"):
        builder.add(0, 0, values[1, 1])
    builder.add(0, 0, values[0, 1])
    assert builder.matrix().toarray()[0, 0] == 2


@pytest.mark.parametrize("n", [1, 2, 3])
def test_bad_input_is_told_on_all_ranks(on_ranks, n):
    out = on_ranks(
        n,
        """
last = rank == size - 1
def told(text, f):
    got = message(f)
    assert text in got, got
def built(add, **more):
    b = am.Builder((9, 9), comm=comm, **more)
    add(b)
    b.matrix()
told("entry 1, (9, 0, 2), is outside the 9 x 9 matrix", lambda: built(lambda b: b.add([0, 9 if last else 1], [0, 0], [1.0, 2.0])))
told("entry 1, (1, 0, inf), is NaN or infinite", lambda: built(lambda b: b.insert([0, 1], [0, 0], [1.0, np.inf if last else 2])))
told("i, j and v have shapes (1,), (1,) and (2,)", lambda: built(lambda b: b.add([0], [0], [1.0, 2.0] if last else [1.0])))
told("VectorAssembly: entry 1 is at 9, outside the vector of 9", lambda: am.VectorAssembly(9, [0, 9 if last else 1], comm))
if size > 1:
    own = am.Builder((9, 9), comm=comm).row_range[0]
    refusing = am.Builder((9, 9), comm=comm, remote="error")
    refusing.add([own, -1], [0, 3], [1.0, 2.0])
    assert refusing.matrix().nnz == size
    told(f"entry 0, (0, 3, 1), is in a row of rank 0; rank {size - 1} owns", lambda: built(lambda b: b.add(0 if last else own, 3, 1.0), remote="error"))
    told("in a row of rank 0", lambda: am.VectorAssembly(9, [0 if last else own], comm, remote="error"))
    told("flush() was called 1 times on", lambda: built(lambda b: b.flush() if last else None))
    told("dtype", lambda: am.Builder((9, 9), "float64" if last else "float32", comm))
    told("remote", lambda: am.Builder((9, 9), comm=comm, remote="send" if last else "error"))
    told("insert", lambda: am.VectorAssembly(9, [0], comm, insert=last))
b = am.Builder((9, 9), comm=comm)
b.add(0, 0, 1.0)
assert b.matrix().nnz == 1
if rank == 0: print("good")
""",
    )
    assert "good" in out


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_sum_or_take_the_last(rng, dtype):
    for n, count in ((1, 0), (1, 5), (30, 200), (200, 30), (0, 0)):
        i = rng.integers(-3, max(n, 1), count) if n else np.zeros(0, int)
        v = values_of(rng, count, dtype)  # noqa: F821
        sums, last = np.zeros(n, dtype), np.zeros(n, dtype)
        np.add.at(sums, i[i >= 0], v[i >= 0])
        for at, x in zip(i, v, strict=True):
            if at >= 0:
                last[at] = x
        plan, inserting = am.VectorAssembly(n, i), am.VectorAssembly(n, i, insert=True)
        for _ in range(2):
            got = plan.vector(v)
            assert got.dtype == dtype and np.array_equal(got, sums) and np.array_equal(inserting.vector(v), last)
        assert plan.size == n and plan.entries == count


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_sum_vectors_too(rng, queue):
    i = rng.integers(-2, 40, 500)
    q = am.Queue(queue)
    for dtype in DTYPES:
        plan, v = am.VectorAssembly(40, i), values_of(rng, 500, dtype) / 3  # noqa: F821
        v = v.astype(dtype)
        on_queue = plan.vector(am.Vector.wrap(plan, v.copy(), q))
        assert isinstance(on_queue, am.Vector) and np.array_equal(on_queue.numpy(), plan.vector(v))


@pytest.mark.parametrize("n", [2, 4])
def test_vectors_on_ranks(on_ranks, n):
    out = on_ranks(
        n,
        ORACLE
        + """
for length, count in ((23, 300), (2, 20 * rank), (1, 3), (50, 0)):
    for dtype in ("float32", "float64", "complex64", "complex128"):
        rng = np.random.default_rng(rank)
        i, v = rng.integers(-4, length, count), values_of(rng, count, dtype)
        sums, last = np.zeros(length, dtype), np.zeros(length, dtype)
        for k, w in comm.allgather((i, v)):
            np.add.at(sums, k[k >= 0], w[k >= 0])
            for at, x in zip(k, w):
                if at >= 0: last[at] = x
        plan, inserting = am.VectorAssembly(length, i, comm), am.VectorAssembly(length, i, comm, insert=True)
        first = length // size * rank + min(rank, length % size)
        mine = slice(first, first + length // size + (rank < length % size))
        assert np.array_equal(plan.vector(v), sums[mine]) and np.array_equal(inserting.vector(v), last[mine])
parts = am.VectorAssembly(3 * size, np.arange(3 * size), comm, local_size=3)
assert np.array_equal(parts.vector(np.arange(3.0 * size)), size * np.arange(3.0 * rank, 3 * rank + 3))
got = message(lambda: am.VectorAssembly(3, [0], comm, local_size=3))
assert "the ranks' parts are" in got, got
if rank == 0: print("good")
""",
    )
    assert "good" in out


def test_many_elements_of_two_shapes_in_turn():
    builder, n = am.Builder((40_001, 40_001)), 40_000
    for e in range(n):
        if e % 2:
            builder.add([e, e + 1], [e, e + 1], np.array([[1.0, -1.0], [-1.0, 1.0]]))
        else:
            builder.add([e], [e], np.array([[2.0]]))
    A = builder.matrix()
    assert abs(A.to_scipy().sum() - 2.0 * (n // 2)) < 1e-9
