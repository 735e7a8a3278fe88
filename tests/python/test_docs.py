"""The pages: their Python runs, their commands print what they show, and what they name is there."""

import dataclasses
import inspect
import json
import operator
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
    command = [sys.executable, "-m", "asterism", *line.split()[1:]]
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


NOT_RUN = "<!-- not run: needs a GPU -->\n"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "generated" not in p.parts)
WITH_PYTHON = [p for p in PAGES if re.search(r"^```python$", p.read_text().replace(NOT_RUN + "```python\n", ""), re.M)]


def name_of(page):
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_code_blocks_run(page, capsys, tmp_path, monkeypatch):
    """As they stand, one after the other. What needs a GPU says so before it."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    blocks = re.findall(r"(?<!-->\n)^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == len(re.findall(r"^```python$", text, re.M)) - text.count(NOT_RUN)
    names: dict = {}
    for block in blocks:
        exec(compile(block, name_of(page), "exec"), names)


def test_every_practical_page_has_code_that_runs():
    """A how-to without Python is one of those whose subject is the shell, C++ or a machine that is not here."""
    without = {p.stem for p in PAGES if p.parent.name in ("howto", "tutorials") and p not in WITH_PYTHON}
    assert without == {
        "check-gpu-plugin",
        "extend",
        "gpu-arrays",
        "gpu-ranks",
        "real-problems",
        "shared-machine",
        "troubleshoot-mpi",
    }


TRACKED = [
    p
    for folder in ("src", "python", "tests", "scripts", "bench", "cmake", "docs", "examples", "packaging", "_build")
    for p in (ROOT / folder).rglob("*")
    if p.is_file() and "__pycache__" not in p.parts and "generated" not in p.parts
] + [p for p in ROOT.iterdir() if p.is_file()]
FILE_NAMES = {p.name for p in TRACKED}
SUFFIXES = r"\.(?:hpp|cpp|h|py|md|json|sh|cmake|svg|toml|yaml|tar\.gz)"
PROSE = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def without_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def is_there(path):
    """Of the checkout, of the C++ library or of the Python package; a pattern must fit something."""
    if "*" in path and "/" not in path:
        return any(Path(n).match(path) for n in FILE_NAMES)
    if "/" not in path.rstrip("/"):
        return path in FILE_NAMES or (ROOT / path).exists() or (ROOT / "src/asterism" / path).exists()
    places = (ROOT, ROOT / "src/asterism", ROOT / "python/asterism")
    return any(next(iter(place.glob(path)), None) is not None for place in places)


@pytest.mark.parametrize("page", PROSE, ids=lambda p: p.name)
def test_files_that_a_page_names_are_there(page):
    quoted = re.findall(r"`([^`\n]+)`", without_blocks(page.read_text()))
    words = [w.strip("(),;:") for q in quoted for w in q.split()]
    examples = re.compile(r"NAME|^build/|^/|^lib/|^(K|A|b|x|y|run|program|out|pattern|cg)\.|^FILE")
    paths = [
        w for w in words if re.fullmatch(rf"[\w.*/-]+(?:{SUFFIXES}|/)", w) and not examples.search(w) and w != "NAME/"
    ]
    missing = [p for p in paths if not is_there(p)]
    assert not missing, missing


@pytest.mark.parametrize("page", PROSE, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    """To a file, or to one of the pages that `make docs` writes; to a heading that is there."""
    generated = re.findall(r'^        \("(\w+)", \w+\(', (DOCS / "generate.py").read_text(), re.M)
    assert len(generated) == 5
    for link in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page.read_text())):
        if re.match(r"https?:", link):
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target.parent == DOCS / "reference/generated":
            assert target.stem in generated, link
            continue
        assert target.is_file(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
            assert heading in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}, link


def test_options_that_a_page_names_are_there():
    import asterism as am

    known = {name for _, name, *_ in am._core.option_tables()}
    rows = (DOCS / "howto/from-petsc4py.md").read_text().split("## Translate options")[1].split("\n## ")[0].splitlines()
    of_petsc = set(
        re.findall(r"-([a-z]+_[a-z0-9_]+)", "".join(r.split(" | ")[0] for r in rows))
    )  # where one comes from
    assert len(of_petsc) > 12 and not (of_petsc - {"pc_type"}) & known
    prefixes = re.compile(
        r"^(?:ksp_|sub_|mg_coarse_|mg_levels_|[up]_)+(?=ksp_|pc_)"
    )  # u_ and p_: of a page's own solvers
    unknown = []
    for page in PAGES:
        for name in re.findall(r"(?<![\w-])-([a-z]+_[a-z0-9_]+)", page.read_text()):
            if name not in known | of_petsc and prefixes.sub("", name) not in known:
                unknown.append((name_of(page), name))
    assert len(known) > 50 and unknown == [], unknown


def test_lines_are_short():
    """But for tables, whose rows cannot be broken, and what commands print."""
    for page in PAGES:
        text = re.sub(r"^```console.*?^```", "", page.read_text(), flags=re.M | re.S)
        long = [line for line in text.splitlines() if len(line) >= 120 and not line.startswith("|")]
        assert not long, (page.name, long)


def test_the_index_lists_every_page():
    listed = re.findall(
        r"^(?:tutorials|howto|explanation|reference|decisions)/[\w/-]+$", (DOCS / "index.md").read_text(), re.M
    )
    trees = re.findall(r"```\{toctree\}(.*?)```", "".join(p.read_text() for p in PAGES), re.S)
    names = {Path(n).name for tree in trees for n in tree.split() if ":" not in n}
    assert len(listed) > 40
    assert {p.stem for p in PAGES} - names - {"index"} == set()


ROOMS = sorted((DOCS / "explanation/rooms").glob("*.md"))


@pytest.fixture(scope="module")
def words_of_the_sources():
    texts = [p.read_text(errors="ignore") for p in TRACKED if p.suffix not in (".md", ".svg", ".gz", ".json", ".so")]
    return set(re.findall(r"[A-Za-z_]\w+", "\n".join([*texts, *FILE_NAMES])))


@pytest.mark.parametrize("page", ROOMS, ids=lambda p: p.name)
def test_names_of_a_room_are_in_the_sources(page, words_of_the_sources):
    """Types, functions, options and files: what was renamed is renamed in the pages too."""
    quoted = re.findall(r"`([^`\n]+)`", without_blocks(page.read_text()))
    named = {w for q in quoted for w in re.findall(r"[A-Za-z_]\w\w+", q)}
    assert len(named) > 10 and named - words_of_the_sources == set()


def test_each_room_has_a_page_with_its_sections():
    plan = json.loads((ROOT / "scripts/floors.json").read_text())
    for room in [*plan["rooms"], "python"]:
        text = (DOCS / f"explanation/rooms/{room}.md").read_text()
        for heading in ("Main ", "How data flow", "Invariants", "Where to add something", "Tests"):
            assert f"\n## {heading}" in text, (room, heading)


def test_the_picture_of_the_rooms_is_that_of_the_floors(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import draw_rooms

    assert (DOCS / "images/rooms.svg").read_text() == draw_rooms.picture()


def test_each_method_has_its_source(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    rows = [line.split(" | ") for line in generate.methods().splitlines() if line.startswith("| `")]
    assert len(rows) > 25
    assert not [row[0] for row in rows if not row[2].strip()]
    assert not [row[0] for row in rows if not row[3].strip(" |")]  # costs


def test_the_reference_lists_every_public_name(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    import asterism as am

    names = {n for n in am.__all__ if n not in am._MODULES}
    names |= {f"{m}.{n}" for m in am._MODULES if m != "errors" for n in getattr(am, m).__all__}
    listed = [n for subject in generate.SUBJECTS for n in generate.names_of(subject)]
    assert len(listed) == len(set(listed)) and set(listed) == names
    assert "inherited-members" in generate.entry("Matrix") and "am.report.collect\n" in generate.entry("report.collect")
    text = generate.options()
    assert "## gmres, fgmres" in text and all(f"| `{prefix}_` |" in text for prefix in ("sub", "ksp", "mg_coarse"))


def test_the_tutorial_ends_as_it_says(data, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    found = generate.BLOCK.findall((DOCS / "tutorials/real-problems.md").read_text())
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


def sections(docstring):
    """The text of each section of a NumPy docstring; that of the first is under ""."""
    parts = re.split(r"^([A-Z][a-z]+)\n---+\n", inspect.cleandoc(docstring), flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def names_in(section):
    heads = [line.partition(" : ")[0] for line in section.splitlines() if re.match(r"[\w*]", line)]
    return {name.strip(" *") for head in heads for name in head.split(",")}


def arguments(call):
    """But for keywords that are taken to say that there are none."""
    given = inspect.signature(call).parameters.values()
    return {p.name for p in given if p.name not in ("self", "cls") and (p.name, p.kind) != ("unknown", p.VAR_KEYWORD)}


def with_methods(name, value):
    yield name, value
    for base in getattr(value, "__mro__", ()):
        for method, f in vars(base).items() if base.__module__.startswith("asterism") else ():
            f = getattr(f, "__func__", f)  # of class methods
            if inspect.isfunction(f) and (not method.startswith("_") or method == "__call__"):
                yield f"{name}.{method}", f


def what_a_docstring_lacks(call):
    """Arguments under Parameters, results under Returns, fields of dataclasses under Attributes; or who makes the object."""
    import asterism as am

    text = sections(call.__doc__ or "")
    if dataclasses.is_dataclass(call):
        missing = {f.name for f in dataclasses.fields(call)} - names_in(text.get("Attributes", ""))
        return f"Attributes without {missing}" if missing else None
    made_by = re.search(r"made by `(?:am\.)?([\w.]+)`", text[""].replace("\n", " "))
    if inspect.isclass(call) and made_by:
        return None if operator.attrgetter(made_by[1])(am) else made_by[1]
    if inspect.isclass(call) and issubclass(call, Exception):
        return None
    needed, there = arguments(call), names_in(text.get("Parameters", ""))
    if needed != there:
        return f"Parameters {there}, not {needed}"
    returned = inspect.unwrap(call).__annotations__.get("return", "None")
    return "no Returns" if needed and returned != "None" and "Returns" not in text else None


def test_docstrings_say_what_is_taken_and_returned(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import generate

    import asterism as am

    names = [n for s in generate.SUBJECTS for n in generate.names_of(s)]
    names += [n.removeprefix("asterism.") for found in generate.RETURNED.values() for n in found]
    values = {n: operator.attrgetter(n)(am) for n in names}
    calls = {n: f for name, v in values.items() if callable(v) for n, f in with_methods(name, v)}
    lacking = {n: why for n, f in calls.items() if (why := what_a_docstring_lacks(f))}
    assert len(calls) > 200 and not lacking, lacking


def test_the_iterations_to_compare_with_are_those_measured():
    (said,) = re.findall(r"takes cg with amg (\d+) iterations", (DOCS / "howto/choose-a-solver.md").read_text())
    found = json.loads((ROOT / "bench/results/amg.json").read_text())
    ours = [run["iterations"] for name, runs in found["runs"].items() if name.startswith("asterism") for run in runs]
    assert found["n"] == 128 and ours and set(ours) == {int(said)}


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
