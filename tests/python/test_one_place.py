"""A method, a preconditioner, a transport or a storage is one file and one line in one table; no other source names it but for a reason."""

import re
from pathlib import Path

import pytest

from asterism import _core

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    p
    for folder in ("src/asterism", "python/asterism", "python/bindings")
    for p in sorted((ROOT / folder).rglob("*"))
    if p.suffix in (".cpp", ".hpp", ".py")
]
METHODS, PRECONDITIONERS = (set(names) for names in _core.component_names())
# who may name one besides: they choose, advise, time, show an example, or speak for another library
CHOOSERS = {
    "src/asterism/solve/solver.cpp",
    "src/asterism/solve/automatic.cpp",
    "src/asterism/solve/inspect.cpp",
    "src/asterism/solve/advice.cpp",
    "src/asterism/solve/direct_solve.cpp",
    "src/asterism/precond/amg/amg.cpp",
    "src/asterism/precond/amg/hierarchy.cpp",
    "src/asterism/precond/amg/level_smoother.cpp",
    "src/asterism/precond/amg/level_smoother.hpp",
    "src/asterism/precond/multigrid/gmg.cpp",
    "python/asterism/solvers/candidates.py",
    "python/asterism/solvers/solve.py",
    "python/asterism/solvers/solver.py",
    "python/asterism/solvers/factors.py",
    "python/asterism/solvers/factorized.py",
    "python/asterism/solvers/taken_factors.py",
    "python/asterism/solvers/description.py",
    "python/asterism/scipy/__init__.py",
    "python/asterism/scipy/iterative.py",
    "python/asterism/scipy/direct.py",
    "python/asterism/pyamg.py",
    "python/asterism/stencil/__init__.py",
    "python/asterism/bricks/stencil_operator.py",
    "python/asterism/grid.py",
    "python/asterism/la/operator.py",
    "python/asterism/report/collect.py",
    "python/asterism/cli/files.py",
    "python/asterism/cli/solve.py",
    "python/asterism/cli/bench.py",
    "python/asterism/cli/bench_busy.py",
    "python/asterism/cli/bench_gmg.py",
    "python/asterism/cli/bench_stencil.py",
    "python/asterism/cli/bench_products.py",
    "python/asterism/cli/bench_queues.py",
}
DEFAULTS = {  # of options of their own
    ("src/asterism/precond/amg/amg.cpp", "jacobi"),
    ("src/asterism/precond/amg/amg.cpp", "richardson"),
    ("src/asterism/precond/each_rank.cpp", "ilu"),
    ("src/asterism/precond/incomplete/pivots.hpp", "icc"),  # what errors advise
    ("src/asterism/precond/incomplete/pivots.hpp", "ilut"),
    ("src/asterism/direct/symbolic/analysis.cpp", "lu"),  # kinds of factors
    ("src/asterism/direct/symbolic/analysis.cpp", "cholesky"),
    ("src/asterism/precond/direct/dense_lu.cpp", "lu"),
}
WORDS = {"none", "chebyshev", "ksp"}  # which mean other things too


def named_in(name: str) -> set[str]:
    """Sources that hold the name as a string."""
    return {str(p.relative_to(ROOT)) for p in SOURCES if re.search(f"[\"']{re.escape(name)}[\"']", p.read_text())}


def holds(pattern: str, room: Path) -> list[str]:
    """Sources of a room in which the pattern is found."""
    return [str(p.relative_to(ROOT)) for p in SOURCES if room in p.parents and re.search(pattern, p.read_text())]


def table(path: str, macro: str) -> dict[str, str]:
    """Names of a table, and the function that each line names."""
    text = (ROOT / path).read_text().split(f"#define {macro}(X)")[1].split("\n\n")[0]
    return {a.strip('" '): (b or a).strip() for a, b in re.findall(r"X\(([^,)]+)(?:, (\w+))?\)", text)}


@pytest.mark.parametrize(
    ("path", "macro", "aliases", "known"),
    [
        ("src/asterism/krylov/method.hpp", "ASTERISM_METHODS", {"bcgs"}, METHODS),
        ("src/asterism/precond/preconditioner.hpp", "ASTERISM_PRECONDITIONERS", {"gamg"}, PRECONDITIONERS),
    ],
)
def test_one_file_and_one_line(path, macro, aliases, known):
    lines = table(path, macro)
    assert set(lines) | aliases == known and len(lines) > 10
    for name, function in lines.items():
        room = (ROOT / path).parent
        files = holds(rf"Entry {function}_entry\(\) {{", room)
        assert len(files) == 1, (name, files)
        used = holds(rf"\b{function}_entry\(\)", room)
        of_alias = {path.replace(".hpp", ".cpp")} if name in ("bicgstab", "amg") else set()
        assert set(used) <= {files[0]} | of_alias, (name, used)
        if name not in WORDS:
            named = {p for p in named_in(name) if (p, name) not in DEFAULTS}
            assert named <= {files[0], path} | CHOOSERS, (name, named)


def test_transports_of_forests():
    room = ROOT / "src/asterism/comm"
    text = (
        (room / "transport/choice.hpp").read_text().split("#define ASTERISM_FOREST_TRANSPORTS(X)")[1].split("\n\n")[0]
    )
    names = re.findall(r"X\((\w+), ", text)
    assert len(names) == 5 and set(names) <= set(_core.transport_names())
    for name in names:
        made = holds(rf"> {name}_transport\(Pattern const& pattern\) {{", room)
        assert len(made) == 1 and holds(rf"\b{name}_transport\b", room) == made, name
        kinds = holds(rf"Transport(Kind|Choice)::{name}\b", room)
        assert set(kinds) <= set(made), (name, kinds)
