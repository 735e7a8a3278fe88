"""Files of every format: against SciPy and h5py, on 1 to 3 ranks, damaged, and written beside."""

import gzip
import io
import tarfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import asterism as am

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(rng, n, m, dtype="float64", density=0.2):
    S = sp.random_array((n, m), density=density, rng=rng).tocsr()
    S.data = rng.standard_normal(S.nnz) + (1j * rng.standard_normal(S.nnz) if np.dtype(dtype).kind == "c" else 0)
    return S.astype(dtype)


def same(A, S):
    return A.shape == S.shape and (0 in S.shape or abs(A.to_scipy() - S).max() == 0)


def petsc_bytes(S, index=">i4", scalar=">f8"):
    """As PETSc writes it: an oracle apart from ours."""
    S = sp.csr_array(S)
    S.sort_indices()
    return b"".join(
        np.asarray(v).astype(t).tobytes()
        for v, t in (
            ([1211216, *S.shape, S.nnz], index),
            (np.diff(S.indptr), index),
            (S.indices, index),
            (S.data, scalar),
        )
    )


def test_dense_arrays_of_matlab_are_matrices(rng, tmp_path):
    import scipy.io

    f, D = tmp_path / "D.mat", rng.standard_normal((7, 5))
    for held in ({"D": D, "x": np.ones((7, 1))}, {"Problem": {"A": D, "name": "dense"}}):
        scipy.io.savemat(f, held)
        assert np.array_equal(am.read_matrix(f).to_scipy().toarray(), D)
    S = matrix(rng, 4, 4)
    scipy.io.savemat(f, {"D": D, "S": S})  # the sparse one, unless the other one is named
    assert same(am.read_matrix(f), S) and am.read_matrix(f, name="D").shape == (7, 5)
    scipy.io.savemat(f, {"x": np.ones((7, 1)), "text": "none"})
    with pytest.raises(am.FormatError, match="holds no such thing"):
        am.read_matrix(f)


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (30, 30), (7, 40), (40, 7)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ending", [".ast", ".petsc", ".npz", ".mtx", ".mtx.gz", ".h5", ".mat"])
def test_what_is_written_is_read(rng, tmp_path, shape, dtype, ending):
    S = matrix(rng, *shape, dtype)
    A = am.Matrix.from_scipy(S)
    f = tmp_path / f"A{ending}"
    am.write_matrix(f, A)
    B = am.read_matrix(f)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    assert same(B, S.astype(dtype if ending in (".ast", ".npz", ".h5") else wide))
    if ending == ".petsc" and S.nnz == 0:  # values show what they are
        wide = np.float64
    assert B.dtype == (dtype if ending in (".ast", ".npz", ".h5") else wide)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f.name]  # nothing is left beside


def test_errors_name_bytes_that_are_no_text(tmp_path):
    f = tmp_path / "bad.mtx"
    f.write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 \xff\n")
    with pytest.raises(am.FormatError, match=r"\\xff"):
        am.read_matrix(f)


def test_damaged_numpy_files(tmp_path):
    f = tmp_path / "x.npy"
    f.write_bytes(b"\x93NUMPY\x01\x00v")
    with pytest.raises(am.FormatError, match="no whole .npy file"):
        am.read_vector(f)
    for array, kind in (
        (np.array(3.0), am.ShapeError),
        (np.ones((2, 2, 2)), am.ShapeError),
        (np.array([None]), am.FormatError),
    ):
        np.save(f, array)
        with pytest.raises(kind):
            am.read_vector(f)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ending", [".ast", ".petsc", ".npy", ".mtx", ".mtx.gz"])
def test_vectors_too(rng, tmp_path, columns, dtype, ending):
    x = rng.standard_normal((23, columns)) + (1j if np.dtype(dtype).kind == "c" else 0)
    x = np.ascontiguousarray((x if columns > 1 else x[:, 0]).astype(dtype))
    am.write_vector(tmp_path / f"x{ending}", x)
    y = am.read_vector(tmp_path / f"x{ending}")
    assert np.array_equal(x, y) and y.shape == x.shape
    assert y.dtype == (dtype if ending in (".ast", ".npy") else np.result_type(dtype, np.float64))


@pytest.mark.parametrize(
    "index,scalar", [(">i4", ">f8"), (">i8", ">f8"), (">i4", ">c16"), (">i8", ">c16"), (">i4", ">f4"), (">i8", ">f4")]
)
def test_petsc_files_of_every_configuration(rng, tmp_path, index, scalar):
    S = matrix(rng, 19, 13, "complex128" if "c" in scalar else "float64").astype(np.dtype(scalar).newbyteorder("="))
    b = np.arange(19.0).astype(S.dtype)
    vector = np.array([1211214, 19]).astype(index).tobytes() + b.astype(scalar).tobytes()
    for name, content in (
        ("both", petsc_bytes(S, index, scalar) + vector),
        ("turned", vector + petsc_bytes(S, index, scalar)),
    ):
        f = tmp_path / name  # no ending: by its first bytes
        f.write_bytes(content)
        assert same(am.read_matrix(f), S)
        assert np.array_equal(am.read_vector(f), b)
    assert np.array_equal(am.read_vector(tmp_path / "both", am.Matrix.from_scipy(S.astype("complex128"))), b)
    # ours, byte by byte
    if index == ">i4" and scalar != ">f4":
        am.write_matrix(tmp_path / "A.petsc", am.Matrix.from_scipy(S))
        assert (tmp_path / "A.petsc").read_bytes() == petsc_bytes(S, index, scalar)
        am.write_vector(tmp_path / "b.petsc", b)
        assert (tmp_path / "b.petsc").read_bytes() == vector


def test_petsc_dense_and_block_sizes(rng, tmp_path):
    D = rng.standard_normal((6, 4))
    (tmp_path / "d").write_bytes(np.array([1211216, 6, 4, -1], ">i4").tobytes() + D.astype(">f8").tobytes())
    assert np.array_equal(am.read_matrix(tmp_path / "d").to_scipy().toarray(), D)
    A = am.gallery.elasticity((2, 2, 2))
    am.write_matrix(tmp_path / "K.petsc", A)
    assert (tmp_path / "K.petsc.info").read_text() == "-matload_block_size 3\n"
    assert am.read_matrix(tmp_path / "K.petsc").block_size == 3
    am.write_matrix(tmp_path / "K.petsc", am.gallery.poisson((4, 4)))  # another one in its place
    assert am.read_matrix(tmp_path / "K.petsc").block_size == 1


def test_real_files(data):
    west = scipy.io.mmread(data / "west0479.mtx.gz").tocsr()
    A = am.read_matrix(data / "formats" / "west0479.rb")
    assert A.shape == west.shape and abs(A.to_scipy() - west).max() <= 1e-6 * abs(west).max()  # 8 digits in the file
    g = am.read_matrix(data / "formats" / "g20.rua")
    spectrum = [np.sort(np.linalg.eigvalsh(M.to_scipy().toarray())) for M in (g, am.gallery.poisson((20, 20)))]
    assert np.allclose(*spectrum, atol=1e-6)  # the five-point Laplacian, permuted
    c = am.read_matrix(data / "formats" / "cg20.cua")
    assert c.shape == (400, 400) and c.nnz == 1920 and c.dtype == np.complex128
    assert abs(c.to_scipy() - c.to_scipy().T).max() == 0
    p = am.read_matrix(data / "formats" / "rdb200.petsc")
    raw = (data / "formats" / "rdb200.petsc").read_bytes()
    assert (
        p.shape == (200, 200) and p.nnz == 1120 and petsc_bytes(p.to_scipy()) == raw[: len(petsc_bytes(p.to_scipy()))]
    )
    x, info = am.solve(c, np.ones(400, complex), ksp="gmres", pc="ilu", rtol=1e-8)
    assert info.converged


def hb(type_, rows, cols, ptr, index, values=(), rhs=None, formats=("(13I6)", "(16I5)", "(3E26.18)")):
    def lines(numbers, per_line, show):
        numbers = list(numbers)
        return ["".join(show(v) for v in numbers[i : i + per_line]) for i in range(0, len(numbers), per_line)]

    p, i = lines(ptr, 13, "{:6d}".format), lines(index, 16, "{:5d}".format)
    v = lines(values, 3, "{:26.18E}".format)
    r = [] if rhs is None else lines(rhs, 3, "{:26.18E}".format)
    head = [
        f"{'a title':72s}KEY",
        "".join(f"{n:14d}" for n in (len(p) + len(i) + len(v) + len(r), len(p), len(i), len(v), len(r))),
        f"{type_:3s}{'':11s}" + "".join(f"{n:14d}" for n in (rows, cols, len(index), 0)),
        f"{formats[0]:16s}{formats[1]:16s}{formats[2]:20s}{formats[2]:20s}",
    ]
    if rhs is not None:
        head.append(f"F{'':13s}{len(rhs) // rows:14d}{0:14d}")
    return "\n".join([*head, *p, *i, *v, *r]) + "\n"


@pytest.mark.parametrize("kind", ["RUA", "RSA", "RZA", "RRA", "CUA", "CSA", "CHA", "PUA", "PSA", "rua", "isa"])
def test_every_kind_of_harwell_boeing(rng, tmp_path, kind):
    n, m = 17, 12 if kind[1] == "R" else 17
    dtype = "complex128" if kind[0] == "C" else "float64"
    S = matrix(rng, n, m, dtype, 0.3)
    S.data = np.round(S.data * 8) / 8
    low = sp.tril(S, -1 if kind[1] == "Z" else 0) if kind[1].upper() in "SHZ" else S
    low = sp.csc_array(low)
    low.sort_indices()
    if kind[1] == "H":
        low.data[low.indices == np.repeat(np.arange(m), np.diff(low.indptr))].imag = 0
        low.data = np.where(low.indices == np.repeat(np.arange(m), np.diff(low.indptr)), low.data.real, low.data)
    if kind[0] == "P":
        low.data[:] = 1
    whole = (
        {"S": low + sp.tril(low, -1).T if n == m else None, "H": low + sp.tril(low, -1).conj().T, "Z": low - low.T}.get(
            kind[1].upper(), low
        )
        if n == m
        else low
    )
    values = low.data.view(float) if kind[0] == "C" else low.data
    rhs = np.arange(2.0 * n) if kind == "RUA" else None
    f = tmp_path / f"m.{kind.lower()}"
    f.write_text(hb(kind, n, m, low.indptr + 1, low.indices + 1, () if kind[0] == "P" else values, rhs))
    A = am.read_matrix(f)
    assert same(A, sp.csr_array(whole)), kind
    (tmp_path / "m.hb.gz").write_bytes(gzip.compress(f.read_bytes()))
    assert same(am.read_matrix(tmp_path / "m.hb.gz"), sp.csr_array(whole))
    if rhs is not None:
        assert np.array_equal(am.read_vector(f), rhs.reshape(2, n).T)
    else:
        with pytest.raises(am.FormatError, match="holds no right-hand sides"):
            am.read_vector(f)


def test_fortran_formats(tmp_path):
    head = hb("RUA", 2, 2, [1, 2, 3], [1, 2], [1.0, 2.0]).splitlines()
    for form, text, want in (
        ("(1P,4D12.4)", f"{'1.5000D+01':>12s}{'-2.5D+00':>12s}", [15, -2.5]),
        ("(4(1PE12.4))", f"{'1.5000E+01':>12s}{'2.5-100':>12s}", [15, 2.5e-100]),
        ("(2P,4F12.4)", f"{'150.0':>12s}{'-25.':>12s}", [1.5, -0.25]),
        ("(4E 12.4)", f"{'3.0E+00':>12s}{'-1.0E+00':>12s}", [3, -1]),  # as in files of Trilinos; Fortran skips blanks
        ("(4G12.4)", f"{'  +7':>12s}{'1E-400':>12s}", [7, 0]),
    ):
        lines = [*head[:3], f"{'(13I6)':16s}{'(16I5)':16s}{form:20s}", *head[4:6], text]
        (tmp_path / "a.rua").write_text("\n".join(lines) + "\n")
        assert np.array_equal(am.read_matrix(tmp_path / "a.rua").to_scipy().toarray(), np.diag(want)), form


def test_matlab_hdf5_and_archives_of_matrices(rng, tmp_path):
    h5py = pytest.importorskip("h5py")
    S = matrix(rng, 11, 9)
    C = matrix(rng, 11, 9, "complex128")
    scipy.io.savemat(tmp_path / "one.mat", {"K": S.tocsc()})
    scipy.io.savemat(tmp_path / "two.mat", {"K": S.tocsc(), "M": 2 * S.tocsc()})
    scipy.io.savemat(tmp_path / "problem.mat", {"Problem": {"A": C.tocsc(), "name": "HB/x"}})
    assert same(am.read_matrix(tmp_path / "one.mat"), S)
    assert same(am.read_matrix(tmp_path / "two.mat", name="M"), 2 * S)
    assert same(am.read_matrix(tmp_path / "problem.mat"), C)
    scipy.io.savemat(tmp_path / "old.mat", {"K": S.tocsc()}, format="4")  # it begins with no text, only with numbers
    assert same(am.read_matrix(tmp_path / "old.mat"), S)
    with pytest.raises(am.FormatError, match="holds K, M: say which with name="):
        am.read_matrix(tmp_path / "two.mat")
    with h5py.File(tmp_path / "v73.mat", "w", userblock_size=512) as f:
        for name, M in (("K", S.tocsc()), ("C", C.tocsc())):
            g = f.create_group(name)
            g.attrs["MATLAB_sparse"] = np.uint64(11)
            data = M.data if M.dtype.kind == "f" else np.rec.fromarrays([M.data.real, M.data.imag], names="real,imag")
            g["data"], g["ir"], g["jc"] = data, M.indices.astype("u8"), M.indptr.astype("u8")
    with (tmp_path / "v73.mat").open("r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file")
    assert same(am.read_matrix(tmp_path / "v73.mat", name="K"), S) and same(
        am.read_matrix(tmp_path / "v73.mat", name="C"), C
    )
    for kind, M in (("csr", S.tocsr()), ("csc", S.tocsc())):
        with h5py.File(tmp_path / f"{kind}.h5", "w") as f:
            g = f.create_group("deep/X")
            g["data"], g["indices"], g["indptr"] = M.data, M.indices, M.indptr
            g.attrs["encoding-type"], g.attrs["shape"] = f"{kind}_matrix", M.shape
        assert same(am.read_matrix(tmp_path / f"{kind}.h5"), S)
    text, rhs = io.BytesIO(), io.BytesIO()
    scipy.io.mmwrite(text, S)
    scipy.io.mmwrite(rhs, np.arange(11.0)[:, None])
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as t:
        for name, content in (("x/x.mtx", text), ("x/x_b.mtx", rhs), ("x/x_coord.mtx", rhs)):
            member = tarfile.TarInfo(name)
            member.size = len(content.getvalue())
            t.addfile(member, io.BytesIO(content.getvalue()))
    A = am.read_matrix(tmp_path / "x.tar.gz")
    assert abs(A.to_scipy() - S).max() < 1e-14
    assert np.array_equal(am.read_vector(tmp_path / "x.tar.gz"), np.arange(11.0))
    text = hb("RUA", 2, 2, [1, 2, 3], [2, 1], [1.0, 2.0]).encode()
    with tarfile.open(tmp_path / "y.tar.gz", "w:gz") as t:  # SuiteSparse's files in Rutherford-Boeing format
        for name, content in (("y/y.txt", b"about y"), ("y/y.rb", text)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            t.addfile(member, io.BytesIO(content))
    assert np.array_equal(am.read_matrix(tmp_path / "y.tar.gz").to_scipy().toarray(), [[0, 2], [1, 0]])
    with pytest.raises(am.FormatError, match=r"y.tar.gz' holds no NAME/NAME_b.mtx\."):
        am.read_vector(tmp_path / "y.tar.gz")


def test_save_and_load_keep_everything(rng, tmp_path):
    K = am.gallery.elasticity((3, 2, 2), dtype="float32")
    b = rng.standard_normal((K.shape[0], 2))
    f = tmp_path / "run.ast"
    am.save(f, K=K, b=b, x=np.ones(5, "complex64"), options="-ksp_type cg", empty="", nothing=np.zeros(0))
    got = am.load(f)
    assert sorted(got) == ["K", "b", "empty", "nothing", "options", "x"]
    assert same(got["K"], K.to_scipy()) and got["K"].dtype == "float32" and got["K"].block_size == 3
    assert np.array_equal(got["K"].near_null_space, K.near_null_space)
    am.save(f, K=K.astype("complex128"))
    assert np.array_equal(am.load(f)["K"].near_null_space, K.near_null_space)
    am.save(f, K=K, b=b, x=np.ones(5, "complex64"), options="-ksp_type cg", empty="", nothing=np.zeros(0))
    assert np.array_equal(got["b"], b) and got["x"].dtype == np.complex64 and got["nothing"].shape == (0,)
    assert got["options"] == "-ksp_type cg" and got["empty"] == ""
    assert np.array_equal(am.read_vector(f, name="b"), b) and same(am.read_matrix(f), K.to_scipy())
    am.save(f)
    assert am.load(f) == {}
    for bad, text in ((dict(a=np.ones((2, 2, 2))), "shape"), ({"n" * 64: "x"}, "64 characters")):
        with pytest.raises(am.AsterismError, match=text):
            am.save(f, **bad)
    assert am.load(f) == {}  # the older one is still there
    with pytest.raises(am.FileError, match="No such file"):
        am.save(tmp_path / "no" / "x.ast", a="b")


def test_every_damage_is_found(tmp_path):
    """Each single byte of a small file changed: never a wrong answer."""
    f, g = tmp_path / "a.ast", tmp_path / "b.ast"
    am.save(f, A=am.gallery.poisson((3, 3)), b=np.arange(9.0), t="text")
    good = f.read_bytes()
    want = am.load(f)
    used = [i for i in range(len(good)) if good[i] or i < 900]
    rng = np.random.default_rng(0)
    for i in [*used[::7], *rng.integers(0, len(good), 100)]:
        g.write_bytes(good[:i] + bytes([good[i] ^ (1 << int(rng.integers(8)))]) + good[i + 1 :])
        try:
            got = am.load(g)
        except am.FormatError as error:
            assert str(g) in str(error) or "matrix 'A'" in str(error)
        else:  # a byte between the arrays
            assert same(got["A"], want["A"].to_scipy()) and np.array_equal(got["b"], want["b"]) and got["t"] == "text"
    for n in (0, 7, 31, 100, len(good) - 1):
        g.write_bytes(good[:n])
        with pytest.raises(am.FormatError):
            am.load(g)


@pytest.mark.parametrize("name", ["a.petsc", "a.rua", "a.npz", "a.mat", "a.h5", "a.tar.gz", "a.mtx"])
def test_truncated_and_damaged_files_are_errors(rng, tmp_path, name):
    S = matrix(rng, 20, 20)
    f = tmp_path / name
    if name == "a.petsc":
        f.write_bytes(petsc_bytes(S))
    elif name == "a.rua":
        C = S.tocsc()
        f.write_text(hb("RUA", 20, 20, C.indptr + 1, C.indices + 1, C.data))
    elif name == "a.npz":
        sp.save_npz(f, S)
    elif name == "a.mat":
        scipy.io.savemat(f, {"K": S})
    elif name == "a.h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(f, "w") as h:
            g = h.create_group("K")
            g["data"], g["indices"], g["indptr"] = S.data, S.indices, S.indptr
    elif name == "a.tar.gz":
        text = io.BytesIO()
        scipy.io.mmwrite(text, S)
        with tarfile.open(f, "w:gz") as t:
            member = tarfile.TarInfo("a/a.mtx")
            member.size = len(text.getvalue())
            t.addfile(member, io.BytesIO(text.getvalue()))
    else:
        scipy.io.mmwrite(f, S)
    good = f.read_bytes()
    am.read_matrix(f)
    for n in (0, 3, len(good) // 2, len(good) - 30):
        f.write_bytes(good[:n])
        with pytest.raises((am.FormatError, am.InputError), match=name.replace(".", r"\.")):
            am.read_matrix(f)
    for i in np.random.default_rng(1).integers(0, len(good), 60):  # anything, but no crash
        f.write_bytes(good[:i] + bytes([good[i] ^ 0x15]) + good[i + 1 :])
        try:
            am.read_matrix(f)
        except am.AsterismError:
            pass


def test_compressing_leaves_what_lies_beside(tmp_path):
    beside = tmp_path / "A.mtx.gz.plain"
    beside.write_text("mine")
    am.write_matrix(tmp_path / "A.mtx.gz", am.gallery.poisson((4, 4)))
    assert beside.read_text() == "mine" and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(am.FileError, match="nowhere"):
        am.write_vector(tmp_path / "nowhere" / "x.mtx.gz", np.ones(3))


def test_files_that_are_none(tmp_path):
    (tmp_path / "x.txt").write_text("nothing that we know")
    with pytest.raises(am.FormatError, match="of no format that is known: Matrix Market"):
        am.read_matrix(tmp_path / "x.txt")
    with pytest.raises(am.FileError, match="cannot be opened: No such file"):
        am.read_matrix(tmp_path / "missing.mtx")
    A = am.gallery.poisson((3, 3))
    for f in (
        lambda: am.write_matrix(tmp_path / "A.mtx.bz2", A),
        lambda: am.write_vector(tmp_path / "x.csv", np.ones(3)),
    ):
        with pytest.raises(am.InputError, match="is written as"):
            f()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_on_ranks(on_ranks, data, tmp_path, n):
    on_ranks(
        n,
        f"""
import scipy.io
from pathlib import Path
data, here = Path("{data}"), Path("{tmp_path}")
A = am.read_matrix(data / "bcsstk16.mtx.gz", comm, block_size=3)
S = scipy.io.mmread(data / "bcsstk16.mtx.gz").tocsr()
lo, hi = A.row_range
b = np.sin(np.arange(lo, hi))
for name in ("A.ast", "A.petsc", "A.mtx", "A.mtx.gz"):
    am.write_matrix(here / name, A)
    B = am.read_matrix(here / name, comm, **({{"block_size": 3}} if "mtx" in name else {{}}))
    assert B.row_range == (lo, hi) and B.block_size == 3 and abs(B.to_scipy() - S[lo:hi]).max() == 0, name
for name in ("b.ast", "b.petsc", "b.mtx", "b.mtx.gz"):
    am.write_vector(here / name, b, A)
    assert np.array_equal(am.read_vector(here / name, A), b), name
for name, shape in (("west0479.rb", 479), ("g20.rua", 400), ("cg20.cua", 400), ("rdb200.petsc", 200)):
    whole = am.read_matrix(data / "formats" / name).to_scipy()
    part = am.read_matrix(data / "formats" / name, comm)
    assert abs(part.to_scipy() - whole[slice(*part.row_range)]).max() == 0, name
# a solve is stopped, kept, and goes on
try:
    am.solve(A, b, ksp="cg", pc="jacobi", rtol=1e-10, maxiter=30)
except am.ConvergenceError as e:
    am.save(here / "run.ast", comm, A=A, b=b, x=e.x)
if rank == 0: print("KEPT", np.linalg.norm(np.concatenate([b])))
try:
    am.load(data / "west0479.mtx.gz", comm)
except am.FormatError as e:
    assert "no file of asterism" in str(e)
(here / f"only{{rank}}.ast").write_bytes(b"ASTERISM") if rank == 0 else None
comm.Barrier()
try:
    am.read_matrix(here / "only0.ast", comm)
except am.FormatError as e:
    assert "bytes" in str(e)
# what is wrong on one rank is told on all
def refused(call, error, *texts):
    try:
        call()
    except error as e:
        assert all(t in str(e) for t in texts), e
    else:
        raise AssertionError(texts)
refused(lambda: am.read_matrix(here / ("none.mtx" if rank == size - 1 else "A.mtx"), comm), am.CommError if size > 1 else am.FileError, "none.mtx")
if size > 1:
    refused(lambda: am.save(here / "x.ast", comm, **{{"v%d" % rank: b}}), am.InputError, "(vector), rank 0 v0 (vector)")
    refused(lambda: am.save(here / "x.ast", comm, v=b if rank else "text"), am.InputError, "v (vector)", "v (text)")
    refused(lambda: am.save(here / "x.ast", comm, v=b if rank else b.astype("complex64")), am.InputError, "this rank writes")
    assert not (here / "x.ast").exists()
""",
    )
    # on another number of ranks
    on_ranks(
        4 - n,
        f"""
got = am.load("{tmp_path}/run.ast", comm)
A, b = got["A"], got["b"]
assert np.array_equal(b, np.sin(np.arange(*A.row_range)))
x, info = am.solve(A, b, x0=got["x"], ksp="cg", pc="jacobi", rtol=1e-10)
y, whole = am.solve(A, b, ksp="cg", pc="jacobi", rtol=1e-10)
assert info.residual_norms[0] < whole.residual_norms[0] and info.converged
assert np.allclose(x, y, rtol=1e-4, atol=1e-6 * abs(y).max())
""",
    )
