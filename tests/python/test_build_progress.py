"""`make build` shows how far the compilation is, and its output where it fails."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "with_progress.py"


def run(code):
    return subprocess.run(
        [sys.executable, SCRIPT, sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )


def test_ten_lines_of_a_long_build():
    done = run("for i in range(1, 201): print(f'  [{i}/200] Building CXX object x.o')")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 10
    assert lines[0].startswith("compiling: 20 of 200 steps, ") and lines[-1].startswith("compiling: 200 of 200 steps, ")


def test_a_failure_shows_all_output():
    failed = run("print('[1/2] Building'); print('x.cpp:1: error'); raise SystemExit(3)")
    assert failed.returncode == 3 and "x.cpp:1: error" in failed.stdout
