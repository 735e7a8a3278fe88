"""asterism convert and inspect, and problems in files."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command_line import run, said

import asterism as am


def test_files_rhs_and_bcsstk16(data, tmp_path):
    out = run("solve", data / "bcsstk16.mtx.gz", "--ksp", "cg", "--pc", "jacobi", "--ranks", 2, "--rtol", "1e-8")
    assert "CONVERGED_RTOL" in out
    A = am.read_matrix(data / "memplus.mtx.gz")
    said(
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
    out = said(
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


def test_names_in_files_that_hold_several(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    A, B = (am.gallery.poisson((n, n)) for n in (6, 9))
    scipy_io.savemat(tmp_path / "two.mat", {"A": A.to_scipy(), "B": B.to_scipy()})
    out = said("solve", tmp_path / "two.mat", expect=1)
    assert "holds A, B: say which with name= (--name on the command line)" in out
    assert "81 x 81" in said("solve", tmp_path / "two.mat", "--name", "B")
    assert "holds A, B and no 'C'" in said("solve", tmp_path / "two.mat", "--name", "C", expect=1)
    x = np.arange(36.0)
    am.save(tmp_path / "run.ast", A=A, first=A @ x, second=-(A @ x), x=x)
    out = said("solve", tmp_path / "run.ast", "--rhs", tmp_path / "run.ast", expect=1)
    assert "holds first, second, x" in out and "run.ast:NAME" in out
    command = ("solve", tmp_path / "run.ast", "--rhs", f"{tmp_path / 'run.ast'}:second", "--rtol", "1e-10")
    said(*command, "--save", tmp_path / "y.npy")
    assert np.allclose(np.load(tmp_path / "y.npy"), -x, atol=1e-6)
    assert "after 0 iterations" in said(
        "solve", tmp_path / "run.ast", "--rhs", f"{tmp_path / 'run.ast'}:first", "--x0", tmp_path / "run.ast"
    )


def negative(folder, path):
    """The file of the same matrix with the other sign."""
    io = pytest.importorskip("scipy.io")
    io.mmwrite(folder / "negative.mtx", -io.mmread(path))
    return folder / "negative.mtx"


def test_convert_and_inspect(data, tmp_path):
    S = am.read_matrix(data / "bcsstk16.mtx.gz").to_scipy()
    for target, ranks in (("K.ast", 2), ("K.petsc", 2), ("K.mtx", 1), ("K.npz", 1)):
        out = (run if ranks > 1 else said)("convert", data / "bcsstk16.mtx.gz", tmp_path / target, "--ranks", ranks)
        assert "4884 x 4884, 290378 entries, float64" in out
        assert abs(am.read_matrix(tmp_path / target).to_scipy() - S).max() == 0
    assert "17758 x 1" in said("convert", data / "memplus_rhs1.mtx.gz", tmp_path / "b.petsc", "--vector")
    out = said("convert", tmp_path / "K.ast", tmp_path / "L.npz", "--ranks", 2, expect=1)
    assert "written by one process" in out
    out = said("inspect", data / "west0479.mtx.gz", "--spy", tmp_path / "spy.png")
    assert "zeros on the diagonal      471" in out and "+----" in out
    assert "--ksp preonly --pc lu (as auto does)" in out and "structural rank            479" in out
    assert "pc auto: lu (471 entries of the diagonal are zero)" in said("solve", data / "west0479.mtx.gz")
    weak = said("inspect", data / "s3rmt3m3.mtx.gz")
    assert "--ksp preonly --pc cholesky (as auto does)" in weak and weak.count("--pc cholesky") == 1
    assert "--ksp cg --pc amg (as auto does)" in said("inspect", negative(tmp_path, data / "1138_bus.mtx.gz"))
    assert (tmp_path / "spy.png").read_bytes()[1:4] == b"PNG" and not list(tmp_path.glob(".part*"))
    found = json.loads(said("inspect", "elasticity3d", "--n", 4, "--json"))
    assert found["Hermitian"] and found["positive_diagonal"] and "--ksp cg --pc amg" in found["to_try"]
    assert json.loads(said("inspect", "neumann2d", "--n", 5, "--json"))["constants_in_null_space"]
    assert "223 x 472" in said("inspect", data / "lp_e226.mtx.gz")
    assert "neither a file nor a built-in problem" in said("inspect", tmp_path / "none.mtx", expect=1)


def test_what_is_read_is_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    am.write_matrix("k.mtx", am.gallery.poisson((4, 4)))
    am.write_vector("b.mtx", np.ones(16))
    before = {name: Path(name).read_bytes() for name in ("k.mtx", "b.mtx")}
    os.symlink("k.mtx", "link.mtx")
    for words, text in (
        ("solve k.mtx --save k.mtx", "--save 'k.mtx' is also the problem"),
        ("solve k.mtx --save link.mtx", "is also the problem"),
        ("solve k.mtx --trace ./k.mtx", "is also the problem"),
        ("solve k.mtx --rhs b.mtx --save b.mtx", "is also --rhs"),
        ("solve k.mtx --save s.mtx --trace s.mtx", "is also --save"),
        ("advise k.mtx --save k.mtx", "is also the problem"),
        ("convert k.mtx k.mtx", "is also the source"),
    ):
        assert text in said(*words.split(), expect=1), words
    assert "--rtol 10: a number from 0 to below 1" in said("solve", "k.mtx", "--rtol", "10", expect=1)
    assert {name: Path(name).read_bytes() for name in before} == before
    said("solve", "k.mtx", "--x0", "b.mtx", "--save", "b.mtx", "--quiet")  # a solve that goes on
