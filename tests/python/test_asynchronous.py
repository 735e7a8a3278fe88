"""Queues and asynchronous solves: the same bits, hardly a wait, and clear words where it cannot be."""

import _thread
import json
import threading

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import asterism as am

SCRIPT = """
A = am.gallery.poisson((31, 29), comm=comm)
lo, hi = A.row_range
b = np.sin(0.37 * np.arange(lo, hi))
for method in ("cg", "cg -ksp_cg_single_reduction", "pipecg", "bicgstab", "tfqmr", "cr", "bicg", "cgs", "gcr -ksp_gcr_restart 7", "richardson"):
    for pc in ("jacobi", "chebyshev", "amg -pc_amg_coarse_size 40"):
        if method == "richardson" and pc == "jacobi": continue  # slow, as it should be
        options = f"-ksp_type {method} -pc_type {pc} -ksp_rtol 1e-7 "
        s = am.Solver(A, options)
        want = s.solve(b)
        for how in ("-queue thread", "-queue strict", "-ksp_asynchronous", "-ksp_asynchronous -ksp_check_every 3 -queue strict"):
            t = am.Solver(A, options + how)
            got = t.solve(b)
            assert np.array_equal(got, want), (method, pc, how)
            assert np.array_equal(t.info.residual_norms, s.info.residual_norms)
            if how == "-ksp_asynchronous":
                assert t.info.host_waits <= (t.info.iterations + 40) / 20 + 3 + 2 * t.info.resumes, (method, t.info)
print("SAME")
"""


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_queue_gives_the_same_bits(on_ranks, n):
    assert on_ranks(n, SCRIPT).count("SAME") == n


WAITS = """
A = am.gallery.poisson((200, 200), comm=comm)
b = np.ones(A.local_shape[0])
options = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-300 -ksp_max_it 200 -ksp_error_if_not_converged false "
def waits(how):
    s = am.Solver(A, options + how)
    s.solve(b)
    assert s.info.iterations == 200
    return s.info.host_waits
synchronous = waits("-queue thread")
for every in (10, 20, 100):
    late = waits(f"-ksp_asynchronous -ksp_check_every {every}")
    assert late <= 200 / every + 3, (every, late)
    if rank == 0: print(f"WAITS every {every}: {late}, synchronous {synchronous}")
assert synchronous >= 400 and waits("") == 0
"""


@pytest.mark.parametrize("n", [1, 2])
def test_an_asynchronous_solve_hardly_waits(on_ranks, n):
    assert on_ranks(n, WAITS).count("WAITS") == 3


@pytest.mark.parametrize(
    ("name", "ksp", "pc"),
    [("bcsstk16", "pipecg", "jacobi"), ("bcsstk16", "cg -ksp_cg_single_reduction", "amg"), ("memplus", "tfqmr", "ilu")],
)
def test_real_matrices(data, name, ksp, pc):
    M = sp.csr_array(scipy.io.mmread(data / f"{name}.mtx.gz"))
    x = np.cos(np.arange(M.shape[0]))
    b = M @ x
    s = am.Solver(M, f"-ksp_type {ksp} -pc_type {pc} -ksp_rtol 1e-8 -ksp_asynchronous")
    got = s.solve(b)
    assert np.linalg.norm(b - M @ got) <= 1.001e-8 * np.linalg.norm(b)


def test_what_cannot_be_is_said():
    A = am.gallery.poisson((5, 5))
    with pytest.raises(
        am.AsterismError,
        match=r"gmres needs values on the host.*bicg, bicgstab, cg, cgs, cr, gcr, pipecg, richardson, tfqmr",
    ):
        am.Solver(A, "-ksp_type gmres -ksp_asynchronous")
    with pytest.raises(am.AsterismError, match="inline, thread, strict, shuffle"):
        am.Solver(A, "-queue treads")
    with pytest.raises(am.AsterismError, match="ksp_check_every"):
        am.Solver(A, "-ksp_asynchronous -ksp_check_every 0")


def test_monitors_hear_of_every_iteration_once():
    A = am.gallery.poisson((40, 40))
    heard = []
    s = am.Solver(A, "-ksp_type cg -pc_type jacobi -ksp_asynchronous -ksp_check_every 7")
    s.solve(np.ones(1600), monitor=lambda it, norm: heard.append((it, norm)))
    assert [it for it, _ in heard] == list(range(s.info.iterations + 1))
    assert [norm for _, norm in heard][:-1] == list(s.info.residual_norms)[:-1]
    assert s.info.residual_norms[-1] == s.info.true_residual  # of the answer, computed from it


def test_copies_can_be_forbidden(on_ranks):
    # the strict queue's data lie apart: what a solve brings there and back is an error when it is forbidden
    out = on_ranks(
        1,
        """
A = am.gallery.poisson((9, 9))
print(message(lambda: am.Solver(A, given("-ksp_type cg -pc_type sor -queue strict -forbid_copies")).solve(np.ones(81))))
""",
    )
    assert "bytes copied to the" in out
    assert "forbid_copies" in out


def test_checked_queues_find_nothing(on_ranks):
    out = on_ranks(
        2,
        """
A = am.gallery.poisson((21, 19), comm=comm)
x = am.solve(A, np.ones(A.local_shape[0]), options=given("-ksp_type cg -pc_type amg -ksp_asynchronous -queue_debug"))
print("FINE")
""",
    )
    assert out.count("FINE") == 2


def test_traces(tmp_path, on_ranks):
    out = on_ranks(
        2,
        f"""
A = am.gallery.poisson((21, 19), comm=comm)
with am.Trace(comm) as t:
    am.solve(A, np.ones(A.local_shape[0]), options="-ksp_type cg -pc_type jacobi -ksp_asynchronous")
t.save("{tmp_path}/trace.json")
print("SPANS", len(t.spans) > 100 if rank == 0 else not t.spans)
""",
    )
    assert out.count("SPANS True") == 2
    spans = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {s["pid"] for s in spans} == {0, 1}
    assert {s["args"]["name"].split()[0] for s in spans if s["ph"] == "M"} == {"host", "queue"}
    worker = {(s["pid"], s["tid"]) for s in spans if s["ph"] == "M" and s["args"]["name"].startswith("queue")}
    busy = sorted((s["ts"], s["dur"]) for s in spans if s["ph"] == "X" and (s["pid"], s["tid"]) == min(worker))
    assert len(busy) > 50
    assert all(a + d <= b + 1e-2 for (a, d), (b, _) in zip(busy, busy[1:], strict=False))  # one after the other


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_reaches_the_queue():
    A = am.gallery.poisson((700, 700))
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        am.solve(
            A,
            np.ones(490_000),
            options="-ksp_type cg -pc_type none -ksp_rtol 1e-300 -ksp_max_it 10000000 -ksp_asynchronous",
        )
    timer.join()
    _, info = am.solve(A, np.ones(490_000), ksp="cg", pc="amg", options="-ksp_asynchronous")
    assert info.converged


def test_errors_in_a_monitor_reach_the_caller():
    def monitor(it, norm):
        raise RuntimeError("from the monitor")

    A = am.gallery.poisson((40, 40))
    with pytest.raises(RuntimeError, match="from the monitor"):
        am.solve(
            A,
            np.ones(1600),
            options="-ksp_type cg -pc_type jacobi -ksp_asynchronous -ksp_check_every 2",
            monitor=monitor,
        )
