"""Solves and vectors on a GPU: a real one where ASTERISM_TEST_GPU=1, else the plug-in's own source on threads of the host."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import EMULATED_GPU, HAS_GPU, PATIENCE
from process_options import given

import asterism as am

pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one (make test-cpp builds it)")
REAL = os.environ.get("ASTERISM_TEST_GPU") == "1"
ASYNCHRONOUS = ["cg", "pipecg", "cr", "gcr", "bicg", "bicgstab", "cgs", "tfqmr"]


@pytest.mark.parametrize("method", [*ASYNCHRONOUS, "minres", "gmres", "richardson", "chebyshev", "idr"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_methods_agree_with_the_host_and_the_two_forms_with_each_other(rng, method, dtype):
    A = am.gallery.poisson((9, 8, 7)).astype(dtype)
    b = rng.standard_normal(504).astype(dtype)
    options = f"-ksp_type {method} -pc_type jacobi -ksp_rtol 1e-4"
    x, info = am.solve(A, b, options=options)
    y, there = am.solve(A, b, options=options + " -device cuda")
    assert there.converged and not any("form" in n for n in there.notes), there.notes
    assert np.linalg.norm(y - x) <= 2e-3 * np.linalg.norm(x)
    assert abs(there.iterations - info.iterations) <= 4
    if method in ASYNCHRONOUS:
        z, late = am.solve(A, b, options=options + " -device cuda -ksp_asynchronous -ksp_check_every 5")
        assert np.array_equal(y, z) and late.iterations == there.iterations
        assert np.array_equal(np.asarray(late.residual_norms), np.asarray(there.residual_norms))
        assert late.host_waits <= -(-late.iterations // 5) + 3 + 2 * late.resumes < there.host_waits


@pytest.mark.parametrize(
    "pc",
    [
        *("none", "jacobi", "chebyshev", "ilu", "bjacobi", "amg"),
        "amg -pc_amg_coarse_size 50 -mg_levels_pc_type color_sor",
        "amg -pc_amg_coarse_size 50 -mg_levels_ksp_type chebyshev -pc_amg_cycle_type w",
    ],
)
@pytest.mark.parametrize("columns", [1, 2, 9])
def test_preconditioners_run_there_without_waits_or_copies(rng, pc, columns):
    A = am.gallery.poisson((12, 11, 10))
    b = rng.standard_normal((1320, columns) if columns > 1 else 1320)
    options = f"-ksp_type cg -pc_type {pc} -ksp_rtol 1e-8"
    x, info = am.solve(A, b, options=options)
    y, there = am.solve(A, b, options=options + " -device cuda -ksp_asynchronous -ksp_check_every 5")
    assert np.allclose(x, y, rtol=1e-6, atol=1e-8) and abs(there.iterations - info.iterations) <= 1
    assert there.host_waits <= -(-there.iterations // 5) + 3
    assert not any("form" in n for n in there.notes)


@pytest.mark.parametrize("ksp", ["cg", "tfqmr"])
@pytest.mark.parametrize("pc", ["jacobi", "amg", "ilu"])
def test_iterations_are_replayed_as_graphs(rng, ksp, pc):
    A = am.gallery.poisson((40, 40))
    b = rng.standard_normal(1600)

    def solved(more):
        before = am.gpu_state()["graphs"]
        x, info = am.solve(
            A, b, options=f"-ksp_type {ksp} -pc_type {pc} -ksp_rtol 1e-8 -device cuda -ksp_check_every 5 {more}"
        )
        return x, info, {k: v - before[k] for k, v in am.gpu_state()["graphs"].items()}

    x, _, at_once = solved("")
    y, info, graphs = solved("-ksp_asynchronous")
    z, _, none = solved("-ksp_asynchronous -ksp_graphs false")
    assert np.array_equal(x, y) and np.array_equal(x, z)
    assert not any(at_once.values()) and not any(none.values())
    # what the host's looks cut in two is launched by its parts; where it looks depends on who has the cores
    assert graphs["made"] <= 16 and graphs["replayed"] >= info.iterations // 2
    assert graphs["changed"] < graphs["kernels"] > 2 * graphs["alone"]


@pytest.mark.skipif(REAL, reason="the emulated device is told to have none")
def test_without_graphs_kernels_are_launched_one_by_one():
    code = """
import logging, asterism as am, numpy as np
logging.basicConfig()
A = am.gallery.poisson((20, 20))
x, _ = am.solve(A, np.ones(400), options="-ksp_type cg -ksp_rtol 1e-8 -device cuda -ksp_asynchronous")
y, _ = am.solve(A, np.ones(400), options="-ksp_type cg -ksp_rtol 1e-8 -device cuda")
assert np.array_equal(x, y) and am.gpu_state()["graphs"]["replayed"] == 0
"""
    env = {**os.environ, "ASTERISM_EMULATED_NO_GRAPHS": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert out.returncode == 0, out.stderr
    assert out.stderr.count("makes no graph of") == 1


@pytest.mark.parametrize("pc", ["asm"])
def test_what_has_no_form_is_told(pc):
    A = am.gallery.poisson((14, 13))
    y, there = am.solve(A, np.ones(182), options=f"-ksp_type bicgstab -pc_type {pc} -ksp_rtol 1e-8 -device cuda")
    x, _ = am.solve(A, np.ones(182), options=f"-ksp_type bicgstab -pc_type {pc} -ksp_rtol 1e-8")
    assert np.allclose(x, y, rtol=1e-6)
    told = [n for n in there.notes if n.startswith("without a form for the GPU")]
    assert told and "PCApply" in told[0]
    assert any("PCApply" in event for event in am.gpu_state()["without_form"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "how",
    [
        "ilu -pc_factor_levels 1",
        "ilut",
        "ilu -pc_factor_order levels",
        "icc",
        "icc -pc_factor_order levels",
        "sor",
        "sor -pc_sor_symmetric 0 -pc_sor_its 2 -pc_sor_omega 1.2",
    ],
)
def test_triangular_solves_by_levels_have_the_host_s_answers(rng, dtype, how):
    A = am.gallery.convection_diffusion((17, 16), (3.0, 1.0)).astype(dtype)
    b = rng.standard_normal((272, 2)).astype(dtype)
    options = f"-ksp_type bicgstab -pc_type {how} -ksp_rtol 1e-5"
    x, info = am.solve(A, b, options=options)
    s = am.Solver(A, options + " -device cuda")
    y, there = s.solve(b), s.info
    assert np.linalg.norm(y - x) <= 1e-3 * np.linalg.norm(x) and abs(there.iterations - info.iterations) <= 2
    assert not any("form" in n for n in there.notes), there.notes
    s.update(A.with_values(2 * A.to_scipy().data))
    z = s.solve(b)
    assert np.linalg.norm(2 * z - x) <= 1e-3 * np.linalg.norm(x)


@pytest.mark.parametrize("n", [2, 3])
def test_several_ranks_share_it(on_ranks, n):
    out = on_ranks(
        n,
        """
A = am.gallery.poisson((14, 13, 12), comm)
b = np.cos(np.arange(*A.row_range))
for pc in ("jacobi", "amg"):
    x, info = am.solve(A, b, options=f"-ksp_type cg -pc_type {pc} -ksp_rtol 1e-8")
    y, there = am.solve(A, b, options=f"-ksp_type cg -pc_type {pc} -ksp_rtol 1e-8 -device cuda")
    z, late = am.solve(A, b, options=f"-ksp_type cg -pc_type {pc} -ksp_rtol 1e-8 -device cuda -ksp_asynchronous -ksp_check_every 5")
    assert np.allclose(x, y, rtol=1e-6, atol=1e-8) and abs(there.iterations - info.iterations) <= 1
    assert np.array_equal(y, z) and late.iterations == there.iterations
    assert late.host_waits <= -(-late.iterations // 5) + 3 < there.host_waits, late.host_waits
print("SAME")
""",
    )
    assert out.count("SAME") == n


@pytest.mark.skipif(REAL, reason="this MPI may not take the GPU's memory")
@pytest.mark.parametrize("n", [2, 3, 4])
def test_halos_are_sent_from_the_gpu_s_memory(on_ranks, n):
    out = on_ranks(
        n,
        """
def copied():
    return {k: v[2:] for k, v in am.gpu_state()["copies"].items()}

for A in (am.gallery.poisson((14, 13, 12), comm), am.gallery.poisson((3,), comm), am.gallery.elasticity((4, 3, 3), comm=comm).astype("complex64")):
    b = np.cos(np.arange(*A.row_range)).astype(A.dtype)
    b = np.stack([b, 1 + b], axis=1)
    for pc in ("jacobi", "amg"):
        for more in ("", " -ksp_asynchronous -ksp_check_every 5"):
            options = given(f"-ksp_type cg -pc_type {pc} -ksp_rtol 1e-4 -ksp_max_it 40 -ksp_error_if_not_converged 0 -device cuda -gpu_transport mpi" + more)
            x, by_host = am.solve(A, b, options=given(options + " -use_gpu_aware_mpi 0"), raise_on_failure=False)
            before = copied()
            y, direct = am.solve(A, b, options=given(options + " -use_gpu_aware_mpi 1"), raise_on_failure=False)
            assert np.array_equal(x, y, equal_nan=True) and direct.iterations == by_host.iterations
            assert any("through the host (-use" in t for t in by_host.notes), by_host.notes
            assert any("from their memory" in t for t in direct.notes), direct.notes
            if more:
                assert direct.host_waits <= -(-direct.iterations // 5) + 3 + 2 * direct.resumes, direct.host_waits
            # only flags of the condition under which all is done travel, 16 bytes each
            for event, (times, size) in copied().items():
                if event.startswith("Mat"):
                    was = before.get(event, (0, 0))
                    assert size - was[1] == 16 * (times - was[0]) and (more or times == was[0]), (event, times, size)
# some ranks on the GPU, others not
A = am.gallery.poisson((14, 13, 12), comm)
b = np.cos(np.arange(*A.row_range))
want = A @ b
am.solve(A, b, options=given("-ksp_type cg -ksp_rtol 1e-4 -device cuda -use_gpu_aware_mpi 1"))
for kinds in (("cuda", "inline"), ("thread", "cuda"), ("strict", "cuda"), ("inline", "inline")):
    x = am.Vector(A, am.Queue(kinds[comm.rank % 2]))
    x.copy_from(b)
    assert np.allclose((A @ x).numpy(), want, rtol=1e-13, atol=1e-13)
told = message(lambda: am.solve(A, b, options=given(f"-device cuda -use_gpu_aware_mpi {comm.rank % 2}")))
assert "-use_gpu_aware_mpi is 0 on rank" in told and "; 1 on rank" in told, told
x, info = am.solve(A, b, options=given(options + " -use_gpu_aware_mpi auto"), raise_on_failure=False)
assert any("halos between GPUs" in t for t in info.notes)
print("SAME")
""",
    )
    assert out.count("SAME") == n


class OnGpu:
    """Another library's array, as it shows itself."""

    def __init__(self, interface, keep):
        self.__cuda_array_interface__ = interface
        self._keep = keep


@pytest.mark.skipif(REAL, reason="reads the emulated device's memory as the host's")
def test_arrays_of_other_libraries_are_used_in_place():
    A = am.gallery.poisson((8, 8))
    q = am.Queue("cuda")
    theirs = np.arange(64.0)
    interface = {**theirs.__array_interface__, "version": 3, "stream": 1}
    v = am.Vector.wrap(A, OnGpu(interface, theirs), q)
    v.scale(2.0)
    q.wait()
    assert np.array_equal(theirs, 2.0 * np.arange(64.0))
    assert np.array_equal(v.numpy(), theirs) and not np.shares_memory(v.numpy(), theirs)  # the host's copy
    v.numpy()[:] = 1.0
    v.scale(3.0)
    q.wait()
    assert np.array_equal(theirs, np.full(64, 3.0))
    mine = v.__cuda_array_interface__
    assert mine["data"][0] == theirs.ctypes.data and mine["stream"] == q.stream and mine["typestr"] == "<f8"
    assert v.__dlpack_device__() == (2, 0) and v.__dlpack__(stream=1) is not None
    q.wait()
    ctypes.cast(mine["data"][0], ctypes.POINTER(ctypes.c_double))[0] = 5.0  # as their kernel would
    assert v.numpy()[0] == 5.0
    cases = [
        ({"typestr": "<i8"}, "dtype int64"),
        ({"strides": (16,)}, "in place"),
        ({"data": (theirs.ctypes.data, True)}, "read-only"),
        ({"shape": (63,)}, "63 rows"),
        ({"shape": (4, 4, 4)}, r"\(n\) or \(n, k\)"),
    ]
    for change, text in cases:
        with pytest.raises(am.AsterismError, match=text):
            am.Vector.wrap(A, OnGpu({**interface, **change}, theirs), q)
    with pytest.raises(am.AsterismError, match="on a GPU with queue 'thread'"):
        am.Vector.wrap(A, OnGpu(interface, theirs), am.Queue("thread"))


class ByDlpack:
    """A vector on a GPU of which nothing else is known."""

    def __init__(self, vector):
        self._vector, self.streams = vector, []

    def __dlpack_device__(self):
        return self._vector.__dlpack_device__()

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self._vector.__dlpack__(stream=stream)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("columns", [1, 3])
def test_arrays_come_by_dlpack(rng, dtype, columns):
    A = am.gallery.poisson((8, 8)).astype(dtype)
    values = rng.standard_normal((64, columns) if columns > 1 else 64).astype(dtype)
    q, more = am.Queue("cuda"), am.Queue("cuda")
    theirs = am.Vector(A, q, columns=columns)
    theirs.copy_from(values)
    theirs.scale(2.0)
    array = ByDlpack(theirs)
    v = am.Vector.wrap(A, array, more)
    assert array.streams == [more.stream]  # theirs waits for nothing, ours for theirs
    assert v.__cuda_array_interface__["data"][0] == theirs.__cuda_array_interface__["data"][0]
    assert np.array_equal(v.numpy(), 2 * values) and v.numpy().shape == values.shape
    del theirs, array
    v.scale(2.0)
    assert np.array_equal(v.numpy(), 4 * values)
    with pytest.raises(am.AsterismError, match="on a GPU with queue 'thread'"):
        am.Vector.wrap(A, ByDlpack(v), am.Queue("thread"))
    with pytest.raises(am.AsterismError, match="64 rows where 63"):
        am.Vector.wrap(am.gallery.poisson((9, 7)).astype(dtype), ByDlpack(v), q)


@pytest.mark.skipif(REAL, reason="the emulated device says whose memory it is")
@pytest.mark.parametrize(
    "owner, text", [("1", "on device 1, this process uses device 0"), ("-2", "no memory of a GPU")]
)
def test_memory_of_another_device_is_refused(monkeypatch, owner, text):
    monkeypatch.setenv("ASTERISM_EMULATED_POINTERS", owner)
    A = am.gallery.poisson((8, 8))
    theirs = np.ones(64)
    interface = {**theirs.__array_interface__, "version": 3, "stream": 1}
    with pytest.raises(am.InputError, match=text):
        am.Vector.wrap(A, OnGpu(interface, theirs), am.Queue("cuda"))


@pytest.mark.skipif(REAL, reason="reads the emulated device's memory as the host's")
def test_a_kernel_of_ones_own_joins_the_queue():
    A = am.gallery.poisson((8, 8))
    q = am.Queue("cuda")
    x, y = am.Vector(A, q, fill=2.0), am.Vector(A, q)
    streams = []

    def cubes(stream, source, target):
        streams.append(stream)
        assert source.__cuda_array_interface__["data"][1] and not target.__cuda_array_interface__["data"][1]
        # an emulated stream takes no work from Python: wait for what is before, then work at once
        am.Queue.on_stream(stream).wait()
        at = [
            ctypes.cast(a.__cuda_array_interface__["data"][0], ctypes.POINTER(ctypes.c_double))
            for a in (source, target)
        ]
        for i in range(64):
            at[1][i] = at[0][i] ** 3

    x.scale(2.0)
    q.submit(cubes, read=[x], write=[y], device=True)
    x.scale(10.0)
    y.axpy(1.0, x)
    assert np.array_equal(y.numpy(), np.full(64, 104.0)) and streams == [q.stream]
    with pytest.raises(am.AsterismError, match="not a GPU's"):
        am.Queue("thread").submit(cubes, device=True)
    with pytest.raises(TypeError, match="is no stream"):
        am.Queue.on_stream("stream")


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_unified_memory_is_never_copied(rng, dtype):
    A = am.gallery.poisson((9, 8)).astype(dtype)
    q, other, thread = am.Queue("cuda"), am.Queue("cuda"), am.Queue("thread")
    x, y = am.Vector(A, q, unified=True), am.Vector(A, q, unified=True, columns=1)
    y.product(A, am.Vector(A, q, fill=1.0))  # A is there now

    def copied():
        return sum(c[1] + c[3] for c in am.gpu_state()["copies"].values())

    before = copied()
    value = rng.standard_normal(72).astype(dtype)
    x.numpy()[:] = value  # the host writes, the GPU reads
    for _ in range(3):
        y.product(A, x)
        x.axpy(0.5, y)
        value = value + np.asarray(0.5, dtype) * (A @ value)
        assert np.allclose(x.numpy(), value, rtol=1e-5, atol=1e-5 * abs(value).max())  # and the other way round
        q.submit(lambda v: np.multiply(v, 2, out=v), update=[x])  # a task of the host in the GPU's queue
        value = 2 * value
    other.submit(lambda v: np.add(v, 1, out=v), update=[x])
    assert np.allclose(x.numpy(), value + 1, rtol=1e-5, atol=1e-5 * abs(value).max())
    assert copied() == before
    thread.submit(lambda v: np.add(v, 1, out=v), update=[x])  # of the host's own queue
    x.scale(2.0)
    assert copied() == before
    apart = am.Vector(A, am.Queue("strict"))
    apart.copy_from(x)  # its data lie in a third memory
    assert copied() == before + x.numpy().nbytes
    assert np.allclose(apart.numpy(), 2 * (value + 2), rtol=1e-5, atol=1e-5 * abs(value).max()) and np.array_equal(
        apart.numpy(), x.numpy()
    )
    assert am.Vector(A, q, unified=True, columns=3).shape == (72, 3)
    with pytest.raises(am.UnsupportedError, match="unified=True on queue 'inline'"):
        am.Vector(A, unified=True)


@pytest.mark.skipif(REAL, reason="the emulated device is told that it cannot")
def test_unified_memory_that_the_host_may_not_touch_is_refused():
    code = """
import asterism as am
try: am.Vector(am.gallery.poisson((3, 3)), am.Queue("cuda"), unified=True)
except am.AsterismError as e: assert "allocating unified memory" in str(e), e
else: raise SystemExit("no error")
"""
    env = {**os.environ, "ASTERISM_EMULATED_NO_UNIFIED": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert out.returncode == 0, out.stderr


def test_memory_has_a_cap():
    A = am.gallery.poisson((100, 100))
    with pytest.raises(am.AsterismError, match="gpu_memory_cap"):
        am.solve(A, np.ones(10000), options=given("-device cuda -gpu_memory_cap 2500000 -pc_type jacobi"))
    am.solve(A, np.ones(10000), options=given("-device cuda -gpu_memory_cap 0 -pc_type jacobi"))
    assert am.gpu_state()["bytes_most"] > 2500000


def test_two_choices_are_an_error():
    with pytest.raises(am.AsterismError, match="-queue thread"):
        am.solve(am.gallery.poisson((5, 5)), np.ones(25), options="-device cuda -queue thread")


@pytest.mark.skipif(REAL, reason="there is one")
@pytest.mark.parametrize("n", [1, 2])
def test_where_there_is_no_device_it_is_told(on_ranks, n):
    script = """
A = am.gallery.poisson((8, 8), comm)
b = np.ones(A.local_shape[0])
print(message(lambda: am.solve(A, b, options="-device cuda")))
x, info = am.solve(A, b, options="-device auto")
print([m for m in info.notes if "device" in m])
"""
    out = on_ranks(n, script, ASTERISM_GPU_PLUGIN=str(EMULATED_GPU), ASTERISM_EMULATED_NONE="1")
    assert out.count("there is no device") >= 2 * n and out.count("device auto: the host") == n, out
    out = on_ranks(n, script, ASTERISM_GPU_PLUGIN="/nowhere/libasterism_cuda.so")
    assert out.count("make gpu") >= n and "does not load" in out


def test_a_zero_guess_is_not_copied_there():
    A, b = am.gallery.poisson((9, 8)), np.ones(72)
    solver = am.Solver(A, "-device cuda", ksp="cg", pc="jacobi")

    def copied(x0):
        before = sum(c[1] for c in am.gpu_state()["copies"].values())
        solver.solve(b, x0=x0)
        return sum(c[1] for c in am.gpu_state()["copies"].values()) - before

    copied(None)  # the matrix is there now
    assert copied(np.zeros(72)) == copied(None) + b.nbytes
