"""Long messages of star forests: packed by all threads, summed piece by piece, received before others end."""

import pytest


@pytest.mark.parametrize(("ranks", "transport"), [(1, "auto"), (2, "p2p"), (2, "shm")])
def test_much_data_is_packed_by_all_threads(on_ranks, ranks, transport):
    script = f"""
n = 300_000
rng = np.random.default_rng(1)
everything = np.concatenate([np.arange(n) * 2.0 + 1e7 * r for r in range(size)])
mine = everything[n * rank : n * (rank + 1)].copy()
for repeated in (False, True):
    wish = rng.permutation(n * size)[:n] if not repeated else rng.integers(0, n * size, n)   # the same wishes everywhere
    for leaves in (None, np.arange(0, 2 * n, 2), rng.permutation(n), np.append(np.arange(n - 1), 5)):
        sf = am.StarForest(comm, n, leaves, np.column_stack(np.divmod(wish, n)), 2 * n, transport="{transport}")
        out = np.full(2 * n, -1.0); want = out.copy()
        sf.bcast(mine, out)
        at = np.arange(n) if leaves is None else leaves
        order = np.lexsort((np.arange(n), at, wish // n))                 # by (rank, leaf), stable: the last stays
        want[at[order]] = everything[wish[order]]
        assert (out == want).all()
        if not repeated and size == 1 and leaves is None:
            back = np.zeros(n); sf.reduce(out, back, "replace"); assert (back[wish] == out[:n]).all()
        both = np.zeros((n, 2)); roots = np.zeros((n, 2)); update = np.zeros((2 * n, 2))
        sf.fetch_and_op(roots, np.ones((2 * n, 2)), update, "sum")
        assert roots.sum() == comm.allreduce(0) + 2 * sf.degree().sum()
print("done", flush=True)
"""
    assert on_ranks(ranks, script, ASTERISM_NUM_THREADS="3").count("done") == ranks


def test_an_end_does_not_wait_for_the_others_end(on_ranks):
    # one rank ends before a barrier, the other behind it, with arrays that are sent as they lie
    script = """
n = 20_000
for transport, round in [(t, r) for t in ("p2p", "shm", "neighbor", "collective", "window_pscw") for r in range(6)]:
    if round == 0:
        print(transport, flush=True)
        sf = am.StarForest(comm, n, None, np.column_stack([np.full(n, 1 - rank), np.arange(n)]), transport=transport)
    for root in (np.arange(n) + 1.0 * round, am.shared_zeros(n)):
        root[:] = np.arange(n) + 1e6 * rank + round
        out, other = np.zeros(n), np.zeros(n)
        flight, second = sf.bcast_begin(root, out), sf.reduce_begin(root, other, "sum")
        if rank == round % 2: flight.end(); second.end(); root[:] = -1; comm.barrier()
        else: comm.barrier(); second.end(); flight.end()
        want = np.arange(n) + 1e6 * (1 - rank) + round
        assert (out == want).all() and (other == want).all(), (transport, round, out[:3], other[:3])
print("done", flush=True)
"""
    assert on_ranks(2, script).count("done") == 2


@pytest.mark.parametrize("nranks", [2, 3])
def test_long_sums_in_one_call_and_split_are_the_same(on_ranks, nranks):
    # by MPI these go in pieces, of which few are posted at a time if the operation is one call; ranks may mix both forms
    script = """
n = 150_001
other = [r for r in range(size) if r != rank]
remote = np.concatenate([np.column_stack([np.full(n, r), np.arange(n)]) for r in [*other, rank]])
leaf = np.arange(len(remote)) % 1000 + 1000.0 * rank
want = sum(np.arange(n) * 0.0 + (np.arange(len(remote)) % 1000 + 1000.0 * r)[i * n : (i + 1) * n]
           for r in range(size) for i, to in enumerate([*[q for q in range(size) if q != r], r]) if to == rank)
for transport, turn in [(t, k) for t in ("p2p", "shm", "neighbor") for k in range(8)]:
    if turn == 0:
        print(transport, flush=True)
        sf = am.StarForest(comm, n, None, remote, transport=transport)
    root = np.full(n, 5.0)
    if (turn >> rank) % 2 == 0: sf.reduce(leaf, root)
    else:
        flight = sf.reduce_begin(leaf, root)
        flight.end()
    assert (root == want + 5.0).all(), (transport, turn, root[:3], want[:3])
    back = np.zeros((len(remote), 2), np.float32)
    k2 = np.column_stack([np.arange(n), -np.arange(n)]).astype(np.float32)
    sf.bcast(k2, back, "max")
    assert (back[-n:] == np.maximum(k2, 0)).all() and (back[:n] == np.maximum(k2, 0)).all()
print("done", flush=True)
"""
    assert on_ranks(nranks, script).count("done") == nranks
