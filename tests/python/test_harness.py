"""The tests' own runs on several ranks: what hangs fails, whatever a test expects, and leaves no process behind."""

import re
import time
from pathlib import Path

import pytest


def lives(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()  # a zombie where nobody waits for it
    except OSError:
        return False


def test_a_rank_that_hangs_fails_and_is_ended(on_ranks):
    script = """
import os, sys, time
sys.stdout.write(f"process {os.getpid()}.\\n"); sys.stdout.flush()
def sleeps_for_ever():
    while True: time.sleep(1)
if rank == 1: sleeps_for_ever()
comm.Barrier()
"""
    with pytest.raises(pytest.fail.Exception, match="hung for") as hung:
        on_ranks(2, script, limit=12, expect="any")
    text = str(hung.value)
    assert "sleeps_for_ever" in text, text  # its stack
    ranks = re.findall(r"process (\d+)\.", text)
    assert len(ranks) == 2, text
    end = time.monotonic() + 30  # killed, it may still wait for a core to end on
    while alive := [pid for pid in ranks if lives(pid)]:
        assert time.monotonic() < end, alive
        time.sleep(0.1)


@pytest.mark.parametrize(("expect", "code"), [(0, 7), (7, 0), ("error", 0)])
def test_another_exit_code_fails(on_ranks, expect, code):
    with pytest.raises(AssertionError, match=f"exit code {code}"):
        on_ranks(1, f"raise SystemExit({code})", expect=expect)


def test_ranks_run_one_script_after_another(on_ranks):
    """The same processes, as they were before; others where a script has failed."""
    changes = """
import logging, warnings
am.configure(reproducible=True); am.use_argv(["-ksp_rtol", "1e-3"]); os.environ["NEW"] = "1"; os.chdir("/"); sys.path.append("/new")
logging.getLogger("asterism").setLevel(1); warnings.simplefilter("error")
for name in ("asterism", None): logging.getLogger(name).addHandler(logging.NullHandler())
"""
    shows = """
import logging, warnings
from asterism.base import options
print("PROCESS", os.getpid(), options._command_line, am.configure()["reproducible"], os.environ.get("NEW"), os.getcwd(), "/new" in sys.path,
      logging.getLogger("asterism").level, logging.getLogger("asterism").handlers, logging.getLogger().handlers, warnings.filters[0][0], globals().get("mine"))
"""
    first = on_ranks(2, shows)
    assert first.count("PROCESS") == 2
    on_ranks(2, changes + "mine = 1\n")
    assert on_ranks(2, shows) == first
    with pytest.raises(AssertionError, match="(?s)exit code.*one of the ranks fails"):
        on_ranks(2, "comm.Barrier()\nif rank == 1: raise ValueError('one of the ranks fails')\ncomm.Barrier()\n")
    again = on_ranks(2, shows)
    assert again.count("PROCESS") == 2 and again != first
