"""Reports of what was sent, and the checks that find wrong use of star forests."""

import json
import subprocess
import sys

import pytest

import asterism as am

TOLD = """
import json
ring = [((rank + 1) % size, i) for i in range(4)]
sf = am.StarForest(comm, 4, None, ring); sf.name = "ring"
far = am.StarForest(comm, 4, None, ring, transport="p2p"); far.name = "ring by MPI"
a, b = np.zeros((4, 3)), np.zeros((4, 3))
am.comm_report(comm, reset=True)
for _ in range(5): sf.bcast(a, b)                      # 96 B each to the rank before
sf.reduce(b, a); far.bcast(a, b); far.fetch_and_op(a[:, 0].copy(), b[:, 0].copy(), a[:, 0].copy())
r = am.comm_report(comm)
m, v = np.zeros((size, size), int), np.zeros((size, size), int)
for i in range(size):
    m[i, i - 1] += 5 + 1 + 1; v[i, i - 1] += 6 * 96 + 32           # broadcasts, the answers of fetch_and_op
    m[i, (i + 1) % size] += 2; v[i, (i + 1) % size] += 96 + 32     # the reduction, the question
assert (r.messages == m).all() and (r.bytes == v).all(), (r.messages, r.bytes)
assert sum(int(s.sum()) for s in r.sizes.values()) == m.sum()
assert r.sizes["MPI"][5] == 2 * size and r.sizes["MPI"][6] == size   # 32 and 96 bytes
by = {f["name"]: f for f in r.forests}
assert by["ring"]["operations"] == 6 and by["ring"]["bytes"] == 6 * 96 * size and by["ring by MPI"]["messages"] == 3 * size
assert by["ring"]["transports"] == [{"transport": "shared memory", "messages": 6 * size, "patterns": ["contiguous"]}], by
text = str(r)
assert comm.allgather(text) == [text] * size
assert "'ring': 1 forest, 6 operations" in text and "by shared memory" in text and "'ring by MPI'" in text, text
j = json.loads(r.to_json()); assert j["bytes"] == v.tolist() and j["ranks"] == size
if rank == 0: r.picture(PICTURE)
# what ended is remembered under its name
del sf
import gc; gc.collect()
assert {f["name"]: f["operations"] for f in am.comm_report(comm).forests}["ring"] == 6
# products are told apart, and so are operations that did not end
A = am.gallery.poisson((6, 6), comm=comm)
A @ np.ones(A.local_shape[0])
flight = far.bcast_begin(a, b)
r = am.comm_report(comm, reset=True)
assert "halo of a matrix" in {f["name"] for f in r.forests}
assert r.under_way == [(i, "ring by MPI") for i in range(size)] and "rank 1: an operation on 'ring by MPI' was begun" in str(r)
flight.end()
channels = am.Channels(comm, [((rank + 1) % size, 5000)])
for length in (3, 100, 5000): channels.put((rank + 1) % size, bytes(length))
for _ in range(3): channels.wait()
r = am.comm_report(comm)
assert r.messages.sum() == 3 * size and r.bytes[rank, (rank + 1) % size] == 5103, r.bytes
assert r.forests == [{"name": "channels", "kind": "channels", "members": 1, "operations": 3 * size, "messages": 3 * size,
                      "bytes": 5103 * size, "transports": [{"transport": "shared memory", "messages": 3 * size, "patterns": []}]}], r.forests
assert "'channels': 1 channels, " in str(r) and r.sizes["shared memory"][12] == size, str(r)
channels.name = "work"; assert am.comm_report(comm, reset=True).forests[0]["name"] == "work"
r = am.comm_report(comm); assert r.messages.sum() == 0 and not r.under_way and not r.forests
print("done", flush=True)
"""

CHECKED = """
sf = am.StarForest(comm, 2, [0, 3], [((rank + 1) % size, 1), (rank, 0)], 4); sf.name = "pair"
root, leaf = np.arange(2.0), np.zeros(4)
sf.bcast(root, leaf)
flight = sf.bcast_begin(root, leaf); root[1] = 7
text = message(flight.end); assert text == "InputError: star forest 'pair': row 1 of the array that is sent was changed between begin and end.", text
flight = sf.reduce_begin(leaf, root, "sum"); leaf[1] = 5; flight.end()        # not a leaf
if size > 1:
    # another operation on one rank, another number of items, another op
    single = np.zeros((2, 1)), np.zeros((4, 1)); pair = np.zeros((2, 2)), np.zeros((4, 2))
    for f, g, words in [
        (lambda: sf.bcast(*single), lambda: sf.reduce(single[1], single[0]), ("a broadcast of 1 x float64", "a reduction of 1 x float64 (8 bytes) with sum on 'pair'")),
        (lambda: sf.bcast(*single), lambda: sf.bcast(*pair), ("1 x float64 (8 bytes)", "2 x float64 (16 bytes)")),
        (lambda: sf.reduce(single[1], single[0], "max"), lambda: sf.reduce(single[1], single[0], "min"), ("with max", "with min")),
    ]:
        texts = comm.allgather(message(f if rank == 0 else g))
        assert len(set(texts)) == 1 and "the ranks called different operations: rank 0: " in texts[0] and "; rank 1: " in texts[0], texts
        assert all(w in texts[0] for w in words), texts
sf.bcast(root, leaf)
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_report_counts_every_message(on_ranks, tmp_path, ranks):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "matrix.png"
    script = TOLD.replace("PICTURE", repr(str(picture)))
    if ranks == 2:  # both neighbours are one
        script = script.replace("range(size):\n    m[i, i - 1]", "range(size):\n    m[i, 1 - i]").replace(
            "v[i, i - 1] +=", "v[i, 1 - i] +="
        )
    assert on_ranks(ranks, script).count("done") == ranks
    assert picture.stat().st_size > 5000 and [p.name for p in tmp_path.glob("*.part*")] == []


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_checks_find_wrong_use(on_ranks, ranks):
    assert on_ranks(ranks, CHECKED, ASTERISM_OPTIONS="-sf_debug").count("done") == ranks


def test_a_picture_that_cannot_be_written():
    with pytest.raises(am.FileError, match="cannot be written"):
        am.comm_report().picture("/nowhere/at/all.png")


def test_what_was_never_ended_is_told_by_name():
    script = """
import logging, sys, numpy as np, asterism as am
logging.basicConfig(stream=sys.stdout, format="%(message)s")
sf = am.StarForest(None, 2, None, [[0, 1]]); sf.name = "lost"
flight = sf.bcast_begin(np.zeros(2), np.zeros(1))
if sys.argv[1] == "dropped":
    del flight
    print(am.comm_report().to_json())
"""
    dropped, kept = (
        subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True, check=True).stdout
        for how in ("dropped", "kept")
    )
    assert "on the star forest 'lost' was begun and never ended; it is finished now" in dropped
    assert json.loads(dropped.splitlines()[-1])["under_way"] == []
    assert kept.strip().startswith("an operation on the star forest 'lost' was begun and never ended. Call end().")
