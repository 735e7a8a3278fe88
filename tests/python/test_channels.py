"""Channels: messages in their sender's order, by shared memory and by MPI; misuse is an error. The core is tested in C++."""

from pathlib import Path

import pytest

import asterism as am

EXCHANGE = """
others = [r for r in range(size) if r != rank]
c = am.Channels(comm, [(r, 20_000) for r in others])
assert c.in_ == c.out == [(r, 20_000, 0) for r in others]
for i in range(50):
    for r in others: c.put(r, np.arange(i * 40.0) + rank)
seen = dict.fromkeys(others, 0)
while sum(seen.values()) < 50 * len(others):
    message = c.poll() if sum(seen.values()) % 2 else c.wait()
    if message is None: continue
    r, data, label = message
    assert label == 0 and (np.frombuffer(data) == np.arange(seen[r] * 40.0) + r).all(), (r, seen)
    seen[r] += 1
assert c.poll() is None
comm.barrier()
print("done", flush=True)
"""


@pytest.mark.parametrize("options", ["-sf_transport p2p", "-sf_transport shm", "-sf_transport neighbor"])
def test_messages_arrive_in_their_senders_order(on_ranks, options):
    assert on_ranks(3, EXCHANGE, ASTERISM_OPTIONS=options).count("done") == 3


@pytest.mark.parametrize("transport", ["p2p", "shm"])
def test_the_message_driven_example_on_four_ranks(on_ranks, transport):
    example = Path(__file__).parents[2] / "examples" / "05_message_driven.py"
    out = on_ranks(4, example.read_text(), ASTERISM_OPTIONS=f"-sf_transport {transport}")
    assert "576 rows on 4 ranks" in out


LABELS = """
others = [r for r in range(size) if r != rank]
c = am.Channels(comm, [(r, 8 * n, n) for r in others for n in (1, 3, 1000)])
landing = {r: np.zeros(1000) for r in others}
for r in others: c.land_in(r, landing[r], 1000)
rounds = 3
for k in range(rounds):
    for n in (1000, 3, 1):
        for r in others: c.lend(r, np.full(n, 100.0 * rank + k), n)  # nobody else keeps these arrays
got, held = {}, []
for _ in range(3 * rounds * len(others)):
    m = c.wait()
    k = got.get((m.rank, m.label), 0)
    got[m.rank, m.label] = k + 1
    values = np.frombuffer(m.data)
    assert values.shape == (m.label,) and (values == 100 * m.rank + k).all(), (m.rank, m.label, k)
    if m.label == 1000:
        assert np.shares_memory(values, landing[m.rank])
        c.release(m)
        try: c.release(m)
        except am.InputError as e: assert "was released before" in str(e)
        else: raise AssertionError("released twice")
while not c.all_returned(): assert c.poll() is None
assert all(c.under_way(r, n) == 0 for r in others for n in (1, 3, 1000)) and not c._lent
comm.barrier()
ticket = c.lend(others[0], np.ones(3), 3)
for r in others: c.land_in(r, None, 1000)
assert c.wait().data == np.ones(3).tobytes()
while not c.returned(ticket): c.poll()
assert c.poll() is None
comm.barrier()
print("done", flush=True)
"""


@pytest.mark.parametrize("transport", ["p2p", "shm"])
def test_labels_lent_arrays_and_arrays_to_land_in(on_ranks, transport):
    assert on_ranks(2, LABELS, ASTERISM_OPTIONS=f"-sf_transport {transport}").count("done") == 2


MISUSE = """
c = am.Channels(comm, [(1 - rank, 64, 2)])
for call, kind, text in [
    (lambda: c.put(1 - rank, bytes(65), 2), am.ShapeError, "message of 65 bytes to rank"),
    (lambda: c.put(1 - rank, b"x"), am.InputError, "with label 0 is not one that I said"),
    (lambda: c.lend(1 - rank, np.ones((4, 4))[:, 0], 2), am.ShapeError, "lend: array: a contiguous array"),
    (lambda: c.land_in(1 - rank, np.ones(7), 2), am.ShapeError, "an array of 56 bytes for messages of up to 64"),
    (lambda: c.land_in(1 - rank, bytes(64), 2), am.InputError, "land_in: array is read-only"),
    (lambda: c.land_in(1 - rank, np.ones(8), 3), am.InputError, "no channel with label 3"),
    (lambda: am.Channels(comm, [(1 - rank, 8), (1 - rank, 8)]), am.InputError, "listed twice with label 0"),
]:
    try: call()
    except kind as e: assert text in str(e), e
    else: raise AssertionError(text)
c.put(1 - rank, b"hello", 2)
m = c.wait()
assert m == (1 - rank, b"hello", 2)
try: c.release(m)
except am.InputError as e: assert "copies and need no release" in str(e)
else: raise AssertionError("nothing to release")
print("done", flush=True)
"""


def test_misuse_on_two_ranks_is_an_error(on_ranks):
    assert on_ranks(2, MISUSE).count("done") == 2


def test_misuse_is_an_error():
    alone = am.Channels(None, [])
    assert alone.poll() is None and alone.in_ == alone.out == [] and alone.all_returned()
    for call, text in [
        (lambda: alone.put(0, b"x"), "rank 0 with label 0 is not one that I said"),
        (lambda: alone.wait(), "nobody sends to rank 0"),
        (lambda: alone.returned(0), "there is no ticket 0"),
        (lambda: alone.release(b"x"), "message is a bytes; a message of poll or wait is needed"),
        (lambda: am.Channels(None, [(3, 8)]), "there is no rank 3"),
        (lambda: am.Channels(None, [(0, 8)]), "cannot send to itself"),
        (lambda: am.Channels(None, [(0, 8, -1)]), "label is -1"),
        (lambda: am.Channels(None, [(0, 8.5)]), "bytes is 8.5 .*; an integer is needed"),
        (lambda: am.Channels(None, [0]), r"out lists \(rank, bytes\) or \(rank, bytes, label\), not 0"),
        (lambda: am.Channels(None, [], "window_pscw"), "channels go by auto, p2p or shm, not by 'window_pscw'"),
    ]:
        with pytest.raises(am.AsterismError, match=text):
            call()


LIVING = """
other = 1 - rank
living = am.Channels(comm, [(other, 64)], transport="p2p")
for _ in range(3400):  # more than there are tags for at once
    am.Channels(comm, [(other, 8)])
forest = am.StarForest(comm, 2, None, np.array([[other, 0], [other, 1]]), transport="p2p")
x, y = np.array([rank, 7.0]), np.zeros(2)
for k in range(21_000):
    x[1] = k
    forest.bcast(x, y)
    assert y[0] == other and y[1] == k
living.put(other, b"still here")
assert living.wait().data == b"still here"
print("done", flush=True)
"""


def test_channels_keep_their_tags_while_others_come_and_go(on_ranks):
    # operations that follow each other use tags again; one of a living channel took their messages
    assert on_ranks(2, LIVING).count("done") == 2


def test_the_guide_is_true(on_ranks):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "exchange-data.md").read_text()
    block = page.partition("```py\n")[2].partition("```")[0]
    assert "land_in" in block
    assert on_ranks(2, block + "\nassert (y == x).all()\nprint('done', flush=True)").count("done") == 2
