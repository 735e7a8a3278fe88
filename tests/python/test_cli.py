import json
import sys

import numpy as np
import pytest
from conftest import PATIENCE, run_session

import asterism as am


def run(*args, expect=0):
    command = [sys.executable, "-m", "asterism.cli", *map(str, args)]
    code, out = run_session(command, PATIENCE)
    assert code == expect, out
    return out


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
    refused = run("solve", make_rectangular(tmp_path), "--x0", "x.mtx", "-ksp_gmres_restart", "5", expect=1)
    assert "--x0, -ksp_gmres_restart is not offered for least squares" in refused
    assert "--ksp lsmr" in run("solve", make_rectangular(tmp_path), "--ksp", "cg", expect=1)
    assert "least squares by lsqr" in run("solve", make_rectangular(tmp_path), "--ksp", "lsqr")


def make_rectangular(tmp_path):
    p = tmp_path / "r.mtx"
    p.write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n")
    return p


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
    assert "iterations" in run("bench", "amg", "--n", 16, "--repeats", 1)


def test_bench_between_two_ranks():
    rows = json.loads(run("bench", "pingpong", "--repeats", 1, "--json").splitlines()[-1])
    assert [r["bytes"] for r in rows][0] == 8 and all(
        min(r["shm permuted sum"] + r["p2p contiguous"] + r["raw_mpi"]) > 0 for r in rows
    )
    assert "131072 bytes: contiguous" in run("bench", "sfsetup", "--repeats", 1)
    assert "two ranks" in run("bench", "pingpong", "--ranks", 1, expect=1)


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
