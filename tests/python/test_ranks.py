"""The same answers on 1 to 4 ranks, errors on all of them, and no hangs."""

import pytest

RANKS = [1, 2, 3, 4]


@pytest.mark.parametrize("n", RANKS)
def test_bcsstk16_cg_jacobi(on_ranks, data, n):
    on_ranks(
        n,
        f"""
import scipy.io
A = am.read_matrix("{data}/bcsstk16.mtx.gz", comm)
S = scipy.io.mmread("{data}/bcsstk16.mtx.gz").tocsr()
lo, hi = A.row_range
assert abs(A.to_scipy() - S[lo:hi]).max() == 0
xs = np.sin(np.arange(S.shape[0]))
x, info = am.solve(A, (S @ xs)[lo:hi], ksp="cg", pc="jacobi", rtol=1e-10)
full = np.concatenate(comm.allgather(x))
assert np.linalg.norm(S @ full - S @ xs) <= 1.001e-10 * np.linalg.norm(S @ xs)
assert info.converged
import scipy.sparse.linalg as spla
steps = []
spla.cg(S, S @ xs, rtol=1e-10, M=sp.diags_array(1 / S.diagonal()), callback=steps.append)
assert abs(info.iterations - len(steps)) <= 4, (info.iterations, len(steps))
""",
    )


def test_amg_is_the_same_on_all_rank_counts(on_ranks):
    script = """
for A in (am.gallery.poisson((24, 24, 24), comm), am.gallery.elasticity((8, 7, 6), comm), am.gallery.poisson((60, 50), comm, epsilon=(1, 0.02)), am.gallery.poisson((40, 40), comm, neumann=True)):
    b = np.sin(1.0 + np.arange(*A.row_range))
    s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8, options="-pc_amg_coarse_size 100")
    s.solve(b)
    levels = [" ".join(l.split()[:4]) for l in s.view().splitlines() if l.strip()[:1].isdigit()]
    if rank == 0: print("RESULT", s.info.iterations, levels)
"""
    seen = {n: [line for line in on_ranks(n, script).splitlines() if line.startswith("RESULT")] for n in RANKS}
    assert len(seen[1]) == 4
    for n in RANKS[1:]:
        assert seen[n] == seen[1], n


def test_memory_falls_with_ranks(on_ranks):
    script = """
A = am.gallery.poisson((40, 40, 40), comm)
s = am.Solver(A, ksp="cg", pc="amg"); s.solve(np.ones(A.local_shape[0]))
if rank == 0: print("BYTES", s.info.memory_bytes)
"""
    used = [int(on_ranks(n, script).split("BYTES")[1].split()[0]) for n in (1, 2, 4)]
    assert used[1] < 0.6 * used[0] and used[2] < 0.35 * used[0]


@pytest.mark.parametrize("n", RANKS)
def test_products_with_empty_ranks_and_all_dtypes(on_ranks, n):
    on_ranks(
        n,
        """
for dtype in ("float32", "float64", "complex64", "complex128"):
    for rows, cols in ((5, 5), (40, 40), (3, 50), (50, 2)):
        g = np.random.default_rng(rows)
        S = sp.random_array((rows, cols), density=0.3, rng=g).tocsr().astype(dtype)
        # uneven: rank 0 has none, the last has the most
        cuts = [0] + [rows * r * r // (size * size) for r in range(1, size)] + [rows]
        mine = S[cuts[rank]:cuts[rank + 1]]
        if size > 1 and any(cuts[r + 1] - cuts[r] != cols for r in range(size)):
            A = am.Matrix.from_scipy(mine, comm)
        else:
            A = am.Matrix.from_scipy(S, comm, distribute=True)
        x = g.standard_normal(cols).astype(dtype)
        lo, hi = A._h.cols.begin, A._h.cols.end
        rlo, rhi = A.row_range
        tol = 1e-4 if dtype in ("float32", "complex64") else 1e-12
        assert np.allclose(A @ x[lo:hi], (S @ x)[rlo:rhi], atol=tol)
        y = g.standard_normal(rows).astype(dtype)
        assert np.allclose(A.T @ y[rlo:rhi], (S.T @ y)[lo:hi], atol=tol)
        # no columns at all
        assert (A @ np.ones((hi - lo, 0), dtype)).shape == (rhi - rlo, 0)
        assert (A.T @ np.ones((rhi - rlo, 0), dtype)).shape == (hi - lo, 0)
""",
    )


@pytest.mark.parametrize("n", RANKS)
def test_every_solver_on_ranks(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.convection_diffusion((18, 17), (20.0, -10.0), 1.0, comm)
P = am.gallery.poisson((17, 18), comm)
for M, ksps in ((A, ("gmres", "fgmres", "gcr", "bicg", "idr", "bicgstab", "cgs")), (P, ("cg", "cr", "minres", "chebyshev", "richardson", "gmres"))):
    lo, hi = M.row_range
    xs = np.cos(np.arange(M.shape[0]))[lo:hi]
    for ksp in ksps:
        for pc in ("bjacobi", "sor", "ilu", "lu") + (("amg", "jacobi", "chebyshev") if M is P and ksp != "richardson" else ()):
            x, info = am.solve(M, M @ xs, ksp=ksp, pc=pc, rtol=1e-9, maxiter=5000)
            err = comm.allreduce(float(np.linalg.norm(x - xs) ** 2)) ** 0.5
            assert err < 1e-5, (ksp, pc, err)
""",
    )


@pytest.mark.parametrize("n", [2, 3])
def test_one_rank_failing_alone_is_an_error_on_all(on_ranks, n):
    out = on_ranks(
        n,
        """
caught = []
def attempt(f):
    try:
        f()
    except am.AsterismError as e:
        caught.append(str(e))
last = size - 1
S = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 4))
if rank == last: S.indices[1] = 77
attempt(lambda: am.Matrix.from_scipy(S, comm))
A = am.gallery.poisson((20, 20), comm)
b = np.ones(A.local_shape[0])
if rank == last: b[3] = np.nan
attempt(lambda: am.solve(A, b))
attempt(lambda: am.read_matrix("/nowhere.mtx" if rank == last else "/nowhere2.mtx", comm))
attempt(lambda: am.Matrix.from_scipy(sp.eye_array(9).tocsr(), comm))
attempt(lambda: am.StarForest(comm, 1, None, [[rank, 5 if rank == last else 0]]))
everyone = comm.allgather(caught)
assert all(len(c) == 5 for c in everyone), everyone
assert len({c[0] for c in everyone}) == 1 and "column 77" in caught[0]
assert len({c[1] for c in everyone}) == 1 and "NaN" in caught[1], everyone
print("AGREED")
""",
    )
    assert out.count("AGREED") == n


def test_an_uncaught_exception_ends_all_ranks(on_ranks):
    out = on_ranks(
        2,
        "A = am.gallery.poisson((9, 9), comm)\nif rank == 1: raise ValueError('mine alone')\ncomm.Barrier()\n",
        expect="error",
    )
    assert "mine alone" in out


def test_a_wrong_shape_on_one_rank_ends_all_ranks(on_ranks):
    script = "A = am.gallery.poisson((9, 9), comm)\nA @ np.ones(A.local_shape[1] + (rank == 1))\ncomm.Barrier()\n"
    out = on_ranks(2, script, expect="error")
    assert "ShapeError" in out


@pytest.mark.parametrize("n", [1, 3])
def test_files_are_read_and_written_by_all(on_ranks, tmp_path, n):
    on_ranks(
        n,
        f"""
import gzip, scipy.io
g = np.random.default_rng(0)
S = sp.random_array((200, 200), density=0.05, rng=g).tocsr()
plain, zipped, bad = "{tmp_path}/a.mtx", "{tmp_path}/a.mtx.gz", "{tmp_path}/bad.mtx"
if rank == 0:
    scipy.io.mmwrite(plain, S)
    text = open(plain).read()
    open(zipped, "wb").write(gzip.compress(text.encode()))
    lines = text.splitlines(); lines[900] = "12 13 oops"; open(bad, "w").write("\\n".join(lines))
comm.Barrier()
for path in (plain, zipped):
    A = am.read_matrix(path, comm)
    lo, hi = A.row_range
    assert abs(A.to_scipy() - scipy.io.mmread(path).tocsr()[lo:hi]).max() == 0
try:
    am.read_matrix(bad, comm); raise SystemExit("no error")
except am.FormatError as e:
    assert "line 901" in str(e), e
x = np.arange(lo, hi) * 0.1
am.write_vector("{tmp_path}/x.mtx", x, A)
comm.Barrier()
assert (am.read_vector("{tmp_path}/x.mtx") == np.arange(200) * 0.1).all()
assert (am.read_vector("{tmp_path}/x.mtx", A) == x).all()
""",
    )


def test_sub_communicators_and_any_order_of_destruction(on_ranks):
    on_ranks(
        4,
        """
import gc, random
half = comm.Split(rank % 2, rank)
things = []
for i in range(10):
    things.append(am.Solver(am.gallery.poisson((10, 10), half), ksp="cg", pc="amg"))
    things.append(am.gallery.poisson((8, 8), comm))
random.seed(rank)
random.shuffle(things)
for s in things:
    if isinstance(s, am.Solver) : pass
while things:
    things.pop(); gc.collect()
A = am.gallery.poisson((12, 12), half)
x, info = am.solve(A, np.ones(A.local_shape[0]))
assert info.converged
comm.Barrier()
half.Free()
""",
    )


def test_comm_none_is_one_process_under_mpiexec(on_ranks):
    on_ranks(2, "A = am.gallery.poisson((6, 6)); assert A.local_shape == (36, 36); am.solve(A, np.ones(36))\n")


@pytest.mark.parametrize(("ranks", "queue"), [(2, "inline"), (3, "inline"), (3, "shuffle")])
def test_shared_vectors_change_nothing_but_where_they_lie(on_ranks, ranks, queue):
    script = f"""
from asterism import _core
answers = []
for shared in ("0", "1"):
    A = am.gallery.poisson((8, 40, 40), comm=comm)        # a plane of 12.8 kB goes to each neighbour: read in place
    for pc in ("amg", "jacobi"):
        s = am.Solver(A, given(f"-shared_vectors {{shared}} -queue {queue}"), ksp="cg", pc=pc, rtol=1e-8)
        answers.append(s.solve(np.sin(np.arange(*A.row_range))))
assert all((a == b).all() for a, b in zip(answers[:2], answers[2:]))
text = message(lambda: am.configure(shared_vectors=2)); assert "shared_vectors" in text and "auto, 0, 1" in text, text
print("done", flush=True)
"""
    assert on_ranks(ranks, script).count("done") == ranks


@pytest.mark.parametrize("n", [2, 3])
def test_communicators_that_are_freed_are_forgotten_on_all_ranks(on_ranks, n):
    # MPI gives a freed handle to another communicator, on some ranks sooner than on others
    out = on_ranks(
        n,
        """
from mpi4py import MPI
own = []
for i in range(60):
    c = comm.Dup()
    lo, hi = am.gallery.poisson((9, 8), c).row_range
    assert hi - lo >= 72 // c.Get_size()
    c.Free()
    if (i * 7 + rank * 3) % 5 == 0: own.append(MPI.COMM_SELF.Dup())
    if (i + rank) % 4 == 0 and own: own.pop().Free()
x, _ = am.solve(am.gallery.poisson((9, 8), comm), np.ones(am.gallery.poisson((9, 8), comm).local_shape[0]), options="-ksp_type cg")
if rank == 0: print("good")
""",
    )
    assert "good" in out


def test_the_use_of_what_was_made_with_a_freed_communicator_is_an_error(on_ranks):
    out = on_ranks(
        2,
        """
for way in ("p2p", "shm", "neighbor", "collective", "window_fence"):
    c = comm.Dup()
    sf = am.StarForest(c, 5, None, [(1 - rank, i) for i in range(5)], transport=way)
    sf.bcast(np.arange(5.0), np.zeros(5))
    A = am.gallery.poisson((8, 8), c)
    x = am.Vector(A, am.Queue(), fill=1.0)
    norm = x.norm()
    c.Free()
    assert float(norm) == 8.0  # it was queued before
    for f in (lambda: sf.bcast(np.arange(5.0), np.zeros(5)), lambda: A @ np.ones(32), lambda: am.solve(A, np.ones(32), ksp="cg"), x.norm):
        assert "the MPI communicator of this object was freed" in message(f)
    del sf, A, x
if rank == 0: print("good")
""",
    )
    assert "good" in out
