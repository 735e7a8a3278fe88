"""Errors of one rank that follow one another, and keywords that one rank alone gives: no rank is left waiting."""

import threading

import numpy as np
import pytest

import asterism as am

TOLD = """
A = am.gallery.poisson((20, 20), comm)
n = A.local_shape[0]
bad = size - 1
def told(f, *texts):
    try: f()
    except Exception as e:
        assert any(t in str(e) for t in texts), e
        return True
    return False
"""


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("place", [{}, {"ASTERISM_RANKS_PER_NODE": "1"}], ids=["node", "mpi"])
def test_without_a_good_call_between_them(on_ranks, ranks, place):
    on_ranks(
        ranks,
        TOLD
        + """
solver = am.Solver(A, ksp="cg", pc="amg")
def raises(x):
    if rank == bad: raise ValueError("from the function")
    return A @ x
function = am.Operator(raises, n, comm=comm)
sf = am.StarForest(comm, 4, None, [((rank + 1) % size, i) for i in range(4)])
wrong = np.ones(n - (rank == bad))
for f in (lambda: A @ wrong, lambda: A.T @ wrong, lambda: solver.solve(wrong), lambda: am.solve(A, wrong),
          lambda: sf.bcast(np.ones(4 - (rank == bad)), np.zeros(4)), lambda: am.solve(function, np.ones(n), ksp="cg")):
    for again in range(3):
        assert told(f, "the array has", "shape", "rootdata", "from the function", "after an error in the one before") or rank != bad
        comm.Barrier()
for attempt in range(2):  # of an error that a rank has not met yet
    try: x = solver.solve(np.ones(n))
    except am.AsterismError as e: assert e.shared
assert solver.info.converged
""",
        limit=60,
        **place,
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_function_that_communicates_and_raises_on_one_rank(on_ranks, ranks):
    on_ranks(
        ranks,
        TOLD
        + """
calls = []
def f(x):
    calls.append(1)
    if rank == bad and len(calls) == 3: raise ValueError("no more")
    return A @ x
assert told(lambda: am.solve(am.Operator(f, n, comm=comm), np.ones(n), ksp="cg"), "no more")
""",
        limit=60,
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_keywords_that_one_rank_alone_gives(on_ranks, ranks):
    on_ranks(
        ranks,
        TOLD
        + """
b = np.ones(n)
for name, value in (("block_size", 2), ("coordinates", np.random.rand(n, 2)), ("near_null_space", np.ones((n, 1)))):
    given = {name: value if rank == bad else None}
    assert told(lambda: am.solve(A, b, ksp="cg", pc="amg", **given), f"{name} is"), name
    assert told(lambda: am.Solver(A, ksp="cg", pc="amg", **given), f"{name} is"), name
assert told(lambda: am.solve(A, b, **({"rtoll": 1e-3} if rank == bad else {})), "rtol")
assert told(lambda: am.solve(A, b * (1j if rank == bad else 1)), "columns of b")
x, info = am.solve(A, b, ksp="cg", pc="amg")
assert info.converged
""",
        limit=60,
    )


def test_many_errors_take_no_addresses(on_ranks):
    """The memory file of a neighbour is mapped once, not anew after each error: 64 GiB each, of the 128 TiB of a process."""
    on_ranks(
        2,
        TOLD
        + """
def mapped():
    with open("/proc/self/maps") as f: return sum("memfd:asterism" in line for line in f)
wrong = np.ones(n + 1)
assert told(lambda: A @ wrong, "the array has")
before = mapped()
for again in range(30):
    assert told(lambda: A @ wrong, "the array has")
assert mapped() == before <= 2, (before, mapped())
A @ np.ones(n)
""",
    )


def test_an_update_beside_solves():
    A = am.gallery.poisson((40, 40))
    b = np.ones(1600)
    solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
    stop, errors = threading.Event(), []

    def updates():
        try:
            while not stop.is_set():
                solver.update(A)
        except am.AsterismError as error:
            errors.append(error)

    thread = threading.Thread(target=updates)
    thread.start()
    try:
        for _ in range(40):
            assert np.linalg.norm(b - A @ solver.solve(b)) <= 1.1e-8 * 40
    finally:
        stop.set()
        thread.join()
    assert not errors


@pytest.mark.parametrize("pc", ["ilut", "asm"])
def test_auto_does_not_take_cg_for_a_preconditioner_that_is_not_symmetric(pc):
    A = am.gallery.poisson((20, 20))
    x, info = am.solve(A, np.ones(400), pc=pc, rtol=1e-8)
    assert info.method == "gmres" and any("not symmetric" in note for note in info.notes)
    assert np.linalg.norm(np.ones(400) - A @ x) <= 2e-7
