"""Long set-ups show how far they are on a terminal, and end soon after Ctrl-C."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

SET_UPS = {
    "lu": "am.Solver(am.gallery.poisson((120, 66)), pc='lu')",
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
        if not re.search(rf"{re.escape(name)}.*: .*\d+ s", out):
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
    assert "stopped: interrupted: " + name in out and "goes on True" in out and code == 0, out
    assert re.search(r"\d+ [kM]B|places of the fill", out), out  # what it takes in memory


def test_an_estimate_is_shown_and_wiped():
    out, code = output_of(
        "am.Solver(am.gallery.poisson((90, 56)), pc='lu')\nprint('END')", lambda out, p: "s left" in out or "END" in out
    )
    assert code == 0
    shown = re.findall(r"lu: dense factors of 5040 rows, 203 MB   (\d+) %, \d+ s, some \d+ s left", out)
    if shown:  # where it took a second or more
        assert [int(s) for s in shown] == sorted(int(s) for s in shown)
        assert re.search(r"\r +\r", out), "the line is wiped"
