"""Star forests against a NumPy reference of a few lines: random graphs, every operation, op and dtype, on 1 to 5 ranks."""

import os
import textwrap

import numpy as np
import pytest

import asterism as am
from asterism import _core

#: Random graphs in each case; the seventh of seven lists a leaf twice.
GRAPHS = int(os.environ.get("ASTERISM_TEST_RANDOM_GRAPHS", "14"))

REFERENCE = '''
def random_graph(seed):
    """Holes, empty ranks, unsorted leaves, self edges, roots without leaves, sometimes a leaf listed twice."""
    rng = np.random.default_rng(seed)
    nroots = [int(rng.integers(0, 8)) if rng.random() < 0.8 else 0 for _ in range(size)]
    space, edges = [], []                        # edges: (leaf rank, leaf, root rank, root) in the order given
    contiguous = rng.random() < 0.3
    for r in range(size):
        n = int(rng.integers(0, 14)); space.append(n)
        leaves = np.arange(n) if contiguous else rng.permutation(n)
        if not contiguous: leaves = leaves[rng.random(n) < 0.8]
        if seed % 7 == 0 and len(leaves): leaves = np.append(leaves, leaves[0])
        mine = []
        for l in leaves:
            owner = int(rng.integers(size))
            if nroots[owner]: mine.append((r, int(l), owner, int(rng.integers(nroots[owner]))))
        edges.append(mine)
    return nroots, space, edges

def forest(seed):
    nroots, space, edges = random_graph(seed)
    mine = edges[rank]
    sf = am.StarForest(comm, nroots[rank], [e[1] for e in mine], [e[2:] for e in mine], space[rank])
    return sf, nroots, space, edges

def ordered(edges, key):                          # the order in which values meet: (rank, leaf), stable
    return sorted((e for mine in edges for e in mine), key=key)

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128"]
PAIRS = [np.dtype([("value", v), ("index", i)]) for v, i in [("i4", "i4"), ("i8", "i8"), ("f4", "i4"), ("f8", "i8")]]
PAIRS.append(np.dtype([("value", "f8"), ("index", "i4")], align=True))

def loc(better):
    def f(a, b):
        take = better(b["value"], a["value"]) | ((b["value"] == a["value"]) & (b["index"] < a["index"]))
        return np.where(take, b, a)
    return f

def ops_of(dtype):
    ops = {"replace": lambda a, b: b}
    if dtype.names: return {**ops, "minloc": loc(np.less), "maxloc": loc(np.greater)}
    logical = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
    if dtype.kind == "b": return {**ops, **logical}
    ops |= {"sum": np.add, "prod": np.multiply}
    if dtype.kind != "c": ops |= {"min": np.minimum, "max": np.maximum}
    if dtype.kind in "iu": ops |= {**logical, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    return ops

def values(seed, r, n, k, dtype):
    rng = np.random.default_rng([seed, r])
    shape = (n,) if k == 1 else (n, k)
    def plain(d): return (rng.integers(0, 4, shape) + (1j * rng.integers(0, 4, shape) if d.kind == "c" else 0)).astype(d)
    if not dtype.names: return plain(dtype)
    a = np.zeros(shape, dtype)
    for name in dtype.names: a[name] = plain(dtype[name])
    return a
'''

OPERATIONS = (
    REFERENCE
    + """
first, count = 100 * size, GRAPHS
for seed in range(first, first + count):
    sf, nroots, space, edges = forest(seed)
    everything = [np.dtype(d) for d in DTYPES] + PAIRS
    for dtype in [everything[(seed + 5 * i) % len(everything)] for i in range(4)]:
        k = 1 + seed % 3
        roots = [values(seed, 100 + r, nroots[r], k, dtype) for r in range(size)]
        leaves = [values(seed, 200 + r, space[r], k, dtype) for r in range(size)]
        for name, op in ops_of(dtype).items():
            got = leaves[rank].copy(); want = leaves[rank].copy()
            for r, l, o, i in ordered([edges[rank]], lambda e: (e[2], e[1])): want[l] = op(want[l], roots[o][i])
            sf.bcast(roots[rank], got, name)
            assert (got == want).all(), ("bcast", seed, name, dtype)
            want = [a.copy() for a in roots]; before = [a.copy() for a in leaves]; got = roots[rank].copy()
            for r, l, o, i in ordered(edges, lambda e: e[:2]):
                before[r][l] = want[o][i]; want[o][i] = op(want[o][i], leaves[r][l])
            sf.reduce(leaves[rank], got, name)
            assert (got == want[rank]).all(), ("reduce", seed, name, dtype)
            got = roots[rank].copy(); update = leaves[rank].copy()
            sf.fetch_and_op(got, leaves[rank], update, name)
            assert (got == want[rank]).all(), ("fetch_and_op", seed, name, dtype)
            if seed % 7: assert (update == before[rank]).all(), ("update", seed, name, dtype)
    # degree, multi, gather, scatter
    degree = [np.zeros(n, int) for n in nroots]
    for r, l, o, i in ordered(edges, lambda e: e): degree[o][i] += 1
    assert (sf.degree() == degree[rank]).all()
    ones = np.zeros(nroots[rank], int); sf.reduce(np.ones(space[rank], int), ones)
    assert (ones == degree[rank]).all()
    data = [np.arange(n) + 1000.0 * r for r, n in enumerate(space)]
    want = [data[r][l] for i, r, l in sorted((e[3], e[0], e[1]) for mine in edges for e in mine if e[2] == rank)]
    gathered = sf.gather(data[rank]); assert (gathered == want).all(), ("gather", seed)
    back = np.full(space[rank], -1.0); sf.scatter(gathered, back)
    listed = [e[1] for e in edges[rank]]; assert (back[listed] == data[rank][listed]).all()
    # several in flight
    a, b = np.full(space[rank], -1.0), np.full((space[rank], 2), -1, dtype=np.int16)
    ra, rb = np.arange(nroots[rank]) + 0.5, np.arange(2 * nroots[rank], dtype=np.int16).reshape(-1, 2)
    one = sf.bcast_begin(ra, a); two = sf.bcast_begin(rb, b); two.end(); one.end()
    wa, wb = np.full_like(a, -1), np.full_like(b, -1); sf.bcast(ra, wa); sf.bcast(rb, wb)
    assert (a == wa).all() and (b == wb).all()
print("done", flush=True)
"""
)

ALGEBRA = (
    REFERENCE
    + """
def as_map(edges): return {e[:2]: e[2:] for mine in edges for e in mine}
def bcast(sf, data, fill=-1.0):
    out = np.full(sf.nleafspace, fill); sf.bcast(data, out); return out
for seed in range(1, 41):
    if seed % 7 == 0: continue
    A, nroots, space, edges = forest(seed)
    # B's roots are A's leaves by index, with another size
    rng = np.random.default_rng(seed + 1000)
    broots = [max(0, n + int(rng.integers(-2, 3))) for n in space]
    bspace = [int(rng.integers(0, 10)) for _ in range(size)]
    bedges = [[(r, int(l), o, int(rng.integers(broots[o]))) for l in rng.permutation(bspace[r])
               for o in [int(rng.integers(size))] if broots[o] and rng.random() < 0.9] for r in range(size)]
    B = am.StarForest(comm, broots[rank], [e[1] for e in bedges[rank]], [e[2:] for e in bedges[rank]], bspace[rank])
    C = A.compose(B)
    of_a = as_map(edges)
    want = sorted((of_a[e[2:]], e[1]) for e in bedges[rank] if e[2:] in of_a)
    leaves, remote = C.graph()
    assert sorted(zip(map(tuple, remote.tolist()), leaves.tolist())) == want, ("compose", seed)
    assert C.nroots == nroots[rank] and C.nleafspace == bspace[rank]
    data = np.arange(nroots[rank]) + 100.0 * rank
    middle = np.full(max(A.nleafspace, B.nroots), -1.0); A.bcast(data, middle)
    end = np.full(B.nleafspace, -1.0); B.bcast(np.ascontiguousarray(middle[:B.nroots]), end)
    assert (bcast(C, data) == end).all(), ("bcast of compose", seed)
    # embedding
    chosen = rng.integers(0, max(nroots[rank], 1), 4) if nroots[rank] else []
    picks = comm.allgather(set(int(c) for c in chosen))
    E = A.embed_roots(chosen)
    leaves, remote = E.graph()
    assert sorted(leaves.tolist()) == sorted(e[1] for e in edges[rank] if e[3] in picks[e[2]])
    half = [e[1] for e in edges[rank] if e[1] % 2]
    leaves, _ = A.embed_leaves(half + half).graph()
    assert sorted(leaves.tolist()) == sorted(half)
    # concatenation
    for shared_roots in (True, False):
        for shared_leaves in (True, False):
            D = am.StarForest.concatenate([A, B], shared_roots, shared_leaves)
            leaves, remote = D.graph()
            rs = [0 if shared_roots else n for n in nroots]; ls = 0 if shared_leaves else space[rank]
            want = [(e[1], e[2], e[3]) for e in edges[rank]] + [(e[1] + ls, e[2], e[3] + rs[e[2]]) for e in bedges[rank]]
            assert sorted((l, *r) for l, r in zip(leaves.tolist(), remote.tolist())) == sorted(want)
    # strides and sections
    S = A.strided(3); d3 = np.arange(3.0 * nroots[rank]) + 1000 * rank
    one = np.full((space[rank], 3), -1.0); A.bcast(d3.reshape(-1, 3), one)
    assert (bcast(S, d3) == one.ravel()).all()
    dofs = rng.integers(0, 4, nroots[rank]); all_dofs = comm.allgather(dofs.tolist())
    T, leaf_dofs = A.section(dofs)
    want = np.zeros(space[rank], int)
    for e in edges[rank]: want[e[1]] = all_dofs[e[2]][e[3]]
    assert (leaf_dofs == want).all() and T.nroots == dofs.sum() and T.nleafspace == want.sum()
    got = bcast(T, np.concatenate([[1000 * rank + 10 * r + j for j in range(n)] for r, n in enumerate(dofs)] + [[]]))
    flat = {l: [1000 * e[2] + 10 * e[3] + j for j in range(all_dofs[e[2]][e[3]])] for e in edges[rank] for l in [e[1]]}
    assert got.tolist() == sum((flat.get(l, []) for l in range(space[rank])), [])
# inverse and compose_inverse on permutations spread over the ranks, with holes
for seed in range(20):
    rng = np.random.default_rng(seed)
    n = 4 * size; perm = rng.permutation(n)
    keeps = [[i for i in range(4) if np.random.default_rng([seed, r]).random(4)[i] < 0.8] for r in range(size)]
    A = am.StarForest(comm, 4, keeps[rank], [divmod(int(perm[4 * rank + i]), 4) for i in keeps[rank]], 4)
    I = A.inverse()
    x = np.arange(4.0) + 4 * rank
    there = np.full(4, -1.0); A.bcast(x, there)
    again = np.full(4, -1.0); I.bcast(there, again)
    hit = A.degree() == 1
    assert (again[hit] == x[hit]).all() and (again[~hit] == -1).all()
    back = A.compose_inverse(A)                      # roots to themselves where they have a leaf
    same = np.full(4, -1.0); back.bcast(x, same)
    assert (same[hit] == x[hit]).all() and (same[~hit] == -1).all()
    # matching numbers find the same edges
    ids = 17 * np.arange(n)[4 * rank : 4 * rank + 4] + 3
    M = am.StarForest.matching(comm, ids, 17 * perm[4 * rank : 4 * rank + 4] + 3)
    got = np.zeros(4); M.bcast(x, got); assert (got == perm[4 * rank : 4 * rank + 4]).all()
    L = am.StarForest.from_sizes(comm, 4, perm[4 * rank : 4 * rank + 4]); L.bcast(x, got); assert (got == perm[4 * rank : 4 * rank + 4]).all()
G = am.StarForest.all_gather(comm, rank + 1)
got = np.zeros(G.nleafspace); G.bcast(np.full(rank + 1, 1.0 * rank), got)
assert got.tolist() == sum(([float(r)] * (r + 1) for r in range(size)), [])
T = am.StarForest.all_to_all(comm, 2)
got = np.zeros(2 * size); T.bcast(100.0 * rank + np.arange(2.0 * size), got)
assert got.tolist() == sum(([100.0 * r + 2 * rank, 100.0 * r + 2 * rank + 1] for r in range(size)), [])
print("done", flush=True)
"""
)


FLIGHTS = """
# many under way on three forests, of 8 bytes to 56 kB, boxes of 72 kB, ended in an order of each rank's own
rng = np.random.default_rng(7)
forests = []
for n in (5, 7000):
    perm = rng.permutation(n * size)
    mine = perm[n * rank : n * (rank + 1)]
    forests.append((n, mine, am.StarForest(comm, n, None, np.column_stack(np.divmod(mine, n)))))
# whole boxes of the next rank: such are read in place, on 2 ranks out of private memory too
n = 9000
mine = np.arange(n) + n * ((rank + 1) % size)
forests.append((n, mine, am.StarForest(comm, n, None, np.column_stack(np.divmod(mine, n)))))
for round in range(6):
    flights = []
    for f in range(40):
        n, mine, sf = forests[int(rng.integers(3))]
        x = np.arange(n * size) * 3.0 + f + 100 * round
        out = np.zeros(n)
        if f % 3:
            root = am.shared_zeros(n) if f % 2 else np.zeros(n)          # read in place by its neighbours, or not
            root[:] = x[n * rank : n * (rank + 1)]
            flights.append((sf.bcast_begin(root, out), out, x[mine], f, root))
        elif f % 2: flights.append((sf.reduce_begin(x[mine].copy(), out, "sum"), out, x[n * rank : n * (rank + 1)], f))
        else:
            root = x[n * rank : n * (rank + 1)].copy()
            flights.append((sf.fetch_and_op_begin(root, np.ones(n), out, "sum"), out, x[mine], f))
    # an operation that answers ends alike everywhere, before the others
    for flight, out, want, f, *_ in [t for t in flights if t[3] % 6 == 0]:
        flight.end(); assert (out == want).all(), ("fetch", round, f)
    rest = [t for t in flights if t[3] % 6]
    for i in np.random.default_rng([rank, round]).permutation(len(rest)):
        flight, out, want, f, *roots = rest[i]
        flight.end()
        for root in roots: root[:] = -5                                  # it may be changed from here on
        assert (out == want).all(), (round, f, out[:4], want[:4])
# one side runs far ahead of the other
far = am.StarForest(comm, 4 if rank == 0 else 0, None, [(0, i) for i in range(4)] if rank else [])
got = np.zeros((4, 1000))
for i in range(300):
    far.bcast(np.full((len(got) if rank == 0 else 0, 1000), float(i)), got)
    assert rank == 0 or (got == i).all(), i
print("done", flush=True)
"""

# what carries the data; in groups of 2 ranks that take each other for neighbours both ways are used at once
NAMES = [n for n in _core.transport_names() if n not in ("auto", "nccl", "ipc", "nvshmem")]
MIXED, HELPED = {"ASTERISM_RANKS_PER_NODE": "2"}, {"ASTERISM_OPTIONS": "-sf_progress thread"}


def by_each(transports, script):
    """The script with one transport after the other."""
    return (
        f"for transport in {transports}:\n    print(transport, flush=True)\n    given('-sf_transport ' + transport)\n"
        + (textwrap.indent(script, "    "))
    )


@pytest.mark.parametrize(
    ("ranks", "transports", "more"),
    [
        (1, ["auto"], {}),
        (2, ["p2p", "shm", "neighbor", "collective"], {}),
        (3, ["p2p", "shm", "window_lock", "window_fence"], {}),
        (4, [n for n in NAMES if n not in ("window_lock", "window_fence", "neighbor")], {}),
        (5, ["p2p", "shm", "neighbor"], {}),
        *((r, ["auto"], MIXED) for r in (3, 4, 5)),
        (4, ["p2p"], HELPED),
    ],
)
def test_operations_match_the_reference(on_ranks, ranks, transports, more):
    out = on_ranks(ranks, by_each(transports, OPERATIONS.replace("GRAPHS", str(GRAPHS))), **more)
    assert out.count("done") == ranks * len(transports)


@pytest.mark.parametrize(
    ("ranks", "transports", "more"),
    [(2, ["shm"], {}), (3, NAMES, {}), (4, ["shm"], {}), (3, ["auto"], MIXED), (3, ["p2p"], HELPED)],
)
def test_many_operations_under_way(on_ranks, ranks, transports, more):
    assert on_ranks(ranks, by_each(transports, FLIGHTS), **more).count("done") == ranks * len(transports)


def test_memory_is_of_the_order_of_the_own_edges(on_ranks):
    script = """
n = 20_000 if rank == 0 else 3
order = np.random.default_rng(rank).permutation(20_000)[:n]
sf = am.StarForest(comm, 20_000 if rank == size - 1 else 0, None, np.column_stack([0 * order + size - 1, order]))
kept = sum(p["index_bytes"] for p in sf.neighbours()); edges = sum(p["edges"] for p in sf.neighbours())
want = {0: 0, size - 1: 4 * (20_000 + 3 * (size - 1))}.get(rank, 0)      # leaves are 0, 1, 2, ...: only roots need a list
assert kept <= want and edges == {0: n, size - 1: 20_000 + 9 + 3}.get(rank, n), (rank, kept, edges)
print("done", flush=True)
"""
    assert on_ranks(4, script).count("done") == 4


def test_the_transport_is_chosen_and_told(on_ranks):
    script = """
ring = [((rank + 1) % size, 0)]
for name, way in [("auto", "shared memory"), ("shm", "shared memory"), ("p2p", "MPI")]:
    sf = am.StarForest(comm, 1, None, ring, transport=name)
    assert sf.transport == name and {n["transport"] for n in sf.neighbours()} == {way}, sf.view()
    assert sf.strided(2).transport == name and f"by {way}" in sf.view()
one = [(r, 0) for r in range(size)]
for what, edges in [("an all-gather", one), ("a gather", one if rank == 1 else []), ("a scatter", [(2, 0)]), ("an all-to-all", ring)]:
    sf = am.StarForest(comm, 1, None, edges, transport="collective")
    assert all(what in n["why"] for n in sf.neighbours() if n["rank"] != rank), (what, sf.view())
    out = np.full(len(edges), -1); sf.bcast(np.array([rank]), out); assert out.tolist() == [r for r, _ in edges]
    back = np.array([100]); sf.reduce(out + 1, back, "sum")
    assert back[0] == 100 + (rank + 1) * int(sf.degree()[0])
assert "'tcp' is not one of auto, p2p, shm" in message(lambda: am.StarForest(comm, 1, None, ring, transport="tcp"))
text = message(lambda: am.StarForest(comm, 1, None, ring, transport="shm" if rank == 0 else "p2p"))
assert text == "CommError: StarForest: the ranks do not say the same: transport is p2p on ranks 1, 2; shm on rank 0. Give the same on all ranks.", text
for name in ("collective", "window_lock"):    # ranks without an edge in between
    text = message(lambda: am.StarForest(comm, 1, None, [], transport=name if rank == 0 else "auto"))
    assert f"transport is auto on ranks 1, 2; {name} on rank 0" in text, text
# a wrong pairing of calls is found
sf = am.StarForest(comm, 1, None, [(0, 0)])
text = message(lambda: sf.bcast(np.zeros(1), np.zeros(1)) if rank == 0 else sf.bcast(np.zeros((1, 2)), np.zeros((1, 2)))) if rank else sf.bcast(np.zeros(1), np.zeros(1))
assert rank == 0 or "rank 0 sent 8 bytes where 16 were expected" in text, text
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3
    script = """
try: am.StarForest(comm, 1, None, [((rank + 1) % size, 0)], transport="shm")
except am.AsterismError as e: assert "cannot reach rank" in str(e) and "Use 'auto' or 'p2p'" in str(e), e; print("done", flush=True)
"""
    assert on_ranks(3, script, ASTERISM_RANKS_PER_NODE="2").count("done") == 3


@pytest.mark.parametrize(
    ("ranks", "discovery"),
    [(1, "auto"), (2, "auto"), (3, "nbx"), (3, "allreduce"), (4, "reduce_scatter"), (5, "nbx"), (5, "auto")],
)
def test_algebra_matches_the_reference(on_ranks, ranks, discovery):
    # hundreds of set-ups one behind the other, with each way of finding out who sends to whom
    out = on_ranks(ranks, ALGEBRA, ASTERISM_OPTIONS=f"-sf_discovery {discovery}")
    assert out.count("done") == ranks


def test_the_users_own_operations(on_ranks):
    script = """
sf = am.StarForest(comm, 2, None, [(r, 1) for r in range(size)] + [(0, 0)])
root, leaf = np.array([5.0, 1.0]), np.arange(size + 1.0) + 10 * rank
want = root.copy()
for r in range(size): want[1] = 2 * want[1] + (rank + 10 * r)
for r in range(size if rank == 0 else 0): want[0] = 2 * want[0] + (size + 10 * r)
sf.reduce(leaf, root, lambda a, b: 2 * a + b)
assert (root == want).all(), (root, want)
root = np.array([5.0, 1.0]); sf.reduce(leaf, root, MPI.MAX); assert root[1] == max(1, rank + 10 * (size - 1))
def absmax(a, b, dt):
    x, y = np.frombuffer(a), np.frombuffer(b); y[:] = np.where(abs(x) > abs(y), x, y)
op = MPI.Op.Create(absmax, commute=True)
root = np.array([5.0, 1.0]); sf.reduce(-leaf, root, op); assert root[1] == -(rank + 10 * (size - 1)) or size == 1, root
op.Free()
block = np.zeros(sf.nroots, dtype=[("a", "i4"), ("b", "S5"), ("c", "f8", 3)]); block["c"] = rank; block["b"] = b"rank%d" % rank
out = np.zeros(sf.nleafspace, dtype=block.dtype); sf.bcast(block, out)
assert [x["b"] for x in out[:size]] == [b"rank%d" % r for r in range(size)] and (out["c"][:size, 2] == np.arange(size)).all()
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3


def test_figures_one_and_two_of_the_paper():
    # two leaves on one root, one root without a leaf: bcast copies, reduce adds, fetch_and_op hands out offsets
    sf = am.StarForest(None, 3, None, [[0, 0], [0, 0], [0, 2]])
    leaf = np.zeros(3)
    sf.bcast(np.array([1.0, 2.0, 3.0]), leaf)
    assert leaf.tolist() == [1, 1, 3]
    root = np.zeros(3)
    sf.reduce(np.array([10.0, 20.0, 30.0]), root)
    assert root.tolist() == [30, 0, 30]
    counter, offset = np.zeros(3, int), np.zeros(3, int)
    sf.fetch_and_op(counter, np.array([4, 5, 6]), offset)
    assert counter.tolist() == [9, 0, 6] and offset.tolist() == [0, 4, 0]


def test_the_parts_of_a_box_halo_are_recognised_and_keep_no_indices(on_ranks):
    # 1 x 2 x 2 boxes of 5 x 4 x 3 points (x fastest) with ghost layers of width 1 and 2
    script = """
nx, ny, nz = 5, 4, 3
def place(r): return r % 2, r // 2
for width in (1, 2):
    fx, fy, fz = nx, ny + 2 * width, nz + 2 * width
    here = place(rank)
    leaves, remote, want = [], [], []
    for other in range(size):
        if other == rank: continue
        there = place(other)
        span = []
        for d, n in ((0, ny), (1, nz)):
            shift = there[d] - here[d]
            span.append(range(width) if shift < 0 else range(width + n, 2 * width + n) if shift > 0 else range(width, width + n))
        for z in span[1]:
            for y in span[0]:
                for x in range(nx):
                    gy, gz = here[0] * ny + y - width, here[1] * nz + z - width       # global
                    ly, lz = gy - there[0] * ny + width, gz - there[1] * nz + width   # in the owner's array
                    leaves.append((z * fy + y) * fx + x); remote.append((other, (lz * fy + ly) * fx + x))
                    want.append((gz * 100 + gy) * 100 + x)
    n = fx * fy * fz
    sf = am.StarForest(comm, n, leaves, remote, n)
    assert len(sf.neighbours()) == 2 * (size - 1)
    assert all(p["pattern"] != "list" and p["index_bytes"] == 0 for p in sf.neighbours()), sf.view()
    assert "strided" in sf.view() or "contiguous" in sf.view()
    z, y, x = np.meshgrid(np.arange(fz), np.arange(fy), np.arange(fx), indexing="ij")
    values = ((here[1] * nz + z - width) * 100 + here[0] * ny + y - width) * 100.0 + x
    own = np.full((fz, fy, fx), -1.0)
    own[width : width + nz, width : width + ny] = values[width : width + nz, width : width + ny]
    ghosts = own.ravel().copy(); sf.bcast(own.ravel().copy(), ghosts)
    assert (ghosts[leaves] == want).all()
print("done", flush=True)
"""
    assert on_ranks(4, script).count("done") == 4


def test_mpi_derived_datatypes(on_ranks):
    script = """
# items of 5 float64: two values with a gap between and one behind; only the values travel
t = MPI.DOUBLE.Create_vector(2, 1, 3).Create_resized(0, 40); t.Commit()
ring = am.StarForest(comm, 3, [4, 0, 2], [((rank + 1) % size, 2), (rank, 0), ((rank + 1) % size, 1)], 5)
root = np.arange(15.0).reshape(3, 5) + 100 * rank
leaf = np.full((5, 5), -1.0)
def expected(other):
    want = leaf.copy()
    for l, (o, r) in {4: (other, 2), 0: (rank, 0), 2: (other, 1)}.items():
        for c in (0, 3): want[l, c] = 100 * o + 5 * r + c
    return want
want = expected((rank + 1) % size)
ring.bcast((root, t), (leaf, t)); assert (leaf == want).all(), leaf
# another layout with the same values: the type maps need not be equal
pair = MPI.DOUBLE.Create_contiguous(2); pair.Commit()
dense = np.full((5, 2), -1.0)
f = ring.bcast_begin((root, t), (dense, pair)); f.end(); assert (dense == want[:, [0, 3]]).all()
back = np.full((3, 5), -7.0)
ring.reduce((leaf, t), (back, t), "replace")
touched = np.full((3, 5), -7.0); touched[:, [0, 3]] = root[:, [0, 3]]
assert (back == touched).all(), back
# a user's operation on the type: the larger of the first values brings its second with it
def larger(a, b, datatype):
    x, y = np.frombuffer(a).reshape(-1, 5), np.frombuffer(b).reshape(-1, 5)
    take = x[:, 0] > y[:, 0]; y[take, 0] = x[take, 0]; y[take, 3] = x[take, 3]
op = MPI.Op.Create(larger, commute=True)
star = am.StarForest(comm, 1 if rank == 0 else 0, None, [(0, 0)])
best = np.array([[-5.0, 8, 8, 0, 8]]) if rank == 0 else np.zeros((0, 5))
mine = np.array([[float((rank * 7) % size), 9, 9, 10.0 * rank, 9]])
star.reduce((mine, t), (best, t), op)
who = max(range(size), key=lambda r: (r * 7) % size)
assert rank or best.tolist() == [[(who * 7) % size, 8, 8, 10.0 * who, 8]], best
old = np.zeros((1, 5)); star.fetch_and_op((best, t), (mine, t), (old, t), op)
op.Free()
for text, call in [
    ("leafdata has 160 bytes, but 5 rows of 40 bytes", lambda: ring.bcast((root, t), (leaf[:4], t))),
    ("rootdata and leafdata have items of 16 and 8 bytes", lambda: ring.bcast((root, t), (leaf, MPI.DOUBLE))),
    ("op must be 'replace' or an MPI.Op made with", lambda: ring.bcast((root, t), (leaf, t), "sum")),
    ("op must be 'replace' or an MPI.Op made with", lambda: ring.bcast((root, t), (leaf, t), MPI.SUM)),
    ("a pair (array, MPI datatype) is needed", lambda: ring.bcast((root, t), leaf)),
    ("items must not overlap", lambda: ring.bcast((root, MPI.DOUBLE.Create_vector(2, 1, 3).Create_resized(0, 8)), (leaf, t))),
]:
    assert text in message(call), message(call)
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3
