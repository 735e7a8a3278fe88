"""Products of csr blocks on a GPU by cuSPARSE: a stand-in of its functions on the emulated device; itself where ASTERISM_TEST_GPU=1."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EMULATED_GPU, PATIENCE

FAKE = EMULATED_GPU.parent / "libasterism_fake_cusparse.so"
REAL = os.environ.get("ASTERISM_TEST_GPU") == "1"
emulated = pytest.mark.skipif(not FAKE.exists() or REAL, reason="no emulated GPU (make test-cpp builds it)")

PRELUDE = """
import json, sys, numpy as np, asterism as am
sys.path.append(HERE)
from process_options import given
def tridiagonal(n, dtype="float64", queue=None):
    i = np.concatenate([np.arange(n), np.arange(n - 1), np.arange(1, n)])
    j = np.concatenate([np.arange(n), np.arange(1, n), np.arange(n - 1)])
    v = np.concatenate([4 + np.cos(np.arange(n)), np.full(2 * n - 2, -1.0)]).astype(dtype)
    plan = am.Assembly((n, n), i, j)
    return plan.matrix(am.Vector.wrap(plan, v, queue) if queue else v)
def message(f):
    try: f()
    except am.AsterismError as e: return str(e)
    raise AssertionError("no error")
""".replace("HERE", repr(str(Path(__file__).parent)))


def run(script, **environment):
    env = {**os.environ, **({} if REAL else {"ASTERISM_CUSPARSE": str(FAKE)}), **environment}
    out = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if REAL and "there is no cuSPARSE" in out.stderr:
        pytest.skip("no cuSPARSE")
    assert out.returncode == 0, out.stderr
    return out


LARGE = """
q = am.Queue("cuda")
A = tridiagonal(90_000, queue=q)
x = np.sin(np.arange(90_000))
y = [(A @ am.Vector.wrap(A, x.copy(), q)).numpy().copy() for _ in range(3)]
assert np.array_equal(y[0], y[1]) and np.array_equal(y[0], y[2]) and np.allclose(y[0], A.to_scipy() @ x)
B = tridiagonal(90_000, queue=q)
assert np.array_equal((B @ am.Vector.wrap(B, x.copy(), q)).numpy(), y[0])
(told,) = am.gpu_state()["products"]  # B's are those of A
print(json.dumps(told))
"""


@emulated
def test_what_takes_less_time_is_taken():
    fast = json.loads(run(LARGE).stdout)
    assert fast["taken"] == ("cusparse" if fast["cusparse_seconds"] < 0.9 * fast["own_seconds"] else "own")
    assert fast["shape"] == [90_000, 90_000] and fast["entries"] == 269_998 and fast["dtype"] == "float64"
    slow = json.loads(run(LARGE, ASTERISM_FAKE_CUSPARSE="slow").stdout)
    assert slow["taken"] == "own" and slow["cusparse_seconds"] > 0.02 > slow["own_seconds"] > 0


@emulated
@pytest.mark.parametrize(
    "function", ["cusparseCreateCsr", "cusparseSpMV_bufferSize", "cusparseSpMV_preprocess", "cusparseSpMV"]
)
def test_one_that_fails_is_told_and_not_taken(function):
    out = run("import logging; logging.basicConfig()\n" + LARGE, ASTERISM_FAKE_CUSPARSE=function)
    assert json.loads(out.stdout.replace("Infinity", "1e300"))["taken"] == "own"
    assert out.stderr.count(f"cuSPARSE failed in {function}: it was told to fail (status 7)") == 1
    run(
        f"""
A = tridiagonal(50, queue=am.Queue("cuda"))
b = np.ones(50)
assert "cuSPARSE failed in {function}" in message(lambda: am.solve(A, b, options=given("-ksp_type cg -device cuda -mat_gpu_product cusparse")))
x, _ = am.solve(A, b, options=given("-ksp_type cg -device cuda -mat_gpu_product own -ksp_rtol 1e-10"))
assert np.allclose(A.to_scipy() @ x, b)
""",
        ASTERISM_FAKE_CUSPARSE=function,
    )


@emulated
def test_small_blocks_and_own_are_not_measured():
    run("""
A = tridiagonal(90_000, queue=am.Queue("cuda"))
am.solve(A, np.ones(90_000), options=given("-ksp_type cg -pc_type jacobi -device cuda -mat_gpu_product own -ksp_rtol 1e-3"))
B = tridiagonal(80_000, queue=am.Queue("cuda"))
am.solve(B, np.ones(80_000), options=given("-ksp_type cg -pc_type jacobi -device cuda -mat_gpu_product auto -ksp_rtol 1e-3"))
assert am.gpu_state()["products"] == []
""")


@pytest.mark.skipif(not (REAL or FAKE.exists()), reason="no GPU")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("method", ["cg", "bicgstab", "gmres", "tfqmr"])
def test_solves_have_the_same_bits_in_both_forms(dtype, method):
    """A condition that stops the iterations stops what cuSPARSE writes."""
    run(
        f"""
A = tridiagonal(300, "{dtype}", am.Queue("cuda"))
b = np.sin(np.arange(300)).astype("{dtype}")
options = given("-ksp_type {method} -pc_type none -ksp_rtol 1e-5 -device cuda -mat_gpu_product cusparse")
x, info = am.solve(A, b, options=options)
assert info.converged and np.linalg.norm(A.to_scipy() @ x - b) < 1e-4 * np.linalg.norm(b)
if "{method}" != "gmres":
    y, late = am.solve(A, b, options=options + " -ksp_asynchronous -ksp_check_every 7")
    assert np.array_equal(x, y) and late.iterations == info.iterations, (late.iterations, info.iterations)
    assert np.array_equal(late.residual_norms, info.residual_norms)
B = am.Matrix.from_scipy(A.to_scipy().toarray())  # stored otherwise where real
z, other = am.solve(B, b, options=options)
assert np.linalg.norm(x - z) < 1e-3 * np.linalg.norm(x)
X, many = am.solve(A, np.stack([b, 2 * b], 1), options="-ksp_type cg -ksp_rtol 1e-5 -device cuda")
assert np.linalg.norm(2 * X[:, 0] - X[:, 1]) < 1e-3 * np.linalg.norm(X)
""",
        ASTERISM_EMULATED_DELAYS="1",
    )


@pytest.mark.skipif(not (REAL or FAKE.exists()), reason="no GPU")
def test_several_queues_use_one_matrix():
    run(
        """
am.use_argv(["-mat_gpu_product", "cusparse"])
queues = [am.Queue("cuda") for _ in range(3)]
A = tridiagonal(500, queue=queues[0])
am.solve(A, np.ones(500), options=given("-ksp_type cg -device cuda -ksp_rtol 1e-3 -mat_gpu_product cusparse"))
S = A.to_scipy()
xs = [np.sin(k + np.arange(500)) for k in range(12)]
ys = [A @ am.Vector.wrap(A, x.copy(), queues[k % 3]) for k, x in enumerate(xs)]
for x, y in zip(xs, ys):
    assert np.allclose(y.numpy(), S @ x)
""",
        ASTERISM_EMULATED_DELAYS="1",
    )


@emulated
def test_where_there_is_none_it_is_told():
    script = """
A = tridiagonal(50, queue=am.Queue("cuda"))
told = message(lambda: am.solve(A, np.ones(50), options=given("-ksp_type cg -device cuda -mat_gpu_product cusparse")))
assert "there is no cuSPARSE: WHY" in told and "pip install nvidia-cusparse" in told, told
am.solve(A, np.ones(50), options=given("-ksp_type cg -device cuda -mat_gpu_product auto -ksp_rtol 1e-3"))
"""
    run(script.replace("WHY", "ASTERISM_CUSPARSE is none"), ASTERISM_CUSPARSE="none")
    run(script.replace("WHY", "/nowhere/libcusparse.so"), ASTERISM_CUSPARSE="/nowhere/libcusparse.so")
    run(
        script.replace("WHY", "cuSPARSE failed in cusparseCreate: it was told"), ASTERISM_FAKE_CUSPARSE="cusparseCreate"
    )
