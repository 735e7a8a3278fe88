"""Text for GPUs: run on the CPU with lanes in lock-step random stencils equal the interpreter (make cuda-check compiles it by nvcc)."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from emulated_gpu import EmulatedKernel
from stencil_cases import Case

import asterism as am
from asterism import stencil as st
from asterism.stencil.codegen import emit_gpu, gpu_loads

COUNT = int(os.environ.get("ASTERISM_TEST_RANDOM_STENCILS", "6"))
ROUNDING = 500.0  # units of rounding of the largest value; a wrong value is off by millions


def seven_points():
    i, j, k = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    around = u(i + 1, j, k) + u(i - 1, j, k) + u(i, j + 1, k) + u(i, j - 1, k) + u(i, j, k + 1) + u(i, j, k - 1)
    return st.assign(out(i, j, k), (around - 6 * u(i, j, k)) / (st.constant("h") * st.constant("h")))


def compared(seed, target, folder, of_complex=False):
    case = Case(seed, of_complex)
    kernel = EmulatedKernel(
        case.stencil, case.points, case.periodic, target, case.brick, case.dtype, folder, 1 + seed % 3, 1 + seed % 2
    )
    return case.compare(kernel)


@pytest.mark.parametrize(
    ("seed", "target"), [*((s, "cuda") for s in range(COUNT)), *((s, "hip") for s in range(1, COUNT, 3))]
)
def test_random_stencils_equal_the_interpreter(seed, target, tmp_path):
    assert compared(seed, target, tmp_path) < ROUNDING


@pytest.mark.parametrize(("seed", "target"), [*((s, "cuda") for s in range(COUNT // 2)), (3, "hip")])
def test_random_stencils_of_complex_numbers_equal_the_interpreter(seed, target, tmp_path):
    assert compared(seed, target, tmp_path, True) < ROUNDING


def planted_lane(self, by, left, right, right_one=emit_gpu.LaneBody.shifted):
    """Values come from the next lane but one."""
    return right_one(self, by % self.plan.vector + 1, left, right)


def planted_order(self, by, left, right, right_one=emit_gpu.LaneBody.shifted):
    """The two vectors are exchanged."""
    return right_one(self, by, right, left)


def planted_plane(self, stride, offset, right_one=emit_gpu.LaneBody.span):
    """Planes beyond a brick are those of the brick."""
    bricks, at = right_one(self, stride, offset)
    return [bricks[0]] * len(bricks), at


@pytest.mark.parametrize(
    ("name", "fault"), [("shifted", planted_lane), ("shifted", planted_order), ("span", planted_plane)]
)
def test_the_random_stencils_find_a_fault_in_the_text(name, fault, monkeypatch, tmp_path):
    monkeypatch.setattr(emit_gpu.LaneBody, name, fault)
    assert any(compared(seed, "cuda", tmp_path) > 1000 * ROUNDING for seed in (6, 8, 18, 5))


@pytest.mark.parametrize("fault", [lambda a, b: (a, b - 1), lambda a, b: (a + 1, b)])
def test_the_random_stencils_find_lanes_that_do_not_load(fault, monkeypatch, tmp_path):
    right = gpu_loads._lanes
    monkeypatch.setattr(gpu_loads, "_lanes", lambda *given: {n: fault(*r) for n, r in right(*given).items()})
    assert any(compared(seed, "cuda", tmp_path) > 1000 * ROUNDING for seed in (6, 8, 18, 5))


def test_a_shuffle_that_some_lanes_miss_is_found(monkeypatch, tmp_path):
    dialect = replace(emit_gpu.GPU_TARGETS["cuda"], every="x")  # each lane takes the branch of its own brick
    monkeypatch.setitem(emit_gpu.GPU_TARGETS, "cuda", dialect)
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    s = st.assign(out(i, j), st.where(j == 0, u(i, j + 1), u(i, j - 1) + u(i, j + 1)))
    kernel = EmulatedKernel(s, (32, 32), (False, False), "cuda", None, np.float64, tmp_path)
    with pytest.raises(AssertionError, match="not in lock-step"):
        kernel(u=np.ones((32, 32)))


@pytest.mark.parametrize("target", ["cuda", "hip"])
@pytest.mark.parametrize("brick", [(2, 3, 40), (1, 2, 128), (2, 2, 37), (1, 1, 1), (3, 8, 8)])
def test_rows_that_are_longer_than_a_warp_or_odd(brick, target, tmp_path):
    s = seven_points()
    shape = tuple(2 * n for n in brick)
    x = np.random.default_rng(3).standard_normal(shape)
    kernel = EmulatedKernel(s, shape, (False, True, True), target, brick, np.float64, tmp_path)
    want = s.interpret((False, True, True), u=x, h=0.5)["out"]
    np.testing.assert_allclose(kernel(u=x, h=0.5), want, rtol=0, atol=1e-12)
    assert (
        kernel.source.plan.vector
        == {40: {"cuda": 20, "hip": 40}, 128: {"cuda": 32, "hip": 64}}.get(
            brick[2], {"cuda": 1 if brick[2] == 37 else brick[2], "hip": brick[2]}
        )[target]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_box_in_scatter_form_and_a_box_in_gather_form(dtype, tmp_path):
    at = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    total = sum((1.0 + sum(o) % 4) * u(*(i + (x - 2) for i, x in zip(at, o, strict=True))) for o in np.ndindex(5, 5, 5))
    s = st.assign(out(*at), total)
    x = np.random.default_rng(5).standard_normal((16, 8, 16))
    kernel = EmulatedKernel(s, x.shape, (True,) * 3, "cuda", None, dtype, tmp_path)
    want = s.interpret(periodic=True, u=x)["out"]
    assert np.abs(kernel(u=x) - want).max() < 1000 * np.finfo(dtype).eps * np.abs(want).max()
    assert kernel.source.plan.scatter and not st.generate(seven_points(), "cuda").plan.scatter


def test_the_texts_differ_in_lanes_and_in_names_of_the_vendors_alone():
    s, brick = seven_points(), (8, 2, 16)
    cuda, hip = (st.generate(s, target, brick) for target in ("cuda", "hip"))
    assert "#include" not in cuda.text and max(len(line) for line in cuda.text.splitlines()) < 200
    assert (
        "T const h_ = a.constants[0];" in cuda.text and "u__0_r0_k1 = shift(u__0_r0_k0, u__0_r0_ends, 1);" in cuda.text
    )
    names = [(hip.name, cuda.name), ("for hip", "for cuda"), ("__shfl(x", "__shfl_sync(0xffffffffu, x")]
    names += [("__builtin_trap", "__trap"), ("#ifndef __HIPCC_RTC__\n#include <hip/hip_runtime.h>\n#endif\n", "")]
    text = re.sub(r"\b64\b", "32", hip.text)
    for theirs, ours in names:
        assert theirs in text
        text = text.replace(theirs, ours)
    different = [pair for pair in zip(text.splitlines(), cuda.text.splitlines(), strict=True) if pair[0] != pair[1]]
    assert all("first" in a or "computes" in a for a, _ in different) and len(different) == 2  # rows at once


def test_what_is_refused(tmp_path):
    s = seven_points()
    for call, error, text in (
        (lambda: s.source("metal"), am.OptionError, "'metal' is not one of generic, avx2, avx512, cuda, hip"),
        (
            lambda: st.compile(s, (8, 8, 8), target="cuda"),
            am.OptionError,
            "target='cuda' is for GPUs, where operators run",
        ),
        (lambda: am.stencil.operator(s, (8, 8, 8), h=1.0, target="hip"), am.OptionError, "target='hip' is for GPUs"),
        (lambda: s.source("cuda", dtype=int), am.DtypeError, "'int64' is none of float32"),
        (lambda: s.source("cuda", brick=(8, 512, 512)), am.InputError, "too long to compile"),
    ):
        with pytest.raises(error, match=text):
            call()
