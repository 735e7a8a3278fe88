"""Galerkin's product of stencils: it is R A P, on every grid and any number of ranks, and multigrid with it converges."""

from pathlib import Path

import numpy as np
import pytest
from test_gmg import factor, made, poisson

import asterism as am
from asterism import bricks
from asterism import stencil as st


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASTERISM_STENCIL_CACHE", str(tmp_path_factory.mktemp("cache") / "stencils"))
        yield


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


def check_product(L, rows_per_rank=0, comm=None, tolerance=1e-12):
    """Check R A P, and its transpose, on a random vector, level by level. Return the levels' operators."""
    how, handle, domain = L._how, L._h, L._domain
    out = []
    while found := bricks._coarse(how, handle, domain, "galerkin", rows_per_rank):
        coarse, P, R = found
        d, rng = len(coarse.grid_shape), np.random.default_rng(3)
        size = coarse.local_grid_shape
        whole = rng.standard_normal(coarse.grid_shape)
        x = whole[coarse.owned]
        fine, product = (bricks.aligned((int(domain.layout.local_size),), L.dtype) for _ in range(2))
        y = bricks.aligned(coarse.to_bricks(x).shape, L.dtype)
        P.apply(coarse.to_bricks(x.astype(L.dtype)), fine)
        handle.apply(fine, product)
        R.apply(product, y)
        want = coarse.from_bricks(y)
        got = coarse @ x.astype(L.dtype)
        most = how.comm.max(float(np.abs(want).max(initial=0)))
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


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize(("shape", "periodic", "where"), SHAPES)
def test_coarse_operators_are_the_product(shape, periodic, where, reach):
    rng = np.random.default_rng(1)
    blocks = brick(shape, periodic)
    if min(blocks) < reach:
        blocks = [max(b, reach) for b in blocks]
    for dtype, tolerance in (("float64", 1e-13), ("float32", 1e-5)):
        for a in (rng.random(shape), None):
            stencil = wide(len(shape), reach)
            if a is None:  # constant
                at = st.indices(len(shape))
                u, out = st.grid("u", len(shape)), st.grid("out", len(shape))
                value = 3.5 * u(*at) - u(at[0] + reach, *at[1:]) - 0.5 * u(*at[:-1], at[-1] - reach)
                stencil = st.assign(out(*at), value)
            given = {} if a is None else {"a": a}
            L = st.operator(stencil, shape, periodic, brick=blocks, dtype=dtype, points=where, **given)
            levels = check_product(L, tolerance=tolerance)
            assert levels or 2 * reach > min(shape) or any(periodic), (shape, reach)
