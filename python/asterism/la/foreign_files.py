"""Files that other libraries read and write whole: SciPy's, MATLAB's, HDF5 and archives."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.files import replacing
from ..base.indices import as_indices
from ..errors import AsterismError, FormatError, UnsupportedError

__all__ = ["checked", "extracted", "read_hdf5", "read_matlab", "read_npz", "the_one", "write_hdf5"]


def the_one(path: str, names: list[str], wanted: str | None, how: str = "--name") -> str:
    """Return the name that is wanted, or the only one there is; a FormatError lists them otherwise."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    if not names:
        raise FormatError(
            f"'{path}' holds no such thing. Where a matrix is needed it may hold a vector, or the reverse."
        )
    wrong = "" if wanted is None else f" and no '{wanted}'"
    raise FormatError(f"'{path}' holds {', '.join(names)}{wrong}: say which with name= ({how} on the command line).")


def extracted(path: str, folder: str, ending: str) -> str:
    """Extract ``NAME/NAME<ending>.mtx`` of a SuiteSparse archive, or its ``NAME/NAME.rb``; return where it lies."""
    endings = (".mtx",) if ending else (".mtx", ".rb")
    try:
        with tarfile.open(path) as tar:
            files = [m for m in tar.getmembers() if m.isfile() and m.name.endswith(endings)]
            main = [m for m in files if Path(m.name).stem == Path(m.name).parent.name]
            base = Path(main[0].name).stem if main else Path(files[0].name).stem if len(files) == 1 else None
            found = next((m for m in files if base is not None and Path(m.name).stem == base + ending), None)
            if found is None:
                names, wanted = ", ".join(m.name for m in files), " or ".join(f"NAME/NAME{ending}{e}" for e in endings)
                raise FormatError(f"'{path}' holds {f'{names}, but ' if names else ''}no {wanted}.")
            source = tar.extractfile(found)
            assert source is not None
            target = Path(folder) / f"matrix{Path(found.name).suffix}"
            with target.open("wb") as out:
                while piece := source.read(1 << 22):
                    out.write(piece)
            rest = tar.fileobj
            while rest is not None and rest.read(1 << 22):  # gzip's checksum stands at the end
                pass
            return str(target)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, AsterismError):
            raise
        raise FormatError(f"'{path}' is no archive that can be read: {error}.") from error


def write_hdf5(path: str, shape: tuple[int, int], ptr: NDArray[np.int64], col: NDArray[Any], val: NDArray[Any]) -> None:
    """Write a CSR group A. It is made in memory: HDF5 crashes where a disk is full."""
    import h5py

    made = io.BytesIO()
    with h5py.File(made, "w") as f:
        g = f.create_group("A")
        g.attrs["encoding-type"], g.attrs["encoding-version"], g.attrs["shape"] = "csr_matrix", "0.1.0", shape
        for name, values in (("data", val), ("indices", col), ("indptr", ptr)):
            g.create_dataset(name, data=values, **({"compression": "gzip", "shuffle": True} if values.size else {}))
    with replacing(path, binary=True) as out:
        out.write(made.getbuffer())


def checked(S: Any, path: str) -> Any:
    """Return a sparse matrix of SciPy in CSR, after a look at its indices."""
    # SciPy converts between formats without a look at the indices: a damaged file would be a crash
    try:
        if hasattr(S, "check_format"):
            S.check_format(full_check=True)
        return S.tocsr()
    except (ValueError, TypeError, IndexError) as error:
        raise FormatError(f"'{path}' holds a sparse matrix that is damaged: {error}") from error


def read_npz(path: str, name: str | None) -> Any:
    """Return the sparse matrix of a .npz file of SciPy."""
    try:
        import scipy.sparse as sparse

        return sparse.load_npz(path)
    except ImportError as error:
        raise UnsupportedError("reading .npz needs SciPy: pip install scipy") from error
    except Exception as error:  # zipfile and NumPy have many ways to say it
        raise FormatError(f"'{path}' is no sparse matrix that SciPy can read: {error}") from error


def read_matlab(path: str, name: str | None) -> Any:
    """Return a matrix of a .mat file up to MATLAB 7.2, also of one of SuiteSparse: a dense one if it holds no sparse one."""
    try:
        import scipy.io
        import scipy.sparse as sparse

        found = scipy.io.loadmat(path)
    except ImportError as error:
        raise UnsupportedError("reading .mat needs SciPy: pip install scipy") from error
    except Exception as error:
        raise FormatError(f"'{path}' is no MATLAB file that SciPy can read: {error}") from error
    if "Problem" in found and "A" in (found["Problem"].dtype.names or ()):  # SuiteSparse
        found = {"A": found["Problem"]["A"][0, 0]}
    matrices = {k: v for k, v in found.items() if sparse.issparse(v)}
    arrays = {k: v for k, v in found.items() if isinstance(v, np.ndarray) and v.ndim == 2}
    dense = {k: v for k, v in arrays.items() if v.dtype.kind in "buifc" and min(v.shape) > 1}
    if not matrices or name in dense:
        matrices = dense
    one = matrices[the_one(path, list(matrices), name)]
    return one if sparse.issparse(one) else sparse.csr_array(one)


def read_hdf5(path: str, name: str | None) -> Any:
    """Return a sparse group: of MATLAB 7.3 (data, ir, jc: columns), or of data, indices, indptr (rows, unless it says csc)."""
    try:
        import h5py
        import scipy.sparse as sparse
    except ImportError as error:
        raise UnsupportedError("reading HDF5 and MATLAB 7.3 needs h5py and SciPy: pip install h5py scipy") from error

    def values(d: Any) -> NDArray[Any]:
        a = np.asarray(d)
        if a.dtype.names == ("real", "imag"):  # MATLAB's complex numbers
            a = a["real"] + 1j * a["imag"]
        return a

    try:
        with h5py.File(path, "r") as f:
            found: dict[str, Any] = {}

            def look(key: str, node: Any) -> None:
                if isinstance(node, h5py.Group) and (
                    {"data", "ir", "jc"} <= set(node) or {"data", "indices", "indptr"} <= set(node)
                ):
                    found[key] = node

            look("/", f)
            f.visititems(look)
            g = found[the_one(path, list(found), name)]
            if "jc" in g:
                jc = as_indices(g["jc"], f"'{path}': jc")
                size = (int(g.attrs["MATLAB_sparse"]), len(jc) - 1)
                return sparse.csc_array((values(g["data"]), as_indices(g["ir"], f"'{path}': ir"), jc), shape=size)
            ptr, index = (as_indices(g[k], f"'{path}': {k}") for k in ("indptr", "indices"))
            kind = g.attrs.get("encoding-type", g.attrs.get("format", g.attrs.get("h5sparse_format", "csr")))
            by_columns = "csc" in (kind.decode() if isinstance(kind, bytes) else str(kind))
            shape = g.attrs.get("shape", g.attrs.get("h5sparse_shape"))
            if shape is None and "shape" in g:
                shape = np.asarray(g["shape"])
            if shape is None:
                most = int(index.max()) + 1 if len(index) else 0
                shape = (most, len(ptr) - 1) if by_columns else (len(ptr) - 1, most)
            make = sparse.csc_array if by_columns else sparse.csr_array
            return make((values(g["data"]), index, ptr), shape=tuple(int(v) for v in shape))
    except AsterismError:
        raise
    except Exception as error:
        raise FormatError(f"'{path}' holds no sparse matrix that can be read: {error}") from error
