"""Files that hold an entry twice, or both triangles of a symmetric matrix."""

import gzip
import struct

import pytest
import scipy.sparse as sp
from test_formats import hb

import asterism as am

HEAD = "%%MatrixMarket matrix coordinate {} {}\n"


def matrix_market(path, field, symmetry, entries, n=5):
    text = HEAD.format(field, symmetry) + f"{n} {n} {len(entries)}\n" + "\n".join(entries) + "\n"
    if str(path).endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("n", [1, 2, 3])
def test_both_triangles_are_refused(on_ranks, tmp_path, n):
    paths = [tmp_path / name for name in ("a.mtx", "a.mtx.gz", "a.rsa")]
    for path in paths[:2]:
        matrix_market(path, "real", "symmetric", ["1 1 2", "4 1 7", "5 2 3", "3 3 1", "1 4 7", "2 5 3", "5 5 1"])
    paths[2].write_text(hb("RSA", 5, 5, [1, 3, 5, 6, 8, 10], [1, 4, 2, 5, 3, 1, 4, 2, 5], [2, 7, 1, 3, 1, 7, 1, 3, 1]))
    out = on_ranks(n, f"for path in {[str(p) for p in paths]}: print(message(lambda: am.read_matrix(path, comm)))")
    for path in paths:
        text = f"'{path}' is a file of one triangle of a symmetric matrix, but holds both (4, 1) and (1, 4), the first of 2 such pair(s)"
        assert out.count(text) == n, out


@pytest.mark.parametrize("symmetry", ["skew-symmetric", "hermitian", "symmetric"])
def test_of_every_symmetry(tmp_path, symmetry):
    path = matrix_market(tmp_path / "a.mtx", "complex", symmetry, ["2 1 1 1", "1 2 1 1"])
    with pytest.raises(am.FormatError, match=r"holds both \(2, 1\) and \(1, 2\), the first of 1"):
        am.read_matrix(path)
    path = matrix_market(tmp_path / "b.mtx", "pattern", "symmetric", ["2 1", "1 2"])
    with pytest.raises(am.FormatError, match=r"holds both"):
        am.read_matrix(path)


@pytest.mark.parametrize("n", [1, 3])
def test_one_triangle_of_any_kind_is_read(on_ranks, tmp_path, n):
    for name, entries in (
        ("lower", ["1 1 2", "2 1 1", "3 1 7", "3 3 5"]),
        ("upper", ["1 1 2", "1 2 1", "1 3 7", "3 3 5"]),
        ("some of each", ["1 1 2", "1 2 1", "3 1 7", "3 3 5"]),
    ):
        matrix_market(tmp_path / f"{name}.mtx", "real", "symmetric", entries, 3)
    on_ranks(
        n,
        f"""
for name in ("lower", "upper", "some of each"):
    A = am.read_matrix("{tmp_path}/" + name + ".mtx", comm)
    want = np.array([[2.0, 1, 7], [1, 0, 0], [7, 0, 5]])[slice(*A.row_range)]
    assert np.array_equal(A.to_scipy().toarray(), want), name
""",
    )


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_repeats_are_summed_and_said(tmp_path, caplog, symmetry):
    path = matrix_market(tmp_path / "a.mtx", "real", symmetry, ["1 1 2", "4 2 1", "4 2 1.5", "3 3 1", "1 1 1", "4 2 1"])
    with caplog.at_level("WARNING", "asterism"):
        S = am.read_matrix(path).to_scipy()
    told = [r.getMessage() for r in caplog.records]
    assert told == [
        f"'{path}' holds entries that stand there more than once, 3 too many; the first is (1, 1). They are summed."
    ]
    assert S[0, 0] == 3 and S[3, 1] == 3.5 and S[1, 3] == (3.5 if symmetry == "symmetric" else 0)
    caplog.clear()
    path = matrix_market(tmp_path / "b.mtx", "real", symmetry, ["1 1 2", "4 2 1", "3 3 1"])
    with caplog.at_level("WARNING", "asterism"):
        am.read_matrix(path)
    assert not caplog.records


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_diagonal_that_the_symmetry_forbids(on_ranks, tmp_path, n):
    skew = matrix_market(tmp_path / "skew.mtx", "real", "skew-symmetric", ["2 1 2", "3 2 1", "3 3 0", "4 4 1e-3"])
    hermitian = matrix_market(tmp_path / "h.mtx", "complex", "hermitian", ["2 1 2 1", "3 3 1 1e-17", "5 5 1 0.5"])
    out = on_ranks(
        n,
        f"""
print(message(lambda: am.read_matrix("{skew}", comm)))
print(message(lambda: am.read_matrix("{hermitian}", comm)))
""",
    )
    assert out.count("line 6: '4 4 1e-3' is on the diagonal, which is zero in a skew-symmetric matrix") == n, out
    assert out.count("line 5: '5 5 1 0.5' is on the diagonal, which is real in a Hermitian matrix") == n, out


def test_large_files_take_the_fast_way_and_are_judged_alike(tmp_path, rng):
    S = sp.tril(sp.random_array((400, 400), density=0.05, rng=rng)).tocoo()
    lines = [f"{i + 1} {j + 1} {v:.6f}" for i, j, v in zip(*S.coords, S.data, strict=True)]
    below = [(i, j) for i, j in zip(*S.coords, strict=True) if i > j]
    got = am.read_matrix(matrix_market(tmp_path / "a.mtx", "real", "symmetric", lines, 400))
    assert got.nnz == 2 * S.nnz - int((S.row == S.col).sum())
    i, j = min(((j, i) for i, j in below))
    again = [*lines, *(f"{c + 1} {r + 1} 1" for r, c in below)]
    with pytest.raises(am.FormatError, match=rf"holds both .*\({i + 1}, {j + 1}\).*first of {len(below)} such"):
        am.read_matrix(matrix_market(tmp_path / "b.mtx", "real", "symmetric", again, 400))
    with pytest.raises(am.FormatError, match="line 403: '7 7 1' is on the diagonal"):
        am.read_matrix(
            matrix_market(
                tmp_path / "c.mtx", "real", "skew-symmetric", [*(f"{k + 2} 1 1" for k in range(400)), "7 7 1"], 500
            )
        )


def petsc(path, columns):
    """Write two rows of two entries in these columns."""
    head = struct.pack(">4i", 1211216, 2, 2, 4) + struct.pack(">2i", 2, 2)
    path.write_bytes(head + struct.pack(">4i", *columns) + struct.pack(">4d", 1, 2, 3, 4))
    return path


def test_of_petsc_files(tmp_path, caplog):
    A = am.read_matrix(petsc(tmp_path / "a.petsc", [0, 0, 0, 1]))
    assert (A.to_scipy().toarray() == [[3, 0], [3, 4]]).all()
    assert "a.petsc" in caplog.text and "more than once, 1 too many" in caplog.text
    for columns, text in (
        ([0, 1, 0, 2], "entry 3 is in column 2 of 2"),
        ([-1, 1, 0, 1], "entry 0 is in column -1 of 2"),
    ):
        with pytest.raises(am.FormatError, match=rf"b\.petsc': {text}"):
            am.read_matrix(petsc(tmp_path / "b.petsc", columns))
