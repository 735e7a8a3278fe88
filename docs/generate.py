"""Pages that are written from the library itself: methods, options, commands, Python names, measurements."""

import contextlib
import importlib
import io
import json
import operator
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import asterism
from asterism import _core

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

SUBJECTS = {  # rooms of the package's own list of names, and modules
    "Solving": ["solvers.solve", "solvers.solver", "solvers.info", "solvers.advise", "solvers.least_squares"],
    "Direct solves": ["solvers.factorized", "solvers.factors", "solvers.taken_factors"],
    "Matrices and vectors": ["la.matrix", "la.builder", "la.assembly", "la.operator", "la.vector", "la.scalar"],
    "Products and parts of matrices": ["la.products", "la.submatrix"],
    "Options": ["base.options"],
    "Errors": ["errors"],
    "Files": ["la.io", "vtk"],
    "Problems and grids": ["gallery", "grid"],
    "Stencils": ["stencil"],
    "Reports": ["report", "report.trace"],
    "Communication": ["comm.forest", "comm.channels", "comm.report"],
    "Queues and GPUs": ["device.queue", "device.kernel", "device.gpu", "comm.queued_forest"],
    "Models of time": ["models"],
    "In place of SciPy and PyAMG": ["scipy", "pyamg"],
}
RETURNED = {  # by functions, and not made by name
    "Stencils": ["asterism.bricks.stencil_operator.StencilOperator"],
    "Communication": ["asterism.comm.flight.Flight"],
    "Queues and GPUs": ["asterism.comm.queued_forest.QueuedFlight"],
}
ALSO = {"fgmres": "gmres, fgmres", "amg": "amg (gamg)"}  # methods that share a list of options
PREFIXES = """## Options of inner solvers

These methods and preconditioners have solvers inside. Their options have a prefix before the names above.

| options | prefix | example |
| --- | --- | --- |
| `-pc_type bjacobi`, `asm` | `sub_` | `-pc_type asm -sub_pc_type ilu -sub_pc_factor_levels 1` |
| `-pc_type ksp` | `ksp_` | `-ksp_type fgmres -pc_type ksp -ksp_ksp_type cg -ksp_pc_type jacobi -ksp_ksp_max_it 5` |
| `-pc_gmg_coarse_type ksp` | `mg_coarse_` | `-pc_type gmg -pc_gmg_coarse_type ksp -mg_coarse_ksp_type cg` |

[Nest solvers](../../howto/nested-solvers.md) has more.
"""
SOURCES_AND_COSTS = {  # of preconditioners whose file speaks of several, or whose cost is that of others
    "jacobi": ("Jacobi (1846); Saad (2003), sec. 4.1.", "3 n values."),
    "none": ("None is needed.", "Nothing."),
    "amg": ("", "A V-cycle: a few products with each level. `solver.view()` prints the operator complexity."),
    "asm": ("", "That of the inner preconditioner, and messages to neighbours before it."),
    "bjacobi": ("Saad (2003), sec. 4.1.", "That of the inner preconditioner; no message."),
    "chebyshev": (
        "Golub and Varga (1961); Saad (2003), alg. 12.1, for D^-1 A.",
        "`-pc_chebyshev_degree` - 1 products with A.",
    ),
    "gmg": (
        "Brandt (1977); Trottenberg, Oosterlee and Schueller (2001).",
        "A V-cycle: its smoothing steps, each a product.",
    ),
    "ksp": ("The method and preconditioner of the prefix `ksp_`.", "The iterations of the inner solver."),
    "lu": ("[Factorisations](../../explanation/factorisations.md) names the papers.", "One pass over the factors."),
    "sor": ("", "One pass over the entries, two if symmetric; times `-pc_sor_its`."),
}
SOURCES_AND_COSTS["gamg"], SOURCES_AND_COSTS["cholesky"] = SOURCES_AND_COSTS["amg"], SOURCES_AND_COSTS["lu"]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in line) + " |" for line in lines)


def sources(folder: str) -> list[str]:
    """Return the texts of a folder's files, each with what it is about at its head."""
    texts = []
    for p in sorted((ROOT / "src/asterism" / folder).rglob("*.cpp")):
        text, header = p.read_text(), p.with_suffix(".hpp")
        texts.append(text if text.startswith("//") or not header.exists() else header.read_text() + text)
    return texts


def first_comment(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    return " ".join(lines)


def cost(text: str, name: str) -> str:
    _, found_name, rest = text.partition(f'return "{name}"')  # of several in one file
    text = rest if found_name else text
    found = re.search(r"// ((?:Per iteration|One pass|1 M)[^\n]*(?:\n\s*//[^\n]*)*)", text)
    return re.sub(r"\s*\n\s*//\s*", " ", found.group(1)) if found else ""


def methods() -> str:
    """One row for each method and preconditioner: what it is, the papers, what an iteration costs; out of the sources' own comments."""
    ours, theirs = _core.component_names()
    out = ["# Methods and preconditioners", ""]
    for title, folder, names, listing in (
        ("Methods", "krylov", ours, "krylov/method"),
        ("Preconditioners", "precond", theirs, "precond/preconditioner"),
    ):
        table_of_names, other_names = ((ROOT / f"src/asterism/{listing}.{kind}").read_text() for kind in ("hpp", "cpp"))
        entry = {
            name: function or name for name, function in re.findall(r'\bX\("?(\w+)"?(?:, (\w+))?\)', table_of_names)
        }
        entry.update(re.findall(r'\{"(\w+)", (\w+)_entry\(\)\}', other_names))
        rows = []
        for name, about in sorted(names.items()):
            text = next(t for t in sources(folder) if f"Entry {entry[name]}_entry() {{" in t)
            paper, price = SOURCES_AND_COSTS.get(name, ("", "")) if folder == "precond" else ("", "")
            rows.append([f"`{name}`", about, paper or first_comment(text), price or cost(text, name)])
        out += [f"## {title}", "", table(["name", "what it is", "source", "cost"], rows), ""]
    return "\n".join(out)


def options() -> str:
    out = [
        "# Options",
        "",
        "This page lists every option of the library. `asterism solve --help-options` prints the same list.",
        "",
    ]
    groups: dict[str, list[list[str]]] = {}
    for group, name, fallback, text, choices in _core.option_tables():
        allowed = f" ({', '.join(choices)})" if choices else ""
        groups.setdefault(group, []).append([f"`-{name}`", f"`{fallback}`" if fallback else "", text + allowed])
    for group, rows in groups.items():
        out += [f"## {ALSO.get(group, group)}", "", table(["option", "default", "meaning"], rows), ""]
    out += [PREFIXES]
    return "\n".join(out)


def commands() -> str:
    out = ["# Command line", ""]
    names = ["", "solve", "advise", "inspect", "convert", "info", "bench", "model"]
    for name in names:
        command = ["asterism", *([name] if name else []), "--help"]
        text = subprocess.run(
            [sys.executable, "-m", "asterism", *command[1:]], capture_output=True, text=True, check=True
        ).stdout
        out += [f"## {' '.join(command[:-1])}", "", f"```console\n$ {' '.join(command)}\n{text}```", ""]
    return "\n".join(out)


def names_of(subject: str) -> list[str]:
    """Return the public names of a subject, as they follow `am.`."""
    names: list[str] = []
    for place in SUBJECTS[subject]:
        names += asterism._ROOMS.get(place, ())
        if place in asterism._MODULES and place != "errors":  # whose names are those of the package
            names += [f"{place}.{name}" for name in getattr(asterism, place).__all__]
    return names


def entry(name: str) -> str:
    """Return the directive that documents a name."""
    value = operator.attrgetter(name.removeprefix("asterism."))(asterism)
    full = name if name.startswith("asterism.") else f"am.{name}"
    if isinstance(value, dict):
        return f".. py:data:: {full}\n\n   By name: {', '.join(value)}.\n"
    if not isinstance(value, type):
        return f".. autofunction:: {full}\n"
    inherited = "show-inheritance" if issubclass(value, Exception) else "inherited-members"
    return f".. autoclass:: {full}\n   :members:\n   :{inherited}:\n"


def reference() -> str:
    for name in ("", *asterism._MODULES):  # the pages say am, as programs do
        at = f".{name}" if name else ""
        sys.modules[f"am{at}"] = importlib.import_module(f"asterism{at}")
    out = ["# Python", "", "The public names of `import asterism as am`, by subject.", ""]
    for subject in SUBJECTS:
        out += [f"## {subject}", ""]
        for name in names_of(subject) + RETURNED.get(subject, []):
            out += [f"### {name.rpartition('.')[2]}" if name in RETURNED.get(subject, []) else f"### am.{name}", ""]
            out += [f"```{{eval-rst}}\n{entry(name)}```", ""]
    return "\n".join(out)


def bars(name: str, labels: list[str], values: list[list[float]], series: list[str], unit: str, folder: Path) -> str:
    """Draw stacked bars, return the line that shows them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.5 + 0.4 * len(labels)), layout="constrained")
    axes = figure.add_subplot()
    left = [0.0] * len(labels)
    for text, row in zip(series, values, strict=True):
        axes.barh(labels, row, left=left, label=text)
        left = [a + b for a, b in zip(left, row, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    if len(series) > 1:
        axes.legend()
    figure.savefig(folder / f"{name}.svg")
    return f"![{name}]({name}.svg)\n"


def picture(r: dict, folder: Path) -> str:
    if r["bench"] == "amg":
        names = list(r["runs"])
        both = [[statistics.median(x[k][0] for x in r["runs"][n]) for n in names] for k in ("setup", "solve")]
        return bars("amg", names, both, ["set-up", "solve"], f"seconds, Poisson {r['n']}^3, fresh process", folder)
    if r["bench"] == "spmv":
        names = list(r["cases"])
        values = [r["cases"][n]["fraction_of_triad"] for n in names]
        return bars("spmv", names, [values], ["product"], "plain CSR's bytes / time / triad", folder)
    if r["bench"] == "weak":
        return weak_scaling(r, folder)
    return ""


def weak_scaling(r: dict, folder: Path) -> str:
    """Draw times by the number of ranks, a line for each size, as Fig. 9 and 10 of the paper; return the lines that show them."""
    from matplotlib.figure import Figure

    shown = ""
    for name, what in (("solve", ["solve"]), ("setup", ["mesh", "matrix", "rest"])):
        figure = Figure(figsize=(8, 3.2 if len(what) == 1 else 3.6), layout="constrained")
        for axes, phase in zip(figure.subplots(1, len(what), squeeze=False, sharey=True)[0], what, strict=True):
            for size in sorted({c["cells_of_a_rank"] for c in r["cases"]}):
                cases = sorted((c for c in r["cases"] if c["cells_of_a_rank"] == size), key=lambda c: c["ranks"])
                ranks, times = [c["ranks"] for c in cases], [statistics.median(c[phase]) for c in cases]
                axes.plot(ranks, times, marker="o", label=f"{size}^3 cells a rank")
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(ranks, [f"{n}{'*' * (n > r['cores'])}" for n in ranks])
            axes.set_title(phase)
            axes.set_xlabel(f"ranks (*: more than {r['cores']} cores)")
        figure.axes[0].set_ylabel("seconds")
        figure.axes[0].legend(fontsize="small", loc="lower right")
        figure.savefig(folder / f"weak_{name}.svg")
        shown += f"![weak scaling: {name}](weak_{name}.svg)\n\n"
    return shown


def measurements(folder: Path) -> str:
    import tables  # bench/tables.py: the same words as the benchmark's own

    out = [
        "# Measurements",
        "",
        "These are medians of the raw runs under `bench/results/`. `make bench` repeats the runs.",
        "",
    ]
    for file in sorted((ROOT / "bench/results").glob("*.json")):
        r = json.loads(file.read_text())
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            tables.show(r)
        out += [
            f"## {r['bench']}",
            "",
            f"{r['date'][:10]}, commit {r['commit']}, {r['cpu']}, {r['cores']} cores, g++ {r['compiler']}",
            "",
            picture(r, folder),
            f"```text\n{text.getvalue()}```",
            "",
        ]
    return "\n".join(out)


def pages(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("methods", methods()),
        ("options", options()),
        ("commands", commands()),
        ("python", reference()),
        ("measurements", measurements(folder)),
    ):
        (folder / f"{name}.md").write_text(text)


BLOCK = re.compile(r"^```console\n(\$ asterism [^\n]*)\n(.*?)^```", re.M | re.S)


def output_of(command: str, folder: str) -> str:
    """Return what a command of the tutorial prints, run among the real matrices."""
    words = [sys.executable, "-u", "-m", "asterism", *command.split()[2:]]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def rewrite_tutorial(folder: str) -> None:
    page = ROOT / "docs/tutorials/real-problems.md"
    page.write_text(BLOCK.sub(lambda m: f"```console\n{m[1]}\n{output_of(m[1], folder)}```", page.read_text()))


if __name__ == "__main__":
    rewrite_tutorial(os.environ["ASTERISM_DATA"])
