import asterism as am
from asterism import _core
from asterism.machine import describe, memory_bandwidth


def test_info_names_what_the_build_can_do():
    d = describe(measure=False)
    assert d["asterism"] == am.__version__
    assert d["threads"] >= 1 and d["cores_allowed"] >= 1
    assert d["dtypes"] == ["float32", "float64", "complex64", "complex128"]


def test_bandwidth_is_measured_and_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = memory_bandwidth()
    assert first > 1e8
    assert memory_bandwidth() == first
    (tmp_path / "asterism" / "machine.json").write_text("{ broken")
    assert memory_bandwidth() > 1e8


def test_events_can_be_switched_off():
    A = am.gallery.poisson((20, 20))
    _core.profile_enable(False)
    _core.profile_reset()
    A @ A.make_vector(fill=1.0)
    assert _core.profile_snapshot() == []
    _core.profile_enable(True)
    A @ A.make_vector(fill=1.0)
    assert any(e["name"] == "MatMult" and e["calls"] == 1 and e["bytes"] > 0 for e in _core.profile_snapshot())
