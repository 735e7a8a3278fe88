"""Advice: what is tried, under which limits, and what is said of it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from command_line import run, said

import asterism as am
from asterism import _core
from asterism.solvers.advise import _steps
from asterism.solvers.candidates import CANDIDATES, LADDERS, NOT_TRIED, candidates, look
from asterism.solvers.trials import Trials

ENDLESS = {  # set-ups and solves that take minutes for Poisson's equation on this grid
    "set-up": "-ksp_type gmres -pc_type ilut -pc_ilut_drop 1e-12 -pc_ilut_fill 400",
    "solve": "-ksp_type gmres -ksp_gmres_restart 3 -pc_type none -ksp_max_it 1000000",
    "inner solve": "-ksp_type fgmres -pc_type ksp -ksp_ksp_type richardson -ksp_ksp_richardson_scale 1e-9 -ksp_pc_type none "
    "-ksp_ksp_max_it 100000000 -ksp_ksp_rtol 1e-12",
}
GRID = (600, 600)


@pytest.fixture(scope="module")
def advice():
    return am.advise(am.gallery.poisson((30, 30)), budget=20)


def test_the_best_solves_the_system_as_it_says(advice):
    assert advice.best is advice.trials[0] and advice.best.converged
    converged = [t for t in advice.trials if t.converged]
    assert advice.trials[: len(converged)] == converged == sorted(converged, key=lambda t: t.seconds)
    assert any("-pc_type amg" in t.options for t in converged) and len(converged) >= 6
    A = am.gallery.poisson((30, 30))
    b = np.random.default_rng(0).standard_normal(900)
    x, info = am.solve(A, b, options=advice.options)
    assert np.linalg.norm(A.to_scipy() @ x - b) <= 1.01e-8 * np.linalg.norm(b) and info.converged
    for t in converged:
        assert t.relative_residual <= 1e-8 and t.seconds > 0 and t.memory_bytes > A._h.memory_bytes / 2 and t.why == ""


def test_it_shows_itself(advice):
    assert repr(advice).startswith("<asterism.Advice -ksp_type")
    text = str(advice)
    assert "positive diagonal" in text and "CONVERGED_RTOL" in text and advice.best.options in text
    assert "<th>set-up s</th>" in advice._repr_html_()
    assert json.loads(json.dumps(advice.as_dict()))["trials"][0]["converged"] is True


def test_every_line_of_the_tables_is_of_the_library():
    tables = {}
    for _, name, fallback, _, choices in _core.option_tables():
        tables.setdefault(name, (fallback, []))[1].extend(choices)  # preconditioners have options of one name
    methods, preconditioners = _core.component_names()
    named = set()
    for options, _ in CANDIDATES:
        words = options.split()
        for name, value in zip(words[::2], words[1::2], strict=True):
            assert name[1:] in tables or name == "-sub_pc_type", name
            choices = tables.get(name[1:], ("", []))[1]
            assert not choices or value in choices, (name, value)
        named.add(words[words.index("-pc_type") + 1])
    assert named | set(NOT_TRIED) <= set(preconditioners) | {"gamg"}
    for owner, name, values in LADDERS:
        assert owner in preconditioners or owner in methods
        assert name in tables and (not tables[name][1] or set(values) <= set(tables[name][1]))


def test_large_matrices_are_factored_too():
    found = candidates(look(am.gallery.convection_diffusion((100, 100), (20.0, 10.0), 1.0)))
    assert "-ksp_type preonly -pc_type lu" in found


def test_a_preconditioner_without_a_line_is_tried_as_it_is(monkeypatch):
    methods, preconditioners = _core.component_names()
    monkeypatch.setattr(_core, "component_names", lambda: (methods, {**preconditioners, "newest": "of tomorrow"}))
    found = look(am.gallery.poisson((9, 9)))
    assert "-ksp_type cg -pc_type newest" in candidates(found)
    assert candidates(found)[0].startswith("-ksp_type cg -pc_type amg")


def test_an_unsymmetric_matrix():
    A = am.gallery.convection_diffusion((40, 40), (20.0, 10.0), 1.0)
    found = am.advise(A, budget=20)
    assert found.best is not None and not found.look.Hermitian and "not Hermitian" in found.look.words()[0]
    assert {t.options.split()[1] for t in found.trials} & {"cg", "minres"} == set()
    assert am.solve(A, np.ones(1600), options=found.options)[1].converged


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_every_dtype(dtype):
    A = am.gallery.poisson((12, 12), dtype=dtype)
    found = am.advise(A, budget=20, rtol=1e-4)
    assert found.best is not None and found.look.dtype == dtype and found.best.relative_residual <= 1e-4


def test_hermitian_and_indefinite_or_with_zeros_on_the_diagonal():
    d = np.linspace(1, 3, 200) * np.where(np.arange(200) % 3, 1.0, -1.0)
    found = am.advise(sp.diags_array([np.full(199, 0.1), d, np.full(199, 0.1)], offsets=[-1, 0, 1]).tocsr(), budget=20)
    assert found.best is not None and "indefinite" in ", ".join(found.look.words())
    assert not any("-ksp_type cg" in t.options for t in found.trials)
    K = sp.block_array([[2 * sp.eye_array(30), np.eye(30, 10)], [np.eye(10, 30), None]]).tocsr()
    found = am.advise(K, budget=20)
    assert found.best is not None and found.look.zeros_on_the_diagonal == 10
    assert not any("-pc_type ilu " in t.options + " " for t in found.trials)


def test_a_singular_matrix():
    found = am.advise(am.gallery.poisson((30, 30), neumann=True), budget=20)
    assert found.look.null_vectors == 1 and found.best is not None and "singular" in ", ".join(found.look.words())
    with pytest.raises(am.InputError, match="row 1 of the matrix is empty"):
        am.advise(sp.csr_array(np.diag([1.0, 0.0, 2.0])), budget=20)


def test_no_rows():
    found = am.advise(sp.csr_array((0, 0)), budget=5)
    assert found.look.smallest_diagonal == found.look.largest_diagonal == 0
    json.dumps(found.as_dict(), allow_nan=False)


def test_nothing_converges():
    """Two rows are the same, and b has different values for them."""
    S = np.random.default_rng(3).standard_normal((50, 50))
    S[7] = S[8]
    b = np.ones(50)
    b[7] = -1
    found = am.advise(S, b, budget=20)
    assert found.best is None and not any(t.converged for t in found.trials)
    for word in ("none of", "not Hermitian", "Closest: -ksp_type"):
        assert word in found.why() and word in str(found)
    with pytest.raises(am.InputError, match="none of"):
        found.save("nowhere")
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["options"] is None


def test_a_budget_that_is_too_small():
    threads = threading.active_count(), len(os.listdir("/proc/self/task"))
    A = am.gallery.poisson((60, 60, 60))
    found = am.advise(A, budget=1e-6)
    assert found.best is None and len(found.trials) == 1 and "the budget of 1e-06 s" in found.why()
    assert found.not_tried == len(candidates(found.look)) - 1 > 5 and "no time for" in found.why()
    assert found.trials[0].result == "DIVERGED_TIME_LIMIT"
    assert (threading.active_count(), len(os.listdir("/proc/self/task")))[0] == threads[0]
    assert am.solve(A, A.make_vector(fill=1.0), rtol=1e-6)[1].converged  # without a limit


@pytest.mark.parametrize("work", ENDLESS)
def test_a_trial_ends_when_its_time_is_over(work):
    A = am.gallery.poisson(GRID)
    before = len(os.listdir("/proc/self/task"))
    trials = Trials(A, A.make_vector(fill=1.0), 1e-8, 60.0)
    trial = trials.run(ENDLESS[work], work, 1.0 if work == "solve" else 0.3)
    assert not trial.converged and trial.result == "DIVERGED_TIME_LIMIT" and "the time" in trial.why, trial
    if work == "set-up":
        assert "ilut" in trial.why and trial.relative_residual == np.inf
    if work == "solve":
        assert trial.iterations > 0 and np.isfinite(trial.relative_residual)
    assert trials.run("-ksp_type cg -pc_type amg", "amg", 30.0).converged and trials.best is trials.done[1]
    assert len(os.listdir("/proc/self/task")) <= max(before, _core.team_size() + 1)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_all():
    A = am.gallery.poisson(GRID)
    trials = Trials(A, A.make_vector(fill=1.0), 1e-8, 600.0)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        trials.run(ENDLESS["solve"], "endless", 600.0)
    timer.join()
    assert trials.run("-ksp_type cg -pc_type amg", "amg", 30.0).converged


def test_an_interrupt_of_one_rank_ends_all(on_ranks):
    """After the look, in a trial, at its end, and between two trials; afterwards all ranks go on."""
    on_ranks(
        2,
        """
from asterism.solvers import trials
from asterism.comm.communicator import as_communicator
advising = sys.modules[am.advise.__module__]
A = am.gallery.poisson((20, 20), comm)
ones = np.ones(A.local_shape[0])

def stopped(*args):
    if rank == 1: raise KeyboardInterrupt
def after(f):
    def both(*args):
        out = f(*args)
        stopped()
        return out
    return both
class Interrupted(am.Solver):
    def solve(self, *args, **keywords):
        stopped()
class AtTheEnd(am.Solver):
    def solve(self, *args, **keywords):
        super().solve(*args, **keywords)
        stopped()

for where, name, replaced in ((advising, "look", after(advising.look)), (trials, "Solver", Interrupted), (trials, "Solver", AtTheEnd),
                              (trials.Trials, "run", after(trials.Trials.run))):
    was = getattr(where, name)
    setattr(where, name, replaced)
    try:
        am.advise(A, budget=20)
        raise AssertionError("no error")
    except KeyboardInterrupt as e:
        assert rank == 1 or "rank 1: " in str(e), e
    finally:
        setattr(where, name, was)
    assert am.solve(A, ones, rtol=1e-8)[1].converged
try:
    as_communicator(comm).agree(*(("stopped", "Interrupted") if rank == 1 else ("wrong", "InputError")))
    raise AssertionError("no error")
except KeyboardInterrupt as e:
    assert "rank 1: stopped" in str(e), e
""",
        limit=60,
    )


@pytest.mark.parametrize("factor", [1.0, 1e-200, 1e200])
def test_numbers_near_the_ends_of_their_range_are_looked_at_as_a_solver_does(factor):
    """Their squares are zero or infinite."""
    S = sp.random_array((120, 120), density=0.05, rng=np.random.default_rng(0)).tocsr()
    for A, hermitian in ((S + S.T + 20 * sp.eye_array(120), True), (S + 20 * sp.eye_array(120), False)):
        A = am.Matrix.from_scipy(factor * A.tocsr())
        found = look(A)
        assert found.Hermitian is hermitian and (found.asymmetry > 1e-6) is not hermitian, found
        assert found.auto[0] == am.Solver(A)._h.method == ("cg" if hermitian else "gmres")
        assert found.largest_entry == A.to_scipy().max()


def test_nested_dissection_does_not_begin_where_its_time_is_not_left():
    if not _core.metis_library():
        pytest.skip("no METIS")
    A = am.gallery.poisson(GRID)
    trials = Trials(A, A.make_vector(fill=1.0), 1e-8, 60.0)
    trial = trials.run("-ksp_type preonly -pc_type lu -pc_factor_mat_ordering_type nd", "nd", 0.3)
    assert trial.result == "DIVERGED_TIME_LIMIT" and "nested dissection of 360000 rows takes about 2.1" in trial.why, (
        trial
    )


def test_a_step_of_a_ladder():
    values = ("1", "2", "3", "4", "6")
    name = "mg_levels_ksp_max_it"
    assert list(_steps({}, name, values)) == [["2", "3", "4", "6"], []]
    assert list(_steps({"-mg_levels_ksp_type": "chebyshev"}, name, values)) == [["3", "4", "6"], ["1"]]
    assert list(_steps({f"-{name}": "5"}, name, values)) == [["6"], ["4", "3", "2", "1"]]
    assert list(_steps({"-pc_ilut_drop": "1e-4"}, "pc_ilut_drop", ("0.01", "0.0001"))) == [[], ["0.01"]]


def test_tuning_keeps_the_fastest_and_its_file_is_read(tmp_path):
    A = am.gallery.poisson((40, 40))
    plain = {t.options for t in am.advise(A, budget=30).trials}
    found = am.advise(A, budget=30, tune=True)
    varied = [t for t in found.trials if t.options not in plain]
    known = {name for _, name, _ in LADDERS}
    assert varied and all({w[1:] for w in t.options.split()[::2]} & known for t in varied)
    assert found.best.seconds == min(t.seconds for t in found.trials if t.converged)
    assert len({t.options for t in found.trials}) == len(found.trials), "nothing is tried twice"
    path = tmp_path / "tuned.options"
    found.save(path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert " ".join(lines) == found.options
    out = said("solve", "poisson2d", "--n", 40, "--options-file", path, "-ksp_view")
    method = found.options.split()[1]
    assert f"method: {method}" in out and "CONVERGED_RTOL" in out
    script = "import asterism as am; s = am.Solver(am.gallery.poisson((40, 40))); print(s.explain())"
    env = dict(os.environ, ASTERISM_OPTIONS_FILE=str(path))
    shown = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True).stdout
    for line in lines:
        name, value = line.split()
        assert any(row.split()[:2] == [name, value] and str(path) in row for row in shown.splitlines()), shown


def test_options_of_a_file_give_way_to_the_command_line(tmp_path):
    path = tmp_path / "o"
    path.write_text("-ksp_type cg  # a comment\n-pc_type jacobi\n-ksp_rtol 1e-9\n")
    out = run("solve", "poisson2d", "--n", 20, "--options-file", path, "-pc_type", "icc", "-ksp_view", "--ranks", 2)
    assert "method: cg" in out and "preconditioner: icc" in out
    assert "cannot be read" in said("solve", "poisson2d", "--options-file", tmp_path / "none", expect=1)
    assert "is a folder" in said("solve", "poisson2d", "--options-file", tmp_path, expect=1)
    (tmp_path / "wrong").write_text("-ksp_tipe cg\n")
    assert "line 1). Did you mean -ksp_type?" in said(
        "solve", "poisson2d", "--options-file", tmp_path / "wrong", expect=1
    )
    (tmp_path / "r.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n")
    assert "--options-file is not offered" in said("solve", tmp_path / "r.mtx", "--options-file", path, expect=1)


def test_bad_arguments():
    A = am.gallery.poisson((5, 5))
    for keywords in ({"budget": 0}, {"budget": np.inf}, {"rtol": 0}, {"rtol": 2.0}):
        with pytest.raises(am.InputError, match=next(iter(keywords))):
            am.advise(A, **keywords)
    for keywords in ({"budget": "5"}, {"budget": None}, {"budget": 10**400}, {"rtol": "1e-8"}, {"budget": [1, 2]}):
        name, value = next(iter(keywords.items()))
        with pytest.raises(am.InputError, match=re.escape(f"advise: {name} is {value!r}; a ")):
            am.advise(A, **keywords)
    with pytest.raises(am.ShapeError, match="least_squares"):
        am.advise(sp.csr_array(np.ones((3, 2))))
    with pytest.raises(am.UnsupportedError, match="entries"):
        am.advise(am.Operator(lambda x: x, 5))
    with pytest.raises(am.ShapeError, match="b has shape"):
        am.advise(A, np.ones(7))
    with pytest.raises(TypeError, match="A is a str"):
        am.advise("poisson2d")


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_decide_alike(on_ranks, ranks):
    out = on_ranks(
        ranks,
        f"""
from asterism.solvers.trials import Trials
ENDLESS = {ENDLESS!r}
A = am.gallery.poisson((30, 30), comm)
found = am.advise(A, budget=30, tune=True)
assert found.best.converged and any("-pc_type asm" in t.options for t in found.trials)
assert len(set(comm.allgather(repr(found.trials)))) == 1
assert am.solve(A, A.make_vector(fill=1.0), options=found.options)[1].converged
found = am.advise(A, budget=1e-6)
assert found.best is None and len(set(comm.allgather(repr(found.trials)))) == 1
A = am.gallery.poisson({GRID}, comm)
trials = Trials(A, A.make_vector(fill=1.0), 1e-8, 60.0)
for work, options in ENDLESS.items():
    trial = trials.run(options, work, 0.3 + rank)  # one rank's time is over first
    assert trial.result == "DIVERGED_TIME_LIMIT", trial
    assert trials.run("-ksp_type cg -pc_type amg", "amg", 30.0).converged
for _ in range(4):  # several ranks may end an inner solve at once, each with an error of its own
    assert trials.run(ENDLESS["inner solve"], "inner solve", 0.1).result == "DIVERGED_TIME_LIMIT"
assert len(set(comm.allgather(repr(trials.done)))) == 1
assert "budget is -1" in message(lambda: am.advise(A, budget=-1 if rank == 0 else 5))
empty = am.Matrix.from_scipy(sp.eye(1, format="csr") if rank == 0 else sp.csr_array((0, 1)), comm)
assert am.advise(empty, budget=10).best.converged
print("alike")
""",
    )
    assert out.count("alike") == ranks


def test_the_command(tmp_path):
    out = said("advise", "poisson2d", "--n", 30, "--budget", 20)
    assert "auto takes cg and amg" in out and "CONVERGED_RTOL" in out
    line = next(x for x in out.splitlines() if x.startswith("  asterism solve poisson2d --n 30 -ksp_type"))
    assert "CONVERGED_RTOL" in said(*line.split()[1:])
    found = json.loads(said("advise", "neumann2d", "--n", 20, "--budget", 20, "--json"))
    assert found["look"]["null_vectors"] == 1 and found["trials"][0]["converged"] and found["saved"] is None
    path = tmp_path / "best.options"
    out = run("advise", "elasticity3d", "--n", 4, "--budget", 20, "--tune", "--save", path, "--ranks", 2)
    assert f"--options-file {path}" in out and "3 unknowns a node" in out and "trial(s) to 1e-08, 2 ranks" in out
    assert "CONVERGED_RTOL" in run("solve", "elasticity3d", "--n", 4, "--ranks", 2, "--options-file", path)


def test_what_it_prints_can_be_pasted_where_names_have_spaces(tmp_path):
    A, rhs, path = (tmp_path / name for name in ("a matrix.mtx", "it's b.mtx", "the best.options"))
    am.write_matrix(A, am.gallery.poisson((8, 8)))
    am.write_vector(rhs, np.ones(64))
    for more in ([], ["--save", path]):
        out = said("advise", A, "--rhs", rhs, "--budget", 5, *more)
        line = next(x for x in out.splitlines() if x.startswith("  asterism solve "))
        words = shlex.split(line)
        assert words[2:5] == [str(A), "--rhs", str(rhs)] and (not more or words[5:] == ["--options-file", str(path)])
        assert "CONVERGED_RTOL" in said(*words[1:])


def test_the_command_fails_clearly(tmp_path):
    out = said("advise", "poisson3d", "--n", 60, "--budget", "1e-6", expect=3)
    assert "asterism: not converged. none of 1 solver(s)" in out and "DIVERGED_TIME_LIMIT" in out
    out = run("advise", "poisson3d", "--n", 40, "--budget", "1e-6", "--ranks", 2, expect=3)
    assert out.count("asterism: not converged") == 1
    assert "--budget 0" in said("advise", "poisson2d", "--budget", 0, expect=1)
    assert "--rtol 7" in said("advise", "poisson2d", "--rtol", 7, expect=1)
    assert "which problem?" in said("advise", expect=1)
    assert "does not exist" in said("advise", "poisson2d", "--save", tmp_path / "no" / "o", expect=1)
    assert "takes no options like -pc_type" in said("advise", "poisson2d", "-pc_type", "amg", expect=2)
    (tmp_path / "r.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n")
    assert "not square" in said("advise", tmp_path / "r.mtx", expect=1)
    assert "examples:" in said("advise", "--help")


def test_factors_of_hermitian_matrices_are_for_these_alone():
    wind = am.advise(am.gallery.convection_diffusion((20, 20), (10.0, 5.0), 0.05), np.ones(400), budget=3)
    assert not any(t.result == "ERROR" or "cholesky" in t.options for t in wind.trials)
    still = am.advise(am.gallery.poisson((20, 20)), np.ones(400), budget=3)
    assert "-ksp_type preonly -pc_type cholesky" in [t.options for t in still.trials]
