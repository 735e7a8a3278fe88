"""Long set-ups show how far they are on a terminal, and end soon after Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest

import asterism as am
from asterism import _core
from asterism.base.live import LiveLine, show_set_ups

SET_UPS = {
    "lu": "am.Solver(am.gallery.poisson((56, 56, 56)), pc='lu', pc_factor_mat_ordering_type='amd')",
    "dense lu": "am.Solver(am.gallery.poisson((120, 66)), pc='lu', pc_lu_type='dense')",
    "ilu(9)": "am.Solver(am.gallery.poisson((44, 44, 44)), ksp='gmres', pc='ilu', pc_factor_levels=9)",
    "ilut": "am.Solver(am.gallery.poisson((60, 60, 60)), ksp='gmres', pc='ilut', pc_ilut_drop=1e-9, pc_ilut_fill=60)",
}


def output_of(script, until, limit=120):
    """Run it on a terminal; yield (what came, process) after each piece, until `until` says True; then what came till the end."""
    main, theirs = pty.openpty()
    command = [sys.executable, "-c", "import asterism as am\nprint('begins', flush=True)\n" + script]
    p = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    out, end, done = "", time.monotonic() + limit, False
    try:
        while time.monotonic() < end:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    out += os.read(main, 4096).decode()
                except OSError:  # the other end is closed
                    break
            if not done and until(out, p):
                done = True
        assert p.wait(timeout=20) is not None
    finally:
        p.kill()
        os.close(main)
    assert done, out
    return out, p.returncode


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("name", SET_UPS)
def test_ctrl_c_ends_a_set_up_that_shows_how_far_it_is(name):
    pressed = []

    def until(out, p):
        if not re.search(rf"{re.escape(name.split()[-1])}.*: .*\d+ s", out):
            return False
        pressed.append(time.monotonic())
        p.send_signal(signal.SIGINT)
        return True

    out, code = output_of(
        f"""
try: {SET_UPS[name]}
except KeyboardInterrupt as e: print("stopped:", e)
x, info = am.solve(am.gallery.poisson((40, 40)), [1.0] * 1600, pc="amg", ksp="cg")
print("goes on", info.converged)
""",
        until,
    )
    assert time.monotonic() - pressed[0] < 20, "alone some 0.1 s"
    assert "stopped: interrupted: " + name.split()[-1] in out and "goes on True" in out and code == 0, out
    assert re.search(r"\d+ [kM]B|places of the fill", out), out  # what it takes in memory


def test_an_estimate_is_shown_and_wiped():
    out, code = output_of(
        "am.Solver(am.gallery.poisson((90, 56)), pc='lu', pc_lu_type='dense')\nprint('END')",
        lambda out, p: "s left" in out or "END" in out,
    )
    assert code == 0
    shown = re.findall(r"lu: dense factors of 5040 rows, 203 MB   (\d+) %, \d+ s, some \d+ s left", out)
    if shown:  # where it took a second or more
        assert [int(s) for s in shown] == sorted(int(s) for s in shown)
        assert re.search(r"\r +\r", out), "the line is wiped"


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_while_the_end_is_shown_does_not_end_the_next_set_up():
    shown, stopped = [], False

    def show(what, fraction, seconds, ended):
        shown.append(ended)
        if ended:
            signal.raise_signal(signal.SIGINT)

    try:
        _core.set_progress_sink(show)
        for m in (50, 80, 110):  # what takes less than a second is not shown
            try:
                am.Solver(am.gallery.poisson((120, m)), pc="lu", pc_lu_type="dense")
                time.sleep(0.01)  # Python's turn
            except KeyboardInterrupt:
                stopped = True
            if shown:
                break
    finally:
        show_set_ups()
    assert stopped and shown[-1] and not any(shown[:-1])
    assert am.Solver(am.gallery.poisson((60, 50)), pc="lu", pc_lu_type="dense")


PRESS = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def press():
    os.kill(os.getpid(), signal.SIGINT)

def interrupted_at(part, seconds, work):
    '''Press Ctrl-C on the last rank. Returns the text with which the call was left.'''
    timer = threading.Timer(part * seconds, press if rank == size - 1 else lambda: None)
    try:
        timer.start()
        work()
        timer.join()  # it came too late, or it is not here
    except KeyboardInterrupt as error:
        return str(error)
    return None

A = am.gallery.poisson((N, N, N), comm)
def seconds_of(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start
"""


@pytest.mark.parametrize("n", [1, 3])
def test_ctrl_c_ends_the_set_up_of_amg_on_all_ranks(on_ranks, n):
    out = on_ranks(
        n,
        "N = 100\n"
        + PRESS
        + """
set_up = lambda: am.Solver(A, ksp="cg", pc="amg")
set_up()
left = 0
for _ in range(4):  # others use the cores: a set-up may take less time than the one that was measured
    wall = seconds_of(set_up)
    for part in (0.15, 0.3, 0.45, 0.6, 0.75):
        end = interrupted_at(part, wall, set_up)
        stopped = end is not None and "interrupted: amg: levels of 1000000 rows" in end  # not before or after it
        assert comm.allgather(stopped) == [stopped] * size, "all ranks leave"
        left += stopped
    if left >= 2: break
assert left >= 2, left
x, info = am.solve(A, np.ones(A.local_shape[0]), ksp="cg", pc="amg", rtol=1e-6)
print("goes on", info.converged, flush=True)
""",
        limit=240,
    )
    assert out.count("goes on True") == n


def test_an_update_of_amg_that_ctrl_c_ends_may_be_repeated(on_ranks):
    on_ranks(
        1,
        "N = 110\n"
        + PRESS
        + """
B = A.with_values(2 * A.to_scipy().data)
b = np.cos(np.arange(A.shape[0]))
want = am.Solver(A, ksp="cg", pc="amg", rtol=1e-6)
want.update(B)
wall = seconds_of(lambda: want.update(B))
for updates in (0, 1):  # the first one keeps the prolongations, the next use them
    solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-6)
    for _ in range(updates): solver.update(B)
    ends = [interrupted_at(part, wall, lambda: solver.update(B)) for part in (0.05, 0.2, 0.5, 0.85)]
    assert any(ends), "Ctrl-C came too late"
    solver.update(B)
    assert np.array_equal(solver.solve(b), want.solve(b))
    assert solver.info.iterations == want.info.iterations
""",
        limit=240,
    )


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_that_a_monitor_sees_ends_the_solve_and_keeps_the_checkpoint(tmp_path):
    A = am.gallery.poisson((60, 60))

    def press(it, norm):
        if it == 7:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="interrupted at iteration"):
        am.solve(
            A, np.ones(3600), ksp="richardson", pc="jacobi", maxiter=10**6, monitor=press,
            checkpoint=tmp_path / "x.ast", checkpoint_every=10**6,
        )  # fmt: skip
    x = am.load(tmp_path / "x.ast")["x"]
    assert x.shape == (3600,) and 0 < np.abs(x).max() and np.linalg.norm(A @ x - 1) < 60


def test_a_monitor_that_stops_is_heeded_where_the_signal_is_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def stop(it, norm):
        if it == 7:
            raise KeyboardInterrupt("by hand")

    try:
        with pytest.raises(KeyboardInterrupt, match="by hand"):
            am.solve(
                am.gallery.poisson((60, 60)), np.ones(3600), ksp="richardson", pc="jacobi", maxiter=2000, monitor=stop
            )
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("columns", [80, 30, 0])
def test_a_line_fits_the_terminal(monkeypatch, columns):
    """Longer, it went over two lines, of which the first stayed each time."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        line = LiveLine()
        for text in ("x" * 200, "y" * 10):
            line.show(text)
        line.wipe()
        most, shown = (columns or 80) - 1, ""
        wanted = "\r" + "x" * most + "\r" + "y" * 10 + " " * (most - 10) + "\r" + " " * 10 + "\r"
        while len(shown) < len(wanted) and select.select([ours], [], [], 5)[0]:
            shown += os.read(ours, 10_000).decode()
    os.close(ours)
    assert shown == wanted
