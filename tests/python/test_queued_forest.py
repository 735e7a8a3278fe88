"""Star forests on queues: what the forest itself does with arrays on the host, on every queue, by every way between emulated GPUs."""

import os

import numpy as np
import pytest
from conftest import FAKES, HAS_GPU, HOST_QUEUES

import asterism as am

REAL = os.environ.get("ASTERISM_TEST_GPU") == "1"
CHECK = """
def same_as(op):
    return lambda v, a: (np.array_equal if op != 'prod' else np.allclose)(v.numpy().reshape(a.shape), a)
def check(queue, transport, seeds):
    for seed in seeds:
        every = np.random.default_rng(seed)
        nroots = every.integers(0, 40, size)
        if seed % 5 == 0: nroots[every.integers(size)] = 0
        mine = np.random.default_rng([seed, rank])
        total = int(nroots.sum())
        kind = seed % 4
        if total == 0 or (seed + rank) % 6 == 5: remote = np.zeros((0, 2), dtype=np.int64)  # a rank without leaves
        elif kind == 0:  # anything
            where = mine.integers(0, total, mine.integers(0, 60))
            ends = np.cumsum(nroots)
            owner = np.searchsorted(ends, where, side="right")
            remote = np.stack([owner, where - (ends - nroots)[owner]], 1)
        else:  # contiguous, of the next rank; kind 2: and of one's own
            to = [(rank + 1) % size] + ([rank] if kind == 2 else [])
            remote = np.concatenate([np.stack([np.full(nroots[t], t), np.arange(nroots[t])], 1) for t in to]).astype(np.int64)
        n = len(remote)
        space = n + int(mine.integers(0, 3))
        local = None if kind != 0 else mine.permutation(space)[:n]
        if kind == 0 and n > 3 and seed % 8 == 0: local[0] = local[1]  # a leaf that is listed twice
        sf = am.StarForest(comm, int(nroots[rank]), local, remote, space, transport)
        q = am.Queue(queue)
        f = sf.on(q)
        for dtype in ("float64", "float32", "complex128", "complex64"):
            k = 1 + int(every.integers(0, 3))
            def values(rows):
                v = mine.integers(-9, 10, (rows, k)).astype(dtype)
                return v * (1 + 0.5j) if v.dtype.kind == "c" else v / np.dtype(dtype).type(3)
            for op in ("replace", "sum", "prod", "min", "max"):
                if op in ("min", "max") and dtype.startswith("complex"): continue
                same = same_as(op)
                root, leaf, update = values(sf.nroots), values(sf.nleafspace), values(sf.nleafspace)
                def vectors(*arrays):
                    for a, s in arrays:
                        v = am.Vector(s, q, columns=k, dtype=dtype)
                        v.copy_from(a.reshape(v.shape))
                        yield v
                x, y, u = vectors((root, f.roots), (leaf, f.leaves), (update, f.leaves))
                r, l, w = root.copy(), leaf.copy(), update.copy()
                sf.bcast(r, l, op)
                f.bcast(x, y, op)
                assert same(y, l), (seed, dtype, op, "bcast")
                l = leaf.copy()
                (y,) = vectors((leaf, f.leaves))
                sf.reduce(l, r, op)
                going = f.reduce_begin(y, x, op)
                u.scale(2.0)  # meanwhile
                going.end()
                assert same(x, r), (seed, dtype, op, "reduce")
                w *= 2
                sf.fetch_and_op(r, l, w, op)
                f.fetch_and_op(x, y, u, op)
                assert same(x, r) and same(u, w), (seed, dtype, op, "fetch")
        f.wait()
        del f
"""


def test_alone_on_a_queue():
    space = {"am": am, "np": np, "comm": None, "rank": 0, "size": 1}
    exec(CHECK, space)
    for queue in [*HOST_QUEUES, *(["cuda"] if HAS_GPU else [])]:
        space["check"](queue, "auto", range(8))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_on_every_queue(on_ranks, n):
    script = (
        CHECK
        + f"""
for queue in {[*HOST_QUEUES, *(["cuda"] if HAS_GPU else [])]}:
    print(queue, flush=True)
    check(queue, "p2p", range(4))
    check(queue, "auto", range(4, 12))
if rank == 0: print("good")
"""
    )
    assert "good" in on_ranks(n, script, ASTERISM_NCCL="none", ASTERISM_EMULATED_NO_IPC="" if REAL else "1")


emulated = pytest.mark.skipif(REAL or not HAS_GPU, reason="a GPU that ranks share, or none emulated")


@pytest.mark.skipif(not HAS_GPU, reason="no GPU")
@pytest.mark.parametrize("n", [2, 3, 4])
def test_by_every_way_between_gpus(on_ranks, n):
    transports = ["ipc"] if REAL else ["nccl", "nvshmem", "ipc", "shm", "neighbor", "window_fence"]
    script = (
        CHECK
        + f"""
for transport in {transports}:
    print(transport, flush=True)
    check("cuda", transport, range({12 if n == 3 else 6}))
if rank == 0: print("good")
"""
    )
    assert "good" in on_ranks(n, script, **FAKES)


@emulated
def test_mpi_that_takes_gpu_memory(on_ranks):
    script = CHECK + (
        "\nam.use_argv(['-use_gpu_aware_mpi', '1', '-gpu_transport', 'mpi'])"
        "\nring = lambda: am.StarForest(comm, 2, None, [[(rank + 1) % size, 0]])"
        "\nam.configure(sf_debug=True)\nassert 'through the host' in ring().on(am.Queue('cuda')).transport"
        "\nam.configure(sf_debug=False)\ncheck('cuda', 'auto', range(8))\nsf = ring()"
        "\nassert sf.on(am.Queue('cuda')).transport == 'by MPI from GPU memory'\nif rank == 0: print('good')"
    )
    assert "good" in on_ranks(3, script)


@emulated
def test_nothing_is_copied_to_the_host_between_gpus(on_ranks):
    out = on_ranks(
        2,
        """
n = 1000
sf = am.StarForest(comm, n, None, np.stack([np.full(n, 1 - rank), np.arange(n)[::-1]], 1), transport="ipc")
q = am.Queue("cuda")
f = sf.on(q)
x, y = am.Vector(f.roots, q, fill=float(rank)), am.Vector(f.leaves, q, fill=0.0)
def counted(times):
    q.wait(); f.wait()
    before = {k: tuple(v) for k, v in am.gpu_state()["copies"].items()}
    waits = sum(q.waits.values())
    for _ in range(times):
        f.bcast(x, y)
        f.reduce(y, x, "max")
    assert sum(q.waits.values()) == waits  # nobody waited
    f.wait()
    return {k: tuple(v) for k, v in am.gpu_state()["copies"].items()} == before
counted(2)
assert counted(20)
assert float(x.numpy()[3]) == rank and float(y.numpy()[3]) == 1 - rank
if rank == 0: print("good")
""",
        **FAKES,
    )
    assert "good" in out


@emulated
def test_what_cannot_be_is_told_on_all_ranks(on_ranks):
    out = on_ranks(
        2,
        """
sf = am.StarForest(comm, 3, None, [[1 - rank, 0], [1 - rank, 2]], transport="nccl")
told = message(lambda: sf.on(am.Queue("cuda")))
assert "cannot go between GPUs by its transport nccl: rank 0: it is not found: ASTERISM_NCCL is none" in told, told
given("-sf_transport " + ("ipc", "p2p")[rank])
apart = am.StarForest.from_sizes(comm, 1, [rank])  # no neighbours: nobody compared
given("-sf_transport auto")
told = message(lambda: apart.on(am.Queue("cuda")))
assert f"is {('ipc', 'p2p')[rank]} here, another elsewhere" in told, told
assert sf.on(am.Queue()).transport == "by the star forest's transport, nccl"
sf.bcast(np.zeros(3), np.zeros(2))  # as auto
told = message(lambda: sf.on(am.Queue(("thread", "cuda")[rank])))
assert "queues on GPUs on some ranks, and not on others" in told, told
if rank == 0: print("good")
""",
        ASTERISM_NCCL="none",
    )
    assert "good" in out


def test_bad_input_is_told():
    sf = am.StarForest(None, 3, None, [[0, 0], [0, 2]])
    f = sf.on(am.Queue("inline"))
    x, y = am.Vector(f.roots, fill=1.0), am.Vector(f.leaves, fill=2.0)
    with pytest.raises(am.OptionError, match="op bitwise_or on a queue is not there"):
        f.bcast(x, y, "bitwise_or")
    with pytest.raises(am.OptionError, match="not one of"):
        f.bcast(x, y, "plus")
    with pytest.raises(am.ShapeError, match="leaf data has 16 bytes, but 3 rows|root data has 16 bytes, but 3 rows"):
        f.bcast(y, x)
    with pytest.raises(am.ShapeError, match="differ"):
        f.bcast(x, am.Vector(f.leaves, dtype="float32", fill=0))
    with pytest.raises(am.DtypeError, match="op min has no meaning for complex128"):
        f.reduce(am.Vector(f.leaves, dtype="complex128", fill=0), am.Vector(f.roots, dtype="complex128", fill=0), "min")
    with pytest.raises(TypeError, match="rootdata"):
        f.bcast(np.zeros(3), y)
    flight = f.bcast_begin(x, y)
    flight.end()
    with pytest.raises(am.CommError, match="twice"):
        flight.end()
    np.testing.assert_array_equal(y.numpy(), [1.0, 1.0])


@emulated
def test_benchmarks_between_gpus(on_ranks):
    out = on_ranks(
        2,
        """
from asterism.cli import bench_forest_gpu as b
r = b.pingpong_on_device(comm, "cuda", 1, (8, 300_000), 1e-4)
assert [c["bytes"] for c in r["cases"]] == [8, 300_000] and not r["unable"]
for c in r["cases"]:
    for name in ("raw MPI, host", "nccl", "ipc", "nvshmem", "p2p", "p2p permuted sum", "nvshmem permuted sum"):
        assert c["seconds"][name][0] > 0, name
u = b.unpack_on_device(comm, "cuda", 1, (8192,), 1e-4)
assert {c["pattern"] for c in u["cases"]} == {"block", "strided", "random"}
assert all(c["own_sum_over_copy"] > 0 and c["seconds"]["ipc max"][0] > 0 for c in u["cases"])
if rank == 0:
    b.print_pingpong(r), b.print_unpack(u)
    print("good")
""",
        **FAKES,
    )
    assert "good" in out and "raw MPI, host" in out and "300000 B" in out and "own sum / copy" in out
