"""Every Python block of a page runs, one after the other."""

import re
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


def test_the_tutorial_ends_as_it_says(data, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    found = generate.BLOCK.findall((DOCS / "tutorial.md").read_text())
    assert len(found) == 10
    ends = re.compile(r"^result +(.*?)(\d+) iterations$", re.M)
    for command, shown in found:
        then, now = ends.findall(shown), ends.findall(generate.output_of(command, str(data)))
        assert len(then) == len(now) == (0 if "inspect" in command else 1), command
        for (words, iterations), (same, again) in zip(then, now, strict=True):
            assert words == same and abs(int(iterations) - int(again)) <= 0.03 * int(iterations) + 1, command
