"""What fails on one rank alone ends the call on all, soon and with its text, and the library goes on."""

import pytest

NODE, MPI, BOTH = {}, {"ASTERISM_RANKS_PER_NODE": "1"}, {"ASTERISM_RANKS_PER_NODE": "2"}
PLACES = pytest.mark.parametrize(
    ("n", "place"), [(2, MPI), (3, NODE), (3, MPI), (3, BOTH)], ids=["2-mpi", "3-node", "3-mpi", "3-both"]
)
SET_UP = """
import time
A = am.gallery.poisson((30, 30), comm)
n = A.local_shape[0]
ones = np.ones(n)
bad = size - 1                       # the rank that fails
solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-9)
want = solver.info or (solver.solve(ones), solver.info)[1].iterations
def fails(f, text, at_once=True):
    t = time.perf_counter()
    try: f()
    except Exception as e:
        took = time.perf_counter() - t
        assert text in str(e), e
        if rank != bad: assert isinstance(e, am.AsterismError) and e.shared and f"rank {bad}: " in str(e), e
        assert took < 5, took        # alone some milliseconds
        return
    assert rank != bad and not at_once, (rank, f.__name__)
def goes_on(text="", at_once=True):
    comm.Barrier()                   # a rank that was through before the error may meet it in its next call, which fails on all then
    try: x = solver.solve(ones)
    except am.AsterismError as e:
        assert not at_once and e.shared and (text in str(e) or "after an error in the one before" in str(e)), e
        x = solver.solve(ones)
    assert solver.info.iterations == want
    y = A @ x
    assert abs(comm.allreduce(float(((ones - y) ** 2).sum())) ** 0.5) < 1e-7
"""


@PLACES
def test_errors_of_one_rank_end_the_call_on_all(on_ranks, n, place):
    on_ranks(
        n,
        SET_UP
        + """
def callback(it, norm):
    if rank == bad and it == 3: raise RuntimeError("from the callback")
def operation(a, b):
    if rank == bad: raise ZeroDivisionError("from the operation")
    return a + b
sf = am.StarForest(comm, 4, None, [((rank + 1) % size, i) for i in range(4)])
def shape(): A @ (ones if rank != bad else np.ones(n + 1))
def dtype(): A.T @ (ones if rank != bad else ones * 1j)
def b_shape(): solver.solve(ones if rank != bad else ones[1:])
def x0_shape(): solver.solve(ones, ones if rank != bad else ones[1:])
def watched(): solver.solve(ones, monitor=callback)
def reduced(): sf.reduce(np.ones(4), np.zeros(4), operation)
def leaf(): sf.bcast(np.ones(4), np.zeros(4 if rank != bad else 3))
for round in range(3):
    for f, text in ((shape, "x"), (dtype, "complex128"), (b_shape, "b has shape"), (x0_shape, "x0 has shape"), (watched, "from the callback"),
                    (reduced, "from the operation"), (leaf, "leafdata")):
        at_once = f in (b_shape, x0_shape, watched)
        fails(f, text, at_once)
        goes_on(text, at_once)
print("done", flush=True)
""",
        limit=120,
        **place,
    )


@PLACES
def test_operations_under_way_are_given_up(on_ranks, n, place):
    """The rank that fails has not begun, or has begun and not ended, what the others end; no message of it is taken for a later one."""
    on_ranks(
        n,
        SET_UP
        + """
points = 200_000                      # also messages in pieces
sf = am.StarForest(comm, points, None, [(i * size // points, i) for i in range(points)])    # each rank hears from all
def wrong(k): return np.zeros(points if rank != bad else 3)
def attempt(f):
    t = time.perf_counter()
    try: f()
    except am.AsterismError as e: return str(e)
    finally: assert time.perf_counter() - t < 5
    return ""
for round in range(4):
    data, out = np.full(points, float(rank)), np.zeros(points)
    # an error when it begins
    flight = []
    said = attempt(lambda: flight.append(sf.reduce_begin(data, wrong(round))))
    assert "rootdata" in said or (said == "" and rank != bad), said    # the others may have begun before
    for f in flight: assert f"rank {bad}: " in attempt(f.end)
    goes_on()
    # an error while it is under way
    first, second = sf.bcast_begin(data, out), sf.reduce_begin(data, np.zeros(points))
    said = attempt(lambda: solver.solve(ones if rank != bad else ones[1:]))
    assert "b has shape" in said, said
    for f in (first, second):
        told = attempt(f.end)
        assert "was given up" in told, told
    goes_on()
    sf.bcast(data, out)
    assert (out == np.arange(points) * size // points).all()
print("done", flush=True)
""",
        limit=120,
        **place,
    )


def test_many_failures_leave_nothing_behind(on_ranks):
    on_ranks(
        2,
        SET_UP
        + """
def memory():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * 4096
def callback(it, norm):
    if rank == bad and it == 2: raise RuntimeError("again")
for round in range(60):
    fails(lambda: solver.solve(ones, monitor=callback), "again")
    if round == 20: before = memory()
goes_on()
assert memory() - before < 40e6, memory() - before
""",
        limit=120,
        alone=True,
    )


@pytest.mark.parametrize("place", [NODE, MPI], ids=["node", "mpi"])
def test_a_rank_that_was_through_before_the_error_is_taken_along(on_ranks, place):
    """A sender may be several broadcasts ahead when a receiver fails; all ranks have failed and gone on after the same number of calls."""
    on_ranks(
        2,
        """
A = am.gallery.poisson((9, 9), comm)
sf = am.StarForest(comm, 1, None, [(0, 0)] if rank == 1 else [])
outcomes = []
for k in range(8):
    out = np.zeros(1)
    try:
        sf.bcast(np.full(1, 5.0 + k), out if (rank, k) != (1, 2) else np.zeros((1, 2)))
        assert rank == 0 or out[0] == 5 + k, (k, out)
        outcomes.append("ok")
    except am.AsterismError as e:
        outcomes.append("error")
assert outcomes[:2] == ["ok", "ok"] and (rank == 0 or outcomes[2] == "error"), outcomes
for again in range(2):
    try: am.solve(A, np.ones(A.local_shape[0]))
    except am.AsterismError as e: assert e.shared and again == 0, e
""",
        limit=60,
        **place,
    )


@PLACES
def test_ends_are_no_calls_that_others_must_fail_in(on_ranks, n, place):
    """Ranks that were through before the error have ended what they had begun, or are about to, which the rank of the error does not."""
    on_ranks(
        n,
        """
import time
ring = am.StarForest(comm, 1, None, [((rank + 1) % size, 0)])
from_first = am.StarForest(comm, 1, None, [(0, 0)])              # rank 0 needs nobody
x = np.full(1, float(rank))
def begun(): y = np.zeros(1); return ring.bcast_begin(x, y), y
def wrong():
    if rank == 1: time.sleep(0.1)
    from_first.bcast(x if rank != 1 else x[:0].copy(), np.zeros(1))
def ended():
    flights = [begun() for _ in range(5)]
    wrong()
    for i in np.random.default_rng(rank).permutation(5):
        flights[i][0].end(); assert flights[i][1] == (rank + 1) % size
def about_to_end():                                              # what rank 1 has not begun
    wrong()
    flight, y = begun()
    time.sleep(0.3)                                              # the error is known when it ends
    flight.end()
everybody = am.StarForest.all_gather(comm, 1)                    # no rank is through without the others
def again():
    y = np.zeros(size)
    everybody.bcast_begin(x, y).end(); assert (y == np.arange(size)).all()
for attempt in 2 * (ended, about_to_end):
    comm.Barrier()
    failures = 0
    try: attempt()
    except am.AsterismError as e: assert rank == 1 or e.shared, e
    else: assert rank != 1
    while True:
        try: again(); break
        except am.AsterismError: failures += 1
    assert failures <= 1, (attempt.__name__, rank, failures)
print("done", flush=True)
""",
        limit=40,
        **place,
    )


def test_a_rank_that_has_ended_its_program(on_ranks):
    out = on_ranks(
        2,
        """
import time
A = am.gallery.poisson((9, 9), comm)
b = np.ones(A.local_shape[0])
am.solve(A, b)
if rank == 1: raise SystemExit(0)
t = time.perf_counter()
for again in range(2): assert "rank 1 has ended its program" in message(lambda: am.solve(A, b))
assert time.perf_counter() - t < 5
print("told", flush=True)
""",
        limit=60,
        alone=True,
    )
    assert out.count("told") == 1, out


def test_an_error_that_nobody_catches_is_told_once(on_ranks):
    out = on_ranks(
        3,
        "A = am.gallery.poisson((9, 9), comm)\nA @ np.ones(A.local_shape[1] + (rank == 1))\n",
        limit=40,
        expect=1,
    )
    assert out.count("ShapeError") == 1 and "A @ x" in out, out


def test_caught_on_one_rank_and_not_on_the_others(on_ranks):
    out = on_ranks(
        2,
        """
A = am.gallery.poisson((9, 9), comm)
try: A @ np.ones(A.local_shape[1] + (rank == 1))
except am.ShapeError:
    if rank == 0: raise
am.solve(A, np.ones(A.local_shape[0]))
""",
        limit=40,
        expect=1,
    )
    assert "rank 1: " in out


def test_a_freed_communicator_on_one_rank(on_ranks):
    on_ranks(
        2,
        """
own = comm.Dup()
A = am.gallery.poisson((9, 9), own)
x = np.ones(A.local_shape[0])
A @ x
own.Free()
assert "was freed" in message(lambda: A @ x)
B = am.gallery.poisson((9, 9), comm)
B @ np.ones(B.local_shape[0])
""",
        limit=40,
    )


def test_ctrl_c_on_one_rank_ends_the_set_up_of_all(on_ranks):
    on_ranks(
        2,
        """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
A = am.gallery.poisson((120, 120), comm)
def press(it, norm):
    if rank == 1 and it == 4: os.kill(os.getpid(), signal.SIGINT)
try: am.solve(A, np.ones(A.local_shape[0]), ksp="cg", pc="none", rtol=1e-12, monitor=press)
except KeyboardInterrupt: print("interrupted", flush=True)
x, info = am.solve(A, np.ones(A.local_shape[0]), ksp="cg", pc="amg", rtol=1e-8)
assert info.converged
""",
        limit=60,
    )


@pytest.mark.parametrize("place", [NODE, MPI], ids=["node", "mpi"])
def test_the_roll_call(on_ranks, place):
    out = on_ranks(
        2,
        """
import time
am.use_argv(["-hang_timeout", "2"])
A = am.gallery.poisson((9, 9), comm)
def lost_in_thought(): time.sleep(60)
if rank == 1: lost_in_thought()
am.solve(A, np.ones(A.local_shape[0]), ksp="cg")
""",
        limit=50,
        expect="error",
        **place,
    )
    assert "rank 0 of 2 has waited for other ranks" in out and "Timeout" not in out, out
    assert "rank 0: in Solver" in out or "rank 0: in " in out
    if not place:
        assert "rank 1: in no call" in out and "lost_in_thought" in out, out


@pytest.mark.parametrize("n", [2, 3])
def test_what_differs_between_ranks_is_named_with_its_values(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.poisson((12, 12), comm)
b = np.ones(A.local_shape[0])
last = rank == size - 1
def told(f, *texts):
    try: f()
    except am.CommError as e:
        assert e.shared and all(t in str(e) for t in texts), e
        return
    raise AssertionError("no error")
told(lambda: am.Solver(A, ksp="gmres" if last else "cg"), "-ksp_type is cg on rank", f"gmres on rank {size - 1}")
told(lambda: am.Solver(A, pc="ilu" if last else "amg"), "-pc_type is amg", "ilu")
told(lambda: am.Solver(A, rtol=1e-8 / (1 + rank)), "-ksp_rtol is", "1e-08 on rank 0")
told(lambda: am.Solver(A, atol=1e-8 if last else None), "-ksp_atol is", "not given")
told(lambda: am.Solver(A, maxiter=10 + last), "-ksp_max_it is 10", "11")
told(lambda: am.Solver(am.Matrix(A._h.converted("float32")) if last else A), "dtype of A is float", f"float32 on rank {size - 1}")
s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
told(lambda: s.solve(np.ones((len(b), 3 if last else 2))), "the number of columns of b (", "is 2", "3")
M = am.Operator(lambda x: x, A.local_shape[0], comm=comm)
told(lambda: am.Solver(A, ksp="cg", M=M if last else None, pc=None), "M is", "not given")
shape = (4, 6 if last else 4)
told(lambda: am.Builder(shape, comm=comm), "Builder: ", "shape is (4, 4) on rank", f"(4, 6) on rank {size - 1}")
told(lambda: am.Assembly(shape, [0], [0], comm), "Assembly: ", "shape is (4, 4) on rank")
told(lambda: am.Matrix.coo(shape, [0], [0], [1.0], comm), "coo: ", "shape is (4, 4) on rank")
told(lambda: am.Builder((size, size), comm=comm, local_rows=1 if last else None), "local_rows is given on rank")
told(lambda: am.VectorAssembly(6 if last else 4, [0], comm), "VectorAssembly: ", "size is 4 on rank", "6")
told(lambda: am.VectorAssembly(size, [0], comm, local_size=1 if last else None), "local_size is given on rank")
told(lambda: am.advise(A, budget=1e-6 * (1 + rank)), "advise: ", "budget is 1e-06 on rank 0", "2e-06 on rank 1")
told(lambda: am.advise(A, budget=1, rtol=1e-6 if last else 1e-8), "rtol is 1e-06", "1e-08")
told(lambda: am.advise(A, budget=1, tune=last), "tune is False", "True")
told(lambda: am.advise(A, b if last else None, budget=1), "b is given on rank", "not given")
told(lambda: am.advise(A, budget=1, null_space=b if last else None), "null_space is given on rank", "not given")
x = s.solve(b)
assert s.info.converged
told(lambda: am.Solver(A, options="-device auto" if last else ""), "-device is", "not given")
i, j = am.stencil.indices(2)
u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
L = am.stencil.operator(am.stencil.assign(out(i, j), u(i, j) - u(i, j + 1)), (16, 16), comm=comm)
for product in (L.__matmul__, L.rmatvec):
    told(lambda: product(np.ones((*L.local_grid_shape, 2) if last else L.local_grid_shape)), "the number of columns of x is 1", "2 on")
told(lambda: L.rmatvec(np.ones(L.local_grid_shape), conjugate=last), "its form is", "L.T @ x", "L.H @ x")
import os, tempfile
folder = comm.bcast(tempfile.mkdtemp() if rank == 0 else None)
one, other = f"{folder}/one.ast", f"{folder}/other.mtx"
am.write_matrix(one, A); am.write_matrix(other, A); am.save(one, comm, A=A, b=b)
file = other if last else one
told(lambda: am.read_matrix(file, comm), "read_matrix: ", "the path is", "one.ast on rank", "other.mtx")
told(lambda: am.read_matrix(one, comm, name="b" if last else "A"), "name is A", "b on rank")
told(lambda: am.read_matrix(other, comm, block_size=2 if last else 1), "block_size is 1", "2 on rank")
told(lambda: am.read_vector(file, A), "read_vector: ", "the path is")
told(lambda: am.write_vector(file, b, A), "write_vector: ", "the path is")
told(lambda: am.write_matrix(file, A), "write_matrix: ", "the path is")
told(lambda: am.save(file, comm, b=b), "save: ", "the path is")
told(lambda: am.load(file, comm), "load: ", "the path is")
told(lambda: A + (am.Matrix(A._h.converted("complex64")) if last else A), "A + B: ", "the dtype of factor 2 is", "float64", "complex64")
assert am.read_matrix(one, comm, block_size=2, name="A").block_size == 2
# what each rank may have its own way
am.configure(memory_cap=10**10 if last else 2 * 10**10)
s = am.Solver(A, ksp="cg", pc="jacobi", ksp_monitor=False)
s.solve(b)
s = am.Solver(A, ksp="cg", queue="thread" if last else "inline")
s.solve(b)
""",
        limit=60,
    )


def test_an_interrupt_between_the_calls_of_a_solve_is_told(on_ranks):
    """am.solve checks, sets up and solves: a rank that is interrupted between two of these must not leave the others in the next one."""
    on_ranks(
        2,
        """
module = sys.modules[am.solve.__module__]
A = am.gallery.poisson((20, 20), comm)
b = np.ones(A.local_shape[0])
agreed = module.agreed
def interrupted(*args):
    agreed(*args)
    if rank == 1: raise KeyboardInterrupt
for again in range(3):
    module.agreed = interrupted
    try:
        am.solve(A, b)
        raise AssertionError("no error")
    except (KeyboardInterrupt, am.AsterismError) as e:
        assert rank == 1 or "KeyboardInterrupt" in str(e), e
    finally:
        module.agreed = agreed
    comm.Barrier()
for again in range(2):
    try: x, info = am.solve(A, b, rtol=1e-8)
    except am.AsterismError as e: assert e.shared, e
assert info.converged
""",
        limit=60,
    )
