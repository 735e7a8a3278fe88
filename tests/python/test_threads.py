"""Objects used by several threads of a program: right answers, or an error at once."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import PATIENCE, run_session

import asterism as am


@pytest.mark.parametrize("pc", ["amg", "jacobi", "ilu", "sor", "chebyshev"])
def test_one_solver_in_several_threads(pc):
    A = am.gallery.poisson((30, 30))
    S = A.to_scipy()
    s = am.Solver(A, ksp="cg", pc="icc" if pc == "ilu" else pc, rtol=1e-9)

    def one(k):
        b = np.sin(np.arange(900.0) * (k + 1)) + 1
        return np.linalg.norm(b - S @ s.solve(b)) / np.linalg.norm(b)

    with ThreadPoolExecutor(6) as pool:
        assert max(pool.map(one, range(60))) <= 1.001e-9


def test_solvers_that_share_matrix_and_preconditioner():
    """The matrix's products, and their transposes, are made by whichever thread comes first."""
    for _ in range(5):
        A = am.gallery.convection_diffusion((30, 30), (20.0, 5.0), 1.0)
        S = A.to_scipy()
        M = am.Solver(A, ksp="gmres", pc="ilu").preconditioner
        barrier = threading.Barrier(4)

        def one(k):
            s = am.Solver(
                A,
                ksp=("bicg", "gmres", "bicgstab", "idr")[k % 4],
                **({"pc": "jacobi"} if k % 2 == 0 else {"M": M}),
                rtol=1e-8,
            )
            barrier.wait()
            b = np.cos(np.arange(900.0) * (k + 1))
            return np.linalg.norm(b - S @ s.solve(b)) / np.linalg.norm(b)

        with ThreadPoolExecutor(4) as pool:
            assert max(pool.map(one, range(4))) <= 1.001e-8


def test_a_solve_within_a_solve_of_the_same_solver_is_refused():
    s = am.Solver(am.gallery.poisson((12, 12)), ksp="cg", pc="jacobi")

    def again(it, norm):
        s.solve(np.ones(144))

    with pytest.raises(am.UnsupportedError, match="using the same solver already"):
        s.solve(np.ones(144), monitor=again)
    assert np.isfinite(s.solve(np.ones(144))).all()


@pytest.mark.parametrize(
    "work",
    [
        "s.solve(b)",
        "s.solve(b, monitor=lambda it, norm: None)",
        "am.Solver(A, ksp='preonly', pc='lu')",
        "am.solve(am.Operator(lambda x: 2 * x, 3600), b, ksp='cg', pc='none')",
    ],
)
def test_the_program_ends_while_daemon_threads_work(work):
    script = f"""
import threading, time, numpy as np, asterism as am
A, b = am.gallery.poisson((60, 60)), np.ones(3600)
s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-10)
def work():
    while True: {work}
{work}
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(3):
        code, out = run_session([sys.executable, "-c", script], PATIENCE)
        assert code == 0, out


def test_on_ranks_the_second_thread_gets_an_error(on_ranks):
    on_ranks(
        2,
        """
import threading
A = am.gallery.poisson((30, 30), comm)
s = am.Solver(A, ksp="cg", pc="jacobi", rtol=1e-8)
n = A.local_shape[0]
errors = []
def second():
    try: s.solve(np.ones(n))
    except am.UnsupportedError as e: errors.append(str(e))
def monitor(it, norm):
    if it == 3:
        t = threading.Thread(target=second); t.start(); t.join()
s.solve(np.ones(n), monitor=monitor)
assert s.info.converged
assert len(errors) == 1 and "another thread is in a call" in errors[0], errors
""",
    )
