"""What is done where 32 bits are not enough, reached with small data by lowered limits (base/limits.hpp)."""

import pytest

NARROW = {"ASTERISM_TEST_NARROW_INDEX": "40"}
PLACES = pytest.mark.parametrize("place", [{}, {"ASTERISM_RANKS_PER_NODE": "1"}], ids=["node", "machines"])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_wide_indices(on_ranks, tmp_path, n):
    on_ranks(
        n,
        f"""
folder = {str(tmp_path)!r}
G = am.gallery.convection_diffusion((13, 11), (3.0, 1.0))
S = G.to_scipy()
A = am.gallery.convection_diffusion((13, 11), (3.0, 1.0), 1.0, comm)
lo, hi = A.row_range
x = np.cos(np.arange(143.0))
def good(B): assert np.allclose(B @ x[slice(*B.row_range)], (S @ x)[slice(*B.row_range)], rtol=1e-14), B
good(A)
C = S.tocoo()
i, j = C.coords
part = slice(rank, None, size)             # entries of any rank's rows
good(am.Matrix.coo(S.shape, i[part], j[part], C.data[part], comm))
good(am.Matrix.from_scipy(S, comm, distribute=True))
places = am.Assembly(S.shape, i[part], j[part], comm)
good(places.matrix(C.data[part]))
builder = am.Builder(S.shape, comm=comm)
builder.add(i[part], j[part], C.data[part])
good(builder.matrix())
for name in ("a.mtx", "a.bin", "a.ast"):
    if name == "a.ast": am.save(folder + "/" + name, comm, A=A); B = am.load(folder + "/" + name, comm)["A"]
    else: am.write_matrix(folder + "/" + name, A); B = am.read_matrix(folder + "/" + name, comm)
    good(B)
y, info = am.solve(A, (S @ x)[lo:hi], ksp="gmres", pc="amg", rtol=1e-10)
assert np.allclose(y, x[lo:hi], rtol=1e-6)
""",
        **NARROW,
    )


@PLACES
@pytest.mark.parametrize("count", [64, 1024])
@pytest.mark.parametrize("n", [2, 3])
def test_messages_that_mpi_cannot_count(on_ranks, n, count, place):
    on_ranks(
        n,
        """
for transport in ("auto", "p2p"):
    sf = am.StarForest(comm, 3000, None, [((rank + 1) % size, 2999 - i) for i in range(3000)], transport=transport)
    roots, leaves = np.arange(3000.0) + 10_000 * rank, np.zeros(3000)
    sf.bcast(roots, leaves)
    assert np.array_equal(leaves, (np.arange(3000.0) + 10_000 * ((rank + 1) % size))[::-1])
    sums = np.zeros(3000)
    sf.reduce(leaves, sums)
    assert np.array_equal(sums, roots)
A = am.gallery.poisson((40, 33), comm)
x, info = am.solve(A, np.ones(A.local_shape[0]), ksp="cg", pc="amg", rtol=1e-9)
r = np.ones(A.local_shape[0]) - A @ x
assert comm.allreduce(float(r @ r)) ** 0.5 < 1.01e-9 * 1320**0.5
""",
        ASTERISM_TEST_MPI_COUNT=str(count),
        **place,
    )


def test_collectives_of_mpi_refuse_what_they_cannot_count(on_ranks):
    on_ranks(
        2,
        """
def make(): am.StarForest(comm, 300, None, [(1 - rank, i) for i in range(300)], transport="collective").bcast(np.ones(300), np.ones(300))
text = message(make)
assert "more than MPI's collectives can count" in text, text
""",
        ASTERISM_TEST_MPI_COUNT="256",
    )


def test_more_rows_than_a_rank_can_have(on_ranks):
    limit = {"ASTERISM_TEST_LOCAL_INDEX": "600"}
    on_ranks(
        1,
        'assert "900 local indices do not fit in 32 bits (at most 600 per rank)" in message(lambda: am.gallery.poisson((30, 30)))',
        **limit,
    )
    on_ranks(
        2,
        """
A = am.gallery.poisson((30, 30), comm)     # 450 rows, and 30 of the other rank's columns
y = A @ np.ones(450)
n = 590 if rank == 0 else 10               # and here more columns than there may be
rows, cols = np.arange(n), 590 * rank + np.arange(n)
def make():
    S = sp.csr_array((np.ones(2 * n), (np.tile(rows, 2), np.concatenate([cols, (cols + 300) % 600]))), shape=(n, 600))
    return am.Matrix.from_scipy(S, comm) @ np.ones(n)
try: make()
except am.AsterismError as e: assert "do not fit in 32 bits" in str(e), e
""",
        **limit,
    )
