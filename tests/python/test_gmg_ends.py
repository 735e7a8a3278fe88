"""Ends of a grid, the diagonal, and points in messages: what the library finds out about a stencil for multigrid."""

from pathlib import Path

import numpy as np
import pytest
from test_gmg import made, poisson

import asterism as am
from asterism import bricks
from asterism import stencil as st
from asterism.base.aligned import aligned

i, j = st.indices(2)
u, a, out, h = st.grid("u", 2), st.grid("a", 2), st.grid("out", 2), st.constant("h")
FIVE = st.assign(out(i, j), (4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)) / (h * h))


def insulated(reaction):
    """No flux through any end, in rows that read nothing beyond."""
    left, right = st.where(i == 0, u(i, j), u(i - 1, j)), st.where(i == i.extent - 1, u(i, j), u(i + 1, j))
    down, up = st.where(j == 0, u(i, j), u(i, j - 1)), st.where(j == j.extent - 1, u(i, j), u(i, j + 1))
    return st.assign(out(i, j), (4 * u(i, j) - left - right - down - up) / (h * h) + reaction * u(i, j))


def test_zero_ends_are_found():
    kinds = {"zero": [0.5, 0.5], "flat": [0, 0], "nodes": [1, 1]}
    for kind, want in kinds.items():
        L = made(16, 2, kind)
        assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [want, want]
    i, j = st.indices(2)
    u, out, h = st.grid("u", 2), st.grid("out", 2), st.constant("h")
    left = st.where(i == 0, -1.0 * u(i, j), u(i - 1, j))
    right = st.where(i == i.extent - 1, u(i, j), u(i + 1, j))
    s = st.assign(out(i, j), (4 * u(i, j) - left - right - u(i, j - 1) - u(i, j + 1)) / (h * h))
    L = st.operator(s, (24, 16), (False, True), h=0.1, points="cells")
    assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[0.5, 0], [0, 0]]


@pytest.mark.parametrize("shape", [(64, 64, 2), (64, 64, 4), (4, 40, 40), (48, 6, 6)])
def test_a_reaction_is_no_zero_end_of_a_thin_grid(shape):
    at = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    flux = []
    for axis in range(3):
        for step in (-1, 1):
            end = at[axis] == (0 if step < 0 else at[axis].extent - 1)
            flux.append(u(*at) - st.where(end, u(*at), u(*(i + step * (n == axis) for n, i in enumerate(at)))))
    L = st.operator(st.assign(out(*at), sum(flux[1:], flux[0]) / (h * h) + 1.0 * u(*at)), shape, h=1 / 64)
    assert bricks.ends_of(bricks.make, L._how, L._h) == [[0, 0]] * 3
    _, info = am.solve(L, np.random.default_rng(0).random(shape), ksp="cg", pc="gmg", rtol=1e-8)
    assert info.iterations <= 9


@pytest.mark.parametrize("points", ["nodes", "cells"])
@pytest.mark.parametrize("reaction", [1.0, 200.0, 2e4, 1e6])
def test_a_reaction_is_no_zero_end(points, reaction):
    L = st.operator(insulated(reaction), (128, 128), h=1 / 128, points=points)
    if reaction < 1e3:  # of stronger ones no error reaches far
        assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[0, 0], [0, 0]]
    _, info = am.solve(L, np.random.default_rng(0).random((128, 128)), ksp="cg", pc="gmg", rtol=1e-8)
    assert info.iterations <= 8


def test_few_small_coefficients_make_no_flat_end():
    c = np.ones((127, 127))
    for end in (c[0], c[-1], c[:, 0], c[:, -1]):
        end[::4] = 1e-2
    L = st.operator(poisson(2, "zero", coefficient=True), (127, 127), h=1 / 127, points="cells", a=c)
    assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[0.5, 0.5]] * 2
    weak = st.assign(
        out(i, j), (2.002 * u(i, j) - 1e-3 * (u(i - 1, j) + u(i + 1, j)) - u(i, j - 1) - u(i, j + 1)) / (h * h)
    )
    L = st.operator(weak, (31, 63), h=1 / 64, dtype="float32")
    assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[1, 1]] * 2
    L = st.operator(st.assign(out(i, j), u(i, j)), (1, 5))
    assert L._h.zero_beyond()[0] == [False, False]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_diagonal_and_the_bound_are_those_of_the_matrix(dtype):
    """Of values that depend on how near the ends are, and of values at each point."""
    rng = np.random.default_rng(2)
    by_ends = st.assign(
        out(i, j), st.where((i == 0) | (j > j.extent - 3), 3 * u(i, j) - u(i, j - 1), 5 * u(i, j) + 2 * u(i + 1, j))
    )
    at_points = st.assign(out(i, j), a(i, j) * u(i, j) - a(i + 1, j) * u(i + 1, j))
    for shape in ((1, 1), (3, 2), (19, 21), (8, 40)):
        for s, given in ((by_ends, {}), (at_points, {"a": rng.random(shape) + 1})):
            L = st.operator(s, shape, dtype=dtype, **given)
            n = int(np.prod(shape))
            columns = (L @ np.eye(n, dtype=dtype).reshape(*shape, n)).reshape(n, n)
            entries = aligned((int(L._h.rows.local_size),), dtype)
            L._h.diagonal(entries)
            np.testing.assert_allclose(L.from_bricks(entries).ravel(), np.diag(columns), rtol=1e-6)
            off = np.abs(columns).sum(1) / np.abs(np.diag(columns))
            bound = L._h.bound
            assert off.max() * (1 - 1e-6) <= bound  # of coefficients, also of those that reach beyond an end
            if min(shape) > 2 and not given:
                assert bound <= off.max() * (1 + 1e-6)
            padding = entries[L.to_bricks(np.ones(shape, dtype)) == 0]
            assert (padding == 1).all()


def test_a_diagonal_of_zero_has_a_name():
    s = st.assign(out(i, j), st.where((i == 5) & (j == 60), 0.0, 4 * u(i, j) - u(i - 1, j) - u(i + 1, j)))
    with pytest.raises(am.InputError, match=r"diagonal entry of point \(5, 60\) is zero"):
        am.Solver(st.operator(s, (63, 63)), ksp="gmres", pc="gmg")
    b = np.zeros((40, 57))
    b[39, 56] = np.nan
    with pytest.raises(am.InputError, match=r"the first is in point \(39, 56\)"):
        am.solve(st.operator(FIVE, (40, 57), h=0.1), b, ksp="cg", pc="gmg")


@pytest.mark.parametrize("size", [1e-22, 1e-18, 1e22])
def test_single_precision_says_where_its_range_ends(size):
    L = st.operator(FIVE, (63, 63), h=size)
    assert am.solve(L, np.ones((63, 63)), ksp="cg", pc="gmg", rtol=1e-9)[1].iterations <= 8
    with pytest.raises(am.UnsupportedError, match="-pc_dtype float64"):
        am.Solver(L, "-pc_dtype float32", ksp="cg", pc="gmg")


def test_coefficients_that_a_dtype_does_not_hold():
    s = st.assign(out(i, j), a(i, j) * u(i, j))
    with pytest.raises(am.InputError, match="too large for float32: up to 1e\\+300"):
        st.operator(s, (20, 30), of="u", a=np.full((20, 30), 1e300), dtype="float32")
    for spacing, dtype in ((0, "float64"), (1e-25, "float32")):
        with pytest.raises(am.InputError, match=f"not finite in {dtype}, with h="):
            st.operator(FIVE, (20, 30), h=spacing, dtype=dtype)
    with pytest.raises(am.InputError, match=r"at 2 points are not finite in float64; the first is point \(3, 4\)"):
        c = np.full((20, 30), 2.0)
        c[3, 4] = c[9, 9] = 0
        st.operator(st.assign(out(i, j), u(i, j) / a(i, j)), (20, 30), of="u", a=c)


@pytest.mark.parametrize("pc", ["gmg", "amg"])
def test_no_steps_of_a_smoother(pc):
    """On one side of the coarse correction they may be left out; on both nothing is smoothed."""
    L = made(64, 2, "nodes") if pc == "gmg" else am.gallery.poisson((60, 60))
    how = "-mg_levels_ksp_type chebyshev -pc_amg_coarse_size 50" if pc == "amg" else ""
    usual, asked = (am.Solver(L, f"{how} {o}", ksp="cg", pc=pc).view() for o in ("", "-mg_levels_ksp_max_it -1"))
    assert usual == asked and "x 2 with jacobi" in usual
    for none in ("-mg_levels_ksp_max_it 0", "-mg_levels_ksp_max_it 0 -mg_levels_up_ksp_max_it 0"):
        with pytest.raises(am.OptionError, match="leave no step of the smoother"):
            am.Solver(L, f"{how} {none}", ksp="cg", pc=pc)
    for before, after in ((0, 2), (2, 0), (-1, 0)):
        s = am.Solver(L, f"{how} -mg_levels_ksp_max_it {before} -mg_levels_up_ksp_max_it {after}", ksp="gmres", pc=pc)
        s.solve(np.ones(L.local_shape[0] if pc == "amg" else L.grid_shape))
        assert s.info.iterations < 30


RANKS = """
sys.path.append(HERE)
from test_gmg_ends import FIVE, bricks, insulated, st
L = st.operator(insulated(200.0), (64, 64), comm=comm, h=1 / 64)
assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[0, 0], [0, 0]]
L = st.operator(FIVE, (40, 57), comm=comm, h=1.0)
assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[1, 1], [1, 1]]
b = np.zeros((40, 57))
b[39, 56] = np.nan
assert "the first is in point (39, 56)" in message(lambda: am.solve(L, b[L.owned], ksp="cg", pc="gmg"))
z = st.assign(FIVE.statements[0].target, st.where(st.indices(2)[0] == 37, 0.0, FIVE.statements[0].value))
text = message(lambda: am.Solver(st.operator(z, (40, 57), comm=comm, h=1.0), ksp="gmres", pc="gmg"))
assert "the diagonal entry of point (37, " in text, text
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_on_ranks(on_ranks, ranks):
    assert on_ranks(ranks, RANKS.replace("HERE", repr(str(Path(__file__).parent)))).count("done") == ranks
