"""Several smoothing steps at once, in one pass over memory and for one exchange: the same iterates as one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_gmg import factor, made

import asterism as am
from asterism.base.aligned import aligned

CASES = [
    (1, "nodes", 50, 4),
    (1, "periodic", 64, 8),
    (2, "nodes", 34, 8),
    (2, "periodic", 32, 4),
    (2, "flat", 96, 8),
    (3, "nodes", 21, 4),
    (3, "periodic", 16, 4),
    (3, "zero", 24, 8),
]
#: With enough bricks for a pass in columns that lean, and the seam of periodic axes.
LARGE = [
    (3, "periodic", 64, 4),
    (3, "periodic", 64, 8),
    (3, "nodes", 73, 8),
    (2, "periodic", 512, 8),
    (1, "periodic", 1 << 17, 8),
]


def weights(L, kind, steps):
    """Return the weights of each step at my points: one number, one for each colour, by the diagonal, or any."""
    w = 0.6 / (2 * len(L.grid_shape) / L._how.constants["h"] ** 2) * np.ones(L.grid_shape)
    if kind == "diagonal":
        d = aligned((L._h.rows.local_size,), L.dtype)
        L._h.diagonal(d)
        return [(0.5 + 0.1 * s) / L.from_bricks(d) for s in range(steps)]
    if kind == "colours":
        parity = np.indices(L.grid_shape).sum(0) % 2
        return [(w * ((parity + s) % 2))[L.owned] for s in range(steps)]
    if kind == "any":
        w = w * (1 + 0.3 * np.random.default_rng(5).random(L.grid_shape))
    return [w[L.owned]] * steps


def test_steps_in_columns_as_thick_as_the_caches_of_this_machine_hold():
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_gmg_steps import made, steps_agree
steps_agree(made(140, 3, "nodes", brick=8), "one", 3, 8, False)
print("done")
"""
    environment = {n: v for n, v in os.environ.items() if n != "ASTERISM_TEST_CORE_CACHE"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=240)
    assert done.stdout == "done\n", done


def steps_agree(L, kind, steps, at_once, fresh):
    """Check steps and the residual after them against products, with no more than rounding between."""
    rng = np.random.default_rng(1)
    b, x = (rng.standard_normal(L.grid_shape)[L.owned].astype(L.dtype) for _ in range(2))
    if L.dtype.kind == "c":
        b, x = b * L.dtype.type(0.6 + 0.8j), x * L.dtype.type(0.8 - 0.6j)
    turn = L.dtype.type(1 + 0.1j) if L.dtype.kind == "c" else 1
    each = [(turn * w).astype(L.dtype) for w in weights(L, kind, steps)]
    got = aligned((L._h.rows.local_size,), L.dtype)
    got[...] = L.to_bricks(np.full_like(x, np.nan) if fresh else x)
    rest, other = (aligned(got.shape, L.dtype) for _ in range(2))
    scales = [1.0, 0.75, 1.25]
    prepared = L._h.steps(
        [(L.to_bricks(w / L.dtype.type(scales[s % 3])), scales[s % 3]) for s, w in enumerate(each)], at_once
    )
    if prepared.run(L._h, L.to_bricks(b), got, other, fresh, rest):
        got = other
    x = np.zeros_like(x) if fresh else x
    for w in each:
        x = x + w * (b - L @ x)
    eps = 200 * np.finfo(L.dtype).eps
    scale = 1 / L._how.constants["h"] ** 2
    np.testing.assert_allclose(L.from_bricks(got), x, rtol=0, atol=eps * max(1, np.abs(x).max(initial=0)))
    np.testing.assert_allclose(
        L.from_bricks(rest), b - L @ x, rtol=0, atol=eps * scale * max(1, np.abs(x).max(initial=0))
    )
    assert not np.any(got[L.to_bricks(np.ones_like(x)) == 0]), "the padding stays zero"


def every_way(cases, comm=None, dtypes=None):
    """Run all kinds of weights, and numbers of steps that need one pass or several."""
    for d, kind, n, brick in cases:
        both = ("complex128", "complex64") if (d, brick) in ((2, 4), (3, 8)) else ()
        for dtype in dtypes or ("float64", "float32", *both):
            L = made(n, d, kind, comm, brick=(brick,) * d, dtype=dtype)
            for how in ("one", "colours", "diagonal", "any"):
                for steps, at_once, fresh in (
                    (0, 2, True), (0, 2, False), (1, 2, True), (2, 3, False), (3, 8, True), (5, 4, False), (4, 2, True)
                ):  # fmt: skip
                    steps_agree(L, how, steps, at_once, fresh)


@pytest.mark.parametrize(
    ("case", "threads"), [*((c, t) for c in CASES for t in (1, 2)), *((c, 2) for c in LARGE)], ids=str
)
def test_steps_at_once_are_steps_one_after_the_other(case, threads):
    before = am._core.team_size()
    am._core.set_team_size(threads)
    try:
        every_way([case])
    finally:
        am._core.set_team_size(before)


def test_steps_and_products_of_vectors_that_go_past_the_caches():
    L = made(168, 3, "nodes", brick=(8,) * 3)
    assert L._h.rows.local_size * 8 >= 32 << 20
    steps_agree(L, "one", 3, 8, True)


SMOOTHERS = {
    "jacobi": "-mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2",
    "color_sor": "-mg_levels_pc_type color_sor -mg_levels_ksp_max_it 2",
    "chebyshev": "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 4",
    "fourth": "-mg_levels_ksp_chebyshev_kind fourth -mg_levels_ksp_max_it 3",
    "opt_fourth": "-mg_levels_ksp_chebyshev_kind opt_fourth -mg_levels_ksp_max_it 2 -mg_levels_up_ksp_max_it 5",
}


@pytest.mark.parametrize("kind", ["nodes", "zero"])
@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_the_option_changes_what_is_done_at_once_alone(smoother, kind):
    L = made(32, 3, kind)
    options = f"{SMOOTHERS[smoother]} -pc_gmg_steps_at_once "
    norms = {}
    for at_once in (1, 2, 8):
        _, s = factor(L, options + str(at_once))
        norms[at_once] = s.info.residual_norms
        assert (re.search(r", \d at once", s.view()) is not None) == (at_once > 1), s.view()
    for at_once in (2, 8):
        np.testing.assert_allclose(norms[at_once], norms[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "smoother", "steps", "at_once", "cycle", "columns"),
    [
        ("float64", "jacobi", 1, 1, "v", 1),
        ("float64", "chebyshev", 3, 2, "v", 3),
        ("complex64", "color_sor", 1, 4, "v", 1),
        ("float32", "jacobi", 2, 8, "w", 1),
        ("complex128", "jacobi", 3, 2, "f", 3),
        ("float64", "color_sor", 2, 1, "k", 1),
        ("float32", "chebyshev", 2, 8, "full", 1),
        ("complex128", "jacobi", 1, 1, "full", 3),
    ],
)
def test_a_cycle_that_goes_on_from_x_is_one_for_the_residual(dtype, smoother, steps, at_once, cycle, columns):
    L = made(32, 2, "nodes", dtype=dtype)
    level = f"-mg_levels_{'ksp_type chebyshev' if smoother == 'chebyshev' else f'pc_type {smoother}'}"
    options = (
        f"-pc_type gmg {level} -mg_levels_ksp_max_it {steps} -pc_gmg_steps_at_once {at_once} -pc_gmg_cycle_type {cycle} "
        "-pc_gmg_coarse_size 40"
    )
    rng = np.random.default_rng(6)
    b, start = (rng.standard_normal((*L.grid_shape, columns)).astype(dtype) for _ in range(2))
    if columns == 1:
        b, start = b[..., 0], start[..., 0]
    if L.dtype.kind == "c":
        b, start = b * L.dtype.type(0.6 + 0.8j), start * L.dtype.type(0.8 - 0.6j)
    rounding = 1e-11 if L.dtype.itemsize // (1 + (L.dtype.kind == "c")) == 8 else 3e-4
    for x0 in (None, start):
        solutions = []
        for scale in (1.0, 1.0 - 2.0**-52):  # the other one adds a cycle from zero
            s = am.Solver(L, options, ksp="richardson", rtol=1e-30, maxiter=3, ksp_richardson_scale=scale)
            am._core.profile_reset()
            x = s.solve(b, x0=x0, raise_on_failure=False)
            calls = {e["name"]: e["calls"] for e in am._core.profile_snapshot()}
            assert scale != 1 or cycle != "v" or "VecAXPY" not in calls or calls["VecAXPY"] == 0, calls
            solutions.append(x)
            norm = np.linalg.norm((b - np.asarray(L @ x)).ravel())
            assert abs(np.linalg.norm(s.info.residual_norms[-1]) - norm) < 10 * rounding * np.linalg.norm(b)
        assert np.abs(solutions[0] - solutions[1]).max() < rounding * np.abs(solutions[1]).max()


def test_several_columns_and_an_adjoint():
    L = made(24, 2, "flat")
    rng = np.random.default_rng(2)
    b = rng.standard_normal((24, 24, 3))
    b -= b.mean((0, 1))
    s = am.Solver(L, "-pc_type gmg -pc_gmg_coarse_size 40 -mg_levels_pc_type color_sor", ksp="gmres", rtol=1e-9)
    x = s.solve(b)
    assert np.abs(L @ x - b).max() < 1e-5
    y = s.solve_transpose(b[..., 0])
    assert np.abs(L.rmatvec(y) - b[..., 0]).max() < 1e-5


RANKS = """
sys.path.append(HERE)
from test_gmg import factor, made
from test_gmg_steps import CASES, every_way
for n, case in enumerate(CASES + [(3, "periodic", 20, 4), (3, "zero", 16, 8), (1, "periodic", 24, 8)]):  # also fewer bricks than ranks
    every_way([case], comm, [("float64", "float32", "complex128", "complex64")[(n + size) % 4]])
counts = {}
for at_once in (1, 2, 4):
    L = made(64, 2, "periodic", comm)
    level = "-pc_type gmg -pc_gmg_max_levels 1 -pc_gmg_coarse_type smoother -mg_levels_pc_type jacobi -mg_levels_ksp_max_it 3"
    s = am.Solver(L, f"{level} -pc_gmg_steps_at_once {at_once}", ksp="richardson", rtol=1e-300, maxiter=4, ksp_error_if_not_converged=False)
    b = np.random.default_rng(3).standard_normal((64, 64))[L.owned]
    am._core.profile_reset()
    x = s.solve(b)
    counts[at_once] = x, [e["messages"] for e in am._core.profile_snapshot() if e["name"] == "StencilSteps"]
np.testing.assert_allclose(counts[1][0], counts[4][0], rtol=1e-9, atol=1e-12)
# four cycles: 2 + 3 products, of 2 at once 1 + 2, of all at once 0 + 1; and one exchange of b
neighbours = counts[1][1][0] // 20
assert [counts[a][1][0] // neighbours for a in (1, 2, 4)] == [20, 16, 8], counts
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_steps_for_one_exchange(on_ranks, ranks):
    assert on_ranks(ranks, RANKS.replace("HERE", repr(str(Path(__file__).parent)))).count("done") == ranks
