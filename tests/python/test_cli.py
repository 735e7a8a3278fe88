"""asterism solve: what it prints and writes, and its exit codes."""

import re
from pathlib import Path

import pytest
from command_line import run, said

import asterism as am


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


def test_exit_codes_and_messages(tmp_path):
    hint = "unknown option -ksp_rtolx (command line). Did you mean -ksp_rtol?"
    assert hint in run("solve", "poisson2d", "-ksp_rtolx", "1", expect=1)
    assert "DIVERGED_ITS" in run("solve", "poisson2d", "--max-it", 2, "--pc", "none", expect=3)
    assert "usage" in run(expect=2)
    assert "least squares by lsmr" in run("solve", make_rectangular(tmp_path))
    assert "Did you mean poisson3d" in said("solve", "poison3d", expect=1)
    assert "does not exist" in said("solve", "poisson2d", "--report", tmp_path / "no" / "r.html", expect=1)
    assert "which problem?" in said("solve", expect=1)
    refused = said(
        "solve", make_rectangular(tmp_path), "--x0", make_rectangular(tmp_path), "-ksp_gmres_restart", "5", expect=1
    )
    assert "--x0, -ksp_gmres_restart is not offered for least squares" in refused
    assert "--ksp lsmr" in said("solve", make_rectangular(tmp_path), "--ksp", "cg", expect=1)
    assert "least squares by lsqr" in said("solve", make_rectangular(tmp_path), "--ksp", "lsqr")


def make_rectangular(tmp_path):
    p = tmp_path / "r.mtx"
    p.write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n")
    return p


def fallback(folder, rank=0, size=1):
    """On every rank; the first one says what is said."""
    weak = ("solve", "convection2d", "--n", 30, "--ksp", "gmres", "--pc", "jacobi", "--max-it", 5)

    def has(out, *texts, times=None):
        assert rank > 0 or all(out.count(t) == times if times else t in out for t in texts), out

    has(said(*weak, expect=3), "DIVERGED_ITS")
    out = said(*weak, "--fallback", "--save", f"{folder}/x.mtx", "--report", f"{folder}/r.html")
    has(out, "gmres + jacobi ended with DIVERGED_ITS; solved directly instead (--fallback)")
    has(out, "componentwise backward error", f"{size} rank(s)")
    assert rank > 0 or re.search(r"solver +preonly \+ lu \(sparse, 900 rows", out)
    out = said(*weak, "--fallback", "-pc_factor_memory_limit", 1000, expect=1)
    has(out, "lu: the factors of 900 rows need", "1 kB are allowed", times=1)
    # options of either solver are for one of the two; of neither: said once
    out = said(*weak, "--fallback", "-pc_factor_mat_ordering_type", "nd", "-ksp_gmres_restart", 4, "-pc_ilut_drop", 0.1)
    has(out, "has no effect", "option -pc_ilut_drop (command line) has no effect: neither gmres", times=1)
    out = said(*weak, "-pc_factor_mat_ordering_type", "nd", expect=3)
    has(out, "option -pc_factor_mat_ordering_type (command line) has no effect")
    # what converges is as without it
    out = said("solve", "convection2d", "--n", 30, "--fallback")
    assert "solved directly" not in out
    has(out, "CONVERGED_RTOL")


def test_fallback_solves_directly(tmp_path):
    fallback(tmp_path)
    assert (tmp_path / "x.mtx").exists() and "solved directly instead" in (tmp_path / "r.html").read_text()


def test_fallback_solves_directly_on_ranks(on_ranks, tmp_path):
    on_ranks(2, f"from test_cli import fallback\nfallback({str(tmp_path)!r}, rank, size)")
    assert (tmp_path / "x.mtx").exists() and "solved directly instead" in (tmp_path / "r.html").read_text()


def test_quiet_monitor_and_help():
    assert run("solve", "poisson2d", "--n", 10, "--quiet").strip() == ""
    out = said("solve", "poisson2d", "--n", 10, "--quiet", "-ksp_monitor")
    assert "    0 KSP residual norm" in out
    assert "-pc_amg_threshold" in said("solve", "--help-options")
    assert "examples:" in said("solve", "--help")


def test_each_help_has_a_description_and_an_example_that_parses():
    from asterism.cli.main import _parser

    top, seen = _parser(), []

    def look(p):
        for action in p._actions:
            if isinstance(action.choices, dict):
                for child in action.choices.values():
                    look(child)
        seen.append(p.prog)
        assert p.description and "example" in (p.epilog or ""), p.prog
        lines = [line for line in p.epilog.splitlines() if line.startswith("  asterism ")]
        assert any(line.startswith(f"  {p.prog}") for line in lines), p.prog
        for line in lines:
            top.parse_known_args(line.split(" > ")[0].split()[1:])

    look(top)
    assert len(seen) > 25


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_failure_of_all_ranks_is_said_once(tmp_path, ranks):
    """Not converged, or an error of all: its text alone, without a box of the launcher's."""
    command = ("solve", "poisson2d", "--n", 20, "--ranks", ranks)
    out = run(*command, "--pc", "none", "--max-it", 3, expect=3)
    assert out.count("not converged. DIVERGED_ITS") == 1 and "exited with non-zero status" not in out
    out = run(*command, "--x0", tmp_path / "missing.npy", expect=1)
    assert out.count("missing.npy") == 1 and "exited with non-zero status" not in out
    out = run(*command, "--pc", "lu", "-pc_factor_levels", 3)
    assert out.count("option -pc_factor_levels (command line) has no effect") == 1


def test_least_squares_says_what_ended_it(data):
    out = said("solve", data / "lp_e226.mtx.gz", "--rtol", "1e-8")
    result = {
        line.split("  ")[0].strip(): line for line in out.splitlines() if line.startswith(("||", "cond", "result"))
    }
    residual, relative, limit = (float(w) for w in re.findall(r"\d\.\d+e[-+]\d+", result["||b - A x||"])[:3])
    assert "A x = b to the tolerances" in result["result"] and relative > 1e-8 and residual <= limit
    assert "a lower bound" in result["cond(A)"]


def iterations(out):
    return int(out.split("CONVERGED_RTOL after ")[1].split()[0])


def test_a_stopped_solve_goes_on_from_its_checkpoint(data, tmp_path):
    K, kept = data / "bcsstk16.mtx.gz", tmp_path / "x.ast"
    options = ("--ksp", "cg", "--pc", "jacobi", "--rtol", "1e-8")
    said("solve", K, *options, "--max-it", 60, "--checkpoint", kept, "--checkpoint-every", 25, expect=3)
    part = run("solve", K, *options, "--x0", kept, "--ranks", 2)
    whole = said("solve", K, *options)
    assert iterations(part) < iterations(whole), (part, whole)
    assert "does not exist" in said("solve", K, *options, "--checkpoint", tmp_path / "no" / "x.ast", expect=1)
    # told before the solve
    out = said("solve", K, *options, "--save", tmp_path / "x.npz", expect=1)
    assert "is written as" in out and "iteration" not in out


BAR = Path(__file__).resolve().parents[2] / "examples" / "data"
STIFFNESS = ("solve", BAR / "bar.mtx.gz", "--ksp", "cg", "--pc", "amg", "--rtol", "1e-8", "--block-size", 3)
NODES = BAR / "bar_coords.mtx.gz"


def test_coordinates_make_the_rigid_body_modes():
    told, plain = said(*STIFFNESS, "--coordinates", NODES), said(*STIFFNESS)
    assert iterations(told) < 17 and iterations(told) < iterations(plain), (told, plain)
    for wrong, text in ((BAR / "bar.mtx.gz", "is needed"), (f"{NODES}:x", "Leave the name out")):
        assert text in said(*STIFFNESS, "--coordinates", wrong, expect=1)


@pytest.mark.parametrize("ranks", [2, 3])
def test_coordinates_make_the_rigid_body_modes_on_ranks(on_ranks, ranks):
    on_ranks(
        ranks,
        """
from test_cli import NODES, STIFFNESS, iterations, said
told = said(*STIFFNESS, "--coordinates", NODES)
if rank == 0: assert iterations(told) < 17, told
""",
    )


def test_the_block_size_of_a_built_in_problem_is_its_own():
    assert "--block-size is for files" in said("solve", "poisson2d", "--n", 20, "--block-size", 3, expect=1)
