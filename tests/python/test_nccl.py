"""Sums and halos between GPUs by NCCL: a stand-in of its functions between processes with an emulated device each."""

import os

import pytest
from conftest import EMULATED_GPU

FAKE = EMULATED_GPU.parent / "libasterism_fake_nccl.so"
pytestmark = pytest.mark.skipif(
    not FAKE.exists() or os.environ.get("ASTERISM_TEST_GPU") == "1", reason="no emulated GPU (make test-cpp builds it)"
)

SOLVES = """
def copies():
    return {k: v for k, v in am.gpu_state()["copies"].items()}
for dtype, shape in (("float64", (11, 7, 5)), ("complex64", (13, 6)), ("float32", (3, 2))):
    A = am.gallery.poisson(shape, comm).astype(dtype)
    lo, hi = A.row_range
    b = np.cos(np.arange(lo, hi)).astype(dtype)
    rtol = 1e-4 if dtype in ("complex64", "float32") else 1e-9
    for ksp, pc, columns in (("cg", "jacobi", 1), ("pipecg", "jacobi", 1), ("bicgstab", "jacobi", 2), ("tfqmr", "none", 1), ("cg", "amg", 1)):
        rhs = b if columns == 1 else np.stack([b, 2 * b], 1)
        options = f"-ksp_type {ksp} -pc_type {pc} -ksp_rtol {rtol} -device cuda"
        x, by_host = am.solve(A, rhs, options=options + " -use_nccl 0", raise_on_failure=False)
        y, direct = am.solve(A, rhs, options=options + " -use_nccl 1", raise_on_failure=False)
        assert any("by NCCL (messages have arrived" in n for n in direct.notes), direct.notes
        assert any("sums between GPUs: through the host (-use_nccl 0)" in n for n in by_host.notes), by_host.notes
        assert np.array_equal(x, y) and direct.iterations == by_host.iterations, (ksp, pc, dtype)
        assert np.array_equal(np.asarray(direct.residual_norms), np.asarray(by_host.residual_norms))
        z, late = am.solve(A, rhs, options=options + " -use_nccl 1 -ksp_asynchronous -ksp_check_every 5", raise_on_failure=False)
        assert np.array_equal(z, y) and late.iterations == direct.iterations
        assert late.host_waits <= -(-late.iterations // 5) + 3 + 2 * late.resumes, late.host_waits
"""


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("delays", ["", "1"])
def test_solves_have_the_bits_that_they_have_by_the_host(on_ranks, n, delays):
    delayed = {"ASTERISM_EMULATED_DELAYS": "1"} if delays else {}
    out = on_ranks(n, SOLVES + "\nif rank == 0: print('good')", limit=170, ASTERISM_NCCL=str(FAKE), **delayed)
    assert "good" in out


@pytest.mark.parametrize("n", [2, 3])
def test_no_iteration_copies_to_the_host_or_waits_there(on_ranks, n):
    out = on_ranks(
        n,
        """
A = am.gallery.poisson((17, 16), comm)
b = np.cos(np.arange(*A.row_range))
def counted(iterations, more):
    s = am.Solver(A, f"-ksp_type cg -pc_type jacobi -ksp_rtol 1e-30 -ksp_max_it {iterations} -ksp_max_resumes 0 -device cuda -ksp_asynchronous -ksp_check_every 1000 " + more)
    s.solve(b, raise_on_failure=False)
    before = {k: v[2] for k, v in am.gpu_state()["copies"].items()}
    s.solve(b, raise_on_failure=False)
    return sum(v[2] - before.get(k, 0) for k, v in am.gpu_state()["copies"].items())
few, many = counted(10, "-use_nccl 1"), counted(40, "-use_nccl 1")
assert few == many, (few, many)  # to the host: not in iterations
assert counted(40, "-use_nccl 0") - counted(10, "-use_nccl 0") >= 60  # at least a halo or a sum in each
if rank == 0: print("good")
""",
        ASTERISM_NCCL=str(FAKE),
    )
    assert "good" in out


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"ASTERISM_NCCL": "none"}, "no NCCL: ASTERISM_NCCL is none"),
        ({"ASTERISM_NCCL": "/nowhere/libnccl.so"}, "no NCCL: /nowhere/libnccl.so"),
        ({"ASTERISM_EMULATED_SHARED": "1"}, "ranks share a GPU, which NCCL does not allow"),
        ({"ASTERISM_FAKE_NCCL": "ncclGetUniqueId"}, "NCCL failed in ncclGetUniqueId: it was told to fail (status 5)"),
        ({"ASTERISM_FAKE_NCCL": "ncclCommInitRank"}, "NCCL failed in ncclCommInitRank: it was told to fail"),
        ({"ASTERISM_FAKE_NCCL": "ncclAllGather"}, "NCCL failed in ncclAllGather: it was told to fail"),
        ({"ASTERISM_FAKE_NCCL": "wrong"}, "NCCL's messages did not arrive as they were sent"),
    ],
)
def test_where_it_cannot_be_used_it_is_told_on_all_ranks(on_ranks, variables, why):
    out = on_ranks(
        2,
        f"""
A = am.gallery.poisson((14, 13), comm)
b = np.ones(A.local_shape[0])
x, info = am.solve(A, b, options="-ksp_type cg -ksp_rtol 1e-8 -device cuda")
(note,) = [n for n in info.notes if n.startswith("sums between GPUs: through the host")]
assert {why!r} in note, note
told = message(lambda: am.solve(A, b, options="-ksp_type cg -device cuda -use_nccl 1"))
assert "-use_nccl 1: " in told and {why!r} in told, told
y, _ = am.solve(A, b, options="-ksp_type cg -ksp_rtol 1e-8 -device cuda -use_nccl auto")
assert np.array_equal(x, y)
told = message(lambda: am.solve(A, b, options=f"-ksp_type cg -device cuda -use_nccl {{rank}}"))
assert "-use_nccl differs between the ranks" in told, told
if rank == 0: print("good")
""",
        **{"ASTERISM_NCCL": str(FAKE), **variables},
    )
    assert "good" in out
