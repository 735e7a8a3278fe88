"""Which grids gmg takes: sizes and bricks of periodic axes, and those that it refuses."""

from pathlib import Path

import numpy as np
import pytest
from test_gmg import poisson

import asterism as am
from asterism import stencil as st


def test_grids_that_cannot_be_made_coarser():
    with pytest.raises(am.OptionError, match="has no coarser operator"):
        am.Solver(st.operator(poisson(2), (50, 50), h=0.1), "-pc_type gmg -pc_gmg_galerkin none", ksp="cg")
    with pytest.raises(am.OptionError, match="amg for a matrix"):
        am.Solver(am.gallery.poisson((50, 50)), "-pc_type gmg", ksp="cg")
    view = am.Solver(
        st.operator(poisson(2), (121, 121), h=0.1), "-pc_type gmg -pc_gmg_galerkin none", ksp="cg"
    ).view()  # 121, 60
    assert "60 x 60" in view and "lu (sparse" in view and "no coarser grid fits" in view
    halved = am.Solver(st.operator(poisson(2), (48, 48), True, h=0.1), "-pc_type gmg -pc_gmg_coarse_size 40", ksp="cg")
    assert "6 x 6 points in bricks of 6 x 6" in halved.view()


@pytest.mark.parametrize("shape", [(1000, 40), (90, 180), (63, 84), (126, 250)])
def test_periodic_grids_take_any_brick_that_divides_them(shape):
    """Coarse levels of odd sizes went down to bricks of one point, which were too small for their stencils."""
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    L = st.operator(s, shape, True, brick=tuple(next(b for b in (8, 10, 7, 6) if n % b == 0) for n in shape))
    b = np.random.default_rng(0).standard_normal(shape)
    b -= b.mean()
    solver = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-8)
    x = solver.solve(b)
    assert np.linalg.norm(L @ x - b) <= 1e-8 * np.linalg.norm(b) and solver.info.iterations <= 25


@pytest.mark.parametrize("n", [248, 496, 124])
def test_wide_stencils_on_periodic_grids_get_bricks_that_can_be_compiled(n):
    """Of 31 points no divisor is a brick that a stencil of two points to each side has a kernel for."""
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    w = st.weights(2, range(-2, 3))
    s = st.assign(out(i, j), -sum(w[k] * (u(i + k - 2, j) + u(i, j + k - 2)) for k in range(5)))
    L = st.operator(s, (n, n), True, brick=8 if n % 8 == 0 else 4)
    b = np.random.default_rng(0).standard_normal((n, n))
    b -= b.mean()
    solver = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-8)
    x = solver.solve(b)
    assert np.linalg.norm(L @ x - b) <= 1e-8 * np.linalg.norm(b) and solver.info.iterations <= 25


def thin(shape, periodic, points, comm=None):
    """Return the residual, the iterations and the points of the last level of a Laplacian on a grid with short axes."""
    d = len(shape)
    at, u, out = st.indices(d), st.grid("u", d), st.grid("out", d)
    around = [u(*(i + s * (a == k) for k, i in enumerate(at))) for a in range(d) for s in (-1, 1)]
    s = st.assign(out(*at), (2 * d + 0.01) * u(*at) - sum(around))
    bricks = [next(b for b in (8, 10, 7, 6, 5, 4, 3, 2, 1) if m % b == 0) if p else 8 for m, p in zip(shape, periodic)]
    L = st.operator(s, shape, periodic, comm, brick=bricks, points=points)
    solver = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-8)
    b = np.random.default_rng(0).standard_normal(shape)
    r = L @ solver.solve(b[L.owned]) - b[L.owned]
    last = next(line for line in solver.view().splitlines() if "dense" in line or "lu (" in line)
    squares = float(np.sum(r * r)) if comm is None else comm.allreduce(float(np.sum(r * r)))
    return np.sqrt(squares) / np.linalg.norm(b), solver.info.iterations, int(last.split()[1])


@pytest.mark.parametrize("points", ["nodes", "cells"])
@pytest.mark.parametrize(
    ("shape", "periodic"),
    [
        ((3, 4000), (False, False)),
        ((3, 4000), (True, False)),
        ((1, 3000), (False, True)),
        ((2, 2, 500), (True, False, True)),
        ((2, 1, 700), (True, True, False)),
        ((1, 900, 3), (False, False, False)),
        ((40, 1, 40), (False, False, False)),
    ],
)
def test_axes_of_one_point_stay_while_others_get_coarser(shape, periodic, points):
    """The last level had all points of the long axis, and its matrix took minutes."""
    residual, iterations, last = thin(shape, periodic, points)
    assert residual <= 1.01e-8 and iterations <= 12 and last <= 600


def test_thin_grids_on_ranks(on_ranks):
    script = f"""
sys.path.append({str(Path(__file__).parent)!r})
from test_gmg_grids import thin
for args in (((3, 4000), (False, False), "nodes"), ((1, 3000), (False, True), "cells"), ((2, 2, 500), (True, False, True), "cells")):
    got, alone = thin(*args, comm), thin(*args)
    assert got[0] <= 1.01e-8 and got[1:] == alone[1:], (args, got, alone)
print("done", flush=True)
"""
    assert on_ranks(3, script).count("done") == 3


def test_one_point_has_nothing_coarser():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    L = st.operator(st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j)), (1, 1))
    assert am.Solver(L, ksp="gmres", pc="gmg").solve(np.full((1, 1), 8.0))[0, 0] == 2


def test_grids_of_one_point_along_an_axis_are_solved():
    """The matrix of the last level is made of its points, without the padding of their bricks."""
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), 4.1 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    L = st.operator(s, (2000, 2))
    x = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-8).solve(np.ones((2000, 2)))
    assert np.allclose(L @ x, 1, atol=1e-6)


@pytest.mark.parametrize("brick", [10**5, 2**31, 10**10, (10**10, 8, 8), (4097, 4096, 1)])
def test_bricks_that_cannot_be_meant_are_refused(brick):
    """Before memory is taken for the points of a brick beyond the grid."""
    i, j, k = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    s = st.assign(out(i, j, k), 6 * u(i, j, k) - u(i + 1, j, k))
    with pytest.raises(am.ShapeError, match=r"a brick of .* points; at most 16777216 in all"):
        st.operator(s, (16, 16, 16), brick=brick)
    with pytest.raises(am.InputError, match="cannot be cut into 10000000000 boxes"):
        st.operator(s, (16, 16, 16), ranks=(10**10, 1, 1))


def test_a_singular_last_level_is_inverted_without_its_null_vector():
    """9 x 9 x 7 points, in bricks with 2048: sparse factors of it would be those of a singular matrix."""
    shape, at = (18, 18, 14), st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    total = 0.0
    for a, n in enumerate(shape):
        below, above = (u(*(i + s * (k == a) for k, i in enumerate(at))) for s in (-1, 1))
        total = total + st.where(at[a] == 0, 0.0, u(*at) - below) + st.where(at[a] == n - 1, 0.0, u(*at) - above)
    L = st.operator(st.assign(out(*at), total), shape, points="cells")
    b = np.random.default_rng(0).standard_normal(shape)
    b -= b.mean()
    solver = am.Solver(L, "-ksp_null_space none", ksp="cg", pc="gmg", rtol=1e-10)
    x = solver.solve(b)
    assert "1 singular direction(s) left out" in solver.view() and solver.info.iterations <= 10
    assert np.linalg.norm(L @ x - b) <= 1.01e-10 * np.linalg.norm(b)
