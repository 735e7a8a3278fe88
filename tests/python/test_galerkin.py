"""Galerkin's product of stencils: it is R A P, on every grid and any number of ranks, and multigrid with it converges."""

from pathlib import Path

import numpy as np
import pytest
from test_gmg import factor, made, poisson

import asterism as am
from asterism import bricks
from asterism import stencil as st
from asterism.base.aligned import aligned


def wide(d, reach):
    """Return a stencil without symmetry and without a spacing, that reads so far along the first axis, with a coefficient."""
    at = st.indices(d)
    u, a, out = st.grid("u", d), st.grid("a", d), st.grid("out", d)
    first, others = at[0], at[1:]
    value = 8 * u(*at) - u(first - reach, *others) - (0.5 + a(*at)) * u(first + reach, *others)
    if d > 1:
        value = value - 0.25 * u(first - 1, others[0] + 1, *others[1:])
    return st.assign(out(*at), value)


SHAPES = [
    # points, periodic, where
    ((21,), (False,), "nodes"),
    ((20,), (False,), "nodes"),
    ((2,), (False,), "nodes"),
    ((24,), (True,), "nodes"),
    ((15,), (True,), "nodes"),
    ((28,), (True,), "nodes"),  # of 14 the last two have colours of their own
    ((22,), (False,), "cells"),
    ((21,), (False,), "cells"),
    ((15,), (True,), "cells"),
    ((16,), (True,), "cells"),
    ((13, 18), (False, False), "nodes"),
    ((18, 13), (False, False), "cells"),
    ((11, 16), (False, True), "nodes"),
    ((12, 17), (True, False), "cells"),
    ((7, 10, 8), (False, False, True), "nodes"),
    ((6, 9, 8), (False, False, True), "cells"),
]


def brick(shape, periodic):
    return [max(b for b in range(1, 9) if n % b == 0) if p else 4 for n, p in zip(shape, periodic, strict=True)]


def check_product(L, rows_per_rank=0, comm=None, tolerance=1e-12, least=0.0, most_levels=99):
    """Check R A P, and its transpose, on a random vector, level by level. Return the levels' operators.

    least: of a product that may be zero, as of a singular operator with one point.
    """
    how, handle, domain = L._how, L._h, L._domain
    out = []
    while len(out) < most_levels and (
        found := bricks.coarse_level(bricks.make, how, handle, domain, "galerkin", rows_per_rank)
    ):
        coarse, P, R, paired = found
        assert paired
        d, rng = len(coarse.grid_shape), np.random.default_rng(3)
        size = coarse.local_grid_shape
        whole = rng.standard_normal(coarse.grid_shape)
        x = whole[coarse.owned]
        fine, product = (aligned((int(domain.layout.local_size),), L.dtype) for _ in range(2))
        y = aligned(coarse.to_bricks(x).shape, L.dtype)
        P.apply(coarse.to_bricks(x.astype(L.dtype)), fine)
        handle.apply(fine, product)
        R.apply(product, y)
        want = coarse.from_bricks(y)
        got = coarse @ x.astype(L.dtype)
        most = max(least, how.comm.max(float(np.abs(want).max(initial=0))))
        assert np.abs(got - want).max(initial=0) <= tolerance * most, (how.shape, d)
        # R = P^T / 2^d
        P.apply(coarse.to_bricks(x.astype(L.dtype)), fine)
        handle.apply_transpose(fine, product)
        R.apply(product, y)
        got = coarse.rmatvec(x.astype(L.dtype))
        assert np.abs(got - coarse.from_bricks(y)).max(initial=0) <= tolerance * most, "transposed"
        assert size == got.shape
        out.append(coarse)
        how, handle, domain = coarse._how, coarse._h, coarse._domain
    return out


@pytest.mark.parametrize(
    ("case", "reach"), [(n, r) for n, s in enumerate(SHAPES) for r in (1, 2) if r == 1 or len(s[0]) < 3]
)
def test_coarse_operators_are_the_product(case, reach):
    """With a coefficient in one precision and constants in the other: which is which changes from case to case. In three
    dimensions, where stencils compile for long, in double precision alone."""
    shape, periodic, where = SHAPES[case]
    d = len(shape)
    blocks = [max(b, reach) for b in brick(shape, periodic)]
    at, u, out = st.indices(d), st.grid("u", d), st.grid("out", d)
    value = 3.5 * u(*at) - u(at[0] + reach, *at[1:]) - 0.5 * u(*at[:-1], at[-1] - reach)
    constant, given = st.assign(out(*at), value), {"a": np.random.default_rng(1).random(shape)}
    ways = [((case + reach) % 2, "float64", 1e-13), ((case + reach + 1) % 2, "float32", 1e-5)]
    for of_a, dtype, tolerance in ways[: 4 - d]:
        stencil = wide(d, reach) if of_a else constant
        L = st.operator(stencil, shape, periodic, brick=blocks, dtype=dtype, points=where, **(given if of_a else {}))
        levels = check_product(L, tolerance=tolerance)
        assert levels or 2 * reach > min(shape) or any(periodic), (shape, reach)


CASES = [  # dimensions, kind, points along an axis: also more than the kind's 2^k
    (1, "nodes", 1000),
    (2, "nodes", 64),
    (2, "nodes", 101),
    (2, "nodes", 250),
    (2, "periodic", 64),
    (2, "periodic", 120),
    (2, "zero", 64),
    (2, "zero", 77),
    (2, "flat", 64),
    (2, "flat", 77),
    (3, "nodes", 45),
]


@pytest.mark.parametrize(("d", "kind", "n"), CASES)
def test_poisson_falls_faster_than_discretised_again(d, kind, n):
    L = made(n, d, kind)
    both = "-pc_gmg_galerkin both -pc_gmg_coarse_size 300"
    alone, s = factor(L, f"{both} -mg_levels_ksp_max_it 2")
    within, _ = factor(L, both, ksp="cg")
    assert "by Galerkin's product" in s.view()
    assert alone <= 0.05 and within <= 0.08, (alone, within)
    try:
        again, _ = factor(L, "-pc_gmg_galerkin none -pc_gmg_coarse_size 300 -mg_levels_ksp_max_it 2")
    except am.OptionError:
        assert n not in (32, 64)
    else:
        assert d == 1 or alone < again, (alone, again)


def test_chosen_where_the_spacing_is_not_known():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    five = st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    L = st.operator(five, (50, 63))  # an even number too
    got, s = factor(L, "-mg_levels_ksp_max_it 2")
    assert got < 0.05 and "stencil of 9 points on 25 x 31 points" in s.view(), s.view()
    with pytest.raises(am.InputError, match=r"(?s)-pc_gmg_galerkin none .*constant 'h'"):
        am.Solver(st.operator(five, (63, 63)), "-pc_type gmg -pc_gmg_galerkin none", ksp="cg")
    named = made(64, 2, "nodes")
    views = [am.Solver(named, f"-pc_type gmg {o}", ksp="cg").view() for o in ("", "-pc_gmg_galerkin none")]
    assert views[0] == views[1] and "Galerkin" not in views[0], "discretised again where that is known"
    with pytest.raises(am.OptionError, match="auto, both, none"):
        am.Solver(named, "-pc_type gmg -pc_gmg_galerkin all", ksp="cg")
    A = am.grid.Grid((63, 63)).star_operator(4.0, -1.0)
    with pytest.raises(am.UnsupportedError, match=r"a stencil of am.stencil.operator knows Galerkin's product"):
        am.Solver(A, "-pc_type gmg -pc_gmg_galerkin both", ksp="cg")


@pytest.mark.parametrize("kind", ["nodes", "zero"])
def test_jumping_coefficients_keep_it_positive(kind):
    def squares(x, y):
        return np.where((np.floor(7 * x) + np.floor(7 * y)) % 2 > 0, 1e4, 1.0)

    size = (63, 63) if kind == "nodes" else (64, 64)
    cells = {} if kind == "nodes" else {"points": "cells"}
    L = st.operator(poisson(2, kind, coefficient=True), size, h=1 / 64, a=squares, **cells)
    got, s = factor(L, "-pc_gmg_galerkin both", ksp="cg")
    again, _ = factor(L, "-pc_gmg_galerkin none", ksp="cg")
    assert s.info.converged and got < 0.3 and got < again, (got, again)


def test_nodes_whose_values_go_on_beyond_the_ends():
    """Of a flat end interpolation must not fall to zero: then constants would be no smooth error."""
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    left, right = st.where(i == 0, u(i, j), u(i - 1, j)), st.where(i == i.extent - 1, u(i, j), u(i + 1, j))
    s = st.assign(out(i, j), 4 * u(i, j) - left - right - u(i, j - 1) - u(i, j + 1))
    for n in (63, 64):
        L = st.operator(s, (n, n))
        assert bricks.ends_of(bricks.make, L._how, L._h)[1:] == [[0, 0], [1, 1]]
        assert factor(L, "-mg_levels_ksp_max_it 2")[0] < 0.08
        assert factor(L, ksp="cg")[0] < 0.08


def test_in_float32_and_with_constant_interpolation():
    L = made(64, 2, "zero")
    got, s = factor(L, "-pc_gmg_galerkin both -pc_dtype float32", ksp="cg")
    assert got < 0.05 and "float32, by Galerkin's product" in s.view()
    narrow = made(64, 2, "flat", dtype="float32")
    b = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    _, info = am.solve(narrow, b - b.mean(), options="-pc_type gmg -pc_gmg_galerkin both", ksp="cg", rtol=1e-5)
    assert info.iterations <= 6
    blocks = made(64, 2, "zero", interpolation="constant")
    got, _ = factor(blocks, "-pc_gmg_galerkin both -mg_levels_ksp_max_it 4", ksp="cg")
    assert got < 0.15


def test_full_multigrid_on_any_number_of_points():
    n = 100
    x = np.arange(1, n + 1) / (n + 1)
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    five = st.assign(out(i, j), (4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)) * (n + 1) ** 2)
    L = st.operator(five, (n, n))
    wave = np.outer(np.sin(np.pi * x), np.sin(np.pi * x))
    b = 2 * np.pi**2 * wave

    def error(options, **more):
        y = am.Solver(L, f"-pc_type gmg {options}", **more).solve(b, raise_on_failure=False)
        return np.abs(y - wave).max()

    converged = error("", ksp="cg", rtol=1e-10)
    once = error("-pc_gmg_cycle_type full", ksp="richardson", maxiter=1)
    assert once < 1.5 * converged < 0.2 * error("", ksp="richardson", maxiter=1), (once, converged)


RANKS = """
sys.path.append(HERE)
from test_galerkin import brick, check_product, wide
from test_gmg import factor, made, st
for shape, periodic, where in (
    ((40,), (False,), "nodes"), ((40, 27), (False, False), "nodes"), ((37, 22), (False, False), "cells"), ((12, 15), (True, True), "cells"),
    ((11, 16), (False, True), "nodes"), ((7, 10, 8), (False,) * 3, "nodes"),
):
    a = np.random.default_rng(1).random(shape)
    args = dict(brick=brick(shape, periodic), points=where, a=a)
    one = check_product(st.operator(wide(len(shape), 1), shape, periodic, **args))
    for rows in (0, 5, 1000) if size != 3 else (0, 30):
        levels = check_product(st.operator(wide(len(shape), 1), shape, periodic, comm, **args), rows)
        assert len(levels) == len(one) > 0
        for l, o in zip(levels, one):
            x = np.random.default_rng(2).standard_normal(o.grid_shape)
            assert np.abs((o @ x)[l.owned] - l @ x[l.owned]).max(initial=0) < 1e-12
            with_points = sum(comm.allgather(l.local_shape[0] > 0))
            assert rows == 0 or with_points <= max(1, x.size // rows), (with_points, x.size, rows)
chebyshev = "-mg_levels_ksp_type chebyshev"
for n, d, kind, ways in (  # each way on each kind of grid of some number of dimensions
    (61, 2, "nodes", (("auto", ""), ("both", chebyshev))), (128, 2, "zero", (("auto", chebyshev), ("both", ""))),
    (32, 3, "periodic", (("both", chebyshev),)), (40, 3, "nodes", (("auto", ""),)),
):
    if size == 8 and (n, d) != (61, 2): continue
    for how, more in ways:
        found = []
        for rows in (0, 300, 10**6):
            options = f"-pc_gmg_galerkin {how} -pc_gmg_coarse_size 100 -pc_gmg_coarse_rows_per_rank {rows} {more}"
            found.append(factor(made(n, d, kind, comm), options)[1])
        first = np.array(found[0].info.residual_norms)
        for s in found[1:]:
            norms = np.array(s.info.residual_norms)
            assert norms.size == first.size and np.abs(norms / first - 1)[:-2].max() < 1e-6, "the same iterates"
        ranks = [[int(l.split()[2]) for l in s.view().split("\\n") if l.strip()[:1].isdigit()] for s in found]
        assert max(ranks[2][1:]) == 1 < ranks[0][1] and ranks[1][0] == ranks[0][0] == size, ranks
    alone, t = factor(made(n, d, kind), options)
    assert t.info.iterations == found[0].info.iterations
A = am.grid.Grid((95, 63), comm=comm).star_operator(4.0, -1.0)
norms = [am.Solver(A, f"-pc_type gmg -pc_gmg_coarse_rows_per_rank {r}", ksp="cg", rtol=1e-9) for r in (0, 10**6)]
b = np.random.default_rng(comm.rank).standard_normal(A.local_shape[0])
x, y = (s.solve(b) for s in norms)
assert np.abs(x - y).max(initial=0) < 1e-6 * np.abs(x).max(initial=1)
assert norms[0].view() != norms[1].view()
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_on_ranks_and_on_fewer(on_ranks, ranks):
    assert on_ranks(ranks, RANKS.replace("HERE", repr(str(Path(__file__).parent)))).count("done") == ranks
