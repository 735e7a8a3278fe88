"""Geometric multigrid on stencils: as fast on every grid and on any number of ranks, and errors that say what to do."""

import copy
import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

import asterism as am
from asterism import bricks
from asterism import stencil as st
from asterism.base.aligned import aligned


def poisson(d, ends="nodes", sign=1.0, coefficient=None):
    """-div(a grad u). ends: of cells, "zero" or "flat" at the border; a is read at the points."""
    at = st.indices(d)
    u, a, out, h = st.grid("u", d), st.grid("a", d), st.grid("out", d), st.constant("h")
    terms = []
    for axis in range(d):
        for step in (-1, 1):
            there = tuple(i + step * (n == axis) for n, i in enumerate(at))
            end = at[axis] == 0 if step < 0 else at[axis] == at[axis].extent - 1
            value = u(*there)
            if ends != "nodes":
                value = st.where(end, -1.0 * u(*at) if ends == "zero" else u(*at), value)
            flux = u(*at) - value
            if coefficient:
                flux = 0.5 * (a(*at) + st.where(end, a(*at), a(*there))) * flux
            terms.append(flux)
    return st.assign(out(*at), sign * sum(terms[1:], terms[0]) / (h * h))


def made(n, d, kind, comm=None, **more):
    """Poisson's equation with about n points along an axis."""
    if kind == "nodes":
        return st.operator(poisson(d), (n - 1,) * d, False, comm, h=1 / n, **more)
    if kind == "periodic":
        return st.operator(poisson(d), (n,) * d, True, comm, h=1 / n, **more)
    return st.operator(poisson(d, kind), (n,) * d, False, comm, h=1 / n, points="cells", **more)


def factor(L, options="", ksp="richardson", seed=1):
    """Return the mean factor by which residuals fall to 1e-9, and the solver."""
    whole = np.random.default_rng(seed).standard_normal(L.grid_shape)
    s = am.Solver(L, f"-pc_type gmg {options}", ksp=ksp, rtol=1e-9, maxiter=100)
    s.solve(whole[L.owned])
    norms = s.info.residual_norms
    return (norms[-1] / norms[0]) ** (1 / (len(norms) - 1)), s


@pytest.mark.parametrize(
    ("d", "kind", "sizes"),
    [
        (1, "nodes", (256, 4096)),
        (2, "nodes", (32, 64, 256)),
        (2, "periodic", (32, 256)),
        (3, "nodes", (32, 64, 128)),
        (3, "periodic", (32, 64)),
    ],
)
def test_poisson_falls_below_an_eighth_in_a_cycle_on_every_grid(d, kind, sizes):
    for n in sizes:
        L = made(n, d, kind)
        alone, _ = factor(L)
        within, s = factor(L, ksp="cg")
        assert alone <= 0.12 and within <= 0.08, (n, alone, within)
        assert s.info.iterations <= 9


@pytest.mark.parametrize("kind", ["zero", "flat"])
@pytest.mark.parametrize(("d", "sizes"), [(2, (32, 128)), (3, (32, 64))])
def test_cells_too(d, kind, sizes):
    factors = []
    for n in sizes:
        L = made(n, d, kind)
        alone, _ = factor(L)
        twice, _ = factor(L, "-mg_levels_ksp_max_it 2")
        within, _ = factor(L, ksp="cg")
        factors.append(alone)
        assert alone <= 0.1 and twice <= 0.06 and within <= 0.1, (n, alone, twice, within)
    assert factors[1] < 1.6 * factors[0]


@pytest.mark.parametrize("kind", ["zero", "flat"])
def test_cells_are_restricted_by_means_where_no_symmetry_is_needed(kind):
    """Then the adjoint of a cycle has other transfers than the cycle."""
    L = made(32, 2, kind)
    b = np.random.default_rng(1).standard_normal((32, 32))
    b -= b.mean()
    for more in ("", "-pc_gmg_cycle_type w", "-pc_gmg_galerkin both"):
        s = am.Solver(L, f"-pc_type gmg -pc_gmg_coarse_size 20 {more}", ksp="gmres", rtol=1e-9)
        x = s.solve(b)
        forth = s.info.iterations
        y = s.solve_transpose(b)
        assert s.info.iterations <= forth + 1, "an adjoint as good as the cycle"
        assert np.abs(L.rmatvec(y) - b).max() < 1e-6 * 32**2 and np.abs((x - x.mean()) - (y - y.mean())).max() < 1e-6
    averaged, _ = factor(L, "-mg_levels_ksp_type chebyshev")
    within, s = factor(L, "-mg_levels_ksp_type chebyshev", ksp="cg")
    assert averaged < 0.1 and within < 0.1 and s.info.converged


SMOOTHERS = {
    "-mg_levels_ksp_type chebyshev": 0.16,
    "-mg_levels_ksp_chebyshev_kind fourth": 0.25,
    "-mg_levels_ksp_chebyshev_kind opt_fourth": 0.2,
    "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 4": 0.09,
    "-mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2": 0.3,
    "-mg_levels_pc_type color_sor -mg_levels_ksp_max_it 2": 0.08,
    "-pc_gmg_omega 1": 0.2,
    "-pc_gmg_cycle_type w": 0.1,
    "-pc_gmg_cycle_type f": 0.1,
    "-pc_dtype float32": 0.12,
}


@pytest.mark.parametrize("options", SMOOTHERS)
def test_smoothers_and_cycles(options):
    L = made(32, 3, "nodes")
    got, s = factor(L, options)
    assert got < SMOOTHERS[options]
    plain, p = factor(L)
    assert got != plain and s.view() != p.view(), "the option has an effect"
    if "dtype" in options:
        assert "in float32" in s.info.preconditioner and s.info.memory_bytes < 0.6 * p.info.memory_bytes
    if "cycle" in options:
        assert got < plain


def test_constant_interpolation_needs_several_steps():
    """The counts of the brick paper: 6 steps of Jacobi on each side, and the right-hand side a product of sines."""
    n = 64
    x = (np.arange(n) + 0.5) / n
    wave = np.sin(2 * np.pi * x)
    b = wave[:, None, None] * wave[None, :, None] * wave[None, None, :]
    L = st.operator(poisson(3), (n,) * 3, True, h=1 / n, points="cells", interpolation="constant")
    steps = "-pc_type gmg -pc_gmg_omega 0.6667 -mg_levels_pc_type jacobi -mg_levels_ksp_max_it 6"
    s = am.Solver(L, steps, ksp="richardson", rtol=1e-10, maxiter=50)
    s.solve(b)
    assert 7 <= s.info.iterations <= 12, s.info
    whole, _ = factor(L, "-mg_levels_ksp_max_it 2")
    linear, _ = factor(made(n, 3, "periodic"), "-mg_levels_ksp_max_it 2")
    assert whole != linear and whole <= 0.12
    for more, text in (({}, "goes with points='cells'"), ({"points": "cells"}, "is not one of linear, constant")):
        with pytest.raises(am.OptionError, match=text):
            st.operator(poisson(1), 8, h=1, interpolation="constant" if not more else "cubic", **more)


def manufactured(n, d, kind):
    """Return a solution of Poisson's equation, and the right-hand side, at the points."""
    x = (np.arange(1, n) if kind == "nodes" else np.arange(n) + (0.5 if kind == "zero" else 0)) / n
    if kind == "periodic":
        u = np.exp(np.sin(2 * np.pi * x))
        minus_u2 = (2 * np.pi) ** 2 * u * (np.sin(2 * np.pi * x) - np.cos(2 * np.pi * x) ** 2)
    else:
        u = np.sin(np.pi * x) * np.exp(x)
        minus_u2 = np.exp(x) * ((np.pi**2 - 1) * np.sin(np.pi * x) - 2 * np.pi * np.cos(np.pi * x))
    axes = [[minus_u2 if a == b else u for b in range(d)] for a in range(d)]
    product = {1: "i->i", 2: "i,j->ij", 3: "i,j,k->ijk"}[d]
    return np.einsum(product, *[u] * d), sum(np.einsum(product, *factors) for factors in axes)


@pytest.mark.parametrize("kind", ["nodes", "zero", "periodic"])
@pytest.mark.parametrize(("d", "n"), [(1, 1024), (2, 128), (3, 64)])
def test_full_multigrid_ends_at_the_accuracy_of_the_discretisation(d, n, kind):
    L = made(n, d, kind)
    u, b = manufactured(n, d, kind)

    def error(options, **more):
        s = am.Solver(L, f"-pc_type gmg -pc_gmg_coarse_size {60 if d == 1 else 600} {options}", **more)
        x = s.solve(b, raise_on_failure=False)
        return np.abs((x - x.mean()) - (u - u.mean()) if kind == "periodic" else x - u).max()

    discretisation = error("", ksp="cg", rtol=1e-10)
    once = error("-pc_gmg_cycle_type full", ksp="richardson", maxiter=1)
    v_cycle = error("", ksp="richardson", maxiter=1)
    assert once < 1.1 * discretisation < 0.1 * v_cycle, (once, discretisation, v_cycle)


@pytest.mark.parametrize("n", [2, 3])
def test_full_multigrid_on_ranks(on_ranks, n):
    on_ranks(
        n,
        """
from test_gmg import made, manufactured
for kind in ("nodes", "zero"):
    L = made(32, 3, kind, comm)
    whole = manufactured(32, 3, kind)[1]
    s = am.Solver(L, "-pc_type gmg -pc_gmg_cycle_type full", ksp="gcr", rtol=1e-8)
    x = s.solve(whole[L.owned])
    alone = am.Solver(made(32, 3, kind), "-pc_type gmg -pc_gmg_cycle_type full", ksp="gcr", rtol=1e-8)
    y = alone.solve(whole)
    assert s.info.iterations == alone.info.iterations <= 6
    assert np.abs(x - y[L.owned]).max() < 1e-9 * np.abs(y).max()
""",
    )


def test_full_multigrid_is_not_for_cg():
    with pytest.raises(am.OptionError, match="symmetric"):
        am.Solver(made(32, 2, "nodes"), "-pc_type gmg -pc_gmg_cycle_type full", ksp="cg")


def test_a_k_cycle_within_fgmres():
    k_cycle = "-pc_gmg_cycle_type k -pc_gmg_coarse_size 60"
    _, s = factor(made(32, 2, "nodes"), k_cycle, ksp="fgmres")
    assert s.info.converged and s.info.iterations <= 8
    with pytest.raises(am.OptionError, match="symmetric"):
        am.Solver(made(32, 2, "nodes"), f"-pc_type gmg {k_cycle}", ksp="cg")


def test_a_table_of_levels_is_printed():
    view = am.Solver(made(64, 2, "nodes"), "-pc_type gmg -pc_gmg_measure", ksp="cg").view()
    lines = [line.split() for line in view.split("\n") if line.strip()[:1].isdigit()]
    assert [line[:2] for line in lines] == [["0", "3969"], ["1", "961"], ["2", "225"]]
    assert all(0.01 < float(line[3]) < 0.15 for line in lines[:2]), view
    assert "gmg (3 levels), V cycle, float64" in view and "63 x 63 points" in view and "dense inverse" in view


def test_levels_have_events_of_their_own():
    def calls():  # the profile is the process's
        return {r["name"]: r["calls"] for r in am._core.profile_snapshot()}

    L = made(64, 2, "nodes")
    before = calls()
    am.solve(L, np.ones((63, 63)), ksp="cg", pc="gmg")
    assert {n: c for n, c in calls().items() if n.startswith("MG")} == {
        n: c for n, c in before.items() if n.startswith("MG")
    }
    am.solve(L, np.ones((63, 63)), options="-pc_gmg_log", ksp="cg", pc="gmg")
    after = calls()
    for event in (
        "MGSmooth Level 0",
        "MGSmoothResid Level 1",
        "MGRestrict Level 0",
        "MGInterp Level 1",
        "MGSolve Level 2",
    ):
        assert after[event] > before.get(event, 0), event


@pytest.mark.parametrize("given", ["function", "array", "steps"])
@pytest.mark.parametrize("kind", ["nodes", "flat", "zero"])
def test_variable_coefficients(given, kind):
    n = 64
    size = n - 1 if kind == "nodes" else n
    x = ((np.arange(1, n) if kind == "nodes" else np.arange(n) + 0.5) / n).reshape(-1, 1)

    def smooth(x, y):
        return 1 + 0.9 * np.sin(7 * x) * np.cos(5 * y)

    def jump(x, y):
        return np.where((x - 0.4) ** 2 + (y - 0.6) ** 2 < 0.1, 100.0, 1.0)

    a = {"function": smooth, "array": smooth(x, x.T), "steps": jump}[given]
    cells = {"points": "cells"} if kind != "nodes" else {}
    L = st.operator(poisson(2, kind, coefficient=True), (size, size), h=1 / n, a=a, **cells)
    limit = 0.35 if given == "steps" else 0.15
    within, s = factor(L, ksp="cg")
    assert within < limit, (within, s.view())
    alone, _ = factor(L, "-mg_levels_ksp_max_it 2")
    assert alone < 2 * limit


def test_the_coarser_operator_is_the_stencil_discretised_again():
    L = st.operator(poisson(2, coefficient=True), (15, 31), h=1 / 16, a=lambda x, y: 2 + x - y * y)
    coarse, _, R, _ = bricks.coarse_level(bricks.make, L._how, L._h, L._domain, "again", 0)
    C = st.operator(poisson(2, coefficient=True), (7, 15), brick=8, h=1 / 8, a=lambda x, y: 2 + x - y * y)
    x = np.random.default_rng(3).standard_normal((7, 15))
    np.testing.assert_allclose(coarse @ x, C @ x, rtol=1e-13, atol=1e-11)
    # full weighting
    fine = np.random.default_rng(4).standard_normal((15, 31))
    product = aligned(C.to_bricks(x).shape, np.float64)
    R.apply(L.to_bricks(fine), product)
    w = np.array([0.25, 0.5, 0.25])
    want = sum(w[i] * w[j] * fine[i : i + 13 : 2, j : j + 29 : 2] for i in range(3) for j in range(3))
    np.testing.assert_allclose(C.from_bricks(product), want, rtol=1e-13, atol=1e-14)


def test_operators_that_need_no_spacing_of_that_name():
    i, j = st.indices(2)
    u, out, dx, dy = st.grid("u", 2), st.grid("out", 2), st.constant("dx"), st.constant("dy")
    along = (2 * u(i, j) - u(i - 1, j) - u(i + 1, j)) / (dx * dx)
    s = st.assign(out(i, j), along + (2 * u(i, j) - u(i, j - 1) - u(i, j + 1)) / (dy * dy))
    L = st.operator(s, (63, 47), dx=1 / 64, dy=1 / 48, spacing=("dx", "dy"))
    assert factor(L)[0] < 0.12
    with pytest.raises(am.InputError, match=r"(?s)spacing.*constant 'h'"):
        am.Solver(st.operator(s, (63, 47), dx=1 / 64, dy=1 / 48), "-pc_type gmg -pc_gmg_galerkin none", ksp="cg")
    with pytest.raises(am.InputError, match="spacing='dz' is no constant of the stencil; it has dx, dy"):
        st.operator(s, (63, 47), dx=1, dy=1, spacing="dz")
    with pytest.raises(am.OptionError, match="points='faces' is not one of nodes, cells"):
        st.operator(s, (63, 47), dx=1, dy=1, points="faces")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("-mg_levels_pc_type ilu", "auto, jacobi, color_sor. A level has no entries"),
        ("-mg_levels_pc_jacobi_type rowl1", "no rows to sum"),
        ("-mg_levels_ksp_type chebyshev -pc_gmg_omega 0.7", "no effect"),
        ("-mg_coarse_ksp_typ cg -pc_gmg_coarse_type ksp", "mg_coarse_ksp_type"),
    ],
)
def test_options_that_do_not_fit(options, text):
    with pytest.raises(am.OptionError, match=text):
        am.Solver(made(64, 2, "nodes"), f"-pc_type gmg {options}", ksp="cg")


def test_a_cycle_that_diverges_for_a_coefficient_that_jumps_names_the_product():
    i, j = st.indices(2)
    u, a, out = st.grid("u", 2), st.grid("a", 2), st.grid("out", 2)
    h = st.constant("h")
    faces = [(a(i, j) + a(i + p, j + q)) * (u(i, j) - u(i + p, j + q)) for p, q in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    s = st.assign(out(i, j), sum(faces[1:], faces[0]) / (2 * h * h))
    jump = lambda x, y: np.where((abs(x - 0.47) < 0.21) & (abs(y - 0.52) < 0.23), 1e5, 1.0)  # noqa: E731
    L = st.operator(s, (127, 127), of="u", h=1 / 128, a=jump)
    b = np.ones((127, 127))
    try:
        info = am.solve(L, b, ksp="richardson", pc="gmg", rtol=1e-8, maxiter=5)[1]
        pytest.fail(f"it converged: {info}")
    except am.ConvergenceError as e:
        assert "-pc_gmg_galerkin both" in str(e)
    assert am.solve(L, b, options="-pc_gmg_galerkin both", ksp="cg", pc="gmg", rtol=1e-8)[1].iterations < 60


def test_a_negative_laplacian_and_a_grid_of_the_library():
    L = st.operator(poisson(2, sign=-1.0), (63, 63), h=1 / 64)
    b = np.random.default_rng(1).standard_normal((63, 63))
    for ksp in ("richardson", "gmres", "minres", "cg", "auto"):
        x, info = am.solve(L, b, options="-pc_type gmg", ksp=ksp, rtol=1e-9)
        assert info.iterations <= 12 and np.abs(L @ x - b).max() < 1e-6, ksp
    G = am.grid.Grid((63, 63))
    A = G.star_operator(4.0, -1.0)
    _, info = am.solve(A, b.ravel(), options="-pc_type gmg", ksp="cg", rtol=1e-9)
    assert info.iterations <= 9


def test_a_stencil_without_a_preconditioner_is_told_of_multigrid():
    L = st.operator(poisson(2), (63, 63), h=1 / 64)
    b = np.ones((63, 63))
    told = "-pc_type gmg is geometric multigrid for this operator"
    assert told in am.Solver(L).view() and told in am.Solver(am.grid.Grid((63, 63)).star_operator(4e30, -1e30)).view()
    for given in ({"pc": "gmg"}, {"pc": "none"}, {"pc": "jacobi"}, {"M": am.Operator(lambda x: x, 64 * 64)}):
        assert told not in am.Solver(L, **given).view()
    _, info = am.solve(L, b, ksp="cg", options="-ksp_max_it 3", raise_on_failure=False)
    assert "Try -pc_type gmg, " in info.why


@pytest.mark.parametrize("shape", [(32, 32), (100, 90)])
def test_a_neumann_problem_in_single_precision(shape):
    """On the coarse grids rounding of float32 hides that constants are mapped to zero; the finest operator tells."""
    (i, j), a = st.indices(2), st.grid("a", 2)
    u, out, h = st.grid("u", 2), st.grid("out", 2), st.constant("h")

    def flux(di, dj, end):
        there = (i + di, j + dj)
        return st.where(end, 0.0, 0.5 * (a(i, j) + a(*there)) * (u(i, j) - u(*there)))

    ends = (flux(-1, 0, i == 0), flux(1, 0, i == i.extent - 1), flux(0, -1, j == 0), flux(0, 1, j == j.extent - 1))
    s = st.assign(out(i, j), sum(ends) / (h * h))
    rng = np.random.default_rng(0)
    given = {"h": 1 / shape[0], "a": np.exp(rng.standard_normal(shape)), "points": "cells", "of": "u"}
    b = rng.standard_normal(shape)
    b -= b.mean()
    L = st.operator(s, shape, **given)
    for options in ("", "-pc_dtype float32", "-pc_dtype float32 -pc_gmg_galerkin both"):
        _, info = am.solve(L, b, pc="gmg", ksp="cg", rtol=1e-8, options=options)
        assert info.iterations <= 16, (options, info)
    _, info = am.solve(
        st.operator(s, shape, dtype=np.float32, **given), b.astype(np.float32), pc="gmg", ksp="cg", rtol=1e-4
    )
    assert info.iterations <= 12


@pytest.mark.parametrize("ksp", ["cg", "richardson"])
def test_constants_that_are_mapped_to_little_are_no_null_space(ksp):
    """A small reaction term on periodic axes: for rounding of float32 constants are nearly null vectors."""
    i, j = st.indices(2)
    u, out, h = st.grid("u", 2), st.grid("out", 2), st.constant("h")
    around = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)
    L = st.operator(st.assign(out(i, j), (4 * u(i, j) - around) / (h * h) + u(i, j)), (128, 128), True, h=1 / 128)
    b = 1 + np.random.default_rng(0).standard_normal((128, 128))
    for options in ("", "-pc_dtype float32"):
        _, info = am.solve(L, b, pc="gmg", ksp=ksp, rtol=1e-8, options=options, maxiter=40)
        assert info.iterations <= 25, (options, info)


def test_a_vector_that_is_not_mapped_to_zero_is_no_null_space():
    L = st.operator(poisson(2), (31, 31), h=1 / 32)
    with pytest.raises(am.InputError, match="null_space: A times column 0 is"):
        am.Solver(L, pc="jacobi", ksp="cg", null_space=np.ones((31, 31)))
    walls = made(32, 2, "flat")
    assert "is projected out" in am.Solver(walls, pc="jacobi", ksp="cg", null_space=np.ones((32, 32))).view()


def test_options_of_smoothers_without_colours_have_an_effect():
    i, j = st.indices(2)
    u, out, h = st.grid("u", 2), st.grid("out", 2), st.constant("h")
    L = st.operator(st.assign(out(i, j), -st.laplacian(u, (i, j), accuracy=4, spacing=h)), (63, 63), h=1 / 64)
    view = am.Solver(L, "-pc_type gmg -pc_gmg_omega 0.5", ksp="gmres").view()
    assert "chebyshev" not in view and "jacobi" in view, view
    three = am.Solver(L, "-pc_type gmg -mg_levels_ksp_max_it 3", ksp="gmres").view()
    assert three != am.Solver(L, "-pc_type gmg -mg_levels_ksp_max_it 2", ksp="gmres").view()


def test_operators_are_freed_and_copied():
    L = made(64, 2, "nodes")
    am.Solver(L, pc="gmg", ksp="cg")
    same = copy.copy(L), copy.deepcopy(L)
    x = np.random.default_rng(1).standard_normal((63, 63))
    assert all(np.array_equal(of @ x, L @ x) and isinstance(of, type(L)) for of in same)
    how = weakref.ref(L._how)
    del L, same
    gc.collect()
    assert how() is None


def far_apart(n, strength):
    """A Laplacian whose coupling along the second axis is so strong."""
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    across = 2 * u(i, j) - u(i, j - 1) - u(i, j + 1)
    return st.operator(st.assign(out(i, j), 2 * u(i, j) - u(i - 1, j) - u(i + 1, j) + strength * across), (n, n))


def test_large_stencils_take_multigrid_by_themselves_where_it_works():
    b = np.random.default_rng(1).standard_normal((1023, 1023))
    L = st.operator(poisson(2), b.shape, h=1 / 1024)
    x, info = am.solve(L, b, rtol=1e-8)
    assert info.method == "cg" and info.preconditioner.startswith("gmg") and info.iterations < 12
    assert any("pc auto: gmg (1046529 rows; a cycle leaves" in note for note in info.notes)
    assert np.abs(L @ x - b).max() < 1e-4
    # pure Neumann: the constants are no part of what a cycle is judged by
    walls = made(1024, 2, "flat")
    assert am.Solver(walls).view().count("pc auto: gmg") == 1
    # a cycle that does little for couplings along one axis
    view = am.Solver(far_apart(1023, 1e4)).view()
    assert "pc auto: none, for 998001 rows" in am.Solver(made(999, 2, "flat")).view()  # bricks have 1000000
    assert "pc auto: none (gmg: a cycle leaves 0." in view and "preconditioner: none" in view
    # where it cannot be set up; by name that is an error
    far = st.operator(poisson(2), (1024, 1024), h=1.0)
    assert "pc auto: none (gmg: " in am.Solver(far, "-pc_gmg_galerkin none -pc_gmg_max_levels 2").view()
    assert "pc auto" not in am.Solver(L, pc="none").view()


RANKS = """
sys.path.append(HERE)
from test_gmg import factor, made, poisson, st
for n, d, kind in ((24, 3, "nodes"), (16, 3, "periodic"), (64, 2, "zero"), (64, 2, "flat"), (256, 1, "nodes")):
    L, alone = made(n, d, kind, comm), made(n, d, kind)
    for ksp in ("richardson", "cg"):
        got, s = factor(L, ksp=ksp)
        want, t = factor(alone, ksp=ksp)
        assert s.info.iterations == t.info.iterations, (n, d, kind, ksp)
        assert abs(got - want) < 1e-6, "not even that differs"
x = np.random.default_rng(1).standard_normal((63, 63))
L = am.stencil.operator(poisson(2, coefficient=True), (63, 63), False, comm, h=1 / 64, a=np.exp(np.abs(x)), brick=(4, 8))
_, s = factor(L, ksp="cg")
assert s.info.iterations < 20
solver = am.Solver(L, "-pc_type gmg -mg_levels_pc_type color_sor", ksp="gmres", rtol=1e-9)
y = solver.solve_transpose(x[L.owned])
assert np.abs(L.rmatvec(y) - x[L.owned]).max(initial=0) < 1e-4
i, j = st.indices(2)
u, out, dx = st.grid("u", 2), st.grid("out", 2), st.constant("dx")
A = am.stencil.operator(st.assign(out(i, j), (4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)) / (dx * dx)), (63, 63), False, comm, dx=0.1)
if size == 2:
    large = made(1024, 2, "nodes", comm)
    _, info = am.solve(large, np.ones((1023, 1023))[large.owned], rtol=1e-8)
    assert info.preconditioner.startswith("gmg") and info.iterations < 12, info
assert "constant 'h'" in message(lambda: am.Solver(A, "-pc_type gmg -pc_gmg_galerkin none", ksp="cg"))
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_iterations_do_not_depend_on_the_ranks(on_ranks, ranks):
    """Coarse levels have fewer bricks than there are ranks, so that some have none."""
    assert on_ranks(ranks, RANKS.replace("HERE", repr(str(Path(__file__).parent)))).count("done") == ranks


def test_columns_are_solved_one_after_the_other():
    """Kernels of bricks know one column."""
    L = made(40, 2, "nodes")
    s = am.Solver(L, ksp="cg", pc="gmg", rtol=1e-10)
    B = np.random.default_rng(0).standard_normal((*L.local_grid_shape, 3))
    X = s.solve(B)
    assert X.shape == B.shape and s.info.residual_norms.shape[1] == 3
    assert any("one after the other" in note for note in s.info.notes)
    for j in range(3):
        assert np.array_equal(X[..., j], s.solve(np.ascontiguousarray(B[..., j])))
