"""Bad input on one rank alone: every public function that all ranks call together tells the others, and the library goes on."""

import pytest

SET_UP = """
import os, tempfile, time
folder = comm.bcast(tempfile.mkdtemp() if rank == 0 else None)
bad = size - 1                        # the rank whose input is wrong
A = am.gallery.poisson((12, 12), comm)
n = A.local_shape[0]
ones, rows = np.ones(n), A.row_range
file = folder + "/whole.mtx"
am.write_matrix(file, A)
S = A.to_scipy()
sf = am.StarForest(comm, 4, None, [(i % size, i) for i in range(4)])    # each rank hears from all
grid = am.grid.Grid((8, 8), comm, periodic=True, ranks=(size, 1))
plan = am.Assembly((6, 6), [0, 1], [0, 1], comm)
loads = am.VectorAssembly(6, [0, 1], comm)
def build(i, v, how="add"):
    builder = am.Builder((9, 9), comm=comm)
    getattr(builder, how)(i, [0], v)
    builder.matrix()
move = am.Redistribution(A, np.arange(n) % size)
part = am.Submatrix(A)
twice = am.ProductPlan(A, A)
queue = am.Queue()
queued = sf.on(queue)
x = am.Vector(A, queue, fill=1)
full = am.Matrix.from_scipy(np.ones((36, 36)), comm, distribute=True)
z = am.Vector(full, queue, fill=1)
short = ones[1:]
def by(good, wrong): return good if rank != bad else wrong
def goes_on():
    y = A @ ones
    total = comm.allreduce(float(y.sum()))
    assert total == 48, total         # a row sum for each point of the boundary, two at the corners
def check(name, f, text):
    t = time.perf_counter()
    try: f()
    except Exception as e: caught = e
    else: raise AssertionError(f"{name}: rank {rank} got no error")
    assert time.perf_counter() - t < 5, name
    assert text in str(caught), (name, rank, repr(caught))
    if rank != bad:
        assert isinstance(caught, am.AsterismError) and caught.shared and f"rank {bad}: " in str(caught), (name, repr(caught))
    goes_on()
"""
CASES = {
    "from_scipy": ("am.Matrix.from_scipy(by(S, 'no matrix'), comm)", "sparse matrix"),
    "from_scipy, block_size": ("am.Matrix.from_scipy(S, comm, block_size=by(1, 0.5))", "block_size"),
    "from_scipy, dtype": ("am.Matrix.from_scipy(by(S, S.astype(np.longdouble)), comm)", "dtype"),
    "from_scipy, whole": (
        "am.Matrix.from_scipy(np.eye(9), comm, distribute=True, near_null_space=by(np.ones(9), np.ones(5)))",
        "all 9 rows",
    ),
    "coo": ("am.Matrix.coo((9, 9), [0], [0], by([1.0], [1.0, 2.0]), comm)", "shapes"),
    "coo, float index": ("am.Matrix.coo((9, 9), by([0], [0.5]), [0], [1.0], comm)", "coo: i"),
    "coo, rows": ("am.Matrix.coo((9, 9), [0], [0], [1.0], comm, local_rows=by(1, -1))", "local_rows"),
    "coo, index": ("am.Matrix.coo((9, 9), [0], [by(0, 99)], [1.0], comm)", "99"),
    "Solver.solve, rtol": ("am.Solver(A).solve(ones, rtol=by(1e-3, 'small'))", "rtol"),
    "Assembly": ("am.Assembly((9, 9), by([0], ['a']), [0], comm)", "Assembly: i"),
    "Assembly.matrix": ("plan.matrix(by(np.ones(2), np.ones(3)))", "3"),
    "Assembly.matrix, add_to": ("plan.matrix(np.ones(2), add_to=by(None, 4))", "add_to"),
    "VectorAssembly": ("am.VectorAssembly(9, by([0], ['a']), comm)", "VectorAssembly: i"),
    "VectorAssembly, local_size": ("am.VectorAssembly(9, [0], comm, local_size=by(1, -1))", "local_size"),
    "VectorAssembly.vector": ("loads.vector(by(np.ones(2), np.ones(3)))", "3"),
    "Builder": ("am.Builder((9, 9), comm=comm, local_rows=by(1, -1))", "local_rows"),
    "Builder, dtype": ("am.Builder((9, 9), by('float64', 'int32'), comm)", "int32"),
    "Builder.add": ("build([0], by([1.0], [1.0, 2.0]))", "shapes"),
    "Builder.add, index": ("build([by(0, 99)], [1.0])", "99"),
    "Builder.insert, dtype": ("build([0], by([1.0], [1j]), 'insert')", "complex128"),
    "astype": ("A.astype(by('f4', 'no dtype'))", "no dtype"),
    "with_values": ("A.with_values(by(S.data, S.data[1:]))", "values"),
    "with_values, dtype": ("A.with_values(by(S.data, S.data.astype(str)))", "dtype"),
    "with_storage": ("A.with_storage(by('symmetric', 'half'))", "half"),
    "submatrix": ("A.submatrix(by([0], [1e9]))", "rows"),
    "submatrix, index": ("A.submatrix([by(0, 10**9)])", "1000000000"),
    "Submatrix.update": ("part.update(by(A, None))", "None"),
    "A @ B": ("A @ by(A, S)", "from_scipy"),
    "A.T @ B": ("A.T @ by(A, am.Operator(lambda x: x, n))", "no entries"),
    "A @ B, vector": ("A @ by(A, 'text')", ""),
    "rap": ("am.rap(A.T, by(A, 5), A)", "factor 2"),
    "ptap": ("am.ptap(A, by(A, A.T))", "am.rap"),
    "ProductPlan": ("am.ProductPlan(A, by(A, None))", "factor 2"),
    "ProductPlan.multiply": ("twice.multiply(A, by(A, A.T))", "plain"),
    "A + B": ("A + by(A, 1)", "a Matrix is needed"),
    "a A": ("by(2, 'text') * A", ""),
    "A / a": ("A / by(2, ones)", "A number is needed"),
    "Redistribution": ("am.Redistribution(A, by(np.full(n, rank), np.full(n, 77)))", "77"),
    "Redistribution.forward": ("move.forward(by(ones, short))", "x has shape"),
    "Redistribution.back": ("move.back(by(ones, short))", "x has shape"),
    "StarForest, remote": ("am.StarForest(comm, 4, None, by([(0, 0)], [(0.5, 0)]))", "remote"),
    "StarForest, root": ("am.StarForest(comm, 4, None, [(by(0, 44), 0)])", "44"),
    "StarForest, transport": ("am.StarForest(comm, 4, None, [(0, 0)], None, by('auto', 'telepathy'))", "telepathy"),
    "compose": ("sf.compose(by(sf, None))", "None"),
    "embed_roots": ("sf.embed_roots(by([0], [9]))", "9"),
    "embed_leaves": ("sf.embed_leaves(by([0], [0.5]))", "selected"),
    "strided": ("sf.strided(by(2, 0))", "strided"),
    "section": ("sf.section(by([1, 1, 1, 1], [1, 1]))", "section"),
    "gather": ("sf.gather(by(np.ones(4), np.ones(3)))", "leafdata"),
    "scatter": ("sf.scatter(by(np.ones(9), np.ones(1)), np.ones(4))", "rootdata"),
    "from_sizes": ("am.StarForest.from_sizes(comm, by(3, -3), [0])", "local_size"),
    "matching": ("am.StarForest.matching(comm, [rank], by([0], [555]))", "555"),
    "all_to_all": ("am.StarForest.all_to_all(comm, by(1, 1.5))", "all_to_all"),
    "Grid": ("am.grid.Grid(by((8, 8), (8, 0)), comm)", "at least one point"),
    "Grid, stencil": ("am.grid.Grid((8, 8), comm, by('star', 'sun'))", "sun"),
    "Grid.exchange": ("grid.exchange(by(grid.local(), np.ones(3)))", "local"),
    "Grid.to_local": ("grid.to_local(by(grid.globals(), np.ones(3)), grid.local())", "values"),
    "Grid.to_global": ("grid.to_global(by(grid.local(), np.ones(3)), grid.globals(), 'sum')", "local"),
    "Channels": ("am.Channels(comm, by([], [(44, 100)]))", "44"),
    "Channels, bytes": ("am.Channels(comm, [((rank + 1) % size, by(100, -1))])", "bytes"),
    "queued bcast": (
        "(queued.bcast(by(am.Vector(queued.roots, queue), am.Vector(plan, queue)), am.Vector(queued.leaves, queue)), queued.wait())",
        "4 rows",
    ),
    "queued reduce": (
        "(queued.reduce(am.Vector(queued.leaves, queue), by(am.Vector(queued.roots, queue), 3)), queued.wait())",
        "rootdata",
    ),
    "Vector.dot": ("x.dot(by(x, am.Vector(queued.roots, queue))).values()", "dot"),
    "dots": ("am.dots([(x, by(x, 5))])[0].values()", "Vector"),
    "product": ("(z.like().product(full, by(z, 5)), queue.wait())", "product"),
    "poisson": ("am.gallery.poisson(by((4, 4), (4, 0)), comm)", "at least one point"),
    "poisson, stencil": ("am.gallery.poisson((4, 4), comm, stencil=by('star', 'sun'))", "sun"),
    "elasticity": ("am.gallery.elasticity(by((2, 2, 2), (2, 2)), comm)", ""),
    "convection": ("am.gallery.convection_diffusion((4, 4), by((1, 1), (1, 'x')), 1.0, comm)", ""),
    "read_matrix": ("am.read_matrix(file, comm, block_size=by(1, 1.5))", "block_size"),
    "write_vector, dtype": ("am.write_vector(folder + '/x.mtx', by(ones, ones.astype(str)), A)", "dtype"),
    "write_vector": ("am.write_vector(folder + '/x.mtx', by(ones, short), A)", ""),
    "write_vtk": ("am.write_vtk(folder + '/g.vti', grid, u=np.ones(by(grid.global_shape, (3, 3))))", "shape"),
    "write_vtk, pieces": (
        "am.write_vtk(folder + by('/g.pvti', '/g.vtk'), grid, u=np.ones(grid.global_shape))",
        "g.vtk",
    ),
    "save": ("am.save(folder + '/s.ast', comm, x=by(ones, ones.astype(str)))", "dtype"),
    "save, rank": ("am.save(folder + '/s.ast', comm, x=by(ones, np.ones((1, 1, 1))))", "shape"),
    "Operator": ("am.Operator(lambda x: x, by(3, -3), comm=comm)", "rows"),
    "A.H @ x": ("full.rmatvec(by(z.numpy(), short))", "x"),
    "near_null_space": ("setattr(A, 'near_null_space', by(ones, short))", "near_null_space"),
    "block_size": ("setattr(A, 'block_size', by(1, 1.5))", "block_size"),
    "coordinates": ("setattr(A, 'coordinates', by(np.zeros((1, 2)), [1.0]))", "coordinates has shape"),
    "Solver": ("am.Solver(A, null_space=by(None, 'text'))", ""),
    "Solver, M": ("am.Solver(A, M=by(None, 'text'))", ""),
    "Solver.update": ("am.Solver(A).update(by(A, 'text'))", ""),
    "solve": ("am.solve(A, by(ones, short))", "b has shape"),
    "least_squares": ("am.least_squares(A, by(ones, short))", "b has shape"),
    "least_squares, method": ("am.least_squares(A, ones, method=by('lsmr', 'lsq'))", "lsq"),
    "least_squares, maxiter": ("am.least_squares(A, ones, maxiter=by(4, 0))", "maxiter"),
}


@pytest.mark.parametrize("place", [{}, {"ASTERISM_RANKS_PER_NODE": "1"}], ids=["node", "mpi"])
@pytest.mark.parametrize("n", [2, 3])
def test_bad_input_on_one_rank(on_ranks, n, place):
    cases = "".join(f"check({name!r}, lambda: {call}, {text!r})\n" for name, (call, text) in CASES.items())
    on_ranks(n, SET_UP + cases, limit=240, **place)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("am.Matrix.from_scipy(S.astype('f4' if comm.rank else 'f8'), comm, distribute=True)", "dtype"),
        ("am.Matrix.from_scipy(S.astype('c16' if comm.rank else 'f8'), comm, distribute=True)", "dtype"),
        ("am.Matrix.from_scipy(S[:60] if comm.rank else S, comm, distribute=True)", "shape"),
        ("am.Matrix.from_scipy(S[:60, :60] if comm.rank else S, comm, distribute=True)", "shape"),
        ("am.Matrix.from_scipy(S, comm, distribute=comm.rank == 0)", "distribute"),
        ("A.astype('c8' if comm.rank else 'f8')", "dtype"),
        ("B @ B", "dtype of factor 1"),
        ("A.T @ B", "dtype of factor 2"),
        ("am.ptap(A, B)", "dtype of factor"),
        ("am.ProductPlan(B, A)", "dtype of factor 1"),
        ("am.ProductPlan(A, A).multiply(B, A)", "dtype of factor 1"),
    ],
)
def test_ranks_that_give_different_matrices_are_told(on_ranks, call, what):
    script = f"""
S = am.gallery.poisson((9, 7)).to_scipy().tocsr()
A = am.Matrix.from_scipy(S, comm, distribute=True)
B = am.Matrix(A._h.converted('float32' if comm.rank else 'float64'))
try:
    {call}
except am.CommError as e:
    assert "do not say the same" in str(e) and {what!r} in str(e), e
    print("told", flush=True)
assert np.allclose((A @ A).to_scipy().toarray(), (S @ S)[slice(*A.row_range)].toarray())
"""
    for ranks in (2, 3):
        assert on_ranks(ranks, script).count("told") == ranks
