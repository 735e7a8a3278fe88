"""Shared by the Python tests: real data where it is, and scripts on several ranks with a time limit."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from rank_team import Team

# Ranks here share a node: Open MPI looks for networks in vain otherwise, with libfabric for a second in every MPI_Init, and with UCX for
# a fortieth, and for a twentieth of every window. They share cores with other tests too.
for _setting in ("btl ^ofi", "osc ^ucx", "pml ob1", "mpi_yield_when_idle 1"):
    os.environ.setdefault("OMPI_MCA_" + _setting.split()[0], _setting.split()[1])
# Passes of several steps go by columns of bricks where a grid exceeds the caches. Grids of tests exceed this one.
os.environ.setdefault("ASTERISM_TEST_CORE_CACHE", str(3 << 18))
# A stencil is compiled once for all tests of a session: the processes of pytest and the ranks that they start inherit this.
if "ASTERISM_STENCIL_CACHE" not in os.environ:
    _compiled = tempfile.TemporaryDirectory(prefix="asterism-stencils-")  # until this process ends
    os.environ["ASTERISM_STENCIL_CACHE"] = str(Path(_compiled.name) / "stencils")
# Seconds of one run. A run that hangs fails whatever its length, so there is room for a machine whose cores others use.
PATIENCE = 240
PRELUDE = """
import faulthandler; faulthandler.dump_traceback_later({limit})
import numpy as np, asterism as am
from mpi4py import MPI
import sys; sys.path.append({here!r}); from process_options import given
comm = MPI.COMM_WORLD; rank, size = comm.rank, comm.size
import os; assert os.environ.get("ASTERISM_TEST_ARCH") in (None, am._core.build_info()["arch"])
def message(f):
    try: f()
    except am.AsterismError as e: return f"{{type(e).__name__}}: {{e}}"
    raise AssertionError("no error")
"""


def pytest_configure():
    """Where the tests are for kernels of one instruction set (scripts/test_kernels.sh), end if others were loaded."""
    wanted = os.environ.get("ASTERISM_TEST_ARCH")
    if wanted:
        from asterism import _core

        loaded = _core.build_info()["arch"]
        if loaded != wanted:
            pytest.exit(f"the kernels that were loaded are for {loaded}, not for {wanted}", returncode=1)


# The GPU of the tests: a real one where ASTERISM_TEST_GPU=1 (make gpu-check), else the emulated one that the C++ tests build
EMULATED_GPU = Path(__file__).parents[2] / "build" / "release" / "tests" / "cpp" / "libasterism_emulated_gpu.so"
if os.environ.get("ASTERISM_TEST_GPU") != "1" and EMULATED_GPU.exists():
    os.environ["ASTERISM_GPU_PLUGIN"] = str(EMULATED_GPU)
    os.environ["NVCC"] = str(Path(__file__).parents[1] / "gpu_emulation" / "nvcc")
FAKES = {
    f"ASTERISM_{name.upper()}": str(EMULATED_GPU.with_name(f"libasterism_fake_{name}.so"))
    for name in ("nccl", "nvshmem")
}
HAS_GPU = os.environ.get("ASTERISM_TEST_GPU") == "1" or EMULATED_GPU.exists()
HOST_QUEUES = ["inline", "thread", "strict", "shuffle"]
QUEUES = [
    *HOST_QUEUES,
    pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one (make test-cpp)")),
]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Where the tests are for a GPU that is there, one that is skipped for want of it or of its libraries has failed."""
    report = yield
    if report.skipped and os.environ.get("ASTERISM_TEST_GPU") == "1" and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2])
        if re.search(r"no GPU|no cuSPARSE", reason):
            report.outcome, report.longrepr = "failed", f"there is a GPU, but the test was skipped: {reason}"
    return report


@pytest.fixture(scope="session")
def data():
    """Folder of the real matrices, or skip."""
    folder = os.environ.get("ASTERISM_DATA")
    if not folder:
        pytest.skip("ASTERISM_DATA is not set")
    return Path(folder)


def end_session(process):
    """End a launcher, and what of its session is left: mpiexec's ranks stay when it is killed itself."""
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        pass
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = int(stat.read_text().rpartition(")")[2].split()[3])
            if session == process.pid:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass  # it ended meanwhile


def run_session(command, limit, env=None):
    """Exit code and output of a command. One that hangs is ended, with all that it started, and fails the test: no exit code stands for that."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
    )
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        end_session(process)
        out, _ = process.communicate()
        pytest.fail(f"hung for {limit} s: {' '.join(map(str, command))}\n{out}")
    except BaseException:  # the limit of the whole test, Ctrl-C
        end_session(process)
        raise
    return process.returncode, out


def under_mpiexec(n, folder):
    """The launcher's command for n ranks, and its environment: with a session folder of its own inside of `folder`.

    Open MPI names that folder by its process number, and does not start where a killed launcher of the same number left one. It names the
    memory that ranks share by 16 bits of a hash: of the thousands of jobs two that run at once have the same now and then, and crash.
    """
    own = tempfile.mkdtemp(prefix="mpi-", dir=folder)
    env = {"PRTE_MCA_prte_tmpdir_base": own, "OMPI_MCA_btl_sm_backing_directory": own}
    for prefix in ("OMPI", "PRTE"):
        env[f"{prefix}_ALLOW_RUN_AS_ROOT"] = env[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    beside = Path(sys.executable).parent / "mpiexec"
    program = str(beside) if beside.exists() else "mpiexec"
    return [program, "-n", str(n), "--bind-to", "none", "--map-by", ":oversubscribe"], env


class Teams:
    """Teams of ranks that wait for another script, by their number and environment; the oldest of too many end."""

    def __init__(self, folder):
        self._folder, self._of = folder, {}

    def run(self, n, path, limit, env):
        """What n ranks print that run a script."""
        settled = {k: v for k, v in env.items() if k != "PYTEST_CURRENT_TEST"}
        key = n, frozenset(settled.items())
        team = self._of.pop(key, None)
        if team is None:
            while len(self._of) >= 5:
                self._end(next(iter(self._of)))
            command, settings = under_mpiexec(n, self._folder)
            folder = tempfile.mkdtemp(prefix="team-", dir=self._folder)
            team = Team(n, command, dict(settled, **settings), folder)
            if not team.started:
                end_session(team.process)
                raise AssertionError(f"{n} ranks do not start\n{team.output(path, 'not started')}")
        try:
            why = team.run(path, limit)
        except BaseException:  # the limit of the whole test, Ctrl-C
            end_session(team.process)
            raise
        if why:
            end_session(team.process)
            out = team.output(path, why)
            pytest.fail(f"hung for {limit} s on {n} ranks\n{out}") if why == "hung" else None
            raise AssertionError(f"exit code {team.process.returncode}\n{out}")
        self._of[key] = team
        return team.output(path, why)

    def _end(self, key):
        team = self._of.pop(key)
        try:
            code, out = team.end()
        except subprocess.TimeoutExpired:
            code, out = "none: they hang", ""
        end_session(team.process)
        assert code == 0, f"ranks end with exit code {code}, having run {team.scripts}\n{out}"

    def end(self):
        """Let all end: with no error, and nothing that hangs."""
        while self._of:
            self._end(next(iter(self._of)))


@pytest.fixture(scope="session")
def teams(tmp_path_factory):
    """The teams of this process."""
    made = Teams(tmp_path_factory.mktemp("teams"))
    yield made
    made.end()


@pytest.fixture
def on_ranks(tmp_path, teams):
    """Run a script on n ranks. A hang fails the test, with every rank's stack; so does an exit code other than expect.

    expect: "error" is any but 0, "any" all. Ranks have run other scripts before, unless they are to end otherwise than with 0, or must be
    `alone`: where the script looks at what its whole process has, or changes what rank_team.py does not put back.
    """
    scripts = 0

    def run(n, script, limit=PATIENCE, expect=0, alone=False, **variables):
        nonlocal scripts
        scripts += 1
        path = tmp_path / f"script-{scripts}.py"
        sparse = "import scipy.sparse as sp\n" if re.search(r"\bsp\.", script) else ""  # half of a rank's start
        path.write_text(PRELUDE.format(limit=limit, here=str(Path(__file__).parent)) + sparse + script)
        env = dict(os.environ, OMP_NUM_THREADS="1", **variables)
        if expect == 0 and not alone:
            return teams.run(n, path, limit + 5, env)
        command, settings = under_mpiexec(n, tmp_path)
        code, out = run_session([*command, sys.executable, str(path)], limit + 5, dict(env, **settings))
        assert expect == "any" or (code != 0 if expect == "error" else code == expect), f"exit code {code}\n{out}"
        return out

    return run


@pytest.fixture
def rng():
    """A generator that every test starts afresh."""
    return np.random.default_rng(1)


@pytest.fixture
def heeds_ctrl_c():
    """SIGINT is KeyboardInterrupt also where a shell started this in the background, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def own_kernels(monkeypatch, tmp_path):
    """A cache of stencils for this test alone: the digest of a kernel does not see a planted fault, and others would find its kernel."""
    monkeypatch.setenv("ASTERISM_STENCIL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr("asterism.stencil.kernels.compiler._loaded", {})
