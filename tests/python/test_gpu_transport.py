"""Sums and halos between GPUs, by NCCL and NVSHMEM (stand-ins of their functions) and by IPC, between processes with an emulated device each."""

import os

import pytest
from conftest import EMULATED_GPU, FAKES

FAKE = EMULATED_GPU.parent / "libasterism_fake_nccl.so"
REAL = os.environ.get("ASTERISM_TEST_GPU") == "1"
pytestmark = pytest.mark.skipif(not (REAL or FAKE.exists()), reason="no GPU, nor an emulated one (make test-cpp)")
emulated = pytest.mark.skipif(
    REAL, reason="a GPU that ranks share, which NCCL and NVSHMEM refuse, or what is told to fail"
)
CARRIERS = ["ipc"] if REAL else ["nccl", "nvshmem", "ipc"]

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
        x, by_host = am.solve(A, rhs, options=given(options + " -gpu_transport mpi"), raise_on_failure=False)
        assert any("sums between GPUs: through the host (-gpu_transport mpi)" in n for n in by_host.notes), by_host.notes
        for carrier in CARRIERS:
            case, carried = (carrier, ksp, pc, dtype), options + " -gpu_transport " + carrier
            y, direct = am.solve(A, rhs, options=given(carried), raise_on_failure=False)
            assert any("by " in n and "(messages have arrived" in n for n in direct.notes), (case, direct.notes)
            assert np.array_equal(x, y) and direct.iterations == by_host.iterations, case
            assert np.array_equal(np.asarray(direct.residual_norms), np.asarray(by_host.residual_norms)), case
            z, late = am.solve(A, rhs, options=given(carried + " -ksp_asynchronous -ksp_check_every 5"), raise_on_failure=False)
            assert np.array_equal(z, y) and late.iterations == direct.iterations, case
            assert late.host_waits <= -(-late.iterations // 5) + 3 + 2 * late.resumes, (case, late.host_waits)
"""


@pytest.mark.parametrize(("n", "delays"), [(2, ""), (3, "1"), (4, "")])
def test_solves_have_the_bits_that_they_have_by_the_host(on_ranks, n, delays):
    delayed = {"ASTERISM_EMULATED_DELAYS": "1"} if delays else {}
    script = SOLVES.replace("CARRIERS", repr(CARRIERS)) + "\nif rank == 0: print('good')"
    out = on_ranks(n, script, **FAKES, **delayed)
    assert "good" in out


def test_no_iteration_copies_to_the_host_or_waits_there(on_ranks):
    out = on_ranks(
        2,
        """
A = am.gallery.poisson((17, 16), comm)
b = np.cos(np.arange(*A.row_range))
def counted(iterations, more):
    s = am.Solver(A, f"-ksp_type cg -pc_type jacobi -ksp_rtol 1e-30 -ksp_max_it {iterations} -ksp_max_resumes 0 -device cuda -ksp_asynchronous -ksp_check_every 1000 " + given(more))
    s.solve(b, raise_on_failure=False)
    before = {k: v[2] for k, v in am.gpu_state()["copies"].items()}
    s.solve(b, raise_on_failure=False)
    return sum(v[2] - before.get(k, 0) for k, v in am.gpu_state()["copies"].items())
for carrier in CARRIERS:
    few, many = (counted(iterations, "-gpu_transport " + carrier) for iterations in (10, 40))
    assert few == many, (carrier, few, many)  # to the host: not in iterations
assert counted(40, "-gpu_transport mpi") - counted(10, "-gpu_transport mpi") >= 60  # at least a halo or a sum in each
if rank == 0: print("good")
""".replace("CARRIERS", repr(CARRIERS)),
        **FAKES,
    )
    assert "good" in out


def test_messages_of_many_pieces_and_several_columns(on_ranks):
    out = on_ranks(
        3,
        """
A = am.gallery.poisson((6, 300, 3), comm)  # halos of 900 rows
lo, hi = A.row_range
b = np.cos(np.arange(lo, hi)[:, None] * np.arange(1, 61)[None, :])  # of 60 columns: 432 kB
options = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-3 -ksp_max_it 12 -ksp_max_resumes 0 -device cuda "
x, _ = am.solve(A, b, options=given(options + "-gpu_transport mpi"), raise_on_failure=False)
for carrier in ("ipc",) if REAL else ("ipc", "nccl", "nvshmem"):
    y, _ = am.solve(A, b, options=given(options + "-gpu_transport " + carrier), raise_on_failure=False)
    assert np.array_equal(x, y), carrier
if rank == 0: print("good")
""".replace("REAL", repr(REAL)),
        **FAKES,
    )
    assert "good" in out


@emulated
@pytest.mark.parametrize("asynchronous", ["", " -ksp_asynchronous"])
def test_messages_that_fail_on_the_way_are_an_error(on_ranks, asynchronous):
    out = on_ranks(
        2,
        """
A = am.gallery.poisson((40, 41), comm)
told = message(lambda: am.solve(A, np.ones(A.local_shape[0]), options=given("-ksp_type cg -pc_type jacobi -ksp_rtol 1e-10 -device cuda -gpu_transport nccl" + MORE)))
assert "NCCL failed in ncclAllGather: it was told to fail" in told, told
if rank == 0: print("good")
""".replace("MORE", repr(asynchronous)),
        ASTERISM_NCCL=str(FAKE),
        ASTERISM_FAKE_NCCL="late",
    )
    assert "good" in out


@emulated
def test_auto_takes_the_first_that_works(on_ranks):
    script = """
A = am.gallery.poisson((14, 13), comm)
b = np.ones(A.local_shape[0])
x, info = am.solve(A, b, options="-ksp_type cg -ksp_rtol 1e-8 -device cuda")
(note,) = [n for n in info.notes if n.startswith("sums")]
assert "WHICH" in note, note
if rank == 0: print("good")
"""
    assert "good" in on_ranks(2, script.replace("WHICH", "between GPUs: by NCCL"), ASTERISM_NCCL=str(FAKE))
    assert "good" in on_ranks(2, script.replace("WHICH", "by windows of GPU memory (IPC)"), ASTERISM_NCCL="none")
    assert "good" in on_ranks(
        2,
        script.replace("WHICH", "it is not found: ASTERISM_NCCL is none; ipc: "),
        ASTERISM_NCCL="none",
        ASTERISM_EMULATED_NO_IPC="1",
    )


@emulated
@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"ASTERISM_NCCL": "none"}, "it is not found: ASTERISM_NCCL is none"),
        ({"ASTERISM_NCCL": "/nowhere/libnccl.so"}, "it is not found: /nowhere/libnccl.so"),
        ({"ASTERISM_EMULATED_SHARED": "1"}, "nccl: ranks share a GPU, which NCCL refuses"),
        ({"ASTERISM_FAKE_NCCL": "ncclGetUniqueId"}, "NCCL failed in ncclGetUniqueId: it was told to fail (status 5)"),
        ({"ASTERISM_FAKE_NCCL": "ncclCommInitRank"}, "NCCL failed in ncclCommInitRank: it was told to fail"),
        ({"ASTERISM_FAKE_NCCL": "ncclAllGather"}, "NCCL failed in ncclAllGather: it was told to fail"),
        ({"ASTERISM_FAKE_NCCL": "wrong"}, "nccl: messages did not arrive as they were sent"),
    ],
)
def test_where_it_cannot_be_used_it_is_told_on_all_ranks(on_ranks, variables, why):
    out = on_ranks(
        2,
        f"""
A = am.gallery.poisson((14, 13), comm)
b = np.ones(A.local_shape[0])
x, info = am.solve(A, b, options="-ksp_type cg -ksp_rtol 1e-8 -device cuda")
(note,) = [n for n in info.notes if n.startswith("sums")]
assert ("only where it is asked for" if SHARED else "by windows") in note, note
told = message(lambda: am.solve(A, b, options=given("-ksp_type cg -device cuda -gpu_transport nccl")))
assert "-gpu_transport nccl: " in told and {why!r} in told, told
y, _ = am.solve(A, b, options=given("-ksp_type cg -ksp_rtol 1e-8 -device cuda -gpu_transport mpi"))
assert np.array_equal(x, y)
E = am.gallery.poisson((1,), comm)  # a rank without entries
told = message(lambda: am.solve(E, np.ones(E.local_shape[0]), options=given("-ksp_type cg -device cuda -gpu_transport mpi -mat_gpu_product cusparse")))
assert "there is no cuSPARSE" in told, told
am.solve(A, b, options=given("-ksp_type cg -ksp_rtol 1e-3 -device cuda -mat_gpu_product auto"))
told = message(lambda: am.solve(A, b, options=given("-ksp_type cg -device cuda -gpu_transport " + ("mpi", "ipc")[rank])))
assert "-gpu_transport is ipc on rank 1; mpi on rank 0" in told, told
z, own = am.solve(A, b, options=given("-ksp_type cg -ksp_rtol 1e-8 -device cuda -gpu_transport ipc"))
assert any("by windows" in n for n in own.notes) and np.array_equal(x, z)
if rank == 0: print("good")
""".replace("SHARED", repr("ASTERISM_EMULATED_SHARED" in variables)),
        **{"ASTERISM_NCCL": str(FAKE), "ASTERISM_CUSPARSE": "none", **variables},
    )
    assert "good" in out


@emulated
def test_nvshmem_by_a_network_sends_from_symmetric_memory(on_ranks):
    script = SOLVES.replace("CARRIERS", "['nvshmem']") + "\nif rank == 0: print('good')"
    assert "good" in on_ranks(2, script, **FAKES, ASTERISM_FAKE_NVSHMEM="network")


@emulated
def test_nvshmem_serves_groups_of_the_same_ranks(on_ranks):
    out = on_ranks(
        3,
        """
import gc
def solve(c, more=""):
    A = am.gallery.poisson((14, 13), c)
    b = np.cos(np.arange(*A.row_range))
    x, _ = am.solve(A, b, options="-ksp_type cg -ksp_rtol 1e-8 -device cuda " + given(more))
    return x
world = solve(comm, "-gpu_transport nvshmem")
assert np.array_equal(world, solve(comm, "-gpu_transport mpi"))
turned = comm.Split(0, -rank)  # the same ranks in another order
for _ in range(3):  # windows of groups that are gone are used again
    again = comm.Dup()
    assert np.array_equal(solve(again, "-gpu_transport nvshmem"), world)
    assert np.array_equal(solve(turned, "-gpu_transport nvshmem"), solve(turned, "-gpu_transport mpi"))
    again.Free()
    gc.collect()
part = comm.Split(rank == 2, rank)
if part.Get_size() == 2:
    told = message(lambda: solve(part, "-gpu_transport nvshmem"))
    assert "nvshmem: it was started for other ranks" in told, told
if rank == 0: print("good")
""",
        **FAKES,
    )
    assert "good" in out


@emulated
@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"ASTERISM_NVSHMEM": "none"}, "it is not found: ASTERISM_NVSHMEM is none"),
        ({"ASTERISM_EMULATED_SHARED": "1"}, "ranks share a GPU, which NVSHMEM does not do"),
        ({"ASTERISM_FAKE_NVSHMEM": "nvshmemx_get_uniqueid"}, "NVSHMEM failed in nvshmemx_get_uniqueid (status 7)"),
        (
            {"ASTERISM_FAKE_NVSHMEM": "nvshmemx_hostlib_init_attr"},
            "NVSHMEM failed in nvshmemx_hostlib_init_attr (status 7)",
        ),
        ({"ASTERISM_FAKE_NVSHMEM": "nvshmem_calloc"}, "bytes of symmetric memory; NVSHMEM_SYMMETRIC_SIZE says"),
        ({"ASTERISM_FAKE_NVSHMEM": "wrong"}, "messages did not arrive as they were sent"),
    ],
)
def test_where_nvshmem_cannot_be_used_it_is_told_on_all_ranks(on_ranks, variables, why):
    out = on_ranks(
        2,
        f"""
A = am.gallery.poisson((14, 13), comm)
b = np.ones(A.local_shape[0])
for _ in range(2):  # found out once
    told = message(lambda: am.solve(A, b, options=given("-ksp_type cg -device cuda -gpu_transport nvshmem")))
    assert "-gpu_transport nvshmem: " in told and {why!r} in told, told
other = comm.Dup()
told = message(lambda: am.solve(am.gallery.poisson((14, 13), other), b, options=given("-ksp_type cg -device cuda -gpu_transport nvshmem")))
started = "failed in" in {why!r}
assert ("its start has failed before" if started else {why!r}) in told, told
x, info = am.solve(A, b, options=given("-ksp_type cg -ksp_rtol 1e-8 -device cuda -gpu_transport auto"))  # it is not tried where it was not asked for
(note,) = [n for n in info.notes if n.startswith("sums")]
assert "nvshmem" not in note, note
if rank == 0: print("good")
""",
        **{**FAKES, **variables},
    )
    assert "good" in out
