"""Every Python block of a page runs, one after the other."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["migrating.md", "files.md", "howto.md"])
def test_code_blocks_run(page, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_the_tutorial_ends_as_it_says(data):
    found = re.findall(r"^```console\n\$ asterism ([^\n]*)\n(.*?)^```", (DOCS / "tutorial.md").read_text(), re.M | re.S)
    assert len(found) == 10
    for command, shown in found:
        again = subprocess.run(
            [sys.executable, "-m", "asterism.cli", *shlex.split(command)], cwd=data, capture_output=True, text=True
        ).stdout
        for line in shown.splitlines():
            if line.startswith("result"):
                now = next(x for x in again.splitlines() if x.startswith("result"))
                (then, it), (words, iterations) = (
                    re.fullmatch(r"(.*?)(\d+) iterations", x).groups() for x in (line, now)
                )
                assert then == words and abs(int(it) - int(iterations)) <= 0.03 * int(it) + 1, (command, line, now)
