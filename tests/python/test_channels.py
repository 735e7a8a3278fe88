"""Channels: messages in their sender's order, by shared memory and by MPI; misuse is an error. The core is tested in C++."""

from pathlib import Path

import pytest

import asterism as am

EXCHANGE = """
others = [r for r in range(size) if r != rank]
c = am.Channels(comm, others, max_bytes=20_000)
assert c.sources == others
for i in range(50):
    for r in others: c.put(r, np.arange(i * 40.0) + rank)
seen = dict.fromkeys(others, 0)
while sum(seen.values()) < 50 * len(others):
    message = c.poll() if sum(seen.values()) % 2 else c.wait()
    if message is None: continue
    r, data = message
    assert (np.frombuffer(data) == np.arange(seen[r] * 40.0) + r).all(), (r, seen)
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


def test_misuse_is_an_error():
    alone = am.Channels(None, [], 8)
    assert alone.poll() is None and alone.sources == []
    for call, text in [
        (lambda: alone.put(0, b"x"), "rank 0 is not one that I said"),
        (lambda: alone.wait(), "nobody sends to rank 0"),
        (lambda: am.Channels(None, [3], 8), "there is no rank 3"),
        (lambda: am.Channels(None, [0], 8), "cannot send to itself"),
        (lambda: am.Channels(None, [], 0), "at most 0 bytes"),
        (lambda: am.Channels(None, [], 8, "window_pscw"), "channels go by auto, p2p or shm, not by 'window_pscw'"),
    ]:
        with pytest.raises(am.AsterismError, match=text):
            call()
