"""Near-null spaces and coordinates as users give them: wrong ones are refused, or said."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

N = 8


def body():
    """An elastic block, clamped at one side, and where its nodes are."""
    grid = np.meshgrid(np.arange(1, N + 1), np.arange(N + 1), np.arange(N + 1), indexing="ij")
    return am.gallery.elasticity((N, N, N)).to_scipy(), np.stack(grid, -1).reshape(-1, 3).astype(float)


def told(caplog, make):
    caplog.clear()
    with caplog.at_level("WARNING", "asterism"):
        make()
    return [r.getMessage() for r in caplog.records]


def shuffled(xyz, rng):
    return xyz[rng.permutation(len(xyz))]


def two_swapped(xyz, rng):
    out = xyz.copy()
    out[[5, 300]] = out[[300, 5]]
    return out


WRONG = {
    "in another order": shuffled,
    "two nodes swapped": two_swapped,
    "axes swapped": lambda xyz, rng: xyz[:, ::-1],
    "first index fastest": lambda xyz, rng: xyz.reshape(N, N + 1, N + 1, 3).transpose(0, 2, 1, 3).reshape(-1, 3),
    "stretched": lambda xyz, rng: xyz * [1, 1, 3],
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_coordinates_are_said(how, caplog, rng):
    A, xyz = body()
    messages = told(caplog, lambda: am.Matrix.from_scipy(A, coordinates=WRONG[how](xyz, rng)))
    assert len(messages) == 1 and messages[0].startswith("coordinates: rotations of the body"), messages
    assert "Are the nodes in the order of the matrix's rows" in messages[0]


def test_unknowns_by_component_are_said(caplog):
    A, xyz = body()
    by_component = np.arange(A.shape[0]).reshape(-1, 3).T.ravel()
    messages = told(caplog, lambda: am.Matrix.from_scipy(A[by_component][:, by_component], coordinates=xyz))
    assert len(messages) == 1 and "ordered component by component" in messages[0]


def test_right_coordinates_are_taken_without_a_word(caplog):
    A, xyz = body()
    n = A.shape[0]
    free = np.ones(n)
    free[3 * np.flatnonzero(xyz[:, 1] == 0) + 1] = (
        0  # a roller: it resists rotations that the rows beside it do not see
    )
    keep, held = sp.diags_array(free), sp.diags_array(1 - free)
    scale = sp.diags_array(10.0 ** np.random.default_rng(0).uniform(-3, 3, n))
    flat = [am.gallery.poisson((20, 20), stencil="box").to_scipy()]
    for S, places in (
        (A, xyz),
        (A, xyz + 1e5),
        (A, -7 * xyz[:, [0, 1, 2]]),
        (scale @ A, xyz),
        (A + 1e-3 * sp.eye_array(n), xyz),  # a mass
        (A + 10.0 * sp.eye_array(n), xyz),
        ((keep @ A @ keep + held).tocsr(), xyz),
        ((A + 1e9 * held).tocsr(), xyz),
        (sp.kron(flat[0], sp.eye_array(2)).tocsr(), np.stack(np.meshgrid(range(20), range(20)), -1).reshape(-1, 2)),
        (A * (1 + 0.01j), xyz),
    ):
        assert told(caplog, lambda S=S, places=places: am.Matrix.from_scipy(sp.csr_array(S), coordinates=places)) == []
    roller = (keep @ A @ keep + held).tocsr()
    roller.eliminate_zeros()
    assert told(caplog, lambda: am.Matrix.from_scipy(roller, coordinates=xyz)) == []


def test_what_has_nothing_to_do_with_the_matrix_is_said(caplog, rng):
    A = am.gallery.poisson((30, 30))
    for B in (rng.standard_normal(900), np.c_[np.ones(900), rng.permutation(np.linspace(-1, 1, 900))]):
        messages = told(caplog, lambda B=B: setattr(A, "near_null_space", B))
        assert len(messages) == 1 and f"does not map column {B.ndim - 1} to nearly zero" in messages[0]
    K = am.gallery.elasticity((6, 6, 6))
    for M, B in (
        (A, np.ones(900)),
        (am.gallery.poisson((4, 4, 4)), np.ones(64)),
        (am.gallery.poisson((3,)), np.ones(3)),
        (am.gallery.poisson((50, 50), epsilon=(1, 1e-3)), np.ones(2500)),
        (K, K.near_null_space),
        (am.gallery.poisson((9, 9), dtype="complex128"), np.full(81, 1 + 2j)),
    ):
        assert told(caplog, lambda M=M, B=B: setattr(M, "near_null_space", B)) == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_nan_is_refused_with_its_place(on_ranks, n):
    on_ranks(
        n,
        """
A = am.gallery.elasticity((5, 4, 4), comm)
lo, hi = A.row_range
S = A.to_scipy()
nodes = np.stack(np.meshgrid(range(1, 6), range(5), range(5), indexing="ij"), -1).reshape(-1, 3)[lo // 3 : hi // 3].astype(float)
for bad in (np.nan, np.inf):
    B = np.ones((hi - lo, 2))
    if lo <= 250 < hi: B[250 - lo, 1] = bad
    def attach(): A.near_null_space = B
    assert "near_null_space has 1 values that are NaN or infinite; the first belongs to row 250" in message(attach)
    xyz = nodes.copy()
    if lo <= 3 * 70 < hi: xyz[70 - lo // 3, 2] = bad
    text = message(lambda: am.Matrix.from_scipy(S, comm if size > 1 else None, coordinates=xyz))
    assert "coordinates has 1 values that are NaN or infinite; the first belongs to node 70" in text, text
C = am.Matrix.from_scipy(S, comm if size > 1 else None, coordinates=nodes)
assert np.allclose(C.near_null_space, A.near_null_space)
text = message(lambda: am.Matrix.from_scipy(S, comm if size > 1 else None, coordinates=nodes[:-1] if rank == size - 1 else nodes))
assert "is needed here" in text, text
""",
    )


@pytest.mark.parametrize("n", [2, 3])
def test_ranks_judge_together(on_ranks, n):
    out = on_ranks(
        n,
        """
import logging
seen = []
class Keep(logging.Handler):
    def emit(self, record): seen.append(record.getMessage())
logging.getLogger("asterism").addHandler(Keep())
A = am.gallery.elasticity((6, 6, 6), comm)
S = A.to_scipy()
nodes = np.stack(np.meshgrid(range(1, 7), range(7), range(7), indexing="ij"), -1).reshape(-1, 3).astype(float)
lo, hi = (v // 3 for v in A.row_range)
am.Matrix.from_scipy(S, comm, coordinates=nodes[lo:hi])
assert seen == []
am.Matrix.from_scipy(S, comm, coordinates=np.random.default_rng(0).permutation(nodes)[lo:hi])
assert len(seen) == (rank == 0)
print("SAID" if rank == 0 else "")
""",
    )
    assert out.count("SAID") == 1


def test_columns_of_zero_are_refused_and_any_size_is_taken():
    P = am.gallery.poisson((30, 30))

    def iterations(column):
        s = am.Solver(P, ksp="cg", pc="amg", rtol=1e-8, near_null_space=column)
        s.solve(np.ones(900))
        return s.info.iterations

    assert {iterations(np.full((900, 1), size)) for size in (1e-160, 1.0, 1e160)} == {iterations(None)}
    with pytest.raises(am.InputError, match="column 1 is zero"):
        iterations(np.stack([np.ones(900), np.zeros(900)], 1))


def test_what_does_not_fit_is_refused():
    A, xyz = body()
    with pytest.raises(
        am.ShapeError, match=r"coordinates has 647 nodes where the matrix has 1944 rows of 3; \(648, 3\)"
    ):
        am.Matrix.from_scipy(A, coordinates=xyz[:-1])
    with pytest.raises(am.ShapeError, match="nodes of 2 unknowns, but the matrix has 25 rows"):
        am.Matrix.from_scipy(am.gallery.poisson((5, 5)).to_scipy(), coordinates=np.zeros((12, 2)))
    with pytest.raises(am.ShapeError, match=r"\(nodes, 2\) or \(nodes, 3\)"):
        am.Matrix.from_scipy(A, coordinates=xyz[:, :1])
    with pytest.raises(am.InputError, match="coordinates= and near_null_space="):
        am.Matrix.from_scipy(A, coordinates=xyz, near_null_space=np.ones((A.shape[0], 1)))


def test_a_matrix_keeps_coordinates_and_makes_modes_of_them(caplog):
    K, xyz = body()
    modes = am.gallery.elasticity((N, N, N)).near_null_space
    A = am.Matrix.from_scipy(K, block_size=3)
    without = A._h.memory_bytes
    assert A.coordinates is None and A.near_null_space is None
    assert told(caplog, lambda: setattr(A, "coordinates", xyz)) == []
    assert A.block_size == 3 and np.array_equal(A.coordinates, xyz) and np.array_equal(A.near_null_space, modes)
    assert A._h.memory_bytes == without + xyz.nbytes, "not that of six modes"
    for dtype in ("float32", "complex128"):
        B = A.astype(dtype)
        assert np.array_equal(B.coordinates, xyz) and np.array_equal(B.near_null_space, modes)
        assert B.near_null_space.dtype == dtype
    A.coordinates[:] = 0
    assert np.array_equal(A.coordinates, xyz), "what is given out is a copy"
    # the last word counts
    A.near_null_space = modes[:, :3]
    assert np.array_equal(A.near_null_space, modes[:, :3]) and np.array_equal(A.coordinates, xyz)
    A.coordinates = xyz
    assert A.near_null_space.shape[1] == 6
    A.block_size = 1
    assert A.coordinates is None and A.near_null_space is None, "those of other nodes are forgotten"


def test_amg_uses_coordinates_unless_vectors_are_given():
    K, xyz = body()
    modes = am.gallery.elasticity((N, N, N)).near_null_space
    options = dict(ksp="cg", pc="amg", rtol=1e-8, pc_amg_coarse_size=60)

    def solved(A):
        x, info = am.solve(A, np.ones(K.shape[0]), **options)
        return x, info.iterations

    best = solved(am.Matrix.from_scipy(K, block_size=3, near_null_space=modes))
    translations = solved(am.Matrix.from_scipy(K, block_size=3, near_null_space=modes[:, :3]))
    A = am.Matrix.from_scipy(K, coordinates=xyz)
    x, iterations = solved(A)
    assert iterations == best[1] < translations[1] and np.array_equal(x, best[0])
    A.near_null_space = modes[:, :3]
    x, iterations = solved(A)
    assert iterations == translations[1] and np.array_equal(x, translations[0])


def test_coordinates_are_pickled_and_saved(tmp_path):
    K, xyz = body()
    A = am.Matrix.from_scipy(K, coordinates=xyz)
    B = am.Matrix.from_scipy(K, coordinates=xyz)
    B.near_null_space = A.near_null_space[:, :2]
    am.save(tmp_path / "two.ast", A=A, B=B)
    read = am.load(tmp_path / "two.ast")
    for old, new in (
        (A, pickle.loads(pickle.dumps(A))),
        (B, pickle.loads(pickle.dumps(B))),
        (A, read["A"]),
        (B, read["B"]),
    ):
        assert new.block_size == 3 and np.array_equal(new.coordinates, xyz)
        assert np.array_equal(new.near_null_space, old.near_null_space)


@pytest.mark.parametrize("n", [2, 3])
def test_coordinates_move_with_their_nodes(on_ranks, tmp_path, n):
    on_ranks(
        n,
        """
A = am.gallery.elasticity((6, 4, 4), comm)
lo, hi = A.row_range
nodes = np.stack(np.meshgrid(range(1, 7), range(5), range(5), indexing="ij"), -1).reshape(-1, 3)
assert np.array_equal(A.coordinates, nodes[lo // 3 : hi // 3])
to = np.repeat((np.arange(lo // 3, hi // 3) * 7 + 1) % size, 3)
moved = am.Redistribution(A, to)
B = moved.matrix(A)
assert B.block_size == 3 and np.array_equal(B.coordinates, nodes[moved.order[::3] // 3])
am.save(FILE, comm, A=A)
assert np.array_equal(am.load(FILE, comm)["A"].coordinates, A.coordinates)
""".replace("FILE", repr(str(tmp_path / "a.ast"))),
    )
