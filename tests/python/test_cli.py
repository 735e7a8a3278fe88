import contextlib
import io
import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE, run_session

import asterism as am


def run(*args, expect=0, limit=PATIENCE):
    command = [sys.executable, "-m", "asterism.cli", *map(str, args)]
    code, out = run_session(command, limit)
    assert code == expect, out
    return out


def refused(*args, expect=1):
    """As run(), in this process: for errors that come before any work."""
    from asterism.cli.main import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main([str(a) for a in args])
        except SystemExit as error:  # argparse
            code = error.code
    assert code == expect, out.getvalue()
    return out.getvalue()


def test_solve_a_built_in_problem_with_report(tmp_path):
    out = run(
        "solve", "poisson3d", "--n", 20, "--rtol", "1e-8", "--report", tmp_path / "r.html", "--save", tmp_path / "x.mtx"
    )
    assert "CONVERGED_RTOL" in out and "of triad" in out and "error" in out
    page = (tmp_path / "r.html").read_text()
    for word in ("<svg", "Options in force", "-ksp_rtol", "What limited it", "call", "triad"):
        assert word in page, word
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    assert am.read_vector(tmp_path / "x.mtx").shape == (8000,)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks(ranks):
    out = run("solve", "poisson2d", "--n", 40, "--ranks", ranks, "--ksp", "cg", "--pc", "amg", "-ksp_converged_reason")
    assert f"{ranks} rank(s)" in out and out.count("Linear solve converged due to CONVERGED_RTOL") == 1


def test_files_rhs_and_bcsstk16(data, tmp_path):
    out = run("solve", data / "bcsstk16.mtx.gz", "--ksp", "cg", "--pc", "jacobi", "--ranks", 2, "--rtol", "1e-8")
    assert "CONVERGED_RTOL" in out
    A = am.read_matrix(data / "memplus.mtx.gz")
    run(
        "solve",
        data / "memplus.mtx.gz",
        "--rhs",
        data / "memplus_rhs1.mtx.gz",
        "--save",
        tmp_path / "x.mtx",
        "--ksp",
        "gmres",
        "--pc",
        "ilu",
        "--rtol",
        "1e-6",
    )
    x, b = am.read_vector(tmp_path / "x.mtx"), am.read_vector(data / "memplus_rhs1.mtx.gz").ravel()
    assert np.linalg.norm(A.to_scipy() @ x - b) <= 1.001e-6 * np.linalg.norm(b)
    out = run(
        "solve",
        data / "bar.mtx.gz",
        "--block-size",
        3,
        "--near-null-space",
        data / "bar_nullspace.mtx.gz",
        "--pc",
        "amg",
        "--rtol",
        "1e-8",
    )
    assert "CONVERGED_RTOL" in out


def test_exit_codes_and_messages(tmp_path):
    assert "unknown option -ksp_rtolx (command line). Did you mean -ksp_rtol?" in run(
        "solve", "poisson2d", "-ksp_rtolx", "1", expect=1
    )
    assert "Did you mean poisson3d" in run("solve", "poison3d", expect=1)
    assert "DIVERGED_ITS" in run("solve", "poisson2d", "--max-it", 2, "--pc", "none", expect=3)
    assert "does not exist" in run("solve", "poisson2d", "--report", tmp_path / "no" / "r.html", expect=1)
    assert "which problem?" in run("solve", expect=1)
    assert "usage" in run(expect=2)
    assert "least squares by lsmr" in run("solve", make_rectangular(tmp_path))
    refused = run(
        "solve", make_rectangular(tmp_path), "--x0", make_rectangular(tmp_path), "-ksp_gmres_restart", "5", expect=1
    )
    assert "--x0, -ksp_gmres_restart is not offered for least squares" in refused
    assert "--ksp lsmr" in run("solve", make_rectangular(tmp_path), "--ksp", "cg", expect=1)
    assert "least squares by lsqr" in run("solve", make_rectangular(tmp_path), "--ksp", "lsqr")


def make_rectangular(tmp_path):
    p = tmp_path / "r.mtx"
    p.write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n")
    return p


@pytest.mark.parametrize("ranks", [1, 2])
def test_fallback_solves_directly(tmp_path, ranks):
    weak = ("solve", "convection2d", "--n", 30, "--ksp", "gmres", "--pc", "jacobi", "--max-it", 5, "--ranks", ranks)
    assert "DIVERGED_ITS" in run(*weak, expect=3)
    out = run(*weak, "--fallback", "--save", tmp_path / "x.mtx", "--report", tmp_path / "r.html")
    assert "gmres + jacobi ended with DIVERGED_ITS; solved directly instead (--fallback)" in out
    assert re.search(r"solver +preonly \+ lu \(sparse, 900 rows", out) and "componentwise backward error" in out
    assert (tmp_path / "x.mtx").exists() and "solved directly instead" in (tmp_path / "r.html").read_text()
    out = run(*weak, "--fallback", "-pc_factor_memory_limit", 1000, expect=1)
    assert out.count("lu: the factors of 900 rows need") == 1 and "1 kB are allowed" in out
    # what converges is as without it
    out = run("solve", "convection2d", "--n", 30, "--fallback", "--ranks", ranks)
    assert "solved directly" not in out and "CONVERGED_RTOL" in out


def test_quiet_monitor_and_help():
    assert run("solve", "poisson2d", "--n", 10, "--quiet").strip() == ""
    out = run("solve", "poisson2d", "--n", 10, "--quiet", "-ksp_monitor")
    assert "    0 KSP residual norm" in out
    assert "-pc_amg_threshold" in run("solve", "--help-options")
    assert "examples:" in run("solve", "--help")


def test_info_and_bench():
    d = json.loads(run("info", "--json"))
    assert d["triad_GB_per_s"] > 0.1
    r = json.loads(run("bench", "spmv", "--n", 20, "--repeats", 2, "--json"))
    assert r["nnz"] == am.gallery.poisson((20, 20, 20)).nnz and r["GB_per_s"] > 0
    table = run("bench", "amg", "--n", 16, "--repeats", 1).splitlines()
    assert table[1].split() == ["set-up", "s", "solve", "s", "iterations"] and len(table[1]) == len(table[2])


BENCHMARKS = {  # a quick form of each, and what its table has
    "spmv": (["--n", 12], "of the triad"),
    "vectors": (["--n", 12], "update_and_norm2"),
    "assembly": (["--n", 6], "entries given"),
    "amg": (["--n", 12], "2 rank(s)"),
    "launch": ([], "waited for"),
    "async": (["--most", "1e4"], "sync. / async."),
    "busy": ([], "of fair share"),
    "pingpong": ([], "raw mpi"),
    "unpack": ([], "sum / replace"),
    "transports": ([], "auto / best"),
    "sfsetup": ([], "131072"),
    "channels": ([], "MB/s"),
    "sptrsv": (["poisson2d", "--n", 12, "--ordering", "amd"], "simulated ms"),
    "halo": (["--n", 12], "raw / ours"),
    "gmg": (["-s", "16,16,16", "-l", "2", "-n", "3", "-bottom", "20"], "level 1 interpolation"),
    "weak": (["--sizes", "2,3", "--ranks", "1,3"], "iterations"),
}


def test_every_benchmark_is_tried_here():
    from asterism.cli.bench import BENCHMARKS as known

    assert set(known) == set(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_where_its_help_says(name, capsys, monkeypatch):
    """On one rank and on two, or an error that says where; JSON, and a table of it."""
    from asterism.cli import bench_busy
    from asterism.cli.bench import BENCHMARKS as known

    poisson = am.gallery.poisson
    options, word = BENCHMARKS[name]
    where = " ".join(run("bench", name, "--help").split()).split(" Runs ")[1].split(".")[0]
    command = ("bench", name, *options, "--repeats", 1)
    several = "on any number" in where or "on 2 ranks or more" in where
    given = "that it is given" in where
    assert several + given + ("on one process" in where) == 1, where
    if given:
        found = json.loads(run(*command, "--json", limit=250).splitlines()[-1])
        assert [(c["ranks"], c["cells_of_a_rank"]) for c in found["cases"]] == [(1, 2), (1, 3), (3, 2), (3, 3)]
    elif several:
        found = json.loads(run(*command, "--ranks", 2, "--json", limit=250).splitlines()[-1])
        if "on 2 ranks" in where:
            assert "Use --ranks 2" in run(*command, "--ranks", 1, expect=1)
        elif name == "busy":  # a small problem: it solves for each of seven crowds
            monkeypatch.setattr(bench_busy.gallery, "poisson", lambda shape, comm: poisson((50, 50), comm))
            alone = known[name].measure(Namespace(repeats=1), None)
            assert alone["ranks"] == 1 and not alone["exchanges"] and len(alone["solves"]["synchronous"]) == 7
        else:
            assert json.loads(run(*command, "--json", limit=250).splitlines()[-1])
    else:
        found = json.loads(run(*command, "--json", limit=250).splitlines()[-1])
        assert "unrecognized arguments: --ranks" in run("bench", name, "--ranks", 2, expect=2)
    if name == "weak":
        for c in found["cases"]:
            assert c["unknowns"] == np.prod([2 * c["cells_of_a_rank"] * p - 1 for p in c["processes"]])
            assert c["relative_residual"] <= 1e-12 and c["iterations"] > 0 and c["threads"] == 1
            assert all(len(c[k]) == 1 for k in ("assembly", "setup", "mesh", "matrix", "rest", "again", "solve"))
            assert all(0 <= c[k][0] <= c["setup"][0] for k in ("mesh", "matrix", "rest"))
    if name == "gmg":  # on two ranks: 16 x 16 x 32 points, cut in half; ghosts are two layers of bricks of 8 x 8 x 8
        calls = {(c["case"], c["level"]): c for c in found["levels"]}
        assert set(calls) == {(c, n) for c in ("applyOp", "smooth + residual", "exchange") for n in range(3)}
        assert [calls["applyOp", n]["points"] for n in range(2)] == [16**3, 8**3]
        assert [calls["exchange", n]["bytes"] for n in range(2)] == [8 * 2 * 4 * 8**3, 8 * 2 * 8**3]
        assert all(len(c["seconds"]) == 1 and c["seconds"][0] > 0 for c in found["levels"])
    if name == "pingpong":
        assert found[0]["bytes"] == 8 and min(found[0]["raw_mpi"] + found[0]["p2p contiguous"]) > 0
    known[name].show(found)
    table = capsys.readouterr().out
    lines = [line for line in table.splitlines() if line.startswith("  ")]
    assert word in table and len(lines) >= 2, table
    assert "unrecognized arguments: --fast" in run("bench", name, "--fast", expect=2)


def test_multigrid_on_bricks_reports_as_the_paper_does():
    out = run("bench", "gmg", "-d", "16,16,16", "-I", 1, "-l", 2)
    assert "converged to 1e-10 in 9 V cycles" in out
    assert re.search(r"level 0 smooth \[\S+, \S+, \S+\] \(", out) and "level 2 bottom" in out and "GStencil/s" in out
    for name in (
        "applyOp",
        "smooth",
        "smooth + residual",
        "8 smooths at once",
        "restriction",
        "interpolation + increment",
    ):
        assert re.search(rf"level 0 {re.escape(name)} \S+ s: \d+\.\d\d of \S+ MB", out), name
    assert re.search(r"level 2 one smooth \+ residual \S+ s: \S+ Gpoints/s of a rank", out) and "exchange" not in out
    assert "at once" not in run("bench", "gmg", "-d", "16,16,16", "-I", 1, "-l", 2, "-ghost", 1)
    for option, value in (
        ("-bottom", "abc"),
        ("-brick", "0"),
        ("-n", "0"),
        ("-l", "-1"),
        ("-s", "8,8"),
        ("-smooth", "0,0"),
    ):
        assert f"argument {option}: '{value}' is not" in refused("bench", "gmg", option, value, expect=2)
    assert "(7, 7, 7) points are no multiple" in refused("bench", "gmg", "-s", "7,7,7")


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


@pytest.mark.parametrize(
    "args",
    [
        ("solve", "poisson2d", "--n", "60"),
        ("solve", "--help-options"),
        ("solve", "--help"),
        ("inspect", "poisson2d", "--n", "60"),
        ("solve", "poisson2d", "--n", "60", "--ranks", "2"),
    ],
)
def test_a_reader_that_goes_away_is_no_error(args):
    command = [sys.executable, "-u", "-m", "asterism.cli", *args]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert p.stdout.readline()
    p.stdout.close()
    said = p.stderr.read()
    assert p.wait(timeout=60) in (0, 141), said
    assert "Traceback" not in said and "BrokenPipe" not in said and "Exception ignored" not in said, said


def test_a_result_is_written_though_nobody_reads(tmp_path):
    target = tmp_path / "x.npy"
    command = [sys.executable, "-u", "-m", "asterism.cli", "solve", "poisson2d", "--n", "60", "--save", str(target)]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.close()
    p.stderr.close()
    assert p.wait(timeout=60) == 0 and np.load(target).shape == (3600,)


def test_numbers_of_ranks_that_cannot_be_meant(tmp_path):
    for ranks in (0, -1):
        for command in (("solve", "poisson2d"), ("convert", "poisson2d", tmp_path / "x.ast"), ("bench", "halo")):
            assert f"--ranks {ranks}: at least 1 process" in run(*command, "--ranks", ranks, expect=1)
    cores = len(os.sched_getaffinity(0))
    for command in (("solve", "poisson2d"), ("bench", "pingpong")):
        out = run(*command, "--ranks", 8 * cores + 1, expect=1)
        assert "add --oversubscribe" in out and f"{cores} core(s)" in out
        assert "cluster's own launcher" in run(*command, "--ranks", 5000, "--oversubscribe", expect=1)
    out = run("solve", "poisson2d", "--n", 20, "--ranks", 3, "--oversubscribe", "--quiet")
    assert "iteration" not in out


def test_each_launch_has_a_session_folder_of_its_own(tmp_path, monkeypatch):
    """Open MPI does not start where a killed launcher of its process number left a session's folder."""
    from asterism.cli import launch

    script = "import os, pathlib; pathlib.Path(os.environ['TOLD']).write_text(os.environ['PMIX_SERVER_TMPDIR'])"
    monkeypatch.setattr(launch, "_PROGRAM", ("-c", script))
    folders = []
    for n in range(2):
        monkeypatch.setenv("TOLD", str(tmp_path / f"{n}"))
        assert launch.run(1, []) == 0
        folders.append(Path((tmp_path / f"{n}").read_text()).parent)
    assert folders[0] != folders[1] and all(f.name.startswith("asterism-") and not f.exists() for f in folders)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_failure_of_all_ranks_is_said_once(tmp_path, ranks):
    """Not converged, or an error of all: its text alone, without a box of the launcher's."""
    command = ("solve", "poisson2d", "--n", 20, "--ranks", ranks)
    out = run(*command, "--pc", "none", "--max-it", 3, expect=3)
    assert out.count("not converged. DIVERGED_ITS") == 1 and "exited with non-zero status" not in out
    out = run(*command, "--x0", tmp_path / "missing.npy", expect=1)
    assert out.count("missing.npy") == 1 and "exited with non-zero status" not in out
    out = run(*command, "--pc", "lu", "-pc_factor_levels", 3)
    assert out.count("option -pc_factor_levels (command line) has no effect") == 1


def test_ranks_beside_a_launcher(on_ranks):
    out = on_ranks(
        2,
        """
from asterism.cli import main
code = main(["solve", "poisson2d", "--n", "20", "--quiet", "--ranks", "3"])
assert code == 1, code
assert main(["solve", "poisson2d", "--n", "20", "--quiet", "--ranks", "2"]) == 0
assert main(["bench", "spmv"]) == 1
""",
    )
    assert "--ranks 3: mpiexec has started 2 process(es) already" in out and "spmv runs on one process" in out


def test_refused_before_the_work(tmp_path, data):
    """Nothing is read, made or solved before these errors."""
    (tmp_path / "empty").mkdir()
    nothing = tmp_path / "nothing.mtx"
    for options, text in (
        (["--save", "x.npy", "--ranks", 2], "written by one process"),
        (["--save", "x.zip"], "is written as"),
        (["--save", tmp_path / "empty"], "is a folder"),
        (["--report", tmp_path / "empty"], "is a folder"),
        (["--trace", tmp_path / "no" / "t.json"], "does not exist"),
        (["--checkpoint", tmp_path / "empty"], "is a folder"),
        (["--checkpoint", tmp_path / "x.ast", "-ksp_asynchronous"], "looks at late"),
        (["--rhs", nothing], "--rhs: "),
        (["--x0", nothing], "--x0: "),
        (["--coordinates", nothing], "--coordinates: "),
        (["--near-null-space", nothing], "--near-null-space: "),
        (["--ksp", "cgg"], "Did you mean 'cg'"),
        (["--rtol", "-1"], "ksp_rtol"),
        (["-pc_amg_treshold", "0.1"], "Did you mean -pc_amg_threshold"),
        (["-ksp_max_it", "many"], "ksp_max_it"),
        (["--name", "A"], "--name goes with a file"),
        (["-device", "hip"], "-device hip"),
        (["--ksp", "gmres", "-ksp_asynchronous"], "not asynchronous"),
    ):
        out = refused("solve", "poisson2d", "--n", 2000, *options)
        assert text in out and "read or made" not in out and "prterun" not in out, out
    for options, text in ((["--dtype", "float16"], "float16"), (["--checkpoint-every", 0], "at least 1")):
        assert text in refused("solve", "poisson2d", *options, expect=2)
    for target, text in (
        ("x.npz", "written by one process"),
        ("x.h5", "written by one process"),
        ("x.zip", "is written as"),
    ):
        assert text in refused("convert", "poisson2d", tmp_path / target, "--ranks", 2)
    assert "is no picture" in refused("inspect", "poisson2d", "--spy", tmp_path / "x.mtx")
    assert not [f for f in tmp_path.iterdir() if f.is_file()]


def test_names_in_files_that_hold_several(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    A, B = (am.gallery.poisson((n, n)) for n in (6, 9))
    scipy_io.savemat(tmp_path / "two.mat", {"A": A.to_scipy(), "B": B.to_scipy()})
    out = run("solve", tmp_path / "two.mat", expect=1)
    assert "holds A, B: say which with name= (--name on the command line)" in out
    assert "81 x 81" in run("solve", tmp_path / "two.mat", "--name", "B")
    assert "holds A, B and no 'C'" in run("solve", tmp_path / "two.mat", "--name", "C", expect=1)
    x = np.arange(36.0)
    am.save(tmp_path / "run.ast", A=A, first=A @ x, second=-(A @ x), x=x)
    out = run("solve", tmp_path / "run.ast", "--rhs", tmp_path / "run.ast", expect=1)
    assert "holds first, second, x" in out and "run.ast:NAME" in out
    command = ("solve", tmp_path / "run.ast", "--rhs", f"{tmp_path / 'run.ast'}:second", "--rtol", "1e-10")
    run(*command, "--save", tmp_path / "y.npy")
    assert np.allclose(np.load(tmp_path / "y.npy"), -x, atol=1e-6)
    assert "after 0 iterations" in run(
        "solve", tmp_path / "run.ast", "--rhs", f"{tmp_path / 'run.ast'}:first", "--x0", tmp_path / "run.ast"
    )


def test_least_squares_says_what_ended_it(data):
    out = run("solve", data / "lp_e226.mtx.gz", "--rtol", "1e-8")
    result = {
        line.split("  ")[0].strip(): line for line in out.splitlines() if line.startswith(("||", "cond", "result"))
    }
    residual, relative, limit = (float(w) for w in re.findall(r"\d\.\d+e[-+]\d+", result["||b - A x||"])[:3])
    assert "A x = b to the tolerances" in result["result"] and relative > 1e-8 and residual <= limit
    assert "a lower bound" in result["cond(A)"]


def negative(folder, path):
    """The file of the same matrix with the other sign."""
    io = pytest.importorskip("scipy.io")
    io.mmwrite(folder / "negative.mtx", -io.mmread(path))
    return folder / "negative.mtx"


def test_convert_and_inspect(data, tmp_path):
    for target, ranks in (("K.ast", 2), ("K.petsc", 2), ("K.mtx", 1), ("K.npz", 1)):
        out = run("convert", data / "bcsstk16.mtx.gz", tmp_path / target, "--ranks", ranks)
        assert "4884 x 4884, 290378 entries, float64" in out
        S = am.read_matrix(data / "bcsstk16.mtx.gz").to_scipy()
        assert abs(am.read_matrix(tmp_path / target).to_scipy() - S).max() == 0
    assert "17758 x 1" in run("convert", data / "memplus_rhs1.mtx.gz", tmp_path / "b.petsc", "--vector")
    out = run("convert", tmp_path / "K.ast", tmp_path / "L.npz", "--ranks", 2, expect=1)
    assert "written by one process" in out
    out = run("inspect", data / "west0479.mtx.gz", "--spy", tmp_path / "spy.png")
    assert "zeros on the diagonal      471" in out and "+----" in out
    assert "--ksp gmres --pc ilut -pc_factor_matching true" in out and "structural rank            479" in out
    assert "pc auto: ilut" in run("solve", data / "west0479.mtx.gz")
    assert "--ksp cg --pc amg (as auto does)" in run("inspect", negative(tmp_path, data / "1138_bus.mtx.gz"))
    assert (tmp_path / "spy.png").read_bytes()[1:4] == b"PNG" and not list(tmp_path.glob(".part*"))
    found = json.loads(run("inspect", "elasticity3d", "--n", 4, "--json"))
    assert found["Hermitian"] and found["positive_diagonal"] and "--ksp cg --pc amg" in found["to_try"]
    assert json.loads(run("inspect", "neumann2d", "--n", 5, "--json"))["constants_in_null_space"]
    assert "223 x 472" in run("inspect", data / "lp_e226.mtx.gz")
    assert "neither a file nor a built-in problem" in run("inspect", tmp_path / "none.mtx", expect=1)


def test_a_stopped_solve_goes_on_from_its_checkpoint(data, tmp_path):
    K, kept = data / "bcsstk16.mtx.gz", tmp_path / "x.ast"
    options = ("--ksp", "cg", "--pc", "jacobi", "--rtol", "1e-8")
    run("solve", K, *options, "--max-it", 60, "--checkpoint", kept, "--checkpoint-every", 25, expect=3)
    part = run("solve", K, *options, "--x0", kept, "--ranks", 2)
    whole = run("solve", K, *options)
    its = [int(out.split("CONVERGED_RTOL after ")[1].split()[0]) for out in (part, whole)]
    assert its[0] < its[1], its
    assert "does not exist" in run("solve", K, *options, "--checkpoint", tmp_path / "no" / "x.ast", expect=1)
    # told before the solve
    out = run("solve", K, *options, "--save", tmp_path / "x.npz", expect=1)
    assert "is written as" in out and "iteration" not in out


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_coordinates_make_the_rigid_body_modes(ranks):
    folder = Path(__file__).resolve().parents[2] / "examples" / "data"
    command = (
        "solve",
        folder / "bar.mtx.gz",
        "--ksp",
        "cg",
        "--pc",
        "amg",
        "--rtol",
        "1e-8",
        "--block-size",
        3,
        "--ranks",
        ranks,
    )
    nodes = folder / "bar_coords.mtx.gz"
    plain, told = (
        int(run(*command, *more).split("CONVERGED_RTOL after ")[1].split()[0])
        for more in ((), ("--coordinates", nodes))
    )
    assert told < 17 < plain, (told, plain)
    if ranks == 1:
        for wrong, text in ((folder / "bar.mtx.gz", "is needed"), (f"{nodes}:x", "Leave the name out")):
            assert text in run(*command, "--coordinates", wrong, expect=1)
