"""The model of distributed triangular solves: hand-counted cases, its command line, and the messages of real solves."""

import dataclasses
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import EMULATED_GPU, HAS_GPU

import asterism as am
from asterism import models
from asterism.cli import main, model_triangular
from asterism.models import triangular

MINE = models.TriangularMachine("mine", 8.0, 0.5, models.Link(10.0, (8, 16), (8.0, 16.0)))


def command(*words):
    """Exit code and output of asterism model sptrsv."""
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(["model", "sptrsv", *map(str, words)])
    return code, out.getvalue()


def tridiagonal(n, dtype="float64"):
    A = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    return am.Matrix.from_scipy(A.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_chain_by_hand(dtype):
    """A dense triangle of three columns, each a supernode."""
    pattern = models.FactorPattern(am.Matrix.from_scipy(sp.csr_array(np.ones((3, 3), dtype))), "natural", 1)
    number = np.dtype(dtype).itemsize
    assert (pattern.supernodes, pattern.entries, pattern.levels, pattern.widest) == (3, 6, 3, 1)
    link = models.Link(10.0, (number,), (float(number),))  # a second for each message
    machine = models.TriangularMachine("mine", float(number), 0.5, link)
    alone = pattern.predict(1, "1x1", machine)
    assert alone.forward.levels == 1 and alone.forward.nodes == 3 and alone.forward.messages == 0
    # six entries in five tasks: both blocks of the first column are one run
    assert alone.modelled == alone.simulated == 2 * (6 + 5 * 0.5)
    # rank 0: x0 (1.5), sent (1), block 2, 0 (1.5); rank 1: x0 comes at 12.5; block 1, 0 (1.5), x1 (1.5), sent (1), at rank 0 at 26.5,
    # block 2, 1 (1.5), x2 (1.5)
    forward = pattern.predict(2, "Px1", machine).forward
    assert forward.simulated == 12.5 + 1.5 + 1.5 + 1 + 10 + 1.5 + 1.5
    # of rank 0: three nodes of x0, x1, x2 with four entries; one message
    assert (forward.nodes, forward.messages, forward.compute, forward.communication) == (3, 1, 6.0, 11.0)
    assert (forward.levels, forward.broadcasts, forward.reductions, forward.bytes) == (3, 2, 0, 2 * number)
    across = pattern.predict(2, "1xP", machine).forward
    assert (across.broadcasts, across.reductions) == (0, 2)


def test_predictions_on_many_ranks():
    pattern = models.FactorPattern(am.gallery.poisson((30, 30)), "amd")
    assert pattern.ordering == "amd" and 900 < pattern.entries < 900 * 901 / 2
    machine = models.TriangularMachine("mine", 10e9, 3e-8, models.Link(5e-7, (64, 1024), (5e8, 2e9)))
    alone = pattern.predict(1, "square", machine)
    assert alone.modelled == pytest.approx(alone.simulated) and alone.forward.nodes == pattern.supernodes
    for ranks in (2, 3, 6, 8, 64):
        for layout in triangular.layouts(ranks, ["all"]):
            p = pattern.predict(ranks, layout, machine)
            assert p.layout == layout and p.seconds == p.simulated > 0
            for sweep in (p.forward, p.backward):
                assert sweep.compute <= sweep.simulated * (1 + 1e-12)
                assert sweep.levels >= 1 and sweep.bytes > 0
            # L^T goes the other way through the same blocks
            assert p.forward.broadcasts == p.backward.reductions and p.forward.reductions == p.backward.broadcasts
    slow = pattern.predict(
        4, "2x2", dataclasses.replace(machine, ranks_per_node=2, far=models.Link(1e-4, (1,), (1e8,)))
    )
    assert slow.seconds > pattern.predict(4, "2x2", machine).seconds


def test_wide_supernodes_are_cut():
    A = am.Matrix.from_scipy(sp.csr_array(np.ones((50, 50))))
    assert models.FactorPattern(A, "natural").supernodes == 1
    cut = models.FactorPattern(A, "natural", 16)
    assert (cut.supernodes, cut.levels, cut.entries) == (4, 4, 1275) and cut.widest <= 16


def test_layouts():
    assert triangular.layouts(6, ["all"]) == ["6x1", "3x2", "2x3", "1x6"]
    assert triangular.layouts(6, ["Px1", "square", "6x1"]) == ["6x1", "3x2"]
    assert triangular.layouts(1, ["all"]) == ["1x1"]
    for wrong in ("2x2", "round", "0x6"):
        with pytest.raises(am.AsterismError, match="process grid"):
            triangular.layouts(6, [wrong])


def test_ranks_beyond_any_machine_are_refused():
    pattern = models.FactorPattern(am.gallery.poisson((4, 4)), "amd")
    for call in (lambda n: pattern.predict(n, "Px1", triangular.SUMMIT), lambda n: triangular.layouts(n, ["all"])):
        with pytest.raises(am.InputError, match="ranks is 1000000000; the model takes at most 1048576"):
            call(10**9)
    assert pattern.predict(2**20, "square", triangular.SUMMIT).layout == "1024x1024"


def test_the_papers_machine_is_slower_beyond_a_node():
    """Its GPUs have 75 MB/s for 1024 bytes between nodes, and 3.9 / 1.2 times that within one."""
    summit = triangular.SUMMIT
    assert summit.near.bandwidths[-1] / summit.far.bandwidths[-1] == pytest.approx(3.25)
    pattern = models.FactorPattern(am.gallery.poisson((25, 25)), "amd")
    one, two = (pattern.predict(p, "Px1", summit) for p in (6, 12))
    assert one.simulated is None and one.seconds == one.modelled > 0
    per_message = [p.forward.communication / p.forward.messages for p in (one, two)]
    assert per_message[1] == pytest.approx(3.25 * per_message[0], rel=0.2)


def test_bad_machines_and_patterns():
    link = models.Link(1e-6, (8,), (1e9,))
    for text, make in (
        ("latency of a link is -1", lambda: models.Link(-1, (8,), (1.0,))),
        ("ascend", lambda: models.Link(0.0, (8, 8), (1.0, 1.0))),
        ("one for each", lambda: models.Link(0.0, (8, 16), (1.0,))),
        ("a bandwidth of a link is 0", lambda: models.Link(0.0, (8,), (0,))),
        ("bandwidth is nan", lambda: models.TriangularMachine("m", math.nan, 0.0, link)),
        ("task_seconds is -1", lambda: models.TriangularMachine("m", 1.0, -1, link)),
        ("near is 3", lambda: models.TriangularMachine("m", 1.0, 0.0, 3)),
        ("unknown speed", lambda: models.TriangularMachine("m", 1.0, 0.0, {"latency": 1, "sizes": [8], "speed": [1]})),
        ("workers is 0", lambda: models.TriangularMachine("m", 1.0, 0.0, link, workers=0)),
        ("ranks_per_node is 1.5", lambda: models.TriangularMachine("m", 1.0, 0.0, link, ranks_per_node=1.5)),
        (
            "most_bandwidth is 1",
            lambda: models.TriangularMachine("m", 1.0, 0.0, link, least_bandwidth=2.0, most_bandwidth=1),
        ),
        ("ordering 'x'", lambda: models.FactorPattern(tridiagonal(3), "x")),
        ("widest is 2.5", lambda: models.FactorPattern(tridiagonal(3), "amd", 2.5)),
        ("A is a csr_array", lambda: models.FactorPattern(sp.eye_array(3).tocsr())),
        ("ranks is 2.5", lambda: models.FactorPattern(tridiagonal(3), "amd").predict(2.5, "Px1", MINE)),
        ("widest is 0", lambda: models.FactorPattern(tridiagonal(3), "amd", 0)),
        ("3 x 2", lambda: models.FactorPattern(am.Matrix.from_scipy(sp.csr_array(np.ones((3, 2)))))),
        ("ranks is 0", lambda: models.FactorPattern(tridiagonal(3), "amd").predict(0, "Px1", MINE)),
        (
            "process grid None: write rows x columns",
            lambda: models.FactorPattern(tridiagonal(3)).predict(2, None, MINE),
        ),
        ("machine is None; a Tri", lambda: models.FactorPattern(tridiagonal(3)).predict(2, "Px1", None)),
        ("size of a link, in bytes, is 8.5", lambda: models.Link(0.0, (8.5,), (1.0,))),
        ("size of a link, in bytes, is '8'", lambda: models.Link(0.0, ("8",), (1.0,))),
        ("sizes of a link are 8; a list", lambda: models.Link(0.0, 8, (1.0,))),
        ("latency of a link is 1000", lambda: models.Link(10**400, (8,), (1.0,))),
        ("workers is inf", lambda: models.TriangularMachine("m", 1.0, 0.0, link, workers=math.inf)),
        ("names is 'all'; a list", lambda: triangular.layouts(2, "all")),
        ("ranks is 2.5", lambda: triangular.layouts(2.5, ["all"])),
        ("process grid 3: write", lambda: triangular.layouts(2, [3])),
    ):
        with pytest.raises((am.InputError, am.DtypeError, am.OptionError), match=text):
            make()


def test_numbers_of_numpy_and_more_than_there_is_are_taken():
    pattern, link = models.FactorPattern(tridiagonal(9), "amd"), models.Link(1.0, (8, 16), (1.0, 2.0))
    many = models.TriangularMachine("m", 1.0, 0.0, link, ranks_per_node=2**40)
    theirs = models.Link(np.float32(1), np.array([8, 16]), np.array([1.0, 2.0]))
    same = models.TriangularMachine("m", np.float64(1), np.int64(0), theirs, ranks_per_node=np.int32(100))
    assert pattern.predict(2, "Px1", many).forward == pattern.predict(np.int64(2), "Px1", same).forward
    assert models.FactorPattern(tridiagonal(9), "amd", 2**40).supernodes == pattern.supernodes


def test_what_is_wrong_is_told_before_the_machine_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(model_triangular, "_measured_here", lambda: pytest.fail("measured"))
    am.write_matrix(tmp_path / "A.mtx", am.Matrix.from_scipy(sp.csr_array(np.ones((3, 2)))))
    for words, text in (([str(tmp_path / "A.mtx")], "3 x 2"), (["poisson2d", "--n", "9", "--layout", "zz"], "zz")):
        code, told = command(*words, "--ranks", 4)
        assert code != 0 and text in told


def test_machines_in_files(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"machine": dataclasses.asdict(MINE), "cases": []}))
    assert triangular.read_triangular_machine(path) == MINE
    path.write_text(json.dumps(dataclasses.asdict(triangular.SUMMIT)))
    assert triangular.read_triangular_machine(path) == triangular.SUMMIT
    for text, message in (
        ("{", "m.json"),
        ("[]", "object"),
        ("{}", "missing bandwidth"),
        ('{"colour": 1}', "unknown colour"),
    ):
        path.write_text(text)
        with pytest.raises(am.AsterismError, match=message):
            triangular.read_triangular_machine(path)


GIVEN = ("--bandwidth", 8, "--task", 50, "--latency", 1, "--message-bandwidth", 500, "--ordering", "amd")


def test_command_line(tmp_path):
    code, out = command("poisson2d", "--n", 30, *GIVEN, "--ranks", "1-4,6")
    assert code == 0 and "fastest:" in out and out.count(" best") == 3, out  # of 1 rank there is one layout
    code, out = command("poisson2d", "--n", 30, *GIVEN, "--ranks", "1-4,6", "--json")
    found = json.loads(out)
    assert [(c["ranks"], c["layout"]) for c in found["cases"]] == [
        (1, "1x1"), (2, "2x1"), (2, "1x2"), (4, "4x1"), (4, "2x2"), (4, "1x4"), (6, "6x1"), (6, "3x2"), (6, "2x3"), (6, "1x6"),
    ]  # fmt: skip
    assert found["machine"]["bandwidth"] == 8e9 and found["machine"]["near"]["latency"] == 1e-6
    for ranks in (1, 2, 4, 6):
        those = [c for c in found["cases"] if c["ranks"] == ranks]
        (best,) = (c for c in those if c["best"])
        assert best["seconds"] == min(c["seconds"] for c in those)
    for ranks in ([], ["--ranks", "1-6,6"]):
        out = command("poisson2d", "--n", 9, *GIVEN, "--layout", "2x3", *ranks, "--json")[1]
        assert [c["layout"] for c in json.loads(out)["cases"]] == ["2x3"]
    code, out = command("poisson2d", "--n", 30, *GIVEN, "--table")
    assert code == 0 and "#supernodes" in out and "nnz in L" in out and "18 ranks" in out and out.count("x  ") >= 3
    code, out = command(
        "poisson2d", "--n", 30, "--machine", "summit", "--ordering", "amd", "--ranks", 6, "--layout", "Px1"
    )
    assert code == 0 and "machine: summit" in out


def test_the_plot_has_measured_times(tmp_path):
    case = {"ranks": 2, "layout": "2x1", "measured": [1e-3, 2e-3, 3e-3]}
    (tmp_path / "b.json").write_text(json.dumps({"cases": [case, case]}))
    code, out = command(
        "poisson2d",
        "--n",
        12,
        *GIVEN,
        "--ranks",
        "1-4",
        "--plot",
        tmp_path / "f.svg",
        "--measured",
        tmp_path / "b.json",
    )
    assert code == 0, out
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    plain = (tmp_path / "f.svg").stat().st_size
    command("poisson2d", "--n", 12, *GIVEN, "--ranks", "1-4", "--plot", tmp_path / "g.svg")
    assert (tmp_path / "g.svg").stat().st_size < plain


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which problem"),
        (["poisson7d"], "neither a file nor a built-in problem"),
        (["poisson2d", "--ranks", "3-1"], "numbers of ranks"),
        (["poisson2d", "--ranks", "0"], "numbers of ranks"),
        (["poisson2d", "--ranks", "1-x"], "'1-x': numbers of ranks such as 1-64"),
        (["poisson2d", *GIVEN, "--layout", "round"], "process grid 'round'"),
        (["poisson2d", *GIVEN, "--layout", "3x5", "--ranks", "1-8"], "is 15 ranks, and --ranks are 1, 2, 4, 8"),
        (["poisson2d", "--machine", "no.json"], "no.json"),
        (["poisson2d", *GIVEN, "--measured", "b.json"], "give --plot"),
        (["poisson2d", *GIVEN, "--plot", "f.gif"], ".svg, .png or .pdf"),
    ],
)
def test_wrong_words(words, message):
    try:
        code, out = command(*words)
    except SystemExit as error:
        code, out = error.code, None
    assert code != 0 and (out is None or message in out), out


def test_messages_between_nodes_are_changed_too(tmp_path):
    """But those of a network that is given beside."""
    words = ("poisson2d", "--n", 12, "--machine", "summit", "--ranks-per-node", 1, "--layout", "2x2", "--json")
    changed = (*words, "--latency", 1000, "--message-bandwidth", 1)
    before, after = (json.loads(command(*w)[1]) for w in (words, changed))
    assert after["machine"]["far"] == after["machine"]["near"] != before["machine"]["near"]
    assert after["machine"]["far"]["latency"] == 1e-3 and after["machine"]["far"]["bandwidths"] == [1e6]
    assert after["cases"][0]["seconds"] > 100 * before["cases"][0]["seconds"]
    (tmp_path / "n.json").write_text(json.dumps(dataclasses.asdict(MINE)))
    found = json.loads(command(*changed, "--network", tmp_path / "n.json")[1])["machine"]
    assert found["far"]["latency"] == 10.0 and found["near"]["latency"] == 1e-3


def test_a_network_needs_nodes(tmp_path):
    (tmp_path / "n.json").write_text(json.dumps(dataclasses.asdict(MINE)))
    words = ("poisson2d", "--n", 12, *GIVEN, "--layout", "2x2", "--json", "--network", tmp_path / "n.json")
    assert "--ranks-per-node" in command(*words)[1]
    found = json.loads(command(*words, "--ranks-per-node", 2)[1])
    assert found["machine"]["far"]["latency"] == 10.0 and found["cases"][0]["seconds"] > 10


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_solves_send_the_messages_that_are_predicted(ranks):
    words = "bench sptrsv poisson2d --n 20 --ordering amd --widest 4 --repeats 2 --json".split()
    done = subprocess.run(
        [sys.executable, "-m", "asterism", *words, "--ranks", str(ranks)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert [c["layout"] for c in found["cases"][::2]] == triangular.layouts(ranks, ["all"])
    for c in found["cases"]:
        assert c["sent"] == c["messages"] and (c["messages"] > 0) == (ranks > 1)
        assert c["error"] < 1e-12 and len(c["measured"]) == 2 and min(c["measured"]) > 0
        assert c["modelled"] > 0 and c["simulated"] > 0


@pytest.mark.skipif(not HAS_GPU, reason="no GPU, nor an emulated one")
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("theirs", [True, False])
def test_solves_on_gpus_are_measured_beside_cusparse(ranks, theirs):
    words = "bench sptrsv poisson2d --n 20 --ordering amd --widest 4 --repeats 2 --device cuda".split()
    fake = EMULATED_GPU.parent / "libasterism_fake_cusparse.so"
    env = os.environ | {"ASTERISM_CUSPARSE": str(fake if theirs else fake.parent / "none.so")}
    command = [sys.executable, "-m", "asterism", *words, "--ranks", str(ranks)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=280, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert [c["layout"] for c in found["cases"][::2]] == triangular.layouts(ranks, ["all"])
    for c in found["cases"]:
        assert c["error"] < 1e-12 and len(c["measured"]) == 2 and min(c["measured"]) > 0
        assert ("cusparse" in c) == (theirs and ranks == 1)
        assert ("no_cusparse" in c) == (not theirs and ranks == 1)
        assert c.get("cusparse_error", 0) < 1e-12
    if ranks == 1:
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=env)
        assert "ours / cuSPARSE" in done.stdout and ("there is no cuSPARSE" in done.stdout) != theirs


def test_this_machine_is_measured_once(tmp_path, monkeypatch):
    from asterism.cli import bench_triangular, launch, model_triangular

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []
    for waited in (1.0, 0.0, 0.0):
        text = json.dumps({"machine": dataclasses.asdict(MINE), "waited": waited, "cases": []})
        monkeypatch.setattr(launch, "output_of", lambda *a, text=text: calls.append(a) or text)
        assert model_triangular._measured_here() == MINE
    assert len(calls) == 2  # beside other programs it is not kept
    assert bench_triangular.CALM > 0

    def fails(*_):
        raise am.errors.CommError("no mpiexec")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setattr(launch, "output_of", fails)
    with pytest.raises(am.errors.InputError, match="--message-bandwidth"):
        model_triangular._measured_here()
