"""Operators of stencils on a GPU: a real one where ASTERISM_TEST_GPU=1, else emulated lanes. Their text is compiled at first use."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import HAS_GPU, PATIENCE

import asterism as am
from asterism import _core
from asterism import stencil as st
from asterism.stencil.codegen import emit_gpu

pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one (make test-cpp builds it)")
DTYPES = ["float32", "float64", "complex64", "complex128"]

RANDOM = """
from stencil_cases import OnBricks
from asterism.device.queue import Queue
queue, compared, worst, before = Queue("cuda"), 0, 0.0, am.gpu_state()
for seed in SEEDS:
    case = OnBricks(seed, comm)
    if not case.fits: continue
    L = case.L
    v, y = L.make_vector(case.x[L.owned], queue), am.Vector(L, queue, fill=3.0)
    y.product(L, v)
    got = L.from_bricks(y)
    assert np.array_equal(L.to_bricks(got), y.numpy()), "padding is not zero"
    worst = max(worst, np.abs(got - case.want[L.owned]).max(initial=0) / case.rounding)
    compared += 1
state = am.gpu_state()
assert compared >= LEAST and state["without_form"] == before["without_form"], (compared, state)
assert state["stencils"] == {"loaded": before["stencils"]["loaded"] + compared, "missing": ""}
assert worst < 500, worst
print("done", flush=True)
"""


def test_random_stencils_equal_the_interpreter():
    exec(RANDOM.replace("SEEDS", "range(6)").replace("LEAST", "3"), {"am": am, "np": np, "comm": None})


@pytest.mark.parametrize(("ranks", "seeds"), [(2, range(16, 21)), (3, range(28, 33))])
def test_random_stencils_on_ranks_equal_the_interpreter(on_ranks, ranks, seeds):
    script = RANDOM.replace("SEEDS", repr(seeds)).replace("LEAST", str(len(seeds) // 2))
    assert on_ranks(ranks, script).count("done") == ranks


def seven_points(h=False):
    i, j, k = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    around = u(i + 1, j, k) + u(i - 1, j, k) + u(i, j + 1, k) + u(i, j - 1, k) + u(i, j, k + 1) + u(i, j, k - 1)
    return st.assign(out(i, j, k), (6 * u(i, j, k) - around) / (st.constant("h") ** 2 if h else 1.0))


def upwind():
    """Not symmetric, with a coefficient that is read beside the point."""
    i, j = st.indices(2)
    u, c, out = st.grid("u", 2), st.grid("c", 2), st.grid("out", 2)
    sides = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)
    return st.assign(out(i, j), 5 * u(i, j) - sides + 0.3 * c(i, j - 1) * (u(i, j) - u(i, j - 1)))


def there(L, x):
    q = am.Queue("cuda")
    y = am.Vector(L, q, fill=1.0)
    y.product(L, L.make_vector(x, q))
    return L.from_bricks(y)


@pytest.mark.parametrize("brick", [(8, 8, 8), (4, 4, 4), (3, 5, 6), (2, 2, 40)])
@pytest.mark.parametrize("periodic", [False, (False, True, False)])
def test_bricks_and_borders(rng, brick, periodic):
    shape = tuple(2 * n - (0 if p else 1) for n, p in zip(brick, (False, True, False), strict=True))
    s = seven_points()
    L = st.operator(s, shape, periodic, brick=brick)
    x = rng.standard_normal(shape)
    np.testing.assert_allclose(there(L, x), s.interpret(periodic, u=x)["out"], rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["jacobi", "chebyshev", "jacobi -ksp_asynchronous", "chebyshev -ksp_asynchronous"])
def test_solves_agree_with_the_host(rng, dtype, how):
    L = st.operator(seven_points(), (9, 8, 7), brick=(4, 4, 4), dtype=dtype)
    b = rng.standard_normal((9, 8, 7)).astype(dtype)
    options = f"-ksp_type cg -pc_type {how.split()[0]} -ksp_rtol 1e-4"
    x, info = am.solve(L, b, options=options)
    y, on_gpu = am.solve(L, b, options=f"{options} -device cuda {' '.join(how.split()[1:])}")
    assert np.linalg.norm(y - x) <= 2e-3 * np.linalg.norm(x) and abs(on_gpu.iterations - info.iterations) <= 2
    assert not any("form" in n for n in on_gpu.notes), on_gpu.notes


@pytest.mark.parametrize("asynchronous", ["", "-ksp_asynchronous"])
def test_methods_with_conditions_and_transposes(rng, asynchronous):
    shape = (13, 11)
    L = st.operator(upwind(), shape, brick=(4, 4), c=rng.uniform(0, 1, shape))
    b = rng.standard_normal(shape)
    for method in ("bicgstab", "bicg"):
        options = f"-ksp_type {method} -pc_type jacobi -ksp_rtol 1e-8"
        x, info = am.solve(L, b, options=options)
        y, on_gpu = am.solve(L, b, options=f"{options} -device cuda {asynchronous}")
        assert np.allclose(x, y, rtol=1e-5, atol=1e-7) and abs(on_gpu.iterations - info.iterations) <= 2
        assert not any("form" in n for n in on_gpu.notes), on_gpu.notes


def test_several_ranks_solve_and_one_of_them_compiles(on_ranks, tmp_path):
    log, cache = tmp_path / "log", tmp_path / "cache"
    program = tmp_path / "nvcc"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || echo x >>{log}\nexec {os.environ.get("NVCC", "nvcc")} "$@"\n'
    )
    program.chmod(0o700)
    out = on_ranks(
        3,
        """
i, j = am.stencil.indices(2)
u, o = am.stencil.grid("u", 2), am.stencil.grid("o", 2)
L = am.stencil.operator(am.stencil.assign(o(i, j), 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)), (30, 21), comm=comm, brick=(4, 4))
b = np.ones(L.local_grid_shape)
options = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-10"
x, info = am.solve(L, b, options=options)
y, there = am.solve(L, b, options=options + " -device cuda")
assert np.allclose(x, y, rtol=1e-7), abs(x - y).max()
assert not any("form" in n for n in there.notes), there.notes
assert am.gpu_state()["stencils"] == {"loaded": 1, "missing": ""}
print("done", flush=True)
""",
        NVCC=str(program),
        ASTERISM_STENCIL_CACHE=str(cache),
    )
    assert out.count("done") == 3 and log.read_text() == "x\n"
    assert len(list(cache.glob("*.cubin"))) == 1 and not [*cache.glob("*.part"), *cache.glob("*.lock")]


WITHOUT = """
import warnings; warnings.simplefilter("ignore")
import asterism as am, numpy as np
i, = am.stencil.indices(1)
u, o = am.stencil.grid("u", 1), am.stencil.grid("o", 1)
L = am.stencil.operator(am.stencil.assign(o(i), 2 * u(i) - u(i - 1) - u(i + 1)), (40,))
x, info = am.solve(L, np.ones(40), options="-ksp_type cg -pc_type jacobi -device cuda")
assert np.allclose(L @ x, 1), x
assert any("form" in n and "StencilMult" in n for n in info.notes), info.notes
print(am.gpu_state()["stencils"])
"""


@pytest.mark.parametrize(
    ("compiler", "why"), [("/there/is/none", "nvcc was not found"), ("/bin/false", "refused a kernel (NVCC may name")]
)
def test_without_a_compiler_products_run_on_the_host(compiler, why, tmp_path):
    env = {**os.environ, "NVCC": compiler, "ASTERISM_STENCIL_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", WITHOUT], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "'loaded': 0" in done.stdout and why in done.stdout, done.stdout + done.stderr


def test_a_file_that_others_can_write_is_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTERISM_STENCIL_CACHE", str(tmp_path / "cache"))
    s, x = seven_points(), np.ones((8, 8, 8))
    there(st.operator(s, x.shape), x)
    (file,) = Path(tmp_path / "cache").glob("*.cubin")
    assert file.stat().st_mode & 0o777 == 0o700
    file.chmod(0o720)
    with pytest.raises(am.FileError, match="can be written by other users"):
        there(st.operator(s, x.shape), x)


def planted_lane(self, by, left, right, right_one=emit_gpu.LaneBody.shifted):
    """Values come from the next lane but one."""
    return right_one(self, by % self.plan.vector + 1, left, right)


def planted_padding(self, at, value, inside):
    """What is beyond the grid is written."""
    self.block.append(f"if (mine) {at} = {value};")


@pytest.mark.parametrize(("name", "fault"), [("shifted", planted_lane), ("put", planted_padding)])
def test_a_planted_fault_is_found(rng, name, fault, monkeypatch, own_kernels):
    monkeypatch.setattr(emit_gpu.LaneBody, name, fault)
    s, x = seven_points(), rng.standard_normal((9, 7, 6))
    L, q = st.operator(s, x.shape), am.Queue("cuda")
    y = am.Vector(L, q, fill=0.0)
    y.product(L, L.make_vector(x, q))
    got, want = y.numpy().copy(), L.to_bricks(s.interpret(False, u=x)["out"])
    assert np.abs(got - want).max() > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        "-ksp_type cg -pc_type gmg",
        "-ksp_type richardson -pc_type gmg -mg_levels_pc_type jacobi -pc_gmg_cycle_type w",
        "-ksp_type gmres -pc_type gmg -mg_levels_pc_type color_sor",
        "-ksp_type gmres -pc_type gmg -pc_gmg_cycle_type full",
    ],
)
def test_multigrid_runs_there(rng, dtype, options):
    shape = (31, 15, 23)
    L = st.operator(seven_points(True), shape, brick=(4, 4, 4), dtype=dtype, h=1 / 16)
    b = rng.standard_normal(shape).astype(dtype)
    x, info = am.solve(L, b, options=f"{options} -ksp_rtol 1e-4")
    y, on_gpu = am.solve(L, b, options=f"{options} -ksp_rtol 1e-4 -device cuda")
    assert np.linalg.norm(y - x) <= 2e-3 * np.linalg.norm(x) and abs(on_gpu.iterations - info.iterations) <= 1
    assert not any("form" in n for n in on_gpu.notes), on_gpu.notes


@pytest.mark.parametrize("method", ["richardson", "cg"])
def test_a_cycle_copies_no_iterate(rng, method):
    L = st.operator(seven_points(True), (31, 15, 23), brick=(4, 4, 4), h=1 / 16)
    b = rng.standard_normal(L.grid_shape)

    def calls(cycles):
        solver = am.Solver(L, f"-ksp_type {method} -pc_type gmg -ksp_max_it {cycles} -ksp_rtol 1e-30 -device cuda")
        before = {e["name"]: e["calls"] for e in _core.profile_snapshot()}
        with pytest.raises(am.ConvergenceError):
            solver.solve(b)
        return {e["name"]: e["calls"] - before.get(e["name"], 0) for e in _core.profile_snapshot()}

    few, many = calls(2), calls(7)
    assert many["PCApplyGMG"] - few["PCApplyGMG"] == 5
    assert many.get("VecCopy", 0) == few.get("VecCopy", 0)


@pytest.mark.parametrize("points", ["nodes", "cells"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_multigrid_on_ranks(on_ranks, ranks, points):
    script = f"""
i, j = am.stencil.indices(2)
u, o = am.stencil.grid("u", 2), am.stencil.grid("o", 2)
around = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)
L = am.stencil.operator(am.stencil.assign(o(i, j), 4.5 * u(i, j) - around), {(31, 63) if points == "nodes" else (24, 40)}, comm=comm, brick=(4, 4), points={points!r})
b = np.random.default_rng(7).standard_normal(L.grid_shape)[L.owned]
for options in ("-ksp_type cg -pc_type gmg -ksp_rtol 1e-9", "-ksp_type cg -pc_type gmg -mg_levels_pc_type jacobi -ksp_rtol 1e-9"):
    x, info = am.solve(L, b, options=options)
    y, there = am.solve(L, b, options=options + " -device cuda")
    assert np.allclose(x, y, rtol=1e-6, atol=1e-8) and abs(info.iterations - there.iterations) <= 1
    assert not any("form" in n for n in there.notes), there.notes
print("done", flush=True)
"""
    assert on_ranks(ranks, script).count("done") == ranks


@pytest.mark.skipif(
    os.environ.get("ASTERISM_TEST_GPU") == "1", reason="the stand-in for nvcc is told to make no library"
)
def test_a_file_that_does_not_load_is_told(tmp_path):
    program = tmp_path / "nvcc"
    program.write_text('#!/bin/sh\nfor last; do :; done\n[ "$1" = --version ] || echo nothing >"$last"\n')
    program.chmod(0o700)
    env = {**os.environ, "NVCC": str(program), "ASTERISM_STENCIL_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", WITHOUT], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "loading a kernel that was compiled" in done.stdout, done.stdout + done.stderr
