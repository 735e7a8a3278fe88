"""Grids against NumPy: every ghost point has its owner's value, on 1 to 5 ranks, random shapes, widths and borders."""

import numpy as np
import pytest

import asterism as am

RANDOM = """
rng = np.random.default_rng(size)
for case in range(60):
    d = int(rng.integers(1, 4))
    shape = [int(n) for n in rng.integers(1, (30, 12, 7)[d - 1], d)]
    periodic = [bool(p) for p in rng.integers(0, 2, d)]
    width, stencil, k = int(rng.integers(0, 4)), ["star", "box"][case % 2], [None, 3][case % 5 == 0]
    g = am.grid.Grid(shape, comm, stencil, periodic, width=width)
    assert np.prod(g.ranks) == size
    owner = comm.allgather([(s.start, s.stop) for s in g.owned])
    assert sum(int(np.prod([b - a for a, b in box])) for box in owner) == np.prod(shape), "every point has one owner"
    whole = rng.standard_normal(shape if k is None else (*shape, k))
    u = g.local(k=k) - 7.0
    u[g.interior] = whole[g.owned]
    g.exchange(u)
    v = g.local(k=k) - 7.0
    g.to_local(np.ascontiguousarray(whole[g.owned]), v)
    index = [np.arange(b, e) % n for (b, e), n in zip(g.ghosted, shape)]
    want = whole[np.ix_(*index)]
    inside = [(np.arange(b, e) >= s.start) & (np.arange(b, e) < s.stop) for (b, e), s in zip(g.ghosted, g.owned)]
    outside = sum((~x).astype(int).reshape([-1 if b == a else 1 for b in range(d)]) for a, x in enumerate(inside))
    known = outside <= 1 if stencil == "star" else outside >= 0
    for a in (u, v):
        assert (a[known] == want[known]).all(), (case, shape, periodic, width, stencil)
        assert (a[~known] == -7).all(), "corners are not a star's"
    for (b, e), s, n, p in zip(g.ghosted, g.owned, shape, periodic):
        if s.start < s.stop: assert (b, e) == ((s.start - width, s.stop + width) if p else (max(0, s.start - width), min(n, s.stop + width)))
    # rows: own points are numbered rank after rank, all others as their owners say
    numbers = g.numbers()
    rows = np.full(shape, -1); gathered = comm.allgather((numbers[g.interior], g.owned))
    for part, where in gathered: rows[where] = part
    assert sorted(rows.ravel()) == list(range(rows.size)) and (numbers == rows[np.ix_(*index)]).all()
    # sums of all copies of a point
    total = np.ascontiguousarray(0 * whole[g.owned]); ones = g.local(k=k) + 1.0
    g.to_global(ones, total, "sum")
    count = np.zeros(shape)
    for ix, kn in comm.allgather((index, known)): np.add.at(count, np.ix_(*ix), kn)
    assert (total == (count[g.owned] if k is None else count[g.owned][..., None])).all(), case
    g.to_global(u, total); assert (total == whole[g.owned]).all()
print("done", flush=True)
"""


@pytest.mark.parametrize(("ranks", "options"), [(1, ""), (2, ""), (3, "-sf_transport p2p"), (4, ""), (5, "")])
def test_ghost_points_have_their_owners_values(on_ranks, ranks, options):
    assert on_ranks(ranks, RANDOM, ASTERISM_OPTIONS=options).count("done") == ranks


def test_a_matrix_on_the_grid_solves_as_the_gallery_does(on_ranks):
    script = """
g = am.grid.Grid((12, 10, 8), comm)
rows = g.numbers(); own = rows[g.interior].ravel()
i, j, v = [own], [own], [np.full(own.size, 6.0)]
for axis in range(3):
    for step in (-1, 1):
        shifted = tuple(slice(s.start + step * (a == axis), s.stop + step * (a == axis)) for a, s in enumerate(g.interior))
        valid = np.zeros(g.global_shape, bool); near = np.zeros(g.global_shape, int)
        take = [np.arange(max(s.start, 0), min(s.stop, n)) for s, n in zip(shifted, g.local_shape)]
        to = tuple(slice(t[0] - s.start, t[-1] + 1 - s.start) for t, s in zip(take, shifted))
        near[to] = rows[np.ix_(*take)]; valid[to] = True
        i.append(own[valid.ravel()]); j.append(near[valid]); v.append(np.full(valid.sum(), -1.0))
A = am.Matrix.coo((960, 960), np.concatenate(i), np.concatenate(j), np.concatenate(v), comm, local_rows=own.size)
f = g.globals(); f[...] = 1.0
x, info = am.solve(A, f.ravel(), ksp="cg", pc="amg", rtol=1e-10)
mine = x.reshape(g.global_shape)
parts = comm.gather((g.owned, mine))
if rank == 0:
    whole = np.zeros(g.shape)
    for where, part in parts: whole[where] = part
    S = am.gallery.poisson((12, 10, 8)).to_scipy()
    assert np.abs(S @ whole.ravel() - 1).max() < 1e-8
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3


def test_the_cuts_and_the_picture(on_ranks, tmp_path):
    script = f"""
g = am.grid.Grid((8, 20), comm, "box", width=2)
assert g.ranks == (1, 4), g.ranks
assert am.grid.Grid((8, 20), comm, ranks=(4, 1)).ranks == (4, 1)
text = g.view()
assert "cut into 1 x 4 boxes" in text and "00000111112222233333" in text, text
assert all(n["pattern"].startswith("strided") and n["index_bytes"] == 0 for n in g.forest().neighbours())
g.picture(r"{tmp_path}/owners.png")
for call, text in [
    (lambda: am.grid.Grid((4, 0) if rank == 1 else (4, 4), comm), "rank 1: a grid needs at least one point in each direction, not 0"),
    (lambda: am.grid.Grid((4, 4), comm, ranks=(3, 1)), "the grid is cut into 3 boxes, but there are 4 ranks"),
    (lambda: am.grid.Grid((4, 4 + rank), comm), "the ranks describe different grids"),
    (lambda: am.grid.Grid((4, 4), comm, periodic=(True,)), "periodic has 1 flags for 2 dimensions"),
    (lambda: am.grid.Grid((4, 4), comm, width=-1), "width is -1"),
]:
    got = message(call); assert text in got, got
print("done", flush=True)
"""
    assert on_ranks(4, script).count("done") == 4
    assert (tmp_path / "owners.png").stat().st_size > 1000


def test_an_error_of_what_is_no_message_stays_on_its_rank(on_ranks):
    """Own points go into a global array without one: the others do not hear of a wrong shape, in the next call either."""
    script = """
g = am.grid.Grid((8, 8), comm)
u, whole = g.local(), g.globals()
u[g.interior] = 1 + rank
if rank == 0: assert "values: a C-contiguous array" in message(lambda: g.to_global(u, np.zeros(3)))
else: g.to_global(u, whole)
g = am.grid.Grid((8, 8), comm)
g.to_global(u, whole)
assert (whole == 1 + rank).all()
print("done", flush=True)
"""
    assert on_ranks(2, script).count("done") == 2


def test_misuse_is_an_error_with_the_shapes():
    for periodic in ("no", ["False"], 1):
        with pytest.raises(am.InputError, match="periodic"):
            am.grid.Grid((4,), periodic=periodic)
    g = am.grid.Grid((5, 6))
    with pytest.raises(am.errors.ShapeError, match=r"shape \(5, 6\) or \(5, 6, 'k'\) is needed, not shape \(6, 5\)"):
        g.exchange(np.zeros((6, 5)))
    with pytest.raises(am.errors.DtypeError, match="local has dtype float64, values int32"):
        g.to_global(np.full((5, 6), 0.5), np.zeros((5, 6), np.int32))
    with pytest.raises(am.errors.FileError, match="cannot be written"):
        g.picture("/nowhere/at/all.png")
    with pytest.raises(am.errors.OptionError, match="'cross' is not one of star, box"):
        am.grid.Grid(4, stencil="cross")
    with pytest.raises(am.errors.ShapeError, match="1, 2 or 3 dimensions, not 4"):
        am.grid.Grid((2, 2, 2, 2))


STAR = """
rng = np.random.default_rng(5)
for shape, periodic, width, stencil in [((7,), (False,), 1, "star"), ((6, 5), (False, True), 2, "box"), ((4, 3, 5), (True, False, False), 1, "star")]:
    g = am.grid.Grid(shape, comm, stencil, periodic, width=width)
    rows = g.numbers(); own = rows[g.interior]
    sides = [-1.0, -0.5, 0.25][: len(shape)]
    i, j, v = [own.ravel()], [own.ravel()], [np.full(own.size, 3.0)]
    everywhere = np.empty(g.shape, int)
    for part in comm.allgather((g.owned, own)) if comm else [(g.owned, own)]: everywhere[part[0]] = part[1]
    points = np.stack(np.meshgrid(*[np.arange(s.start, s.stop) for s in g.owned], indexing="ij"), -1).reshape(-1, len(shape))
    for d in range(len(shape)):
        for step in (-1, 1):
            to = points.copy(); to[:, d] += step
            if periodic[d]: to[:, d] %= shape[d]
            inside = (to[:, d] >= 0) & (to[:, d] < shape[d])
            i.append(own.ravel()[inside]); j.append(everywhere[tuple(to[inside].T)]); v.append(np.full(inside.sum(), sides[d]))
    n = int(np.prod(shape))
    B = am.Matrix.coo((n, n), np.concatenate(i), np.concatenate(j), np.concatenate(v), comm, local_rows=own.size)
    for dtype in ("float32", "float64", "complex64", "complex128"):
        A = g.star_operator(3.0, sides, dtype=dtype)
        M = B.astype(dtype)
        x = rng.standard_normal((own.size, 2)).astype(dtype) * (1 + 0.5j if "c" in dtype else 1)
        assert A.dtype == dtype and A.shape == (n, n)
        eps = np.finfo(dtype).eps
        for y in (x, x[:, 0].copy()):
            y = y.astype(dtype)
            assert np.allclose(A @ y, M @ y, rtol=0, atol=40 * eps), (shape, dtype)
g = am.grid.Grid((12, 10, 8), comm)
A = g.star_operator(6.0, -1.0)
f = np.ones(int(np.prod(g.global_shape)))
counts = {}
for pc in ("none", "jacobi", "chebyshev"):
    for queue in ("inline", "thread", "shuffle"):
        x, info = am.solve(A, f, ksp="cg", pc=pc, rtol=1e-9, options=f"-queue {queue}")
        total = np.sum((f - A @ x) ** 2); size = np.sum(f ** 2)
        if comm: total, size = comm.allreduce(total), comm.allreduce(size)
        assert np.sqrt(total / size) <= 1.05e-9
        assert counts.setdefault(pc, info.iterations) == info.iterations
assert 2 * counts["chebyshev"] < counts["none"]
x, info = am.solve(A, f, ksp="gmres", pc="chebyshev", rtol=1e-9)
assert info.converged
for wrong, text in ((lambda: g.star_operator(6.0, [1.0, 2.0]), "2 side coefficients for 3 directions"),
                    (lambda: g.star_operator(float("nan"), 1.0), "must be finite"),
                    (lambda: am.grid.Grid((4, 4), comm, width=0).star_operator(4.0, -1.0), "at least 1 deep")):
    try: wrong(); raise SystemExit("no error: " + text)
    except am.AsterismError as e: assert text in str(e), e
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_star_without_a_matrix(on_ranks, ranks):
    assert on_ranks(ranks, STAR).count("done") == ranks


def test_points_have_coordinates(on_ranks):
    script = """
for shape, periodic, spacing in (((6, 5, 4), (False, True, False), None), ((7, 3), False, (0.5, 2.0)), ((9,), True, 0.25), ((1, 5), False, None)):
    g = am.grid.Grid(shape, comm, periodic=periodic, spacing=spacing)
    around = [periodic] * len(shape) if np.isscalar(periodic) else periodic
    h = [1 / max(n - (not p), 1) for n, p in zip(shape, around)] if spacing is None else np.broadcast_to(spacing, len(shape))
    want = np.stack(np.meshgrid(*[np.arange(n) * x for n, x in zip(shape, h)], indexing="ij"), -1)
    assert np.array_equal(g.coordinates(), want[g.owned]) and np.array_equal(g.spacing, h), shape
for wrong, text in (((0.0, 1.0), "positive number, not 0"), ((1.0,), "as many spacings, not 1"), ((1.0, np.nan), "positive number")):
    assert text in message(lambda: am.grid.Grid((4, 4), comm, spacing=wrong))
if size > 1: assert "different grids" in message(lambda: am.grid.Grid((4, 4), comm, spacing=1.0 + (rank == 1)))
"""
    for n in (1, 2, 3):
        on_ranks(n, script)


def test_a_picture_of_a_format_that_there_is_not(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(am.InputError, match="Matplotlib writes no xyz. It writes .*png"):
        am.grid.Grid((4, 4)).picture(tmp_path / "owners.xyz")
    assert not list(tmp_path.iterdir())
