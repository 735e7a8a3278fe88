"""The command line of models: fits, levels, scaling and portability from records in JSON."""

import json

import pytest
from command_line import model

import asterism as am
from asterism import models
from asterism.models import records


def test_series_of_json(tmp_path):
    x = [8.0**m for m in range(1, 9)]
    rows = [{"bytes": b, "repeats": 5, "raw_mpi": [2e-6 + b / 1e9] * 3, "seconds": 1e-6 + b / 2e9} for b in x]
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"bench": "pingpong", "pingpong": rows, "other": [{"bytes": 1, "seconds": 1}]}))
    found = {s.name: models.fit(s.sizes, s.seconds) for s in records.read_series(path)}
    assert set(found) == {"pingpong raw_mpi", "pingpong"}
    assert found["pingpong raw_mpi"].alpha == pytest.approx(2e-6) and found["pingpong"].beta == pytest.approx(2e9)
    kernels = [{"points": 7, "runs": [{"n": n, "points_per_s": n**3 / (1e-5 + n**3 / 1e9)} for n in (8, 32, 128)]}]
    path.write_text(json.dumps({"kernels": kernels}))
    (series,) = records.read_series(path)
    assert series.unit == "points" and models.fit(series.sizes, series.seconds).alpha == pytest.approx(1e-5)
    path.write_text("{")
    with pytest.raises(am.errors.FormatError, match="no JSON"):
        records.read_series(path)
    path.write_text("[]")
    with pytest.raises(am.errors.FormatError, match="three sizes"):
        records.read_series(path)


def test_rows_of_the_same_size_are_told_apart(tmp_path):
    x = [64, 512, 4096, 32768]
    path = tmp_path / "s.json"
    runs = [
        {
            "file": f,
            "threads": t,
            "cases": [{"bytes": b, "sweep": s, "sent": b, "seconds": c * b} for b in x for s in "fb"],
        }
        for f, t, c in (("one", 1, 1.0), ("one", 2, 2.0), ("two", 1, 3.0), ("two", 2, 4.0))
    ]
    for r in runs:
        for row in r["cases"]:
            row["seconds"] *= 1 if row["sweep"] == "f" else 10
    path.write_text(json.dumps({"runs": runs}))
    found = {s.name: s.seconds[0] / 64 for s in records.read_series(path)}
    want = {
        f"runs cases sweep {s} file {f} threads {t}": c * (1 if s == "f" else 10)
        for f, t, c in (("one", 1, 1.0), ("one", 2, 2.0), ("two", 1, 3.0), ("two", 2, 4.0))
        for s in "fb"
    }
    assert found == want
    # what nothing tells apart was measured several times
    rows = [{"bytes": b, "seconds": c * b, "dtype": "float32"} for b in x for c in (1.0, 5.0, 2.0)]
    path.write_text(json.dumps({"copies": rows}))
    (series,) = records.read_series(path)
    assert series.name == "copies" and series.sizes == tuple(x) and series.seconds == tuple(2.0 * b for b in x)
    # of stencils "points" are not a size
    rows = [{"points": p, "dtype": "float64", "seconds": [1e-5 * p], "GStencil_per_s": 1.0} for p in (7, 13, 27)]
    path.write_text(json.dumps({"products": rows}))
    with pytest.raises(am.errors.FormatError, match="three sizes"):
        records.read_series(path)


def test_json_has_no_nan(tmp_path):
    rows = [{"bytes": b, "seconds": 1e-6 + b / 1e9} for b in (8, 64, 512)]
    (tmp_path / "p.json").write_text(json.dumps(rows))

    def refused(text):
        raise AssertionError(text)

    code, out = model("fit", tmp_path / "p.json", "--json")
    (fit,) = json.loads(out, parse_constant=refused)
    assert code == 0 and fit["holdout_error"] is None and fit["alpha"] == pytest.approx(1e-6)


def test_levels_of_multigrid(tmp_path):
    """As asterism bench gmg --json writes them: Fig. 3, 5 and 6 of the paper."""
    points = [8.0**m for m in range(7, 1, -1)]
    calls = [
        {"case": "applyOp", "level": m, "points": n, "seconds": [2e-6 + n / 1e9] * 3} for m, n in enumerate(points)
    ]
    calls += [
        {"case": "exchange", "level": m, "bytes": 6 * n ** (2 / 3), "seconds": [3e-6 + n ** (2 / 3) / 1e9]}
        for m, n in enumerate(points)
    ]
    operations = [
        {"level": 0, "operation": "smooth", "seconds": [0.2, 0.4]},
        {"level": 0, "operation": "restriction", "seconds": [0.1, 0.1]},
        {"level": 1, "operation": "bottom", "seconds": [0.1, 0.3]},
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"points": [128] * 3, "cycles": 5, "operations": operations, "levels": calls}))
    found = records.read_levels(path)
    assert found.name == "mine" and found.totals == pytest.approx((2.0, 1.0))
    assert found.levels[0] == pytest.approx({"smooth": 1.5, "restriction": 0.5})
    code, out = model("levels", path, path, "--plot", tmp_path / "levels.png")
    assert code == 0 and out.count("mine: seconds of a solve") == 2 and "67 %" in out
    assert (tmp_path / "levels.png").stat().st_size > 5000
    code, out = model("levels", path, "--json")
    assert json.loads(out)[0]["levels"][1]["bottom"] == pytest.approx(1.0)
    fits = {s.name: models.fit(s.sizes, s.seconds) for s in records.read_series(path)}
    assert set(fits) == {"levels applyOp", "levels exchange"}
    assert fits["levels applyOp"].alpha == pytest.approx(2e-6) and fits["levels exchange"].beta == pytest.approx(6e9)
    path.with_name("other.json").write_text(path.read_text())
    code, out = model("fit", path, path.with_name("other.json"), "--series", "applyOp", "--plot", tmp_path / "fit.svg")
    assert (
        code == 0 and "mine levels applyOp" in out and "other levels applyOp" in out and (tmp_path / "fit.svg").exists()
    )
    assert "series over bytes and points" in model("fit", path, "--plot", tmp_path / "fit.svg")[1]
    one = '{"operations": [{"level": %s, "operation": "smooth", "seconds": [%s]}], "cycles": 3}'
    damaged = [one % (-1, 1), one % (10**9, 1), one % (0, "NaN"), one % (0, -1)]
    for wrong in ("[]", "{}", '{"operations": []}', '{"operations": [{"level": 0}], "cycles": 3}', *damaged):
        path.write_text(wrong)
        assert "no times of levels" in model("levels", path)[1]
    path.write_text(one % (0, 0.0))
    assert model("levels", path)[0] == 0
    for wrong in ("[" * 100_000, '[{"case": "a", "bytes": 1%s, "seconds": [1]}]' % ("0" * 400)):
        path.write_text(wrong)
        assert "no JSON" in model("fit", path)[1] or "no times" in model("fit", path)[1]


def test_a_ceiling_is_a_positive_number(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"case": "a", "bytes": b, "seconds": [1e-6 + b / 1e9]} for b in (8, 64, 512)]))
    for wrong in ("0", "-1", "nan"):
        assert "positive number is needed" in model("fit", path, "--ceiling", wrong)[1]


def test_records_of_the_project_are_read():
    from pathlib import Path

    results = Path(__file__).parents[2] / "bench" / "results"
    names = [s.name for s in records.read_series(results / "forest.json")]
    assert any(n.startswith("pingpong raw_mpi") for n in names) and len(names) > 10
    assert set(records.read_platform(results / "stencils.json").roofline) >= {"7 points", "125 points"}


def test_command_line(tmp_path):
    code, out = model("scaling", "--machine", "frontier", "--plot", tmp_path / "s.svg")
    assert code == 0 and "at least 87 %" in out and (tmp_path / "s.svg").read_text().startswith("<?xml")
    code, out = model("scaling", "--json", "--machine", "perlmutter", "--nodes", "2")
    machine = json.loads(out)["cases"][0]["machine"]
    (tmp_path / "m.json").write_text(out)
    assert model("scaling", "--json", "--machine", tmp_path / "m.json", "--nodes", "2") == (0, out)
    (tmp_path / "m.json").write_text(model("scaling", "--json", "--nodes", "2")[1])
    assert "several machines" in model("scaling", "--machine", tmp_path / "m.json")[1]
    assert "--plot draws the scaling" in model("scaling", "--shares", "--plot", tmp_path / "s.svg")[1]
    (tmp_path / "m.json").write_text(json.dumps({**machine, "host_bandwidth": None}))
    assert json.loads(model("scaling", "--json", "--machine", tmp_path / "m.json")[1])["cases"]
    (tmp_path / "m.json").write_text(json.dumps({**machine, "name": "mine", "memory_bandwidth": 2e12}))
    code, faster = model("scaling", "--json", "--machine", tmp_path / "m.json", "--nodes", "2")
    assert code == 0 and json.loads(faster)["cases"][0]["seconds"] < json.loads(out)["cases"][0]["seconds"]
    far = json.loads(model("scaling", "--json", "--machine", "perlmutter", "--nodes", "2", "--far-nic", "--staged")[1])
    assert far["cases"][0]["seconds"] > json.loads(out)["cases"][0]["seconds"]
    (tmp_path / "m.json").write_text(json.dumps({**machine, "colour": 1}))
    assert "unknown colour" in model("scaling", "--machine", tmp_path / "m.json")[1]
    assert "no file" in model("scaling", "--machine", "frontie")[1]
    assert "54.5 %" in model("scaling", "--shares")[1]
    code, out = model("portability", "--paper", "--plot", tmp_path / "p.png")
    assert code == 0 and "73 %" in out and "92 %" in out and (tmp_path / "p.png").stat().st_size > 1000
    assert model("portability")[0] == 1
    assert "88.75" in model("roofline", "--bandwidth", 1420)[1]
    rows = [{"bytes": b, "seconds": 1e-6 + b / 2e9} for b in (8, 512, 4096, 1e6)]
    (tmp_path / "f.json").write_text(json.dumps({"pingpong": rows}))
    code, out = model("fit", tmp_path / "f.json", "--plot", tmp_path / "f.pdf", "--ceiling", 25)
    assert code == 0 and "pingpong" in out and (tmp_path / "f.pdf").exists()
    assert "no series with 'x'" in model("fit", tmp_path / "f.json", "--series", "x")[1]
    assert ".svg, .png or .pdf" in model("fit", tmp_path / "f.json", "--plot", tmp_path / "f.gif")[1]
    assert model("fit", tmp_path / "f.json", "--plot", tmp_path / "no" / "f.svg")[0] == 1


def test_efficiencies_above_one_are_refused(tmp_path):
    (tmp_path / "e.json").write_text(json.dumps({"platform": "p", "roofline": {"k": 1.5}}))
    assert "between 0 and 1" in model("portability", tmp_path / "e.json")[1]
    (tmp_path / "e.json").write_text(json.dumps({"platform": "p", "roofline": {"k": None}}))
    assert "0 %" in model("portability", tmp_path / "e.json")[1]
    for wrong in ({"roofline": {"k": 0.5}, "intensity": 5}, {"roofline": {}}, {"roofline": 5}, [1]):
        (tmp_path / "e.json").write_text(json.dumps(wrong))
        assert "has no efficiencies" in model("portability", tmp_path / "e.json")[1]
