"""gallery.laplace_q2 against an assembly by NumPy, a known solution, and itself on several ranks and in boxes."""

import itertools
import re

import numpy as np
import pytest

import asterism as am

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(4)  # another rule than the library's, exact as well
POINTS, WEIGHTS = (POINTS + 1) / 2, WEIGHTS / 2
SHAPES = [np.poly1d(np.polyfit([0, 0.5, 1], row, 2)) for row in np.eye(3)]
VALUES = np.array([s(POINTS) for s in SHAPES])  # (shape function, point)
SLOPES = np.array([s.deriv()(POINTS) for s in SHAPES])


def element_matrix():
    mass, stiff = (np.einsum("aq,bq,q->ab", V, V, WEIGHTS) for V in (VALUES, SLOPES))
    return sum(
        np.kron(np.kron(*pair), last) for *pair, last in ((stiff, mass, mass), (mass, stiff, mass), (mass, mass, stiff))
    )


def dense(cells):
    """The whole matrix, border included, and which of its rows are unknowns."""
    points = [2 * c + 1 for c in cells]
    A, K = np.zeros((np.prod(points),) * 2), element_matrix()
    for cell in itertools.product(*map(range, cells)):
        nodes = [np.ravel_multi_index([2 * c + k for c, k in zip(cell, at)], points) for at in np.ndindex(3, 3, 3)]
        A[np.ix_(nodes, nodes)] += K
    inner = np.zeros(points, bool)
    inner[1:-1, 1:-1, 1:-1] = True
    return A, inner.ravel()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("cells", [(1, 1, 1), (1, 3, 2), (3, 2, 2)])
def test_entries_are_those_of_an_assembly(cells, dtype):
    A = am.gallery.laplace_q2(cells, dtype=dtype)
    want, inner = dense(cells)
    S = A.to_scipy()
    assert A.dtype == dtype and A.shape[0] == inner.sum() == np.prod([2 * c - 1 for c in cells])
    np.testing.assert_allclose(S.toarray(), want[np.ix_(inner, inner)], atol=4 * np.finfo(dtype).eps)
    assert abs(S - S.T).max() == 0  # bit by bit


def test_row_sums_vanish_away_from_the_border():
    n = 4
    A = am.gallery.laplace_q2((n, n, n))
    sums = np.abs(A @ np.ones(A.shape[0])).reshape((2 * n - 1,) * 3)
    assert sums[2:-2, 2:-2, 2:-2].max() < 1e-13 < 0.01 < sums[0].min()
    lengths = np.diff(A.to_scipy().indptr).reshape((2 * n - 1,) * 3)
    assert lengths[3, 3, 3] == 125 and lengths[2, 2, 2] == 27 and lengths[3, 3, 2] == 75 and lengths[2, 2, 3] == 45


def errors(n):
    """Of u = sin(pi x) sin(pi y) sin(pi z) on the unit cube: in L2, and the largest at the points."""
    wave = [np.sin(np.pi * (c + POINTS) / n) for c in range(n)]
    load = np.zeros(2 * n + 1)  # of sin(pi x) against the shape functions, in one direction
    for c in range(n):
        load[2 * c : 2 * c + 3] += VALUES @ (WEIGHTS * wave[c]) / n
    rhs = 3 * np.pi**2 * np.einsum("i,j,k", *[load[1:-1]] * 3)
    A = am.gallery.laplace_q2((n, n, n))
    x, info = am.solve(A, rhs.ravel() * n, ksp="cg", pc="amg", rtol=1e-12)  # the matrix is that of cells of side 1
    assert info.converged
    u = np.zeros((2 * n + 1,) * 3)
    u[1:-1, 1:-1, 1:-1] = x.reshape(rhs.shape)
    s = np.sin(np.pi * np.arange(2 * n + 1) / (2 * n))
    at_points = np.abs(u - np.einsum("i,j,k", s, s, s)).max()
    total = 0.0
    for a, b, c in np.ndindex(n, n, n):
        block = u[2 * a : 2 * a + 3, 2 * b : 2 * b + 3, 2 * c : 2 * c + 3]
        inside = np.einsum("abc,ap,bq,cr->pqr", block, VALUES, VALUES, VALUES)
        exact = np.einsum("p,q,r", wave[a], wave[b], wave[c])
        total += np.einsum("pqr,p,q,r", (inside - exact) ** 2, WEIGHTS, WEIGHTS, WEIGHTS) / n**3
    return np.sqrt(total), at_points


def test_a_known_solution_is_found_with_the_order_of_the_elements():
    coarse, fine = errors(4), errors(8)
    assert 2.8 < np.log2(coarse[0] / fine[0]) < 3.3, "third order in L2"
    assert 3.7 < np.log2(coarse[1] / fine[1]) < 4.4, "fourth order at the points"


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_matrix_is_the_same_on_any_number_of_ranks(on_ranks, ranks):
    out = on_ranks(
        ranks,
        """
for cells in ((3, 2, 2), (1, 1, 1)):  # the second has one row: empty ranks
    whole = am.gallery.laplace_q2(cells).to_scipy()
    A = am.gallery.laplace_q2(cells, comm)
    lo, hi = A.row_range
    assert (whole[lo:hi] != A.to_scipy()).nnz == 0 and A.nnz == whole.nnz
    b = np.ones(hi - lo)
    x, info = am.solve(A, b, ksp="cg", pc="amg", rtol=1e-12)
    y, alone = am.solve(am.gallery.laplace_q2(cells), np.ones(whole.shape[0]), ksp="cg", pc="amg", rtol=1e-12)
    assert info.iterations == alone.iterations and np.allclose(x, y[lo:hi])
print("same")
""",
    )
    assert out.count("same") == ranks


BOXES = """
cells, nodes, processes = (3, 6, 2), (1, 2, 1), (2, 1, 1)
def cuts(n, parts):
    ends = [n // parts * c + min(c, n % parts) for c in range(parts + 1)]
    return list(zip(ends, ends[1:]))
def points_of(r):
    '''Those of a rank's cells, in their order: the lower ones of each cell, but not the border's.'''
    in_node = int(np.prod(processes))
    node, mine = np.unravel_index(r // in_node, nodes), np.unravel_index(r % in_node, processes)
    low_high = []
    for d in range(3):
        a, b = cuts(cells[d], nodes[d])[node[d]]
        lo, hi = cuts(b - a, processes[d])[mine[d]]
        low_high.append((max(2 * (a + lo), 1), max(2 * (a + hi), 1)))
    grid = np.meshgrid(*(np.arange(a, b) - 1 for a, b in low_high), indexing="ij")
    return np.ravel_multi_index([g.ravel() for g in grid], [2 * c - 1 for c in cells])
order = np.concatenate([points_of(r) for r in range(size)])
whole = am.gallery.laplace_q2(cells).to_scipy().tocsr()
assert sorted(order) == list(range(whole.shape[0]))
A = am.gallery.laplace_q2(cells, comm, processes=processes, nodes=nodes)
lo, hi = A.row_range
assert hi - lo == len(points_of(rank))
assert abs(whole[order][:, order][lo:hi] - A.to_scipy()).max() == 0
def between_nodes(B):  # unknowns of the other node that this rank's rows need
    owner = np.repeat(np.arange(size), comm.allgather(B.row_range[1] - B.row_range[0]))
    need = np.unique(B.to_scipy().indices)
    return comm.allreduce(int((owner[need] // 2 != rank // 2).sum()))
flat = am.gallery.laplace_q2(cells, comm, processes=(2, 2, 1))
assert between_nodes(A) < between_nodes(flat), (between_nodes(A), between_nodes(flat))
text = message(lambda: am.gallery.laplace_q2(cells, comm, processes=(3, 1, 1)))
assert "are 3 boxes for 4 ranks" in text, text
print("dealt")
"""


def test_boxes_of_nodes_and_of_their_processes(on_ranks):
    assert on_ranks(4, BOXES).count("dealt") == 4


def test_wrong_shapes():
    with pytest.raises(am.ShapeError, match="0 cells"):
        am.gallery.laplace_q2((2, 0, 2))
    for cells in ((2, 2), 2, (2, 2, 2, 2)):
        with pytest.raises(am.ShapeError, match=re.escape(f"laplace_q2: cells is {cells!r}; 3 integers are needed")):
            am.gallery.laplace_q2(cells)
    for boxes in ({"processes": (1, 1)}, {"processes": (1, 1, 1), "nodes": 1}):
        with pytest.raises(am.ShapeError, match="3 integers are needed"):
            am.gallery.laplace_q2((2, 2, 2), **boxes)
    with pytest.raises(am.OutOfMemoryError, match=r"rows of one rank: \d+ local indices do not fit in 32 bits"):
        am.gallery.laplace_q2((10**6,) * 3)
    with pytest.raises(am.ShapeError, match="at least 1"):
        am.gallery.laplace_q2((2, 2, 2), processes=(1, 0, 1))
    with pytest.raises(am.InputError, match=r"nodes is \(2, 1, 1\), which has no effect without processes"):
        am.gallery.laplace_q2((2, 2, 2), nodes=(2, 1, 1))
    with pytest.raises(am.ShapeError, match="2 boxes for 1 ranks"):
        am.gallery.laplace_q2((2, 2, 2), processes=(1, 1, 1), nodes=(2, 1, 1))
