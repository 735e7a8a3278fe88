"""Sub-matrices and redistributions against SciPy, on 1 to 5 ranks."""

import numpy as np
import pytest

import asterism as am

EXTRACTION = """
def matrix(seed, n, m, dtype):
    rng = np.random.default_rng(seed)
    S = sp.random(n, m, density=rng.random() * 0.5, random_state=rng, format="csr")
    S.data = S.data + (1j * rng.random(S.nnz) if np.dtype(dtype).kind == "c" else 0)
    return S.astype(dtype)

for seed in range(24):
    rng = np.random.default_rng(1000 + seed)                            # the same on all ranks
    n, m = int(rng.integers(0, 30)), int(rng.integers(0, 30))
    if seed % 3 == 0: m = n
    dtype = ["float32", "float64", "complex64", "complex128"][seed % 4]
    S = matrix(seed, n, m, dtype)
    A = am.Matrix.from_scipy(S, comm, distribute=True)
    # each rank's wishes: rows of anybody, repeated, unsorted; columns once over all ranks; some ranks want nothing
    rows = [rng.integers(0, n, int(rng.integers(0, 9))) if n and rng.random() < 0.8 else np.zeros(0, int) for _ in range(size)]
    some = rng.permutation(m)[: int(rng.integers(0, m + 1))]
    cols = np.array_split(some, sorted(rng.integers(0, len(some) + 1, size - 1)))
    part = am.Submatrix(A, rows[rank], cols[rank])
    want = S[np.concatenate(rows)][:, np.concatenate(cols)]
    first = sum(len(r) for r in rows[:rank])
    def check(B, want):
        assert B.shape == want.shape and B.local_shape == (len(rows[rank]), len(cols[rank])) and B.dtype == np.dtype(dtype)
        got = B.to_scipy(); mine = want[first : first + len(rows[rank])].tocsr(); mine.sort_indices()
        assert (got.indptr == mine.indptr).all() and (got.indices == mine.indices).all() and (got.data == mine.data).all(), seed
    check(part.matrix, want)
    x = rng.standard_normal(want.shape[1]).astype(dtype)
    start = sum(len(c) for c in cols[:rank])
    y = part.matrix @ x[start : start + len(cols[rank])].copy()
    assert np.allclose(y, (want @ x)[first : first + len(y)], rtol=1e-4)
    # new values in the same pattern
    S2 = S.copy(); S2.data = S2.data * 3 - 1
    check(part.update(am.Matrix.from_scipy(S2, comm, distribute=True)), S2[np.concatenate(rows)][:, np.concatenate(cols)])
    # nothing said: the whole matrix
    same = A.submatrix().to_scipy() - A.to_scipy()
    assert same.nnz == 0 or abs(same).max() == 0
print("done", flush=True)
"""

MOVES = """
S = am.gallery.poisson((7, 6, 5)).to_scipy().tocsr()
n = S.shape[0]
A = am.Matrix.from_scipy(S, comm, distribute=True)
owners = np.random.default_rng(3).integers(0, size, n)                  # the same on all ranks
if size > 2: owners[owners == 1] = 0                                    # one rank gets nothing
move = am.Redistribution(A, owners[slice(*A.row_range)])
order = np.concatenate(comm.allgather(move.order))
assert sorted(order.tolist()) == list(range(n)) and (owners[move.order] == rank).all() and (np.diff(move.order) > 0).all()
B = move.matrix(A)
assert B.local_shape == (len(move.order),) * 2
want = S[order][:, order].tocsr()
assert abs(B.to_scipy() - want[slice(*B.row_range)]).max() == 0 if B.local_shape[0] else True
x = np.random.default_rng(4).standard_normal((n, 2))
mine = x[slice(*A.row_range)].copy()
there = move.forward(mine)
assert (move.forward(mine.tolist()) == there).all()
assert (there == x[move.order]).all()
assert (move.back(there) == mine).all()
assert np.allclose(move.back(B @ there), A @ mine, atol=1e-13)
# a solve on the moved system is a solve of the system
sol, _ = am.solve(B, move.forward(mine[:, 0].copy()), rtol=1e-10)
assert np.allclose(A @ move.back(sol), mine[:, 0], atol=1e-8)
# nodes and what the operator nearly annihilates go with it
E = sp.kron(S, np.eye(2)).tocsr()
C = am.Matrix.from_scipy(E, comm, distribute=True, block_size=2, near_null_space=np.arange(2.0 * n)[:, None])
nodes = np.repeat(owners, 2)
moved = am.Redistribution(C, nodes[slice(*C.row_range)])
D = moved.matrix(C)
assert D.block_size == 2 and (D.near_null_space[:, 0] == moved.order).all()
split = np.arange(2 * n) % 2 if size > 1 else None
if split is not None:
    text = message(lambda: am.Redistribution(C, split[slice(*C.row_range)]).matrix(C))
    assert text == "InputError: rank 0: redistribution: rows 0 and 1 are of one node of 2 rows, but go to ranks 0 and 1.", text
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_parts_match_scipy(on_ranks, ranks):
    assert on_ranks(ranks, EXTRACTION).count("done") == ranks


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_moved_systems_are_the_same_systems(on_ranks, ranks):
    assert on_ranks(ranks, MOVES).count("done") == ranks


def test_a_real_matrix_permuted_and_back(data):
    A = am.read_matrix(data / "bcsstk16.mtx.gz")
    n = A.shape[0]
    p = np.random.default_rng(0).permutation(n)
    back = np.argsort(p)
    B = A.submatrix(p, p).submatrix(back, back)
    assert abs(A.to_scipy() - B.to_scipy()).max() == 0


def test_what_is_not_taken_may_change(on_ranks):
    script = """
S = am.gallery.poisson((5, 4)).to_scipy().tolil()
A = am.Matrix.from_scipy(S.tocsr(), comm, distribute=True)
part = am.Submatrix(A, [19, 18] if rank == 0 else [], [17, 18] if size == 1 else [17] if rank == 0 else [18] if rank == 1 else [])
S[0, 13], S[18, 18] = 5.0, 7.0  # an entry more before the rows that are taken, a new value in them
B = part.update(am.Matrix.from_scipy(S.tocsr(), comm, distribute=True))
got = np.vstack(comm.allgather(B.to_scipy().toarray()))
assert np.array_equal(got, S.toarray()[[19, 18]][:, [17, 18]]), got
print("done", flush=True)
"""
    for n in (1, 2, 3):
        assert on_ranks(n, script).count("done") == n


def test_bad_wishes_are_errors_on_all_ranks(on_ranks):
    script = """
import re
S = sp.eye_array(6, format="csr")
A = am.Matrix.from_scipy(S, comm, distribute=True)
part = am.Submatrix(A)
for text, call in [
    ("rank 1: submatrix: row 6 is outside [0, 6)", lambda: A.submatrix([6] if rank == 1 else [], [])),
    ("rank 2: submatrix: column -1 is outside [0, 6)", lambda: A.submatrix([], [-1] if rank == 2 else [])),
    ("submatrix: column 3 is asked for 2 times", lambda: A.submatrix([], [3] if rank < 2 else [])),
    ("rank 1: redistribution: index 2 is to go to rank 3, but there are 3 ranks", lambda: am.Redistribution(A, [3 if rank == 1 else 0] * 2)),
    ("rank 0: redistribution: 1 owners for 2 indices", lambda: am.Redistribution(A, [0] * (1 if rank == 0 else 2))),
    ("the matrix has other entries than before", lambda: part.update(am.Matrix.from_scipy(S + sp.eye_array(6, k=1), comm, distribute=True))),
    ("the matrix is float32 now, it was float64", lambda: part.update(A.astype("float32"))),
    ("Submatrix: A is a csr_array; an asterism.Matrix is needed", lambda: am.Submatrix(S)),
    ("Submatrix.update: A is a int; an asterism.Matrix is needed", lambda: part.update(7)),
    ("Redistribution: A is a csr_array; an asterism.Matrix is needed", lambda: am.Redistribution(S, [0, 0])),
    ("Redistribution.matrix: A is a csr_array; an asterism.Matrix is needed", lambda: am.Redistribution(A, [0, 0]).matrix(S)),
]:
    texts = comm.allgather(message(call))
    # the rank whose input it is may say it without its own number
    assert len({re.sub("rank [0-9]: (?=Sub|Red)", "", t) for t in texts}) == 1 and text in texts[0], texts
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3


def test_other_things_than_matrices_and_arrays():
    with pytest.raises(am.InputError, match="Submatrix: A is .*an asterism.Matrix is needed"):
        am.Submatrix(am.Operator(lambda x: x, 3), [0], [0])
    move = am.Redistribution(am.gallery.poisson((3,)), [0, 0, 0])
    assert move.forward([1.0, 2.0, 3.0]).tolist() == move.back([1.0, 2.0, 3.0]).tolist() == [1, 2, 3]
    with pytest.raises(am.InputError, match="x has 1 masked values"):
        move.forward(np.ma.array(np.ones(3), mask=[True, False, False]))
