"""What fails on one rank alone, where the others wait: the run ends, in time, and says what it was."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOLVE = """
A = am.gallery.poisson((14, 13), comm)
b = np.ones(A.local_shape[0])
am.solve(A, b, ksp="cg", pc="amg", rtol=1e-8, options="-pc_amg_coarse_size 20")
am.solve(A, b, ksp="gmres", pc="ilu", rtol=1e-8)
am.save(here + "/x.ast", comm, b=b)
am.load(here + "/x.ast", comm)
"""


def plugin_of(tmp_path_factory, name):
    out = tmp_path_factory.mktemp("fault") / f"{name}.so"
    source = HERE / f"faults/{name}.cpp"
    include = HERE.parents[1] / "src"
    subprocess.run(
        ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(out), "-ldl"],
        check=True,
    )
    return out


@pytest.fixture(scope="session")
def failing_mpi(tmp_path_factory):
    return plugin_of(tmp_path_factory, "mpi_that_fails")


@pytest.fixture(scope="session")
def rounding_mpi(tmp_path_factory):
    return plugin_of(tmp_path_factory, "mpi_that_rounds")


def with_failing(plugin, tmp_path, script):
    return (
        f"""
import os
from asterism import _core
real = _core.load_mpi
def load(path):
    os.environ["ASTERISM_REAL_PLUGIN"] = path
    real("{plugin}")
_core.load_mpi = load
here = "{tmp_path}"
"""
        + script
        + '\nprint("DONE")\n'
    )


@pytest.mark.parametrize("at", [1, 3, 11, 31, 63, 111])
@pytest.mark.parametrize(
    "place", [{"ASTERISM_RANKS_PER_NODE": "1"}, {"ASTERISM_OPTIONS": "-sf_transport p2p"}], ids=["machines", "p2p"]
)
def test_an_mpi_call_that_fails_ends_the_run(on_ranks, failing_mpi, tmp_path, at, place):
    out = on_ranks(
        2,
        with_failing(failing_mpi, tmp_path, SOLVE),
        expect="error",
        ASTERISM_FAULT_RANK="1",
        ASTERISM_FAULT_AT=str(at),
        **place,
    )
    assert "CommError: MPI failed in MPI_" in out and "(code 16)" in out, out
    assert "DONE" not in out


def test_without_a_fault_it_goes_through(on_ranks, failing_mpi, tmp_path):
    out = on_ranks(
        2,
        with_failing(failing_mpi, tmp_path, SOLVE),
        ASTERISM_FAULT_RANK="1",
        ASTERISM_FAULT_AT="1000000",
    )
    assert out.count("DONE") == 2


@pytest.mark.parametrize("pc", ["amg", "auto"])
def test_an_allocation_that_fails_on_one_rank_ends_the_run(on_ranks, pc):
    """auto takes no other preconditioner on one rank alone."""
    seen = []
    for cap in (3000, 20_000, 60_000, 120_000, 200_000, 100_000_000):
        out = on_ranks(
            2,
            f"""
A = am.gallery.poisson((40, 41), comm)
b = np.ones(A.local_shape[0])
am.solve(A, b, ksp="cg", pc="{pc}", options=given("-memory_cap {cap}" if rank == 1 else ""))
print("DONE")
""",
            expect="any",
        )
        assert ("OutOfMemoryError" in out and "cap of" in out) or out.count("DONE") == 2, out
        seen.append(out.count("DONE"))
    assert seen[0] == 0 and seen[-1] == 2, seen


def test_allocations_that_fail_leave_nothing_behind(on_ranks):
    """One process goes on after each."""
    on_ranks(
        1,
        """
def memory():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096
A = am.gallery.poisson((50, 50))
b = np.ones(2500)
plain = am.solve(A, b, ksp="cg", pc="amg")[0]
failed = 0
def attempt(cap, pc):
    global failed
    try:
        am.solve(A, b, ksp="gmres", pc=pc, options=given(f"-memory_cap {cap}"))
    except am.errors.OutOfMemoryError:
        failed += 1
for round in range(3):
    for pc in ("amg", "ilu", "sor"):
        for cap in range(250_000, 1_500_000, 25_000):
            attempt(cap, pc)
    if round == 0: before = memory()
assert failed > 30 and memory() - before < 4e6, (failed, before, memory())
x = am.solve(A, b, ksp="cg", pc="amg", options=given("-memory_cap 0"))[0]
assert np.array_equal(x, plain)
""",
        alone=True,
    )


def test_a_killed_rank_ends_the_run(on_ranks):
    out = on_ranks(
        3,
        """
import os, signal
A = am.gallery.poisson((60, 60), comm)
def watch(it, norm):
    if rank == 1 and it == 5: os.kill(os.getpid(), signal.SIGKILL)
am.solve(A, np.ones(A.local_shape[0]), ksp="cg", pc="none", rtol=1e-12, monitor=watch)
print("DONE")
""",
        expect="error",
    )
    assert "DONE" not in out and "signal 9" in out.lower(), out


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("queue", ["inline", "thread"])
def test_sums_of_mpi_that_differ_in_their_last_bit(on_ranks, rounding_mpi, tmp_path, n, queue):
    """As on more than 64 ranks, where MPI adds: all ranks go on with the same numbers and stop in the same iteration."""
    on_ranks(
        n,
        with_failing(
            rounding_mpi,
            tmp_path,
            f"""
A = am.gallery.poisson((34, 33), comm)
b = np.cos(np.arange(*A.row_range))
for ksp in ("cg", "pipecg", "bicgstab", "gmres", "idr"):
    for rtol in (1e-6, 0):
        s = am.Solver(A, ksp=ksp, pc="bjacobi", rtol=rtol, queue={queue!r}, ksp_asynchronous=ksp in ("cg", "bicgstab"))
        x = s.solve(b)
        seen = comm.allgather((s.info.iterations, s.info.reason, s.info.true_residual, float(am.Vector.wrap(A, x).norm())))
        assert len(set(seen)) == 1 and s.info.converged, seen
""",
        ),
        ASTERISM_TEST_GATHER_RANKS="1",
        ASTERISM_RANKS_PER_NODE="1",
    )
