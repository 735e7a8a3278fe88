"""Files for ParaView, read by VTK itself: on 1 to 5 ranks, in 1 to 3 dimensions, of every dtype; what was there stays whole."""

import numpy as np
import pytest
import scipy.sparse as sp

import asterism as am

vtk_xml = pytest.importorskip("vtkmodules.vtkIOXML")

RANDOM = """
rng = np.random.default_rng(12)
kinds = [np.float32, np.float64, np.complex64, np.complex128, np.int8, np.int32, np.int64, np.uint8, np.uint16, bool]
for case in range(24):
    d = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, (40, 20, 12)[d - 1], d))
    on_cells, box = case % 3 == 1, {"spacing": 0.5, "origin": tuple(range(1, d + 1))} if case % 5 == 0 else {}
    if case % 3:
        at = am.stencil.indices(d)
        u, out = am.stencil.grid("u", d), am.stencil.grid("out", d)
        on = am.stencil.operator(
            am.stencil.assign(out(*at), 2 * u(*at)), shape, comm=comm, brick=(4,) * d, points="cells" if on_cells else "nodes"
        )
        x = on.coordinates()
        assert x.shape == (*on.local_grid_shape, d)
    else:
        on = am.grid.Grid(shape, comm)
        x = on.coordinates()
    fields = {}
    for n, kind in enumerate(kinds):
        whole = rng.integers(0, 100, shape) if np.dtype(kind).kind in "iub" else rng.standard_normal(shape)
        whole = (whole * (1 - 2j) if np.dtype(kind).kind == "c" else whole).astype(kind)
        fields[f"f{n}"] = whole
    fields["vectors"] = rng.standard_normal((*shape, 3))
    mine = {name: a[on.owned] for name, a in fields.items()}
    mine["f0"], mine["vectors"] = mine["f0"].ravel(), mine["vectors"].reshape(-1, 3)
    for end in ("vti", "pvti"):
        am.write_vtk(f"case{case}.{end}", on, x=x if d == 3 else x[..., 0], **mine, **box)
    if rank == 0:
        np.savez(f"case{case}.npz", d=d, cells=on_cells, box=len(box), grid=case % 3 == 0, **fields)
print("done", flush=True)
"""


def read(path):
    """Return the image, its points' or cells' places, and its arrays with x as the first axis."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    reader = vtk_xml.vtkXMLPImageDataReader() if path.suffix == ".pvti" else vtk_xml.vtkXMLImageDataReader()
    assert reader.CanReadFile(str(path))
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    image = reader.GetOutput()
    extent = np.array(image.GetExtent()).reshape(3, 2)
    cells = image.GetPointData().GetNumberOfArrays() == 0
    data = image.GetCellData() if cells else image.GetPointData()
    shape = np.maximum(extent[:, 1] - extent[:, 0] + (not cells), 1)
    arrays = {}
    for n in range(data.GetNumberOfArrays()):
        a = vtk_to_numpy(data.GetArray(n))
        a = a.reshape(*shape[::-1], *a.shape[1:])
        arrays[data.GetArrayName(n)] = a.transpose(2, 1, 0, *range(3, a.ndim))
    origin, spacing = np.array(image.GetOrigin()), np.array(image.GetSpacing())
    places = [o + h * (np.arange(n) + 0.5 * cells) for o, h, n in zip(origin, spacing, shape, strict=True)]
    return cells, places, arrays


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_vtk_reads_what_was_written(on_ranks, tmp_path, monkeypatch, ranks):
    monkeypatch.chdir(tmp_path)
    assert on_ranks(ranks, RANDOM).count("done") == ranks
    seen = set()
    for case in range(24):
        want = dict(np.load(tmp_path / f"case{case}.npz"))
        d, cells, box, grid = (int(want.pop(k)) for k in ("d", "cells", "box", "grid"))
        seen.add((d, cells, grid))
        for path in (tmp_path / f"case{case}.vti", tmp_path / f"case{case}.pvti"):
            on_cells, places, arrays = read(path)
            assert on_cells == cells
            if not box:  # where the library says that the points are, VTK has them
                x = arrays.pop("x")
                shape = x.shape[:3]
                there = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)
                assert np.allclose(x, there if d == 3 else there[..., 0], rtol=0, atol=1e-14)
            else:
                shape = arrays.pop("x").shape[:3]
                assert all(
                    np.allclose(p, k + 1 + 0.5 * (np.arange(n) + 0.5 * cells))
                    for k, p, n in zip(range(d), places, shape, strict=False)
                )
            names = set()
            for name, a in want.items():
                parts = {f"{name}_real": a.real, f"{name}_imag": a.imag} if a.dtype.kind == "c" else {name: a}
                for part, values in parts.items():
                    found = arrays[part]
                    assert found.dtype == (np.uint8 if values.dtype == bool else values.dtype), part
                    assert (found == values.reshape(found.shape)).all(), (path.name, part)
                    names.add(part)
            assert set(arrays) == names
    assert len(seen) >= 7


def test_vectors_of_a_stencil_are_written_in_the_order_of_points(tmp_path):
    i, j = am.stencil.indices(2)
    u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
    for shape in ((16, 24), (16, 23)):
        L = am.stencil.operator(am.stencil.assign(out(i, j), u(i, j)), shape)
        values = np.arange(float(np.prod(shape))).reshape(shape)
        am.write_vtk(tmp_path / "v.vti", L, u=L.make_vector(values))
        _, _, arrays = read(tmp_path / "v.vti")
        assert (arrays["u"] == values.reshape(arrays["u"].shape)).all()
    with pytest.raises(am.ShapeError, match="no vector of"):
        am.write_vtk(tmp_path / "v.vti", am.grid.Grid((16, 24)), u=L.make_vector())
    s = am.stencil.assign(out(i, j), u(i, j))
    L, finer, turned = (
        am.stencil.operator(s, (16, 24)),
        am.stencil.operator(s, (16, 24), brick=4),
        am.stencil.operator(s, (24, 16)),
    )
    for on, x in ((am.grid.Grid((16, 24)), L.make_vector()), (L, finer.make_vector()), (L, turned.make_vector())):
        with pytest.raises(am.ShapeError, match="no vector of"):
            am.write_vtk(tmp_path / "v.vti", on, u=x)
    values = np.arange(384.0)
    flat = am.Vector.wrap(am.Matrix.from_scipy(sp.eye_array(384, format="csr")), values)  # in the order of points
    solved = am.solve(L, L.make_vector(values.reshape(16, 24)), ksp="richardson", pc="none")[0]
    for x in (flat, solved):
        am.write_vtk(tmp_path / "v.vti", L, u=x)
        _, _, arrays = read(tmp_path / "v.vti")
        assert (arrays["u"].ravel() == values).all()


CELLS = """
i, j = am.stencil.indices(2)
u, out = am.stencil.grid("u", 2), am.stencil.grid("out", 2)
L = am.stencil.operator(am.stencil.assign(out(i, j), u(i, j)), (8, 8), comm=comm)      # one brick: the other ranks have no point
assert (rank == 0) == (L.local_shape[0] > 0)
am.write_vtk("one.pvti", L, u=np.full(L.local_grid_shape, 3.0))
am.write_vtk("one.vti", L, u=np.full(L.local_grid_shape, 3.0))
"""


def test_ranks_without_points_write_no_piece(on_ranks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    on_ranks(3, CELLS)
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["one_0.vti"]
    for name in ("one.vti", "one.pvti"):
        _, _, arrays = read(tmp_path / name)
        assert arrays["u"].shape == (8, 8, 1) and (arrays["u"] == 3).all()


WRONG = """
g = am.grid.Grid((9, 7), comm)
values = np.full(g.global_shape, 1.0)
def bad(good, wrong): return good if rank < size - 1 else wrong
for end in ("vti", "pvti"):
    am.write_vtk(f"a.{end}", g, u=values)
    cases = {
        "shape": lambda: am.write_vtk(f"a.{end}", g, u=bad(values, values[:-1])),
        "dtype": lambda: am.write_vtk(f"a.{end}", g, u=bad(values, values.astype(np.longdouble))),
        "rank 0 writes": lambda: am.write_vtk(f"a.{end}", g, u=bad(values, values.astype(np.float32))),
        "no field": lambda: am.write_vtk(f"a.{end}", g),
        "as .vti or .pvti": lambda: am.write_vtk(f"a.{end}x", g, u=values),
        "does not exist": lambda: am.write_vtk(f"nowhere/a.{end}", g, u=values),
        "must be positive": lambda: am.write_vtk(f"a.{end}", g, spacing=(1, 0), u=values),
        "2 finite numbers": lambda: am.write_vtk(f"a.{end}", g, origin=(1, 2, 3), u=values),
        "'wide'; 2 finite numbers": lambda: am.write_vtk(f"a.{end}", g, spacing="wide", u=values),
        "dtype <U1": lambda: am.write_vtk(f"a.{end}", g, u=np.full(g.global_shape, "a")),
        "no components": lambda: am.write_vtk(f"a.{end}", g, u=np.ones((*g.global_shape, 0))),
        "the name 'u_real'": lambda: am.write_vtk(f"a.{end}", g, u=values * 1j, u_real=values),
    }
    for text, f in cases.items():
        said = message(f)
        assert text in said, (text, said)
        comm.Barrier()
said = message(lambda: am.write_vtk("a.vti", am.gallery.poisson((9, 7)), u=values))
assert "a Grid or a stencil's operator" in said, said
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_bad_input_leaves_what_was_there(on_ranks, tmp_path, monkeypatch, ranks):
    monkeypatch.chdir(tmp_path)
    script = WRONG if ranks > 1 else WRONG.replace('        "rank 0 writes"', '        # "rank 0 writes"')
    assert on_ranks(ranks, script).count("done") == ranks
    for name in ("a.vti", "a.pvti"):
        assert (read(tmp_path / name)[2]["u"] == 1).all()
    assert {p.name for p in tmp_path.iterdir() if p.suffix == ".part"} == set()


FULL = """
import asterism.vtk as module
g = am.grid.Grid((64, 64), comm)
whole = module._write_values
def full(out, at, fields):
    whole(out, at, {name: a[:3] for name, a in fields.items()})
    raise OSError(28, "No space left on device")
for end in ("vti", "pvti"):
    am.write_vtk(f"a.{end}", g, u=np.full(g.global_shape, 1.0))
    if rank == size - 1: module._write_values = full
    said = message(lambda: am.write_vtk(f"a.{end}", g, u=np.full(g.global_shape, 2.0)))
    assert "FileError" in said and "No space left on device" in said, said
    module._write_values = whole
    open("b", "w").close()
    said = message(lambda: am.write_vtk("b.pvti", g, u=np.full(g.global_shape, 2.0)))
    assert "'b' cannot be written: File exists" in said, said
    comm.Barrier()
print("done", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_disk_that_is_full_leaves_what_was_there(on_ranks, tmp_path, monkeypatch, ranks):
    """One rank cannot write: all raise, and neither the file nor a piece has changed."""
    monkeypatch.chdir(tmp_path)
    assert on_ranks(ranks, FULL).count("done") == ranks
    for name in ("a.vti", "a.pvti"):
        assert (read(tmp_path / name)[2]["u"] == 1).all()
    assert not list(tmp_path.rglob("*.part"))


def test_names_are_escaped(tmp_path):
    g = am.grid.Grid((3,))
    for end in ("vti", "pvti"):
        am.write_vtk(tmp_path / f"a & b.{end}", g, **{'<u> & "v"': np.arange(3.0)})
        assert (read(tmp_path / f"a & b.{end}")[2]['<u> & "v"'].ravel() == [0, 1, 2]).all()
