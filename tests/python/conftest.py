"""Shared by the Python tests: real data where it is, and scripts on several ranks with a time limit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PRELUDE = """
import faulthandler; faulthandler.dump_traceback_later({limit} - 5, exit=True)
import numpy as np, scipy.sparse as sp, asterism as am
from mpi4py import MPI
comm = MPI.COMM_WORLD; rank, size = comm.rank, comm.size
def message(f):
    try: f()
    except am.AsterismError as e: return f"{{type(e).__name__}}: {{e}}"
    raise AssertionError("no error")
"""


# The GPU of the tests: a real one where ASTERISM_TEST_GPU=1 (make gpu-check), else the emulated one that the C++ tests build
EMULATED_GPU = Path(__file__).parents[2] / "build" / "tests" / "tests" / "cpp" / "libasterism_emulated_gpu.so"
if os.environ.get("ASTERISM_TEST_GPU") != "1" and EMULATED_GPU.exists():
    os.environ["ASTERISM_GPU_PLUGIN"] = str(EMULATED_GPU)
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


@pytest.fixture(scope="session")
def data():
    """Folder of the real matrices, or skip."""
    folder = os.environ.get("ASTERISM_DATA")
    if not folder:
        pytest.skip("ASTERISM_DATA is not set")
    return Path(folder)


@pytest.fixture
def on_ranks(tmp_path):
    """Run a script on n ranks; a hang prints every rank's stack and kills the whole group."""

    def run(n, script, limit=90, expect=0, **variables):
        path = tmp_path / "script.py"
        path.write_text(PRELUDE.format(limit=limit) + script)
        env = dict(os.environ, OMP_NUM_THREADS="1", **variables)
        for prefix in ("OMPI", "PRTE"):
            env[f"{prefix}_ALLOW_RUN_AS_ROOT"] = env[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        mpiexec = Path(sys.executable).parent / "mpiexec"
        command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(n), "--map-by", ":oversubscribe"]
        process = subprocess.Popen(
            [*command, sys.executable, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            pytest.fail(f"{n} ranks hung:\n{out}")
        if expect is not None:
            assert process.returncode == expect, out
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
