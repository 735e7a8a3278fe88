import gzip
import os
import shutil
import stat
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import asterism as am
from asterism.base.files import check_target, replacing


def read_text(tmp_path, text, name="a.mtx"):
    p = tmp_path / name
    p.write_text(text)
    return am.read_matrix(p)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("field", ["real", "complex", "integer", "pattern"])
@pytest.mark.parametrize("zipped", [False, True])
def test_coordinate_files_as_scipy_reads_them(tmp_path, rng, symmetry, field, zipped):
    if symmetry == "hermitian" and field != "complex" or symmetry == "skew-symmetric" and field == "pattern":
        pytest.skip("not a combination of the format")
    n = 30
    S = sp.random_array((n, n), density=0.1, rng=rng).tocoo()
    S = S + 1j * S if field == "complex" else S
    lower = sp.tril(S, -1 if symmetry == "skew-symmetric" else 0) if symmetry != "general" else S
    lower = lower.tocoo()
    lines = []
    for i, j, v in zip(*lower.coords, lower.data, strict=True):
        if symmetry == "hermitian" and i == j:
            v = v.real + 0j
        value = {
            "real": f" {v.real!r}",
            "complex": f" {v.real!r} {v.imag!r}",
            "integer": f" {int(v.real * 100)}",
            "pattern": "",
        }
        lines.append(f"{i + 1} {j + 1}{value[field]}".replace("np.float64(", "").replace(")", ""))
    text = (
        f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% comment\n\n{n} {n} {len(lines)}\n"
        + "\n".join(lines)
        + "\n"
    )
    p = tmp_path / ("a.mtx.gz" if zipped else "a.mtx")
    p.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    A = am.read_matrix(p)
    want = scipy.io.mmread(p).tocsr()
    assert abs(A.to_scipy() - want).max() < 1e-15 and A.nnz == want.nnz


def test_array_files_and_vectors(tmp_path, rng):
    D = rng.standard_normal((4, 3))
    scipy.io.mmwrite(tmp_path / "d.mtx", D)
    np.testing.assert_allclose(am.read_matrix(tmp_path / "d.mtx").to_scipy().toarray(), D, rtol=1e-12)
    np.testing.assert_allclose(am.read_vector(tmp_path / "d.mtx"), D, rtol=1e-12)
    x = rng.standard_normal(7) + 1j * rng.standard_normal(7)
    am.write_vector(tmp_path / "x.mtx", x)
    assert (am.read_vector(tmp_path / "x.mtx") == x).all()  # every bit
    np.testing.assert_array_equal(scipy.io.mmread(tmp_path / "x.mtx").ravel(), x)
    A = am.gallery.poisson((4, 4))
    am.write_matrix(tmp_path / "p.mtx", A)
    assert abs(am.read_matrix(tmp_path / "p.mtx").to_scipy() - A.to_scipy()).max() == 0
    assert not list(tmp_path.glob("*.part"))


HEAD = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("hello\n", "line 1: 'hello' is no Matrix Market banner"),
        ("3 3 2\n1 1 1.0\n2 1 1.0\n", "one triangle read as general is a triangular matrix"),
        ("%%MatrixMarket matrix coordinate general\n1 1 1\n", r"lacks its field \(real, complex, integer, pattern\)"),
        ("%%MatrixMarket matrix coordinate real\n1 1 1\n", r"lacks its symmetry \(general, symmetric"),
        ("%%MatrixMarket matrix real general\n1 1 1\n", r"lacks its format \(coordinate, array\)"),
        ("%%MatrixMarket matrix\n", "lacks its format"),
        ("%%MatrixMarket vector coordinate real general\n1 1 1\n", "'vector' is not 'matrix'"),
        ("%%MatrixMarket matrix coordinate quaternion general\n", "field 'quaternion' is not one of real"),
        ("%%MatrixMarket matrix coordinate real odd\n1 1 1\n", "line 1: symmetry 'odd' is not one of general"),
        (HEAD, "ends before the line with the sizes"),
        (HEAD + "3 x 1\n", "line 2: '3 x 1' should be rows, columns, entries"),
        (HEAD + "3 3 2\n1 1 1.0\n2 2 zwei\n", "line 4: '2 2 zwei' should be row, column, value"),
        (HEAD + "3 3 2\n1 1 1.0\n2 2\n", "line 4: '2 2' should be"),
        (HEAD + "3 3 2\n1 1 1.0\n2 9 1.0\n", r"line 4: entry \(2, 9\) is outside the 3 x 3 matrix"),
        (HEAD + "3 3 2\n1 1 1.0\n0 1 1.0\n", "indices start at 1"),
        (HEAD + "3 3 3\n1 1 1.0\n2 2 1.0\n", "announces 3 entries but holds 2: the file is truncated"),
        (HEAD + "3 3 1\n1 1 1.0\n2 2 1.0\n", "announces 1 entries but holds 2"),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", "cannot be 2 x 3"),
        (HEAD + "2 2 99\n1 1 1\n", "99 entries do not fit in a 2 x 2"),
        (HEAD + "2 2 2\n1 1 1\n2 2 -1e400\n", "line 4: -1e400 is beyond 1.8e308"),
        (HEAD + "2 2 2\n1 1 1\n2 2 1.0D+400\n", r"line 4: 1.0D\+400 is beyond 1.8e308"),
        (HEAD.replace("coordinate", "array") + "1 2\n1.0\n1e309\n", "line 4: 1e309 is beyond 1.8e308"),
    ],
)
def test_malformed_files_name_the_line(tmp_path, text, message):
    with pytest.raises(am.FormatError, match=message):
        read_text(tmp_path, text)


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(am.FileError, match="cannot be opened"):
        am.read_matrix(tmp_path / "none.mtx")
    with pytest.raises(am.FileError, match="cannot be opened"):
        am.read_matrix(tmp_path / "a.xyz")
    (tmp_path / "folder.mtx").mkdir()
    with pytest.raises(am.FileError, match="Is a directory"):
        am.read_matrix(tmp_path / "folder.mtx")
    body = HEAD + "500 500 500\n" + "".join(f"{i} {i} 1.5\n" for i in range(1, 501))
    whole = gzip.compress(body.encode())
    (tmp_path / "cut.mtx.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(am.FormatError, match="truncated"):
        am.read_matrix(tmp_path / "cut.mtx.gz")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    (tmp_path / "bad.mtx.gz").write_bytes(bytes(broken))
    with pytest.raises(am.FormatError):
        am.read_matrix(tmp_path / "bad.mtx.gz")
    with pytest.raises(am.FileError, match="cannot be written"):
        am.write_vector(tmp_path / "no" / "x.mtx", np.ones(3))


def test_fortran_exponents_and_windows_lines(tmp_path):
    A = read_text(tmp_path, HEAD + "2 2 3\r\n1 1 1.5D+01\r\n1 2 1.0D-400\r\n2 2 +2.0e0\r\n")
    np.testing.assert_array_equal(A.to_scipy().toarray(), [[15, 0], [0, 2]])


def test_numbers_are_read_to_the_last_bit(tmp_path):
    """Every form of a number, against Python's own float()."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**63, 4000).view(np.float64)
    values = [repr(float(v)) for v in bits if np.isfinite(v)]
    values += (
        [repr(float(v)) for v in rng.random(4000)]
        + [f"{v:.17e}" for v in rng.random(2000)]
        + [f"{v:.20f}" for v in rng.random(500)]
    )
    values += [
        f"{int(m)}e{int(e)}" for m, e in zip(rng.integers(1, 2**62, 3000), rng.integers(-30, 30, 3000), strict=True)
    ]
    values += [
        "1",
        "+1.5",
        "-0.0",
        "1.",
        ".5",
        "-.5e1",
        "1e0",
        "1E+22",
        "1e-22",
        "9007199254740993",
        "9007199254740992.5",
        "1e400",
        "1e-400",
    ]
    values += [
        "0.1234567890123456789",
        "12345678.12345678",
        "1234567890123456789012",
        "4.35",
        "0.3e-5",
        "2.2250738585072014e-308",
    ]
    values += ["9007199254740991e22", "4503599627370497.5", "1e23", "8.5e22", "00000000000000000000001.5"]
    values = [v for v in values if np.isfinite(float(v))]
    n = len(values)
    for separator, end in ((" ", "\n"), ("\t ", " \r\n")):
        lines = [f"{i + 1}{separator}{i + 1}{separator}{v}" for i, v in enumerate(values)]
        f = tmp_path / "n.mtx"
        f.write_text(
            f"%%MatrixMarket matrix coordinate real general\n{n} {n} {n}\n"
            + end.join(lines)
            + ("" if end == "\n" else end),
            newline="",
        )
        got = am.read_matrix(f).to_scipy().data
        want = np.array([float(v) for v in values])
        wrong = np.flatnonzero(got.view(np.int64) != want.view(np.int64))
        assert len(wrong) == 0, [(values[i], got[i], want[i]) for i in wrong[:5]]


def test_a_text_of_another_type_in_an_archive_is_an_error(tmp_path):
    # with checksums that fit: what was read went beyond the memory for it
    good, bad = tmp_path / "good.ast", tmp_path / "bad.ast"
    am.save(good, A=am.gallery.poisson((10, 10)), note="y" * 100_000)
    data = bytearray(good.read_bytes())
    head, line = struct.Struct("<8sIIqII"), struct.Struct("<64sIIqqqq")
    *start, count, end, block, _ = head.unpack_from(data)
    changed = 0
    for k in range(count):
        name, kind, part, rows, columns, offset, sums = line.unpack_from(data, head.size + k * line.size)
        if name.rstrip(b"\0") == b"note":
            line.pack_into(data, head.size + k * line.size, name, 3, part, rows // 16, columns, offset, sums)
            changed += 1
    assert changed == 1
    head.pack_into(data, 0, *start, count, end, block, 0)
    table = bytes(data[head.size : head.size + count * line.size])
    head.pack_into(data, 0, *start, count, end, block, zlib.crc32(table, zlib.crc32(bytes(data[: head.size]))))
    bad.write_bytes(data)
    with pytest.raises(am.errors.FormatError, match="the text 'note' has 1 columns, or another type"):
        am.load(bad)


def test_row_offsets_beyond_the_columns_are_an_error():
    offsets, columns = np.array([0, 10, 4, 4, 4], dtype=np.int32), np.zeros(4, dtype=np.int32)
    wrong = sp.csr_array((4, 5))
    wrong.indptr, wrong.indices, wrong.data = offsets, columns, np.ones(4)
    with pytest.raises(am.InputError, match="local row 0 ends at 10, but there are 4 columns given"):
        am.Matrix.from_scipy(wrong)


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz", "a.mat", "a.petsc", "a.ast"])
def test_files_are_as_private_as_the_umask_says(tmp_path, name):
    A = am.gallery.poisson((4, 4))
    for mask, mode in ((0o077, 0o600), (0o027, 0o640), (0o022, 0o644)):
        before = os.umask(mask)
        try:
            am.write_matrix(tmp_path / name, A)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
        (tmp_path / name).unlink()


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz", "a.mat"])
def test_nothing_is_left_where_a_file_cannot_take_its_place(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(am.errors.AsterismError):
        am.write_matrix(tmp_path / name, am.gallery.poisson((4, 4)))
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x.mtx", "x.petsc", "x.ast", "x.npy"])
def test_processes_that_write_one_file_each_by_itself_leave_a_whole_one(on_ranks, tmp_path, name):
    on_ranks(
        2,
        f"""
path = {str(tmp_path / name)!r}
for turn in range(20):
    comm.Barrier()
    am.write_vector(path, np.full(1000, 1.0 + rank))
comm.Barrier()
x = am.read_vector(path)
assert x.shape == (1000,) and x[0] in (1, 2) and np.all(x == x[0])
""",
    )
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("x.")] == [name]


def test_jobs_of_several_ranks_that_write_one_file_leave_a_whole_one(on_ranks, tmp_path):
    for name in ("x.mtx.part", "x.mtx.gz.part"):
        (tmp_path / name).write_text("the user's own")
    on_ranks(
        4,
        f"""
job = comm.Split(rank // 2, rank)
A = am.gallery.poisson((1000,), job)
for path in {[str(tmp_path / name) for name in ("x.mtx", "x.mtx.gz")]!r}:
    for turn in range(10):
        am.write_vector(path, np.full(A.local_shape[0], 1.0 + rank // 2), A)
    comm.Barrier()
    x = am.read_vector(path)
    assert x.shape == (1000,) and x[0] in (1, 2) and np.all(x == x[0])
try:
    am.write_vector({str(tmp_path / "none" / "x.mtx")!r}, np.ones(A.local_shape[0]), A)
except am.FileError as error:
    assert "cannot be written: No such file" in str(error), error
""",
    )
    left = {p.name for p in tmp_path.iterdir() if not p.name.startswith("script")}
    assert left == {"x.mtx", "x.mtx.gz", "x.mtx.gz.part", "x.mtx.part"}
    assert (tmp_path / "x.mtx.part").read_text() == (tmp_path / "x.mtx.gz.part").read_text() == "the user's own"


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a.mtx").symlink_to("b.mtx")
    (tmp_path / "b.mtx").symlink_to("a.mtx")
    for write in (
        lambda: am.write_matrix(tmp_path / "a.mtx", am.gallery.poisson((4, 4))),
        lambda: check_target(tmp_path / "a.mtx", "the target"),
        lambda: replacing(tmp_path / "a.mtx").__enter__(),
    ):
        with pytest.raises(am.FileError, match="cannot be written: Too many levels of symbolic links"):
            write()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mtx", "b.mtx"] and (tmp_path / "a.mtx").is_symlink()


def test_more_rows_than_memory_are_an_error_that_says_how_much(tmp_path):
    (tmp_path / "a.mtx").write_text(HEAD + "2000000000 2000000000 1\n1 1 1\n")
    script = f"""
import resource
import asterism as am
am.Matrix
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
try:
    am.read_matrix({str(tmp_path / "a.mtx")!r})
except am.OutOfMemoryError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "8000000004 bytes for where 2000000000 rows" in done.stdout, done


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz", "a.mat", "a.petsc", "a.ast", "a.h5"])
def test_a_link_stays_a_link_and_a_pipe_stays_a_pipe(tmp_path, name):
    if name == "a.h5":
        pytest.importorskip("h5py")
    A = am.gallery.poisson((4, 4))
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / name).write_text("old")
    (tmp_path / name).symlink_to(tmp_path / "far" / name)
    am.write_matrix(tmp_path / name, A)
    assert (tmp_path / name).is_symlink() and am.read_matrix(tmp_path / "far" / name).nnz == 64
    pipe = tmp_path / f"pipe{name}"
    os.mkfifo(pipe)
    with pytest.raises(am.FileError, match="device or a pipe, which no file can replace"):
        am.write_matrix(pipe, A)
    with pytest.raises(am.FileError, match="device or a pipe, which is not read twice"):
        am.read_matrix(pipe)
    with pytest.raises(am.FileError, match="a device or a pipe"):
        am.load(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "far", pipe.name])
    assert [p.name for p in (tmp_path / "far").iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz", "a.mat", "a.petsc", "a.ast", "a.h5"])
def test_a_disk_that_is_full_is_an_error_and_leaves_what_was_there(tmp_path, name):
    """HDF5 itself crashes there."""
    if name == "a.h5":
        pytest.importorskip("h5py")
    (tmp_path / name).write_text("old")
    script = f"""
import resource
import asterism as am
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    am.write_matrix({str(tmp_path / name)!r}, am.gallery.elasticity((8, 8, 8)))
except am.FileError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "cannot be written: " in done.stdout and not done.stderr, done
    assert [p.name for p in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "old"


def test_names_that_are_no_text(tmp_path):
    name = tmp_path / os.fsdecode(b"n\xe9.mtx")
    name.write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n")
    for call in (am.read_matrix, am.read_vector, am.load, lambda p: am.write_matrix(p, am.gallery.poisson((2,)))):
        with pytest.raises(am.InputError, match="is no UTF-8. Rename the file"):
            call(name)


def test_nothing_is_left_of_a_writer_that_is_interrupted(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfileobj", interrupted)
    with pytest.raises(KeyboardInterrupt):
        am.write_matrix(tmp_path / "a.mtx.gz", am.gallery.poisson((4, 4)))
    monkeypatch.setattr(am.la.io, "agreed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        am.la.io._compressed(am.gallery.poisson((4, 4))._h.comm, str(tmp_path / "b.mtx.gz"), lambda p: Path(p).touch())
    assert not list(tmp_path.iterdir())
