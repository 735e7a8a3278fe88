"""Matrices and vectors in files of many formats."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.files import is_text, replacing
from ..base.indices import as_count
from ..comm.agree import agreed
from ..comm.communicator import as_communicator, one_call
from ..errors import FormatError, InputError, ShapeError
from .file_formats import MATRIX_MARKET, PETSC, check_matrix_name, check_source, check_vector_name, format_with
from .foreign_files import checked, extracted, read_hdf5, read_matlab, read_npz, the_one, write_hdf5
from .matrix import Matrix
from .operator import Operator, as_values

__all__ = [
    "load",
    "read_matrix",
    "read_vector",
    "save",
    "write_matrix",
    "write_vector",
]


def _path_of(call: str, comm: _core.Communicator, path: str | Path, **given: Any) -> str:
    """Return a path as text; raise where a rank names another one, or gives other arguments. Collective."""
    p = os.fspath(path)
    agreed(comm, lambda: _check_path(p))
    comm.require_same(call, [("the path", p), *((name, str(value)) for name, value in given.items())])
    return p


def _check_path(path: str) -> None:
    if not isinstance(path, str) or "\0" in path:
        raise InputError(f"the path is {path!r}; text without a zero character is needed.")
    if not is_text(path):
        raise InputError(f"the path is {path!r}, which is no UTF-8. Rename the file.")


def _own(A: Any, call: str, kind: type[Operator] = Matrix) -> Any:
    if not isinstance(A, kind):
        raise TypeError(
            f"{call}: A is a {type(A).__name__}; an asterism.{kind.__name__} is needed. Use am.Matrix.from_scipy(S) for a matrix of "
            "SciPy's, and B.transpose() for B.T."
        )
    return A


@one_call("read_matrix")
def read_matrix(path: str | Path, comm: Any = None, *, block_size: int = 1, name: str | None = None) -> Matrix:
    """Read a matrix, all ranks together.

    Parameters
    ----------
    path : str or Path
        Matrix Market (.mtx, .mtx.gz), PETSc binary, Harwell-Boeing and Rutherford-Boeing, SciPy's .npz, MATLAB's .mat (5 and 7.3), a CSR or
        CSC group in HDF5 (``data``, ``indices``, ``indptr``), SuiteSparse's .tar.gz, asterism's own (`save`).
    comm : None or mpi4py.MPI.Comm
    block_size : int
        Rows of a node stay on one rank.
    name : str, optional
        Which matrix, in files that hold several by name (MATLAB, HDF5, asterism's own).

    Returns
    -------
    Matrix

    Raises
    ------
    FileError, FormatError
        On all ranks, with the place.

    Notes
    -----
    Each rank reads its rows of Matrix Market (uncompressed), PETSc and asterism's files; of others all, and keeps its rows.

    Examples
    --------
    >>> import asterism as am, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "A.mtx")
    >>> am.write_matrix(path, am.gallery.poisson((4, 4)))
    >>> am.read_matrix(path).nnz
    64
    """
    c = as_communicator(comm)
    block_size = agreed(c, lambda: as_count(block_size, "read_matrix: block_size"))
    p = _path_of("read_matrix", c, path, block_size=block_size, name=name)
    kind = agreed(c, lambda: format_with(p, name, ("archive", "matlab", "hdf5")))
    if kind == "archive":
        wanted = agreed(c, lambda: the_one(p, _core.archive_names(p)[0], name))
        A = Matrix(_core.read_archive_matrix(p, wanted, c))
    elif kind == "matrix_market":
        A = Matrix(_core.read_matrix_market(p, c, block_size))
    elif kind == "petsc":
        return Matrix(_core.read_petsc_matrix(p, c, 0 if block_size == 1 else block_size))
    elif kind == "harwell_boeing":
        A = Matrix(_core.read_harwell_boeing(p, c, block_size))
    elif kind == "tar":
        with tempfile.TemporaryDirectory() as folder:
            member = agreed(c, lambda: extracted(p, folder, ""))
            read_member = _core.read_harwell_boeing if member.endswith(".rb") else _core.read_matrix_market
            A = Matrix(read_member(member, c, block_size))
    elif kind == "npy":
        raise FormatError(f"'{p}' is a dense array. read_vector reads it.")
    else:
        read = {"npz": read_npz, "matlab": read_matlab, "hdf5": read_hdf5}[kind]
        S = agreed(c, lambda: checked(read(p, name), p))
        return Matrix.from_scipy(S, comm, distribute=True, block_size=block_size)
    if block_size != 1:
        A.block_size = block_size
    return A


@one_call("read_vector")
def read_vector(
    path: str | Path, A: Matrix | None = None, comm: Any = None, *, name: str | None = None
) -> NDArray[Any]:
    """Read my part of a vector, (n) or (n, k).

    Parameters
    ----------
    path : str or Path
        Matrix Market, PETSc binary, NumPy's .npy, right-hand sides of Harwell-Boeing files, of SuiteSparse's .tar.gz (``NAME_b.mtx``),
        asterism's own.
    A : Matrix, optional
        The vector is laid out as its rows; else rows are dealt evenly over ``comm``.
    comm : None or mpi4py.MPI.Comm
        Without A: whose ranks read together.
    name : str, optional
        Which vector, in asterism's own files.

    Returns
    -------
    array, shape (my rows,) or (my rows, k)

    Raises
    ------
    FileError, FormatError
        On all ranks, with the place.
    ShapeError
        The file has not as many rows as A.

    Notes
    -----
    Collective.
    """
    c = _own(A, "read_vector", Operator)._h.comm if A is not None else as_communicator(comm)
    p = _path_of("read_vector", c, path, name=name)

    def layout(rows: int) -> _core.Layout:
        return A._h.rows if A is not None else _core.Layout.even(c, rows)

    kind = agreed(c, lambda: format_with(p, name, ("archive",)))
    if kind == "tar":
        with tempfile.TemporaryDirectory() as folder:
            return read_vector(agreed(c, lambda: extracted(p, folder, "_b")), A, comm)
    if kind == "petsc":
        out = _core.read_petsc_vector(p, layout(agreed(c, lambda: int(_core.petsc_vector_size(p)))))
    elif kind == "harwell_boeing":
        out = _core.read_harwell_boeing_rhs(p, layout(agreed(c, lambda: int(_core.harwell_boeing_rows(p)))))
    elif kind == "matrix_market":
        rows, cols, *_ = agreed(c, lambda: _core.matrix_market_header(p))
        out = _core.read_matrix_market_vector(p, layout(cols if rows == 1 else rows))
    elif kind == "npy":
        whole = agreed(c, lambda: _numpy_array(p))
        mine = layout(whole.shape[0])
        if mine.global_size != whole.shape[0]:
            raise ShapeError(f"'{p}' holds {whole.shape[0]} rows where {mine.global_size} are needed.")
        out = as_values(np.array(whole[mine.begin : mine.end]), p)
    elif kind == "archive":
        rows = agreed(c, lambda: _core.archive_names(p)[1])
        wanted = the_one(p, list(rows), name, f"{p}:NAME")
        out = _core.read_archive_vector(p, wanted, layout(rows[wanted]))
    else:
        raise FormatError(f"'{p}': vectors are not read from files of format {kind}.")
    found: NDArray[Any] = out
    return found


def _numpy_array(path: str) -> NDArray[Any]:
    try:
        out: NDArray[Any] = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise FormatError(f"'{path}' is no whole .npy file of numbers: {error}") from error
    if out.ndim not in (1, 2):
        raise ShapeError(f"'{path}' holds an array of shape {out.shape}; (n) or (n, k) is needed.")
    return out


@one_call("write_vector")
def write_vector(path: str | Path, x: Any, A: Matrix | None = None) -> None:
    """Write a vector, in the format that the name says: .mtx, .mtx.gz, .petsc (.bin, .dat), .npy (one process) or .ast.

    Parameters
    ----------
    path : str or Path
        Written beside and renamed: an older file is there until the new one is whole.
    x : array or Vector, shape (n,) or (n, k)
        My rows of A, or without A the whole vector.
    A : Matrix or Operator, optional
        Whose ranks write together, each its rows. Without it each process writes a file of its own: of several that write the same
        path the last one stays.

    Raises
    ------
    FileError
        Where the file cannot be written.
    InputError
        Where its name tells no format.

    Notes
    -----
    Collective over A's ranks.
    """
    c = _own(A, "write_vector", Operator)._h.comm if A is not None else as_communicator(None)
    p = _path_of("write_vector", c, path)
    array = agreed(c, lambda: _vector_to_write(x, A))
    layout = A._h.rows if A is not None else _core.Layout(c, array.shape[0])
    agreed(c, lambda: check_vector_name(p, c.size))
    if p.endswith(PETSC):
        _core.write_petsc_vector(p, layout, array)
    elif p.endswith(".ast"):
        _core.write_archive(p, layout.comm, {}, {"x": (layout, array)}, {})
    elif p.endswith(".npy"):
        with replacing(p, binary=True) as out:
            np.save(out, array)
    elif p.endswith(MATRIX_MARKET):
        _core.write_matrix_market_vector(p, layout, array)
    else:
        _compressed(layout.comm, p, lambda plain: _core.write_matrix_market_vector(plain, layout, array))


def _vector_to_write(x: Any, A: Matrix | None) -> NDArray[Any]:
    array = as_values(x, "x")
    rows = array.shape[0] if A is None or not array.ndim else int(A._h.rows.local_size)
    if array.ndim not in (1, 2) or array.shape[0] != rows or array.shape[1:] == (0,):
        raise ShapeError(
            f"write_vector: x has shape {array.shape}; ({rows},) or ({rows}, k), k at least 1, is needed here."
        )
    return array


@one_call("write_matrix")
def write_matrix(path: str | Path, A: Matrix) -> None:
    """Write a matrix, in the format that the name says.

    Parameters
    ----------
    path : str or Path
        .mtx, .mtx.gz, .petsc (.bin, .dat) or .ast; by one process also .npz (SciPy), .mat (MATLAB 5: the variable A) and .h5 or .hdf5
        (the group A, as AnnData and h5sparse have them). Written beside, then renamed.
    A : Matrix

    Raises
    ------
    FileError
        Where the file cannot be written.
    InputError
        Where its name tells no format.

    Notes
    -----
    Collective over A's ranks.
    """
    c = _own(A, "write_matrix")._h.comm
    p = _path_of("write_matrix", c, path)
    agreed(c, lambda: check_matrix_name(p, c.size))
    if p.endswith(PETSC):
        _core.write_petsc_matrix(p, A._h)
    elif p.endswith(".ast"):
        _core.write_archive(p, A._h.comm, {"A": A._h}, {}, {})
    elif p.endswith(".npz"):
        import scipy.sparse as sparse

        with replacing(p, binary=True) as out:
            sparse.save_npz(out, A.to_scipy())
    elif p.endswith(".mat"):
        import scipy.io

        S = A.to_scipy()
        wide = S.astype(np.result_type(S.dtype, np.float64))  # MATLAB's sparse matrices are double
        with replacing(p, binary=True) as out:
            scipy.io.savemat(out, {"A": wide}, do_compression=True)
    elif p.endswith((".h5", ".hdf5")):
        write_hdf5(p, A.shape, *A._rows())
    elif p.endswith(MATRIX_MARKET):
        _core.write_matrix_market(p, A._h)
    else:
        _compressed(A._h.comm, p, lambda plain: _core.write_matrix_market(plain, A._h))


def _compressed(comm: _core.Communicator, path: str, write: Callable[[str], None]) -> None:
    """Let all ranks write a plain file beside, of a name that is nobody's, which rank 0 then compresses to `path`."""
    plain = str(Path(path).parent / f".{comm.all_gather_text(secrets.token_hex(8))[0]}.plain")

    def compress() -> None:
        if comm.rank > 0:
            return
        with replacing(path, binary=True) as out, open(plain, "rb") as text:
            with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as packed:
                shutil.copyfileobj(text, packed, 1 << 20)

    try:
        write(plain)
        agreed(comm, compress)
    finally:  # Ctrl-C too
        if comm.rank == 0:
            Path(plain).unlink(missing_ok=True)


@one_call("save")
def save(path: str | Path, comm: Any = None, **things: Any) -> None:
    """Write matrices, vectors and text to one file of asterism's own, which any number of ranks can read.

    Parameters
    ----------
    path : str or Path
        Written beside and renamed: an older file is there until the new one is whole.
    comm : None or mpi4py.MPI.Comm
        Whose ranks write together. Without it each process writes a file of its own.
    **things : Matrix, array of my rows, (n) or (n, k), or str
        Under the names that `load` returns them by: 1 to 63 characters.

    Raises
    ------
    FileError
        The file cannot be written.
    InputError, ShapeError, DtypeError
        A thing is none of the three, a matrix is on other ranks, or the ranks give other names.

    Notes
    -----
    Collective. All of it has checksums, which are checked when it is read. A checkpoint of a solve is ``save(path, comm, x=x)``;
    ``solve(A, b, x0=load(path, comm)["x"])`` goes on from there.

    Examples
    --------
    >>> import asterism as am, numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.ast")
    >>> am.save(path, A=am.gallery.poisson((4, 4)), b=np.ones(16), note="a start")
    >>> sorted(am.load(path))
    ['A', 'b', 'note']
    """
    c = as_communicator(comm)
    p = _path_of("save", c, path)
    mine = ", ".join(
        f"{name} ({'matrix' if isinstance(t, Matrix) else 'text' if isinstance(t, str) else 'vector'})"
        for name, t in things.items()
    )
    first = c.bcast(mine, 0)
    agreed(c, lambda: _same(mine, first))
    matrices: dict[str, Any] = {}
    vectors: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for name, thing in things.items():
        if isinstance(thing, Matrix):
            if thing._h.comm.size != c.size:
                raise InputError(
                    f"save: matrix {name} is on {thing.comm_size} ranks, the communicator has {c.size}. Give the matrix's: am.save(path, comm, ...)."
                )
            matrices[name] = thing._h
        elif isinstance(thing, str):
            texts[name] = thing
        else:
            array = as_values(thing, f"save: {name}")
            if array.ndim not in (1, 2) or array.shape[1:] == (0,):
                raise ShapeError(f"save: {name} has shape {array.shape}; (n) or (n, k), k at least 1, is needed.")
            vectors[name] = (_core.Layout(c, array.shape[0]), array)
    _core.write_archive(p, c, matrices, vectors, texts)


@one_call("load")
def load(path: str | Path, comm: Any = None) -> dict[str, Any]:
    """Read all that `save` wrote, by name: matrices, arrays of my rows, text.

    Parameters
    ----------
    path : str or Path
    comm : None or mpi4py.MPI.Comm
        Rows are dealt evenly to its ranks, vectors as a matrix of as many rows.

    Returns
    -------
    dict
        A Matrix, an array of my rows, (n) or (n, k), or a str by each name.

    Raises
    ------
    FileError, FormatError
        The file is not there, or damaged.

    Notes
    -----
    Collective.
    """
    c = as_communicator(comm)
    p = _path_of("load", c, path)
    agreed(c, lambda: check_source(p))
    matrices, vectors, texts = _core.read_archive(p, c)
    return {**{k: Matrix(h) for k, h in matrices.items()}, **vectors, **texts}


def _same(mine: str, first: str) -> None:
    if mine != first:
        raise InputError(
            f"save: this rank gives {mine or 'nothing'}, rank 0 {first or 'nothing'}; all must give the same."
        )
