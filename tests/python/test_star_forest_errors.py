"""Star forests that are given what they cannot do, on 1 to 3 ranks: one error on all ranks, and nobody is left waiting."""

import numpy as np
import pytest

import asterism as am


def test_bad_forests_and_calls_are_errors_on_all_ranks(on_ranks):
    script = """
twice = am.StarForest(comm, 2, [0, 0], [(rank, 0), (rank, 1)])
star = am.StarForest(comm, 1, None, [(0, 0), (1, 0)])
plain = am.StarForest(comm, 2, None, [(rank, 0), (rank, 1)])
for text, call in [
    ("rank 0: StarForest: a leaf of rank 1 points at root 9 of rank 0, which has 2 roots", lambda: am.StarForest(comm, 2, None, [(0, 9 if rank == 1 else 0)])),
    ("points at rank 7", lambda: am.StarForest(comm, 2, None, [(7 if rank == 1 else 0, 0)])),
    ("compose: leaf 0 of the first forest is listed several times", lambda: twice.compose(plain)),
    ("inverse: root 0 of the forest has 3 leaves", lambda: star.inverse()),
    ("compose_inverse: root 0 of the second forest has 3 leaves", lambda: plain.compose_inverse(star)),
    ("embed_leaves: leaf 5 is outside", lambda: plain.embed_leaves([5] if rank == 2 else [])),
    ("section: root point 1 has -4 unknowns", lambda: plain.section([1, -4 if rank == 0 else 1])),
    ("number 4 belongs to root 0 of rank", lambda: am.StarForest.matching(comm, [4], [])),
    ("rank 1: index 12 is outside [0, 6)", lambda: am.StarForest.from_sizes(comm, 2, [12 if rank == 1 else 0])),
    ("all_to_all: n is -1", lambda: am.StarForest.all_to_all(comm, -1 if rank == 2 else 1)),
    ("all_gather: nroots is -3", lambda: am.StarForest.all_gather(comm, -3 if rank == 0 else 1)),
    ("compose: other is a int; an asterism.StarForest is needed", lambda: plain.compose(3)),
    ("compose_inverse: other is a str; an asterism.StarForest is needed", lambda: plain.compose_inverse("x" if rank == 1 else plain)),
    ("concatenate: forest 1 is a int; an asterism.StarForest is needed", lambda: am.StarForest.concatenate([plain, 3 if rank == 0 else plain])),
    ("number of forests is 1 on rank 2; 2 on ranks 0, 1", lambda: am.StarForest.concatenate([plain] * (1 if rank == 2 else 2))),
    ("shared_roots is False on rank 1; True on ranks 0, 2", lambda: am.StarForest.concatenate([plain, plain], shared_roots=rank != 1)),
    ("strided: 4611686018427387904 items for each of 2 roots and 2 leaves", lambda: plain.strided(2**62)),
    ("section: the root points up to 1 have more unknowns than", lambda: plain.section([2**62, 2**62])),
    ("which no root has", lambda: am.StarForest.matching(comm, [rank], [rank + (1 if rank == 2 else 0)])),
]:
    texts = comm.allgather(message(call))
    # the rank whose input it is may say it without its own number
    import re
    assert len({re.sub("rank [0-9]: ", "", t) for t in texts}) == 1 and text in texts[0], texts
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3


def test_misuse_is_an_error_with_the_values():
    sf = am.StarForest(None, 2, None, [[0, 1], [0, 0]])
    root, leaf = np.zeros(2), np.zeros(2)
    with pytest.raises(am.errors.DtypeError, match="op min has no meaning for items of type complex128"):
        sf.reduce(leaf.astype(complex), root.astype(complex), "min")
    with pytest.raises(am.InputError, match="op is 3.5; a name such as 'sum'"):
        sf.reduce(leaf, root, 3.5)
    with pytest.raises(am.OptionError, match="op 'add' is not one of replace, sum"):
        sf.reduce(leaf, root, "add")
    with pytest.raises(am.errors.ShapeError, match=r"leafdata has shape \(1,\), but 2 rows are needed"):
        sf.bcast(root, leaf[:1].copy())
    with pytest.raises(am.errors.ShapeError, match="differ: .*float64.*float32"):
        sf.bcast(root, leaf.astype("f4"))
    with pytest.raises(am.errors.CommError, match="C-contiguous NumPy array, not one of dtype float64 with strides"):
        sf.bcast(root, np.zeros(4)[::2])
    with pytest.raises(TypeError, match="StarForest.on: a str where an asterism.Queue is needed"):
        sf.on("thread")
    for remote in ([0, 0], np.zeros((2, 4), int), np.zeros((2, 3), int), np.zeros((2, 2, 2), int)):  # not (leaves, 2)
        with pytest.raises(am.ShapeError, match=r"remote has shape .*; \(leaves, 2\) is needed"):
            am.StarForest(None, 2, None, remote)
    with pytest.raises(am.errors.CommError, match="leafdata must be .*NumPy array, not list"):
        sf.gather([1.0, 2.0])
    flight = sf.bcast_begin(root, leaf)
    flight.end()
    with pytest.raises(am.errors.CommError, match="twice"):
        flight.end()


def test_an_operation_that_throws_amid_a_long_message(on_ranks):
    script = """
n = 400_000
sf = am.StarForest(comm, n, None, np.column_stack([np.full(n, 1 - rank), np.arange(n)]), transport="p2p")
calls = []
def bad(a, b):
    calls.append(len(a))
    if len(calls) == 3: raise RuntimeError("no")
    return a + b
for split in (False, True):
    calls.clear()
    root, leaf = np.zeros(n), np.arange(n) + 1.0
    op = bad if rank == 0 else (lambda a, b: a + b)
    try:
        if split: sf.reduce_begin(leaf, root, op).end()
        else: sf.reduce(leaf, root, op)
        assert rank == 1 and (root == leaf).all()
    except am.AsterismError as e:  # or it had not all that it waited for
        assert rank == 1 and e.shared and "rank 0: " in str(e) and "no" in str(e)
    except RuntimeError as e:
        assert rank == 0 and "no" in str(e)
    comm.barrier()
    root[:] = 0
    sf.reduce(leaf, root)
    assert (root == leaf).all()
print("done", flush=True)
"""
    assert on_ranks(2, script).count("done") == 2


@pytest.mark.parametrize("transport", ["p2p", "shm"])
def test_an_operation_that_throws_leaves_nobody_waiting(on_ranks, transport):
    # rank 0's own operation raises while what it sends lies in memory that the other reads late, or never
    script = f"""
import time
n = 20_000
sf = am.StarForest(comm, n, None, np.column_stack([np.full(n, 1 - rank), np.arange(n)]), transport="{transport}")
def bad(a, b): raise RuntimeError("no")
for shared in (False, True):
    leaf = am.shared_zeros(n) if shared else np.zeros(n)
    leaf[:] = np.arange(n) + 7 * rank
    root = np.ones(n)
    flight = sf.reduce_begin(leaf, root, bad if rank == 0 else (lambda a, b: a + b))
    if rank == 0:
        try: flight.end(); raise AssertionError("no error")
        except RuntimeError as e: assert "no" in str(e)
        leaf[:] = -1
    else:
        time.sleep(0.05)
        try: flight.end(); assert (root == np.arange(n) + 1).all(), root[:4]
        except am.AsterismError as e: assert e.shared and "rank 0: " in str(e) and "no" in str(e)
    comm.barrier()
    out = np.zeros(n); sf.bcast(np.arange(n) + 1.0 * rank, out); assert (out == np.arange(n) + 1 - rank).all()
print("done", flush=True)
"""
    assert on_ranks(2, script).count("done") == 2


def test_a_dropped_operation_whose_function_raises_is_a_warning(caplog):
    forest = am.StarForest(None, 4, None, np.array([[0, i % 4] for i in range(8)]))

    def bad(a, b):
        raise ValueError("not this")

    flight = forest.reduce_begin(np.arange(8.0), np.zeros(4), bad)
    del flight
    assert "never ended" in caplog.text and "not this" in caplog.text
    y = np.zeros(8)
    forest.bcast(np.arange(4.0), y)
    np.testing.assert_array_equal(y, np.arange(8) % 4)


def test_threads_use_communicators_first_in_any_order(on_ranks):
    script = """
import threading
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
comms = [comm.Dup(), comm.Dup()]
good = [False, False]
mine_began = threading.Event()
def work(k):
    if k == rank: mine_began.set()  # the ranks in opposite order
    else: mine_began.wait()
    forest = am.StarForest(comms[k], 1, None, np.array([[1 - rank, 0]]))
    y = np.zeros(1)
    forest.bcast(np.array([float(k)]), y)
    good[k] = y[0] == k
threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in (1 - rank, rank)]
for t in threads: t.start()
for t in threads: t.join()
assert good == [True, True]

for _ in range(5):  # one communicator, for the first time, by many threads
    alone, together, right = MPI.COMM_SELF.Dup(), threading.Barrier(6), []
    def use():
        together.wait()
        forest = am.StarForest(alone, 1, None, np.array([[0, 0]]))
        y = np.zeros(1)
        forest.bcast(np.array([7.0]), y)
        right.append(y[0] == 7)
    threads = [threading.Thread(target=use, daemon=True) for _ in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert right == [True] * 6
print("done", flush=True)
"""
    assert on_ranks(2, script, alone=True).count("done") == 2
