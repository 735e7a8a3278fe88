"""What runs the compiler: errors, kernels that are begun ahead, and a cache that loads nobody else's files."""

import errno
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from stencil_cases import Case, five_points

import asterism as am
from asterism import stencil as st
from asterism.stencil.codegen import sources
from asterism.stencil.kernels import cache, compiler


def test_a_compiler_that_fails_is_an_error_with_its_text(monkeypatch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho the disk is full >&2\nexit $(test $1 = --version; echo $?)\n")
    broken.chmod(0o700)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("ASTERISM_STENCIL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(am.InternalError, match="the disk is full"):
        st.compile(five_points(), (8, 8))
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_temporary_folder_that_is_full_is_told(monkeypatch, own_kernels):
    def full(*given, **named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(
        am.UnsupportedError, match="temporary folder: No space left on device. Make room, or set TMPDIR"
    ):
        st.build(st.generate(five_points()))


def test_kernels_that_are_begun_ahead_are_compiled_at_the_same_time_and_once(monkeypatch, own_kernels):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    both, begun, right = threading.Barrier(2), [], compiler._run

    def run(text, name, *rest):
        begun.append(name)
        if len(begun) < 3:
            both.wait(timeout=60)  # until the other one is under way too
        right(text, name, *rest)

    monkeypatch.setattr(compiler, "_run", run)
    i, j = st.indices(2)
    u, out = st.grid("u", 2), st.grid("out", 2)
    sources = [st.generate(st.assign(out(i, j), c * u(i, j))) for c in (2.0, 3.0, 4.0)]
    compiler.build_ahead(sources)
    compiler.build_ahead(sources[:2])  # which are under way
    assert all(st.build(s).address for s in sources)
    assert sorted(begun) == sorted(f"{s.name}.cpp" for s in sources) and begun[2] == f"{sources[2].name}.cpp"
    compiler.build_ahead(sources)  # which are there
    assert len(begun) == 3 and not compiler._under_way


def test_what_fails_ahead_is_said_when_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setenv("ASTERISM_STENCIL_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho the disk is full >&2\nexit 1\n")
    broken.chmod(0o700)
    source = st.generate(five_points())
    for program, error, text in (
        (str(broken), am.InternalError, "the disk is full"),
        ("/no/such", am.UnsupportedError, "/no/such"),
    ):
        monkeypatch.setenv("CXX", program)
        compiler.build_ahead([source])
        with pytest.raises(error, match=text):
            st.build(source)


def test_without_threads_nothing_is_begun_ahead(monkeypatch, own_kernels):
    def fails(*given, **named):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(threading.Thread, "start", fails)
    source = st.generate(five_points())
    compiler.build_ahead([source])
    assert not compiler._under_way and st.build(source).compiled


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_that_is_forked_while_a_kernel_is_compiled_does_not_wait_for_itself(fails, tmp_path):
    script = (
        f"fails = {fails}"
        + """
import os, time
from asterism import stencil as st
from asterism.stencil.kernels import compiler
i = st.indices(1)[0]
u, out = st.grid("u", 1), st.grid("out", 1)
source = st.generate(st.assign(out(i), 5 * u(i)))
right = compiler._run
def run(*given):
    time.sleep(1)
    if fails and os.getpid() == parent:
        raise compiler.InternalError("the disk is full")
    right(*given)
parent, compiler._run = os.getpid(), run
os.sched_getaffinity = lambda process: {0, 1}
compiler.build_ahead([source])
while not os.listdir(os.environ["ASTERISM_STENCIL_CACHE"]):
    time.sleep(0.01)  # the lock is not there yet
child = os.fork()
try:
    assert st.build(source).address
except compiler.InternalError as e:
    assert fails and child and "full" in str(e)
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    print("done")
"""
    )
    where = {**os.environ, "ASTERISM_STENCIL_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=where, capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done


def no_text(*given):
    raise AssertionError("the text was made")


def test_the_second_use_comes_from_the_cache_without_the_text(monkeypatch, own_kernels):
    source = st.generate(five_points())
    first = st.build(source)
    monkeypatch.setattr(compiler, "_loaded", {})
    with monkeypatch.context() as without:
        without.setattr(sources, "_generate", no_text)
        again = st.build(st.generate(five_points()))
    assert first.compiled and not again.compiled and again.path == first.path
    assert first.path.parent.stat().st_mode & 0o777 == 0o700 and first.path.stat().st_mode & 0o077 == 0
    other = st.generate(five_points(), "generic" if source.target != "generic" else "avx2")
    assert st.build(other).path != first.path


def test_a_compiler_that_was_changed_compiles_again(monkeypatch, own_kernels, tmp_path):
    program = tmp_path / "compiler"
    for comment, compiled in (("one", True), ("one", False), ("another one", True)):
        if compiled:
            program.write_text(f'#!/bin/sh\n# {comment}\nexec g++ "$@"\n')
            program.chmod(0o700)
        monkeypatch.setenv("CXX", str(program))
        monkeypatch.setattr(compiler, "_loaded", {})
        assert st.build(st.generate(five_points())).compiled == compiled


def variants():
    """The same stencil, and others that differ from it in one thing."""
    i, j = st.indices(2)
    u, v, out = (st.grid(n, 2) for n in ("u", "v", "out"))
    c, d = st.constant("c", 4.0), st.constant("d", 4.0)

    def made(value, target=out(i, j)):
        return st.generate(st.assign(target, value), "generic")

    def usual(offset=1, number=2.0, constant=c, grid=u):
        return st.where(i < 3, number * grid(i + offset, j) - constant, abs(u(i, j)))

    same = st.assign(out(i, j), usual())
    yield made(usual())
    yield st.generate(same, "generic")
    yield made(usual(offset=2)), made(usual(number=-2.0)), made(usual(constant=d)), made(usual(grid=v))
    yield made(usual(number=0.0)), made(usual(number=-0.0)), made(usual(), v(i, j))
    for condition in (i <= 3, i < 4, j < 3, i % 2 < 3, i % 3 < 3, (i < 3) & (j < 3), ~(i < 3)):
        yield made(st.where(condition, 2.0 * u(i + 1, j) - c, abs(u(i, j))))
    yield made(st.minimum(u(i, j), v(i, j))), made(st.minimum(v(i, j), u(i, j))), made(st.maximum(u(i, j), v(i, j)))
    yield (
        made(u(2 * i, 2 * j)),
        made(u(i // 2, j // 2)),
        made(u((i + 1) // 2, (j + 1) // 2)),
        made(u(i // 2 + 1, j // 2 + 1)),
    )
    yield st.generate(st.fuse(same, st.reduce("sum", "s", u(i, j))), "generic")
    yield st.generate(st.fuse(same, st.reduce("max", "s", u(i, j))), "generic")
    yield st.generate(st.fuse(same, st.reduce("max", "t", u(i, j))), "generic")
    yield st.generate(st.fuse(st.reduce("max", "t", u(i, j)), same), "generic")
    yield (
        st.generate(same, "generic", dtype=np.float32),
        st.generate(same, "generic", (4, 8)),
        st.generate(same, "avx2"),
    )


def test_digests_differ_where_one_thing_does():
    first, again, *others = (s for group in variants() for s in (group if isinstance(group, tuple) else (group,)))
    assert first.digest == again.digest
    assert len({s.digest for s in (first, *others)}) == 1 + len(others)


def test_equal_digests_have_equal_text():
    texts = {}
    for seed in [*range(30), *range(30)]:
        source = st.generate(Case(seed).stencil, "avx2")
        text = source.text.replace(source.name, "")
        assert texts.setdefault(source.digest, text) == text
    assert len(texts) == len(set(texts.values())) == 30


def test_files_that_others_can_write_are_not_loaded(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ASTERISM_STENCIL_CACHE", str(folder))
    monkeypatch.setattr(compiler, "_loaded", {})
    source = st.generate(five_points())
    path = st.build(source).path

    def refused(text):
        monkeypatch.setattr(compiler, "_loaded", {})
        with pytest.raises(am.FileError, match=text):
            st.build(source)

    path.chmod(0o777)
    refused("can be written by other users")
    path.chmod(0o700)
    folder.chmod(0o777)
    refused("can be written by other users")
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        refused("belongs to user 12345")
        os.chown(path, 0, -1)
        os.chown(folder, 12345, -1)
        refused("belongs to user 12345")
        os.chown(folder, 0, -1)
    real = path.rename(tmp_path / "elsewhere.so")
    path.symlink_to(real)
    refused("symbolic link")


def test_processes_that_compile_at_once(tmp_path):
    script = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np, test_stencil_kernels as t
from asterism import stencil as st
print(float(st.compile(t.five_points(), (8, 8), periodic=True)(u=np.ones((8, 8)), c=5.0)[2, 3]))
"""
    environment = {**os.environ, "ASTERISM_STENCIL_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    runs = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [r.communicate(timeout=120)[0] for r in runs] == ["-1.0\n"] * 4
    assert sorted(p.suffix for p in (tmp_path / "cache").iterdir()) == [".size", ".so"]


def test_processes_that_find_a_damaged_kernel_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTERISM_STENCIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "_loaded", {})
    path = st.build(st.generate(five_points())).path
    path.unlink()  # it is loaded here: what is mapped must not change
    path.write_bytes(b"\x7fELF junk")
    path.chmod(0o700)
    note = path.with_suffix(".size")
    note.write_bytes(cache._size_and_sum(path))  # what the loader alone refuses
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_stencil_kernels as t; "
    script += "print(t.st.build(t.st.generate(t.five_points())).compiled)"
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [r.communicate(timeout=120)[0] for r in runs]
    assert sorted(said) == ["False\n"] * 3 + ["True\n"]
    assert sorted(p.suffix for p in path.parent.iterdir()) == [".size", ".so"]


def damages(path):
    """What may be left of a kernel."""
    whole = path.read_bytes()
    yield b""
    yield b"junk" * 1000
    yield whole[: len(whole) // 2]
    yield whole[:-1]
    yield whole[:4096] + bytes(len(whole) - 4096)


def test_damaged_kernels_are_made_again(monkeypatch, own_kernels):
    source, x = st.generate(five_points()), np.ones((8, 8))
    path = st.build(source).path
    for left in damages(path):
        path.unlink()  # it is loaded: what is mapped must not change
        path.write_bytes(left)
        path.chmod(0o700)
        monkeypatch.setattr(compiler, "_loaded", {})
        assert st.build(source).compiled and not st.build(source).compiled
    path.with_suffix(".size").unlink()
    monkeypatch.setattr(compiler, "_loaded", {})
    assert st.build(source).compiled
    assert st.compile(five_points(), (8, 8))(u=x)[3, 3] == 0
    monkeypatch.setattr(compiler, "_loaded", {})
    with monkeypatch.context() as never:
        never.setenv("CXX", "/bin/true")
        with pytest.raises(am.InternalError, match=r"/kernels/\w*.so' cannot be loaded: .*file too short"):
            st.build(source)
    assert not st.build(source).compiled
    assert sorted(p.suffix for p in path.parent.iterdir()) == [".size", ".so"]


def test_a_compiler_with_arguments(monkeypatch, own_kernels, tmp_path):
    source = st.generate(five_points())
    blank = tmp_path / "of mine"
    blank.write_text('#!/bin/sh\nexec g++ "$@"\n')
    blank.chmod(0o700)
    paths = set()
    for given in ("g++", "g++ -g0", "g++ -g0 '-DA=1 2'", str(blank), f"'{blank}' -g0"):
        monkeypatch.setenv("CXX", given)
        assert st.build(source).compiled
        paths.add(st.build(source).path)
    assert len(paths) == 5
    for given in ("no-such-g++ -O2", "g++ '", "  "):
        monkeypatch.setenv("CXX", given)
        with pytest.raises(am.UnsupportedError, match=re.escape(f"CXX is {given!r}")):
            st.build(source)
