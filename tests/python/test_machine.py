import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE

import asterism as am
from asterism import _core
from asterism.base.machine import WaitsForCores, describe, memory_bandwidth, remember, remembered
from asterism.report.collect import Findings, _advice, _looks_wrong
from asterism.stencil.kernels import cache


def test_info_names_what_the_build_can_do():
    d = describe(measure=False)
    assert d["asterism"] == am.__version__
    assert d["threads"] >= 1 and d["cores_allowed"] >= 1
    assert d["dtypes"] == ["float32", "float64", "complex64", "complex128"]


@pytest.fixture
def waits(tmp_path, monkeypatch):
    """What the machine's load is said to be, one after the other."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = []
    monkeypatch.setattr(WaitsForCores, "share", lambda self: said.pop(0) if said else 0.0)
    return said


def test_bandwidth_is_measured_and_cached(tmp_path, waits):
    first = memory_bandwidth()
    assert first > 1e8
    assert memory_bandwidth() == first
    (tmp_path / "asterism" / "machine.json").write_text("{ broken")
    assert memory_bandwidth() > 1e8


def test_a_user_without_a_home(monkeypatch):
    """Nothing is kept, and measured again instead; kernels need a place."""
    for name in ("HOME", "XDG_CACHE_HOME", "ASTERISM_STENCIL_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    remember("machine.json", "a", 1.0)
    assert remembered("machine.json") == {}
    with pytest.raises(am.FileError, match="no home folder for caches. Set HOME, or XDG_CACHE_HOME"):
        cache.folder()


def test_what_a_busy_machine_gives_is_not_kept(tmp_path, waits):
    waits += [0.5, 0.2, 0.3]
    assert memory_bandwidth() > 1e8 and not waits
    assert not (tmp_path / "asterism" / "machine.json").exists()
    waits += [0.5]  # the second time it is calm
    kept = memory_bandwidth()
    assert (tmp_path / "asterism" / "machine.json").exists()
    waits += [0.5, 0.5, 0.5]  # beside others no less than what is known
    assert memory_bandwidth(refresh=True) >= kept


def test_waits_for_cores_are_noticed():
    """Two threads on one core: each waits for half of the time."""
    code = """
import os, subprocess, sys, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
from asterism.base.machine import WaitsForCores
try:
    time.sleep(0.2)
    w = WaitsForCores()
    end = time.perf_counter() + 1
    while time.perf_counter() < end: pass
    share = w.share()
finally:
    other.kill()
print(share)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert not Path("/proc/self/schedstat").exists() or 0.2 < float(done.stdout) <= 1


def findings(**facts):
    A = am.gallery.poisson((30, 30))
    s = am.Solver(A, ksp="cg", pc="jacobi")
    s.solve(np.ones(900))
    event = {"name": "MatMult", "calls": 10, "seconds": 1.0, "self_seconds": 1.0, "bytes": 5e9, "flops": 0, "messages": 0,
             "message_bytes": 0, "reductions": 0}  # fmt: skip
    info = dataclasses.replace(s.info, setup_seconds=0.1, solve_seconds=1.0)
    known = dict(problem="p", info=info, view="", options=[], events=[event | facts.pop("event", {})], ranks=1, threads=2,
                 triad=1e10, cores=2, cache=1_000_000, storage="row_pattern", entries_per_row=5.0)  # fmt: skip
    return Findings(**known | facts)


def test_advice_follows_from_what_is_known():
    def advice(**facts):
        return " ".join(_advice(findings(**facts)))

    regular = advice()
    assert "50 % of the 10.0 GB/s" in regular and "order of the unknowns" not in regular and "limited" not in regular
    assert "reverse_cuthill_mckee" in advice(storage="csr", spread=8e6)
    assert "order of the unknowns" not in advice(storage="csr", spread=8e3)
    assert "limited by memory bandwidth" in advice(event={"bytes": 9e9})
    cached = advice(event={"bytes": 9e9, "calls": 100_000})
    assert "come from cache" in cached and "limited by memory" not in cached
    busy = advice(waited=0.4)
    assert "The machine was busy" in busy and "40 %" in busy and "other programs" in busy
    assert "4 threads of this program share 2 core(s)" in advice(waited=0.4, threads=4)
    assert "calls are short" in advice(event={"calls": 100_000, "bytes": 2e9})


def test_a_triad_below_what_is_seen_is_measured_again():
    assert _looks_wrong(findings(event={"bytes": 1.5e10})) and not _looks_wrong(findings(event={"bytes": 9e9}))
    assert not _looks_wrong(findings(event={"bytes": 1.5e10, "calls": 100_000}))


def test_events_can_be_switched_off():
    A = am.gallery.poisson((20, 20))
    _core.profile_enable(False)
    _core.profile_reset()
    A @ A.make_vector(fill=1.0)
    assert _core.profile_snapshot() == []
    _core.profile_enable(True)
    A @ A.make_vector(fill=1.0)
    assert any(e["name"] == "MatMult" and e["calls"] == 1 and e["bytes"] > 0 for e in _core.profile_snapshot())


def test_an_error_while_the_package_is_loaded_keeps_its_words():
    """As a CPU without the library's instructions gives: `check_cpu` stands for it with another error of the library."""
    code = """
import importlib
import asterism
core = importlib.import_module("asterism._core")
def says():
    try:
        core.matrix_market_header("absent.mtx")
    except Exception as error:
        return type(error).__name__, "absent.mtx" in str(error)
print(says())
core.check_cpu = lambda: print(says())
asterism._load_core()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines() == ["('RuntimeError', True)", "('FileError', True)"], done.stderr


@pytest.mark.parametrize(
    ("name", "value", "size"),
    [("ASTERISM", "3", 3), ("OMP", " 2 ", 2), ("OMP", "3,2", 3), ("ASTERISM", "3,2", None), ("ASTERISM", "many", None)]
    + [("OMP", "-1", None), ("ASTERISM", "0", None), ("ASTERISM", "1000000", None)],
)
def test_threads_of_the_environment(monkeypatch, name, value, size):
    monkeypatch.delenv("ASTERISM_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv(f"{name}_NUM_THREADS", value)
    script = "from asterism import _core; print(_core.team_size(), _core.allowed_cores())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    threads, cores = map(int, done.stdout.split())
    told = f"{name}_NUM_THREADS={value} is ignored: it is no number of threads from 1 to 1024" in done.stderr
    assert (threads, told) == ((size, False) if size else (cores, True)), done
