"""The command line's processes: numbers of ranks, readers that go away, and what is refused before the work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import run, said


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
    command = [sys.executable, "-u", "-m", "asterism", *args]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert p.stdout.readline()
    p.stdout.close()
    said = p.stderr.read()
    assert p.wait(timeout=60) in (0, 141), said
    assert "Traceback" not in said and "BrokenPipe" not in said and "Exception ignored" not in said, said


def test_a_result_is_written_though_nobody_reads(tmp_path):
    target = tmp_path / "x.npy"
    command = [sys.executable, "-u", "-m", "asterism", "solve", "poisson2d", "--n", "60", "--save", str(target)]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.close()
    p.stderr.close()
    assert p.wait(timeout=60) == 0 and np.load(target).shape == (3600,)


def test_numbers_of_ranks_that_cannot_be_meant(tmp_path):
    for ranks in (0, -1):
        for command in (("solve", "poisson2d"), ("convert", "poisson2d", tmp_path / "x.ast"), ("bench", "halo")):
            assert f"--ranks {ranks}: at least 1 process" in said(*command, "--ranks", ranks, expect=1)
    cores = len(os.sched_getaffinity(0))
    for command in (("solve", "poisson2d"), ("bench", "pingpong")):
        out = said(*command, "--ranks", 8 * cores + 1, expect=1)
        assert "add --oversubscribe" in out and f"{cores} core(s)" in out
        assert "cluster's own launcher" in said(*command, "--ranks", 5000, "--oversubscribe", expect=1)
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
        (["--rtol", "-1"], "--rtol -1"),
        (["--atol", "-1"], "OptionError: --atol: -1 is outside"),
        (["--max-it", "-1"], "OptionError: --max-it: -1 is outside"),
        (["--ksp", "cg", "-ksp_type", "gmres"], "--ksp and -ksp_type are the same option"),
        (["--rtol", "1e-3", "-ksp_rtol", "1e-9"], "--rtol and -ksp_rtol are the same option"),
        (["-pc_amg_treshold", "0.1"], "Did you mean -pc_amg_threshold"),
        (["-ksp_max_it", "many"], "ksp_max_it"),
        (["--name", "A"], "--name goes with a file"),
        (["--checkpoint-every", "5"], "--checkpoint-every 5 goes with --checkpoint"),
        (["--checkpoint", "c.mtx"], "Name it FILE.ast"),
        (["-device", "hip"], "-device hip"),
        (["--ksp", "gmres", "-ksp_asynchronous"], "not asynchronous"),
    ):
        out = said("solve", "poisson2d", "--n", 2000, *options, expect=1)
        assert text in out and "read or made" not in out and "prterun" not in out, out
    for options, text in ((["--dtype", "float16"], "float16"), (["--checkpoint-every", 0], "at least 1")):
        assert text in said("solve", "poisson2d", *options, expect=2)
    for option in ("--report", "--save", "--rhs", "--x0", "--options-file", "--ksp"):
        out = said("solve", "poisson2d", option, "", expect=2)
        assert f"{option[2:]} is empty" in out and "variable of the shell" in out
    assert "problem is empty" in said("solve", "", expect=2)
    said_of = said("solve", "-ksp_monitor", "poisson2d", expect=1)
    assert "'poisson2d' is read as the value of -ksp_monitor. Name the problem first" in said_of
    for command in (("inspect",), ("solve",), ("convert", "poisson2d")):
        assert "is no UTF-8" in said(*command, os.fsdecode(b"n\xe9.mtx"), expect=2)
    for target, text in (
        ("x.npz", "written by one process"),
        ("x.h5", "written by one process"),
        ("x.zip", "is written as"),
    ):
        assert text in said("convert", "poisson2d", tmp_path / target, "--ranks", 2, expect=1)
    assert "is no picture" in said("inspect", "poisson2d", "--spy", tmp_path / "x.mtx", expect=1)
    assert not [f for f in tmp_path.iterdir() if f.is_file()]


def test_words_that_are_no_numbers():
    for words, text in (
        (("inspect", "poisson2d", "--n", "x"), "--n: 'x' is not a whole number"),
        (("solve", "poisson2d", "--max-it", "1.5"), "--max-it: '1.5' is not a whole number"),
        (("solve", "poisson2d", "--rtol", "small"), "--rtol: 'small' is not a number"),
        (("solve", "poisson2d", "--ranks", "two"), "--ranks: 'two' is not a whole number"),
    ):
        assert text in said(*words, expect=2)


def test_ctrl_c_while_modules_are_loaded(tmp_path):
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    script = "import signal, sys, runpy\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    for start in (
        "runpy.run_module('asterism', run_name='__main__')",
        "from asterism.__main__ import main; sys.exit(main())",
    ):
        done = subprocess.run(
            [sys.executable, "-c", script + start], env=env, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "asterism: interrupted.\n")


def test_a_python_program_has_its_streams_and_log_again(tmp_path):
    script = f"""
import logging, sys
from asterism.cli import main
handler = logging.FileHandler({str(tmp_path / "log")!r}, "w")
logging.getLogger("mine").addHandler(handler)
before = sys.stdout, sys.stderr, sys.stdout.errors, logging.getLogger().handlers[:], logging.getLogger().level
assert main(["solve", "poisson2d", "--n", "10", "--quiet", "--save", {str(tmp_path / "x.npy")!r}]) == 0
assert (sys.stdout, sys.stderr, sys.stdout.errors, logging.getLogger().handlers, logging.getLogger().level) == before
logging.getLogger("mine").warning("still here")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    assert (tmp_path / "log").read_text() == "still here\n"


def test_streams_that_are_closed_or_full(tmp_path):
    solve = f"{sys.executable} -m asterism solve poisson2d --n 20"
    for command, code, text in (
        (f"{solve} >&-", 0, "iteration"),
        (f"{solve} 2>&-", 0, "result"),
        (f"{solve} <&- >&- 2>&-", 0, ""),
        (f"{solve} --ranks 2 <&- >&- 2>&-", 0, ""),
        (f"{solve} > /dev/full", 1, "standard output cannot be written: [Errno 28] No space left on device"),
        (f"{solve} 2> /dev/full", 0, "result"),
        (f"{solve} --save {tmp_path / 'x.npy'} > /dev/full 2>&1", 0, ""),
        (f"cd {tmp_path} && mkdir gone && cd gone && rmdir ../gone && {solve}", 0, "result"),
    ):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == code and text in said and "Traceback" not in said, (command, done)
    assert np.load(tmp_path / "x.npy").shape == (400,)


def test_a_terminal_without_greek_letters(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"case": "a", "bytes": b, "seconds": [1e-6 + b / 1e9]} for b in (8, 64, 512)]))
    command = [sys.executable, "-m", "asterism", "model", "fit", str(path)]
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 \\xb1" in done.stdout, done
