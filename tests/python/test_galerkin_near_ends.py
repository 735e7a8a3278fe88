"""Galerkin's product of stencils whose coefficients depend on how near the ends are: no grid of coefficients is needed."""

from pathlib import Path

import numpy as np
import pytest
from test_galerkin import brick, check_product
from test_gmg import factor

import asterism as am
from asterism import stencil as st
from asterism.bricks import coarse
from asterism.bricks.near_ends import margins, stencil_by_ends


@pytest.fixture(autouse=True)
def _of_few_points(monkeypatch):
    monkeypatch.setattr(coarse, "_FEW", 0)


def uneven(d):
    """Return constant coefficients, another one at each offset."""
    at, u, out = st.indices(d), st.grid("u", d), st.grid("out", d)
    value = 9 * u(*at)
    for a in range(d):
        before, behind = ([i + s * (a == b) for b, i in enumerate(at)] for s in (-1, 1))
        value = value - (1 + 0.5 * a) * u(*before) - (1.25 - 0.125 * a) * u(*behind)
    if d > 1:
        value = value + 0.3 * u(at[0] - 1, at[1] + 1, *at[2:])
    return st.assign(out(*at), value)


def flat(d):
    """Return what goes on as it is beyond the ends of the axes."""
    at, u, out = st.indices(d), st.grid("u", d), st.grid("out", d)
    value = 0
    for a in range(d):
        for s in (-1, 1):
            end = at[a] == (0 if s < 0 else at[a].extent - 1)
            beside = [i + s * (a == b) for b, i in enumerate(at)]
            value = value + st.where(end, 0.0, u(*at) - u(*beside))
    return st.assign(out(*at), value)


def along_one(d):
    """Return what reads no points along the other axes."""
    at, u, out = st.indices(d), st.grid("u", d), st.grid("out", d)
    return st.assign(out(*at), 3 * u(*at) - u(*at[:-1], at[-1] - 1) - 1.5 * u(*at[:-1], at[-1] + 1))


CASES = [  # stencil, points, periodic, where
    (uneven, (100,), (False,), "nodes"),
    (uneven, (101,), (False,), "nodes"),
    (uneven, (96,), (False,), "cells"),
    (uneven, (50, 60), (False, False), "nodes"),
    (uneven, (51, 64), (False, True), "nodes"),
    (uneven, (40, 39), (False, False), "cells"),
    (flat, (80,), (False,), "cells"),
    (flat, (53, 52), (False, False), "nodes"),
    (uneven, (60, 5), (False, False), "nodes"),
    (uneven, (1, 64), (False, False), "nodes"),
    (along_one, (40, 30), (False, False), "nodes"),
    (uneven, (26, 22, 24), (False, False, False), "nodes"),
]
LEVELS = 2  # the third level's stencil would be as the second's


@pytest.mark.parametrize(
    ("case", "dtype"),
    [*((n, "float64") for n in range(len(CASES))), (0, "complex64"), (4, "complex64"), (1, "float32")],
)
def test_is_the_product(case, dtype):
    of, shape, periodic, where = CASES[case]
    L = st.operator(of(len(shape)), shape, periodic, brick=brick(shape, periodic), dtype=dtype, points=where)
    levels = check_product(L, tolerance=1e-13 if dtype == "float64" else 2e-6, least=1e-2, most_levels=LEVELS)
    how = levels[0]._how
    assert how.is_product and not how.coefficients and len(how.constants) < 80, "no grid of coefficients"
    assert of is along_one or len(how.stencil.offsets("u")) >= 3 ** sum(n > 1 for n in shape)


def test_what_depends_on_something_else_keeps_grids():
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    several = [st.where(i == 30, 3.0, 2.0), st.where(i % 2 == 0, 3.0, 2.0), 2.0 + i / 100, st.grid("a", 1)(i)]
    for c in several:
        s = st.assign(out(i), c * u(i) - u(i - 1) - u(i + 1))
        L = st.operator(s, (64,), **({"a": np.ones(64)} if c is several[-1] else {}))
        levels = check_product(L)
        assert levels[0]._how.coefficients or c is several[0], "a place is at one end, or a grid"


def test_symmetric_ones_stay_symmetric():
    L = st.operator(flat(2), (70, 62))
    s = am.Solver(L, "-pc_type gmg -pc_gmg_coarse_size 50", ksp="cg")
    (first,) = check_product(L, most_levels=1)
    assert "by Galerkin's product" in s.view() and not first._how.is_symmetric, "conditions are not looked into"
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    five = st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    for level in check_product(st.operator(five, (70, 62)), most_levels=LEVELS):
        S = level.to_matrix().to_scipy()
        assert level._how.is_symmetric and abs(S - S.T).max() <= 1e-14 * abs(S).max()


@pytest.mark.parametrize("n", [64, 100, 101])
def test_converges_as_with_grids(n, monkeypatch):
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    five = st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    found = []
    for few in (0, 2**30):
        monkeypatch.setattr(coarse, "_FEW", few)
        found.append(factor(st.operator(five, (n, n)), "-mg_levels_ksp_max_it 2")[1].info.residual_norms)
    assert len(found[0]) == len(found[1]) and np.allclose(found[0], found[1], rtol=1e-6, atol=1e-12 * found[0][0])


def test_stencils_by_ends():
    (i,) = st.indices(1)
    values = np.array([9.0, 2.0, 2.0, 2.0, 2.0, 7.0, 8.0])
    s, constants = stencil_by_ends({(0,): values, (1,): np.ones(7)}, [True], [False], 9)
    assert constants == {"c0": 2.0, "c1": 9.0, "c2": 8.0, "c3": 7.0, "c4": 1.0}
    x = np.random.default_rng(1).standard_normal(20)
    got = s.interpret(u=x, periodic=True, **constants)["out"]
    want = np.full(20, 2.0)
    want[[0, 18, 19]] = 9.0, 7.0, 8.0
    assert np.allclose(got, want * x + np.roll(x, -1), rtol=1e-15)
    assert stencil_by_ends({(0,): values}, [True], [False], 2) is None, "three choices are more than two"
    assert stencil_by_ends({(0,): np.array([1.0, 3.0, 2.0, 3.0, 2.0, 2.0, 2.0])}, [True], [False], 99) is None
    assert stencil_by_ends({(0,): np.array([1.0, 2.0, 2.0, 3.0])}, [True], [False], 99) is None, (
        "no point is far from both"
    )
    assert stencil_by_ends({(0,): np.array([1.0, 2.0, 2.0, 3.0])}, [True], [True], 99) is not None
    # what is read behind an end does not matter
    s, constants = stencil_by_ends({(-1,): np.array([5.0, 2.0, 2.0, 2.0]), (0,): np.ones(4)}, [False], [False], 0)
    assert sorted(constants.values()) == [1.0, 2.0]
    out = st.grid("out", 1)
    assert margins([st.assign(out(i), st.where(i < 2, 1.0, 3.0))], "float64") == ((2, 0),)
    assert margins([st.assign(out(i), st.where(i == i.extent - 3, 1.0, 3.0))], "float64") == ((0, 3),)
    assert margins([st.assign(out(i), 1.0 * i)], "float64") is None


RANKS = """
sys.path.append(HERE)
from asterism.bricks import coarse
from test_galerkin import brick, check_product
from test_galerkin_near_ends import flat, st, uneven
coarse._FEW = 0
for of, shape, periodic, where in (
    (uneven, (90,), (False,), "cells"), (uneven, (50, 60), (False, False), "nodes"), (flat, (52, 53), (False, False), "nodes"),
):
    args = dict(brick=brick(shape, periodic), points=where)
    one = check_product(st.operator(of(len(shape)), shape, periodic, **args), least=1e-2, most_levels=2)
    for rows in (0, 1000):
        levels = check_product(st.operator(of(len(shape)), shape, periodic, comm, **args), rows, least=1e-2, most_levels=2)
        assert len(levels) == len(one) > 0 and not levels[0]._how.coefficients
        for l, o in zip(levels, one):
            x = np.random.default_rng(2).standard_normal(o.grid_shape)
            assert np.abs((o @ x)[l.owned] - l @ x[l.owned]).max(initial=0) < 1e-12
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_on_ranks(on_ranks, ranks):
    assert on_ranks(ranks, RANKS.replace("HERE", repr(str(Path(__file__).parent)))).count("done") == ranks
