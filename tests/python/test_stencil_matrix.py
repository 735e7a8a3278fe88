"""The matrix of a stencil: the same products, on any grid and any number of ranks."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import asterism as am
from asterism import stencil as st

GRIDS = [
    ((17,), 8), ((30, 20), 8), ((16, 16), 4), ((24, 8), 8), ((6, 9), 3), ((3, 40), (3, 8)), ((1, 9), (1, 8)), ((2, 2), 2),
    ((9, 5, 7), 4), ((12, 10, 14), (4, 5, 7)),
]  # fmt: skip


def differences(shape, brick, comm=None, dtype="float64"):
    """Return the largest relative difference of products by the operator and by its matrix, of random stencils on a grid."""
    rng, d, worst = np.random.default_rng(sum(shape)), len(shape), 0.0
    bricks = (brick,) * d if isinstance(brick, int) else brick
    for periodic, reach in itertools.product(itertools.product((False, True), repeat=d), (1, 2)):
        if min(bricks) < reach or any(p and n % b for p, n, b in zip(periodic, shape, bricks)):
            continue
        at, u, out, a = st.indices(d), st.grid("u", d), st.grid("out", d), st.grid("a", d)
        offsets = [o for o in itertools.product(range(-reach, reach + 1), repeat=d) if rng.random() < 0.5][:9]
        terms = [(k + a(*at)) * u(*(i + o for i, o in zip(at, by))) for k, by in enumerate([*offsets, (0,) * d], 1)]
        coefficient, x = rng.standard_normal(shape), rng.standard_normal(shape).astype(dtype)
        L = st.operator(
            st.assign(out(*at), sum(terms)), shape, periodic, comm, brick=brick, dtype=dtype, of="u", a=coefficient
        )
        mine = np.ascontiguousarray(x[L.owned])
        want, got = (L @ mine).ravel(), L.to_matrix() @ mine.ravel()
        worst = max(worst, float(np.max(np.abs(want - got), initial=0) / (1e-300 + np.max(np.abs(want), initial=0))))
    return worst


@pytest.mark.parametrize(("shape", "brick"), GRIDS)
def test_products_are_the_same(shape, brick):
    assert differences(shape, brick) < 1e-13


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_in_every_dtype(dtype):
    assert differences((9, 14), (3, 7), dtype=dtype) < 1e3 * np.finfo(dtype).eps


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_on_ranks(on_ranks, ranks):
    script = f"""
sys.path.append({str(Path(__file__).parent)!r})
from test_stencil_matrix import GRIDS, differences
for shape, brick in GRIDS:
    assert differences(shape, brick, comm) < 1e-13, (shape, brick)
print("done", flush=True)
"""
    assert on_ranks(ranks, script).count("done") == ranks


def test_it_is_the_matrix_that_one_expects():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1))
    A = st.operator(s, (30, 21)).to_matrix()
    difference = A.to_scipy() - am.gallery.poisson((30, 21)).to_scipy()
    assert A.dtype == "float64" and A.nnz == 5 * 630 - 2 * 51 and abs(difference).max() == 0
    view = am.Solver(A, ksp="preonly", pc="cholesky").view()
    assert "cholesky (sparse" in view


def test_one_sided_differences_that_read_far_from_the_ends():
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), -st.laplacian(u, (i, j), accuracy=6, closure=True))
    L = st.operator(s, (16, 24), brick=8)
    x = np.random.default_rng(0).standard_normal((16, 24))
    assert np.allclose((L @ x).ravel(), L.to_matrix() @ x.ravel(), rtol=1e-12, atol=1e-9)


def test_errors_name_it():
    i = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    L = st.operator(st.assign(out(*i), 2 * u(*i)), (9,))
    with pytest.raises(am.OptionError, match=r"to_matrix\(\)"):
        am.solve(L, np.ones(9), pc="lu")
