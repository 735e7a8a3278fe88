"""Vectors, scalars and functions of one's own on queues, against NumPy."""

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import HAS_GPU, HOST_QUEUES, PATIENCE, QUEUES

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]


def values(rng, shape, dtype):
    v = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        v = v + 1j * rng.standard_normal(shape)
    return v.astype(dtype)


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 3])
def test_operations_agree_with_numpy(rng, kind, dtype, columns):
    A = am.gallery.poisson((13, 11)).astype(dtype)
    n, q = A.shape[0], am.Queue(kind)
    shape = (n,) if columns == 1 else (n, columns)
    tol = 1e-4 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-12
    a, b, d = (values(rng, shape, dtype) for _ in range(3))
    x, y, z = (am.Vector(A, q, columns=columns) for _ in range(3))
    for v, array in ((x, a), (y, b), (z, d)):
        v.copy_from(array)
    w = x.like(fill=2.0)
    # all of it submitted before anything is read
    x.axpy(0.5, y)
    y.aypx(-2.0, x)
    alpha = x.dot(y) / (1.0 + abs(y.dot(y)))
    z.axpy(alpha, x)
    w.axpby(alpha.conj(), z, 3.0)
    w.scale(2.0 - alpha)
    u = A @ w
    norm = u.norm()
    largest = norm.maximum(1.0).minimum(5.0)
    chosen = am.select(norm < 0, norm, alpha * alpha)

    a = a + 0.5 * b
    b = a - 2.0 * b
    dot = lambda p, r: (p.conj() * r).sum(axis=0)  # noqa: E731
    s = dot(a, b) / (1.0 + abs(dot(b, b)))
    d = d + s * a
    e = (np.conj(s) * d + 3.0 * np.full(shape, 2.0)) * (2.0 - s)
    f = A @ e.astype(dtype)
    for v, array in ((x, a), (y, b), (z, d), (w, e), (u, f)):
        assert v.dtype == dtype and v.shape == shape
        assert np.allclose(v.numpy(), array, rtol=tol, atol=tol * abs(array).max())
    assert np.allclose(norm.values(), np.linalg.norm(f, axis=0), rtol=tol)
    assert np.allclose(largest.values(), np.clip(np.linalg.norm(f, axis=0), 1, 5), rtol=tol)
    assert np.allclose(chosen.values(), s * s, rtol=10 * tol, atol=tol)


COLUMNS = [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 17, 24, 30, 31, 32, 33]


@pytest.mark.parametrize("kind", ["inline"] + (["cuda"] if HAS_GPU else []))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_any_number_of_columns(rng, kind, dtype, columns):
    """Each column has its own numbers; lengths are those around the periods that columns are taken in."""
    tol = 1e-5 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-13
    for n in (1, 2, 7, 9, 64, 333, 4097):
        layout, q = am.gallery.poisson((n,)).astype(dtype), am.Queue(kind)
        a, b, d, e = (values(rng, (n, columns), dtype) for _ in range(4))
        s, t = (values(rng, (columns,), dtype) for _ in range(2))
        t[::3] = 0  # of axpby: overwrites
        x, y, z, w = (am.Vector(layout, q, columns=columns) for _ in range(4))
        for v, array in ((x, a), (y, b), (z, d), (w, e)):
            v.copy_from(array)
        alpha, beta = am.Scalar(s), am.Scalar(t)
        y.axpy(alpha, x)
        b = b + s * a
        z.axpby(alpha, x, beta)
        d = s * a + t * d
        norm2 = z.update_and_norm2(alpha, x, y, w)
        d, e = d + s * a, e - s * b
        x.scale(beta)
        a = t * a
        for v, array in ((x, a), (y, b), (z, d), (w, e)):
            assert np.abs(v.numpy() - array).max() <= 8 * tol * np.abs(array).max(), n
        y.fill(alpha)
        assert np.array_equal(y.numpy(), np.broadcast_to(s, (n, columns)))
        assert np.allclose(norm2.values(), (abs(e) ** 2).sum(axis=0), rtol=50 * tol)
        assert np.allclose(z.dot(w).values(), (d.conj() * e).sum(axis=0), rtol=50 * tol, atol=50 * tol * n)
        assert np.allclose(z.norm().values(), np.linalg.norm(d, axis=0), rtol=50 * tol)


@pytest.mark.parametrize("columns", [2, 3, 7, 9, 31, 33])
def test_norms_of_columns_of_any_size(columns):
    layout = am.gallery.poisson((5000,))
    sizes = np.array([1e-170, 1.0, 1e170, 0.0, np.inf, np.nan])[np.arange(columns) % 6]
    with np.errstate(invalid="ignore"):
        a = np.broadcast_to(sizes, (5000, columns)) * np.linspace(1, 2, 5000)[:, None]
    x = am.Vector(layout, am.Queue("inline"), columns=columns)
    x.copy_from(a)
    want = sizes * np.linalg.norm(np.linspace(1, 2, 5000))
    assert np.allclose(np.real(x.norm().values()), want, rtol=1e-13, atol=0, equal_nan=True)


@pytest.mark.parametrize("pc", ["jacobi", "chebyshev", "amg"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [2, 3, 5, 7, 9, 31])
def test_columns_are_solved_as_one(rng, pc, dtype, columns):
    S = am.gallery.poisson((23, 19)).to_scipy()
    D = sp.diags_array(np.linspace(1, 3, S.shape[0]))
    A = am.Matrix.from_scipy((D @ S @ D).astype(dtype))
    single = dtype in ("float32", "complex64")
    solver = am.Solver(A, ksp="cg", pc=pc, rtol=1e-4 if single else 1e-10)
    b = values(rng, (A.shape[0], columns), dtype)
    x = solver.solve(b)
    together = solver.info.iterations
    alone = [solver.solve(np.ascontiguousarray(b[:, j])) for j in range(columns)]
    assert together <= 2 * solver.info.iterations
    for j in range(columns):
        assert np.abs(x[:, j] - alone[j]).max() <= (1e-2 if single else 1e-7) * np.abs(alone[j]).max()


def test_scalars_are_lazy_and_behave_like_numbers():
    A = am.gallery.poisson((40, 40))
    q = am.Queue("shuffle")
    x = am.Vector(A, q, fill=2.0)
    s = x.dot(x)
    assert not s.known and not (3 * s - 1).known
    assert "not read yet" in repr(s)
    assert float(s) == 6400.0 and s.known and "6400" in repr(s)
    s = x.dot(x)
    assert complex(1 - s / 2) == -3199 + 0j
    assert float((-s).sqrt().real()) == 0 and complex((-s).sqrt()) == 80j
    assert bool(s > 6399) and not s < 1 and bool(s >= 6400) and bool(s != 1) and bool(s == 6400)
    assert float(np.float64(2.0) * s) == 12800.0
    assert float(s.stored(q)) == 6400.0
    assert am.Scalar([1, 2]).width == 2 and bool(am.Scalar([0, 2]).any()) and not am.Scalar([0, 0]).any()
    with pytest.raises(am.errors.ShapeError, match="2 columns"):
        bool(am.Scalar([1, 2]))
    with pytest.raises(am.errors.InputError, match="not real"):
        float(am.Scalar(1j))
    assert np.isnan(float(am.Scalar(complex(np.nan, np.nan))))
    with pytest.raises(TypeError):
        hash(s)


CG = """
def cg(A, b, queue, its):
    b = am.Vector.wrap(A, b, queue)
    x, r = b.like(fill=0.0), b.copy()
    p, rho = r.copy(), r.dot(r)
    history = [rho.sqrt()]
    for _ in range(its):
        q = A @ p
        alpha = (rho / p.dot(q)).stored(queue)
        new = x.update_and_norm2(alpha, p, q, r).stored(queue)
        p.aypx(new / rho, r)
        rho = new
        history.append(rho.sqrt())
    return x, history
A = am.gallery.poisson((37, 41), comm=comm)
lo, hi = A.row_range
b = np.sin(0.37 * np.arange(lo, hi))
want = None
for kind in KINDS:
    queue = am.Queue(kind)
    x, history = cg(A, b, queue, 60)
    assert queue.waits == {}, queue.waits       # sixty iterations, and nobody has waited
    norms = [float(h) for h in history]
    x = x.numpy()
    if want is None: want = x, norms
    if kind == "cuda": assert np.allclose(x, want[0], rtol=1e-9) and np.allclose(norms, want[1], rtol=1e-6), kind
    else: assert np.array_equal(x, want[0]) and norms == want[1], kind
s = am.Solver(A, "-ksp_type cg -pc_type none -ksp_max_it 60 -ksp_rtol 1e-300 -ksp_error_if_not_converged false")
s.solve(b)
assert np.allclose(s.info.residual_norms, want[1], rtol=1e-9)
print("SAME")
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_method_of_ones_own_is_asynchronous_and_has_the_same_bits_on_every_queue(on_ranks, n):
    kinds = [*HOST_QUEUES, *(["cuda"] if HAS_GPU else [])]
    assert on_ranks(n, f"KINDS = {kinds}\n" + CG).count("SAME") == n


class Exported:
    """What another library's array shows of itself."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("kind", QUEUES)
def test_arrays_are_wrapped_and_given_out_without_copies(kind):
    A = am.gallery.poisson((8, 8))
    mine = np.arange(64.0)
    v = am.Vector.wrap(A, mine, am.Queue(kind))
    v.scale(2.0)
    assert np.shares_memory(v.numpy(), mine)
    assert np.array_equal(mine, 2.0 * np.arange(64.0))
    v.numpy()[:] = 1.0
    v.scale(3.0)
    assert np.array_equal(np.asarray(v), np.full(64, 3.0))
    if kind != "cuda":
        assert np.shares_memory(np.from_dlpack(v), mine)
    assert np.asarray(v, dtype="float32").dtype == np.float32
    other = np.arange(64.0)
    w = am.Vector.wrap(A, Exported(other), v.queue)
    w.axpy(1.0, v)
    assert np.array_equal(w.numpy(), np.arange(64.0) + 3.0) and other[1] == 4.0
    assert am.Vector.wrap(A, np.zeros((64, 2))).shape == (64, 2)
    assert am.Vector.wrap(A, np.zeros((64, 1))).shape == (64, 1)


def test_what_cannot_be_wrapped_is_told():
    A = am.gallery.poisson((8, 8))
    fixed = np.zeros(64)
    fixed.setflags(write=False)
    with pytest.raises(am.errors.InputError, match="read-only"):
        am.Vector.wrap(A, fixed)
    for bad in (np.zeros(64, dtype=int), np.zeros(128)[::2]):
        with pytest.raises(am.errors.InputError, match="in place"):
            am.Vector.wrap(A, bad)
    with pytest.raises(am.errors.ShapeError, match="63 rows"):
        am.Vector.wrap(A, np.zeros(63))
    with pytest.raises(am.errors.ShapeError, match=r"\(63,\)"):
        am.Vector(A).copy_from(np.zeros(63))
    with pytest.raises(TypeError):
        am.Vector(A).copy_from(np.zeros(64, dtype=complex))
    x = am.Vector(A, fill=1.0)
    with pytest.raises(am.errors.ShapeError):
        x.axpy(1.0, am.Vector(am.gallery.poisson((7, 7)), fill=1.0))
    with pytest.raises(am.errors.DtypeError):
        x.axpy(1.0, am.Vector(A, dtype="float32", fill=1.0))
    with pytest.raises(am.errors.OptionError, match="inline, thread"):
        am.Queue("threads")
    with pytest.raises(am.errors.InputError, match="differ"):
        x.product(A, x)


@pytest.mark.parametrize("kind", QUEUES)
def test_functions_of_ones_own_take_their_turn(kind):
    A = am.gallery.poisson((8, 8))
    q = am.Queue(kind)
    x, y = am.Vector(A, q, fill=1.0), am.Vector(A, q)

    def cubes(source, target):
        assert not source.flags.writeable
        target[:] = source**3

    x.scale(2.0)
    q.submit(cubes, read=[x], write=[y])
    x.scale(10.0)
    y.axpy(1.0, x)
    assert np.array_equal(y.numpy(), np.full(64, 28.0))
    with pytest.raises(am.errors.InputError, match="twice"):
        q.submit(cubes, read=[x], write=[x])

    def wrong(target):
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        q.submit(wrong, update=[x])
        q.wait()
    x.fill(1.0)  # the queue goes on
    assert x.numpy()[0] == 1.0


def test_queues_are_ordered_by_what_they_share_and_by_events():
    A = am.gallery.poisson((8, 8))
    one, order = am.Queue(), []
    two = one.fork()
    x = am.Vector(A, one, fill=0.0)

    def late(array):
        time.sleep(0.05)
        array += 1

    one.submit(late, update=[x])
    two.submit(lambda array: order.append(array[0]), read=[x])
    event = two.record()
    event.wait()
    assert event.done and order == [1.0]
    one.submit(lambda: (time.sleep(0.05), order.append("one")))
    two.join(one)
    two.submit(lambda: order.append("two"))
    two.wait()
    assert order[1:] == ["one", "two"]
    assert two.waits == {"event": 1, "wait()": 1}


def test_everything_may_be_dropped_while_the_queue_works():
    done = []

    def work():
        for _ in range(20):
            A = am.gallery.poisson((50, 50))
            q = am.Queue()
            x = am.Vector.wrap(A, np.ones(2500), q)
            q.submit(lambda a: (time.sleep(0.002), done.append(a[0])), update=[x])
            y = A @ x
            y.scale(2.0)
            del A, q, x, y  # the last handle closes the queue; its task wants Python's lock
            gc.collect()

    t = threading.Thread(target=work, daemon=True)
    t.start()
    t.join(60)
    assert not t.is_alive() and len(done) == 20


def test_wrong_operands_are_told():
    A = am.gallery.poisson((5, 4))
    x, y, wide = am.Vector(A, fill=1.0), am.Vector(A, fill=2.0), am.Vector(A, columns=2, fill=1.0)
    array = np.ones(20)
    for call in (
        lambda: y.axpy(1.0, array),
        lambda: y.aypx(1.0, array),
        lambda: y.multiply(x, array),
        lambda: y.dot(array),
        lambda: y.update_and_norm2(1.0, x, x, array),
        lambda: am.dots([(x, array)]),
        lambda: y.product(A, array),
        lambda: am.Queue("inline").submit(print, read=[array]),
    ):
        with pytest.raises(TypeError, match=r"a ndarray where an asterism\.Vector is needed"):
            call()
    with pytest.raises(TypeError, match=r"a ndarray where an asterism\.Matrix or Operator is needed"):
        y.product(np.eye(20), x)
    for call in (lambda: y.scale(1j), lambda: y.axpy(am.Scalar(2 + 1j), x), lambda: y.fill(1j)):
        with pytest.raises(am.DtypeError, match=r"i of a vector of float64"):
            call()
    assert np.all(y.numpy() == 2.0)
    # sizes that do not fit: nothing is read out of bounds
    single = am.Vector(A, dtype="float32", fill=1.0)
    other = am.Vector(am.gallery.poisson((3, 4)), fill=1.0)
    with pytest.raises(am.ShapeError, match=r"local shape \(12, 1\) where \(20, 1\)"):
        y.multiply(other, x)
    with pytest.raises(am.ShapeError, match=r"local shape \(20, 2\) where \(20, 1\)"):
        wide.multiply(wide, wide.copy())
    with pytest.raises(am.DtypeError, match=r"multiply: the vectors have dtypes float32 and float64\. copy_from"):
        y.multiply(single, x)
    for pairs in ([(x, y), (wide, wide)], [(wide, wide), (x, y)]):
        with pytest.raises(am.ShapeError, match="dots: pair 1 has . columns, and the first"):
            am.dots(pairs)
    with pytest.raises(am.DtypeError, match="an array of complex128 into a vector of float64"):
        y.copy_from(1j * array)
    for bad in (None, "2"):
        with pytest.raises(am.DtypeError, match="is no number"):
            y.fill(bad)
    for call in (
        lambda: am.Scalar(2).stored(3),
        lambda: am.Queue().wait_for(3),
        lambda: am.Queue().join(3),
        lambda: am.Vector(A, 3),
    ):
        with pytest.raises(TypeError, match="a int where an"):
            call()
    with pytest.raises(am.ShapeError, match="update_and_norm2"):
        x.update_and_norm2(1.0, y, other, other.copy())
    with pytest.raises(am.ShapeError, match="a scalar of 3 columns for vectors of 2"):
        wide.scale(am.Scalar([1, 2, 3]))
    for bad in ([], np.ones((2, 2))):
        with pytest.raises(am.ShapeError, match="Scalar: an array of shape"):
            am.Scalar(bad)


def test_functions_get_arrays_of_the_vectors_shapes():
    A = am.gallery.poisson((5, 4))
    q, shapes = am.Queue(), []
    column = am.Vector.wrap(A, np.ones((20, 1)), q)
    flat = am.Vector(A, q, fill=1.0)
    q.submit(lambda a, b: shapes.extend([a.shape, b.shape]), read=[column, flat])
    q.wait()
    assert shapes == [(20, 1), (20,)]


def test_functions_still_queued_at_the_end_of_the_program_are_run():
    program = """
import gc, time
import asterism as am
gc.disable()
class Holder: pass
def main():
    A = am.gallery.poisson((5, 5))
    q = am.Queue()
    x = am.Vector(A, q, fill=1.0)
    h = Holder()
    h.h, h.x = h, x  # a cycle: freed when the interpreter ends
    def slow(a):
        time.sleep(0.05)
        print("ran", flush=True)
    for _ in range(3):
        q.submit(slow, update=[x])
    def bad(a):
        raise KeyError("told at the end")
    q.submit(bad, update=[x])
main()
print("end", flush=True)
"""
    r = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert r.returncode == 0, r.stderr
    assert sorted(r.stdout.split()) == ["end", "ran", "ran", "ran"]
    assert "told at the end" in r.stderr


@pytest.mark.parametrize("kind", ["thread", "inline"])
def test_long_expressions_of_scalars_take_time_that_grows_with_their_length(kind):
    queue = am.Queue(kind)
    x = am.Vector(am.gallery.poisson((10, 10)), fill=1.0, queue=queue)
    s = x.dot(x)
    for _ in range(20_000):
        s = s + 1.0
    assert float(s) == 20_100
    s = x.dot(x)
    for _ in range(60):  # met twice at each step: 2^60 visits of a tree
        s = (s + s) * 0.5
    assert float(s) == 100
    w = am.Vector(am.gallery.poisson((10, 10)), columns=2, fill=1.0, queue=queue)
    s = w.dot(w)
    for _ in range(2_000):
        s = s - 0.03125
    assert s.width == 2 and [complex(v) for v in s.values()] == [37.5, 37.5] and bool((s < 38.0).any())


def test_queues_are_forked_while_others_give_up_arrays_of_numpy():
    queue, space = am.Queue("thread"), am.gallery.poisson((100,))
    stop = threading.Event()

    def forks():
        while not stop.is_set():
            queue.fork()

    thread = threading.Thread(target=forks, daemon=True)
    thread.start()
    for _ in range(50):
        for _ in range(20):
            v, w = am.Vector.wrap(space, np.ones(100), queue=queue), am.Vector(space, queue=queue)
            w.axpy(1.0, v)
            del v
        queue.wait()
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
