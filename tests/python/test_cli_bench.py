"""asterism bench: every benchmark, in a quick form, and how its tables and its progress are shown."""

import contextlib
import io
import json
import re

import numpy as np
import pytest
from command_line import run, said

import asterism as am
from asterism.cli import bench_busy, bench_forest
from asterism.cli.bench import BENCHMARKS as known

BENCHMARKS = {  # a quick form of each, and what its table has
    "spmv": (["--n", 12], "of the triad"),
    "vectors": (["--n", 12], "update_and_norm2"),
    "assembly": (["--n", 6], "entries given"),
    "amg": (["--n", 12], "2 rank(s)"),
    "stencil": (["--n", 12, "--points", "7", "--dtypes", "float32", "--cycles", "--brick", "4,4,4"], "a V cycle"),
    "launch": ([], "waited for"),
    "async": (["--most", "1e4"], "sync. / async."),
    "busy": ([], "of fair share"),
    "pingpong": ([], "raw mpi"),
    "unpack": ([], "sum / replace"),
    "transports": ([], "auto / best"),
    "sfsetup": ([], "16384"),
    "channels": ([], "MB/s"),
    "sptrsv": (["poisson2d", "--n", 12, "--ordering", "amd"], "simulated ms"),
    "halo": (["--n", 12], "raw / ours"),
    "gmg": (["-s", "16,16,16", "-l", "2", "-n", "3", "-bottom", "20"], "level 1 interpolation"),
    "weak": (["--sizes", "2,3", "--ranks", "1,3"], "iterations"),
}


def test_every_benchmark_is_tried_here():
    assert set(known) == set(BENCHMARKS)


def shorten(patch=setattr):
    """Few sizes, and each for a short time."""
    patch(bench_forest, "LOOP", 1e-4)
    patch(bench_forest, "SIZES", {k: (s[0], s[2]) for k, s in bench_forest.SIZES.items() if k != "sfsetup"})
    bench_forest.SIZES["sfsetup"] = (128, 16384)
    for name, value in (("LOOP", 0.01), ("SETTLE", 0.02), ("POINTS", (50, 50))):
        patch(bench_busy, name, value)


def where_it_runs(name):
    """As its help says."""
    where = " ".join(said("bench", name, "--help").split()).split(" Runs ")[1].split(".")[0]
    kinds = {"on one process": 1, "on any number": 2, "on 2 ranks or more": 3, "that it is given": 4}
    (kind,) = [n for text, n in kinds.items() if text in where]
    return kind


def check(name, found, size):
    """What was measured, and its table."""
    if name == "weak":
        assert [(c["ranks"], c["cells_of_a_rank"]) for c in found["cases"]] == [(1, 2), (1, 3), (3, 2), (3, 3)]
        for c in found["cases"]:
            assert c["unknowns"] == np.prod([2 * c["cells_of_a_rank"] * p - 1 for p in c["processes"]])
            assert c["relative_residual"] <= 1e-12 and c["iterations"] > 0 and c["threads"] == 1
            assert all(len(c[k]) == 1 for k in ("assembly", "setup", "mesh", "matrix", "rest", "again", "solve"))
            assert all(0 <= c[k][0] <= c["setup"][0] for k in ("mesh", "matrix", "rest"))
    if name == "busy":
        assert found["ranks"] == size and len(found["exchanges"]) == 2 * (size > 1)
        assert len(found["solves"]["synchronous"]) == 7
    if name == "gmg" and size == 2:  # 16 x 16 x 32 points, cut in half; ghosts are two layers of bricks of 8 x 8 x 8
        calls = {(c["case"], c["level"]): c for c in found["levels"]}
        assert set(calls) == {(c, n) for c in ("applyOp", "smooth + residual", "exchange") for n in range(3)}
        assert [calls["applyOp", n]["points"] for n in range(2)] == [16**3, 8**3]
        assert [calls["exchange", n]["bytes"] for n in range(2)] == [8 * 2 * 4 * 8**3, 8 * 2 * 8**3]
        assert all(len(c["seconds"]) == 1 and c["seconds"][0] > 0 for c in found["levels"])
    if name == "pingpong":
        assert found[0]["bytes"] == 8 and min(found[0]["raw_mpi"] + found[0]["p2p contiguous"]) > 0
    table = io.StringIO()
    with contextlib.redirect_stdout(table):
        known[name].show(found)
    lines = [line for line in table.getvalue().splitlines() if line.startswith("  ")]
    word = BENCHMARKS[name][1] if (name, size) != ("amg", 1) else "1 rank(s)"
    assert word in table.getvalue() and len(lines) >= 2, table.getvalue()


def measured(name):
    """Of a run in this process, or on these ranks: of the first one."""
    out = said("bench", name, *BENCHMARKS[name][0], "--repeats", 1, "--json")
    return json.loads(out.splitlines()[-1]) if out.strip() else None


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_where_its_help_says(name, monkeypatch):
    """JSON, and a table of it, or an error that says where; those of several ranks run together below."""
    shorten(monkeypatch.setattr)
    kind = where_it_runs(name)
    if kind == 3:
        assert "Use --ranks 2" in said("bench", name, *BENCHMARKS[name][0], "--ranks", 1, expect=1)
    else:
        check(name, measured(name), 1)
    if kind == 1:
        assert "unrecognized arguments: --ranks" in said("bench", name, "--ranks", 2, expect=2)
    assert "unrecognized arguments: --fast" in said("bench", name, "--fast", expect=2)


def test_benchmarks_on_ranks(on_ranks):
    out = on_ranks(
        2,
        """
from test_cli_bench import BENCHMARKS, check, measured, shorten, where_it_runs
shorten()
for name in BENCHMARKS:
    if where_it_runs(name) in (2, 3):
        found = measured(name)
        if rank == 0: check(name, found, 2)
        assert rank == 0 or found is None
        print(f"({name})", flush=True)
""",
        alone=True,
    )
    assert out.count("(") == 2 * 10, out


def test_a_benchmark_starts_its_ranks():
    """Two where nothing is said."""
    out = run("bench", "halo", "--n", 10, "--repeats", 1)
    assert "raw / ours" in out and "10^3 cut 2x1x1" in out


def test_info_and_bench():
    d = json.loads(said("info", "--json"))
    assert d["triad_GB_per_s"] > 0.1
    r = json.loads(said("bench", "spmv", "--n", 20, "--repeats", 2, "--json"))
    assert r["nnz"] == am.gallery.poisson((20, 20, 20)).nnz and r["GB_per_s"] > 0
    table = said("bench", "amg", "--n", 16, "--repeats", 1).splitlines()
    assert table[1].split() == ["set-up", "s", "solve", "s", "iterations"] and len(table[1]) == len(table[2])


def test_cycles_go_on_from_an_iterate_whose_residual_is_larger():
    r = json.loads(said("bench", "gmg", "-d", "32,32,32", "-smooth", "1,0", "-n", 3, "-I", 1, "--json"))
    before, *after = r["residuals"]
    assert len(after) == r["cycles"] == 3 and before < after[0] < after[1] < after[2]


def test_multigrid_on_bricks_reports_as_the_paper_does():
    out = said("bench", "gmg", "-d", "16,16,16", "-I", 1, "-l", 2)
    assert "converged to 1e-10 in 9 V cycles" in out
    assert re.search(r"level 0 smooth \[\S+, \S+, \S+\] \(", out) and "level 2 bottom" in out and "GStencil/s" in out
    for name in (
        "applyOp",
        "smooth",
        "smooth + residual",
        "8 smooths, some at once",
        "restriction",
        "interpolation + increment",
    ):
        assert re.search(rf"level 0 {re.escape(name)} \S+ s: \d+\.\d\d of \S+ MB", out), name
    assert re.search(r"level 2 one smooth \+ residual \S+ s: \S+ Gpoints/s of a rank", out) and "exchange" not in out
    assert "at once" not in said("bench", "gmg", "-d", "16,16,16", "-I", 1, "-l", 2, "-ghost", 1)
    for option, value in (
        ("-bottom", "abc"),
        ("-brick", "0"),
        ("-n", "0"),
        ("-l", "-1"),
        ("-s", "8,8"),
        ("-smooth", "0,0"),
        ("-omega", "0"),
        ("-omega", "-1"),
        ("-omega", "2"),
        ("-omega", "nan"),
        ("-omega", "abc"),
    ):
        assert f"argument {option}: '{value}' is not" in said("bench", "gmg", option, value, expect=2)
    for option in ("-l", "-s", "-smooth", "-bottom", "-brick"):
        assert f"argument {option}: 99999999999 is too many" in said("bench", "gmg", option, 99999999999, expect=2)
    assert "argument -l: 100 is too many; at most 99" in said("bench", "gmg", "-l", 100, expect=2)
    assert "argument -I/--repeats: 'x' is not a whole number" in said("bench", "gmg", "-I", "x", expect=2)
    assert "argument --most: 'x' is not a number" in said("bench", "async", "--most", "x", expect=2)
    assert "(7, 7, 7) points are no multiple" in said("bench", "gmg", "-s", "7,7,7", expect=1)
    assert "depth 8 are deeper than a brick of 4" in said("bench", "gmg", "-brick", "4", "-ghost", "8", expect=1)
    assert "4 smooths, some at once" in said("bench", "gmg", "-d", "16,16,16", "-I", 1, "-l", 2, "-brick", "4")


@pytest.mark.parametrize(
    ("words", "most"),
    [(("-bottom", "1000000000"), 100_000), (("-n", "1000000000"), 10_000), (("-smooth", "1,1000000"), 1000)],
)
def test_work_that_would_not_end_is_refused(words, most):
    assert f"{words[1].split(',')[-1]} is too many; at most {most}" in said("bench", "gmg", *words, expect=2)


def test_tables_are_aligned(capsys):
    from asterism.cli.table import in_bytes, print_table

    print_table("title", ["name", "us", "why"], [["a", "1.50", "x"], ["bbbbbb", "123.25", "-"]])
    assert capsys.readouterr().out == "title\n  name        us  why\n  a         1.50  x\n  bbbbbb  123.25  -\n"
    assert [in_bytes(n) for n in (8, 1024, 4096, 1000, 1 << 22)] == ["8 B", "1 KiB", "4 KiB", "1000 B", "4 MiB"]


def test_steps_of_a_benchmark_are_counted(monkeypatch, capsys):
    from asterism.cli import progress

    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for _ in progress.steps("pingpong", range(4)):
        now[0] += 12
    text = capsys.readouterr().err
    assert "pingpong: 1 of 4 done   25 %, 12 s, some 36 s left" in text and text.count("\n") == 3
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    assert list(progress.steps("pingpong", range(3))) == [0, 1, 2]
    assert capsys.readouterr().err.count("\r") == 5  # over one line, which is wiped


def test_progress_shows_how_fast_and_how_long(monkeypatch, capsys):
    from asterism.cli import progress

    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    p = progress.Progress(1e-8)
    for it in range(201):
        now[0] += 1.0
        p(it, 10 ** (-0.02 * it), f"r {10 ** (-0.02 * it):.1e}")
    lines = capsys.readouterr().err.splitlines()
    its = [int(line.split()[1]) for line in lines]
    assert its[:5] == [0, 1, 2, 5, 10] and all(b - a <= 11 for a, b in zip(its, its[1:], strict=False)), its
    assert "0.02 digits an iteration, some 200 left" in lines[-1]
    p = progress.Progress(1e-8)
    for it in range(30):
        p(it, 1.0, "r")
    assert "not falling" in capsys.readouterr().err


@pytest.mark.parametrize("options", ["-ksp_type cg", "-pc_gmg_cycle_type w -ksp_max_it 3", "-pc_type amg"])
def test_options_around_the_cycles_are_refused(options):
    words = ("bench", "gmg", "-d", "16,16,16", "-I", "1", "-l", "1", "-n", "1", "-options", options)
    assert "in -options has no effect" in run(*words, expect=1)
