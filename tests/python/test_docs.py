"""Every Python block of a page runs, one after the other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
COMMANDS = re.findall(r"^\$ (asterism .*)\n((?:[^$`].*\n)*)", README, re.M)


@pytest.mark.parametrize(("line", "shown"), COMMANDS)
def test_a_command_of_the_readme_prints_what_it_says(line, shown, tmp_path):
    assert len(COMMANDS) == 3
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    command = [sys.executable, "-m", "asterism.cli", *line.split()[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in shown.splitlines():  # but for what rounding changes
        if text.startswith(("problem", "solver")):
            assert text in done.stdout, done.stdout
        else:
            assert text.split()[0] in done.stdout
    for then, now in zip(*(re.findall(r"after (\d+) iterations", t) for t in (shown, done.stdout)), strict=True):
        assert abs(int(then) - int(now)) <= 3


def test_the_python_of_the_readme_runs_as_it_stands(capsys):
    (block,) = (text for kind, text in BLOCKS if kind == "python")
    exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out.split(", relative")[0]
    assert said.startswith("<asterism.SolveInfo CONVERGED_RTOL after ") and said in block


def test_the_distribution_is_not_called_as_another_projects():
    """`asterism` on PyPI is another project."""
    files = [ROOT / "README.md", ROOT / "pyproject.toml"]
    for folder in ("python", "docs", "packaging", "scripts", "src", "cmake", "examples"):
        files += [
            p
            for p in (ROOT / folder).rglob("*")
            if p.suffix in (".py", ".md", ".toml", ".sh", ".yaml", ".cpp", ".hpp", ".cmake")
        ]
    wrong = re.compile(
        r"(?<![\w/-])asterism\[|pip install '?asterism(?!-sparse)|^name = \"asterism\"|^  name: asterism$", re.M
    )
    assert len(files) > 100 and '"asterism-sparse"' in (ROOT / "pyproject.toml").read_text()
    found = [str(p.relative_to(ROOT)) for p in files if wrong.search(p.read_text(errors="ignore"))]
    assert found == [], found


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


def test_examples_of_docstrings_run():
    code = """
import doctest, importlib, pkgutil, asterism as am
tried = 0
for found in pkgutil.walk_packages(am.__path__, "asterism."):
    if found.name.rpartition(".")[2] in ("__main__", "_core") or found.name.startswith("asterism.lib"): continue
    module = importlib.import_module(found.name)
    outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert outcome.failed == 0, found.name
    tried += outcome.attempted
print(tried)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 80


def test_the_readme_has_the_benchmarks_figures():
    """Its table is that of the raw runs; `bench/tables.py --readme` writes it."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        import tables
    finally:
        sys.path.pop(0)
    (found,) = re.findall(r"<!-- bench/tables.py --readme -->\n(.*?)<!-- end -->\n", README, re.S)
    assert found == tables.readme_table()
    rest = README.replace(found, "")
    assert not re.findall(r"\d+\.\d+ (?:of it|times|GB/s|ms|s\b)", rest), "a figure without its runs"
