"""Which format a file has, and which one a name asks for."""

from __future__ import annotations

import importlib
from pathlib import Path

from .. import _core
from ..errors import FileError, FormatError, InputError, UnsupportedError

__all__ = [
    "COMPRESSED",
    "MATRIX_MARKET",
    "PETSC",
    "check_matrix_name",
    "check_source",
    "check_vector_name",
    "format_of",
    "format_with",
]

# RUA: real unsymmetric assembled. The others: complex, pattern, integer; symmetric, Hermitian, skew, rectangular
_HARWELL_BOEING = (".rb", ".hb", *(f".{values}{symmetry}a" for values in "rcpi" for symmetry in "ushzr"))
MATRIX_MARKET, COMPRESSED = (".mtx", ".mm"), (".mtx.gz", ".mm.gz")
PETSC = (".petsc", ".petscbin", ".bin", ".dat")


def check_source(path: str | Path) -> None:
    """Raise where a path is no file that can be read twice."""
    p = Path(path)
    if p.exists() and not p.is_file() and not p.is_dir():
        raise FileError(f"'{p}' is a device or a pipe, which is not read twice. Write it to a file first.")


def format_of(path: str | Path) -> str:
    """Return the name of a file's format, by its first bytes and else its name.

    ``matrix_market``, ``petsc``, ``archive`` (asterism's own), ``harwell_boeing``, ``npz``, ``npy``, ``matlab``, ``hdf5`` or ``tar``.
    """
    check_source(path)
    p = Path(path)
    try:
        with p.open("rb") as f:
            head = f.read(16)
    except OSError as error:
        raise FileError(f"'{p}' cannot be opened: {error.strerror}.") from error
    name = p.name.lower()
    if name.endswith((".tar.gz", ".tgz", ".tar")):
        return "tar"
    if head.startswith(b"ASTERISM"):
        return "archive"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    if head.startswith(b"MATLAB"):
        with p.open("rb") as f:  # MATLAB 7.3 files are HDF5 behind 512 bytes of text
            f.seek(512)
            return "hdf5" if f.read(8) == b"\x89HDF\r\n\x1a\n" else "matlab"
    if name.endswith(".mat"):  # files of MATLAB 4 begin with numbers
        return "matlab"
    if head.startswith(b"PK"):
        return "npz"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.lower().startswith(b"%%matrixmarket") or name.endswith((".mtx", ".mtx.gz", ".mm", ".mm.gz")):
        return "matrix_market"
    if name.removesuffix(".gz").endswith(_HARWELL_BOEING):
        return "harwell_boeing"
    if len(head) >= 8 and _core.is_petsc_binary(str(p)):
        return "petsc"
    raise FormatError(
        f"'{p}' is of no format that is known: Matrix Market (.mtx, .mtx.gz), PETSc binary, Harwell-Boeing and Rutherford-Boeing "
        "(.rua, .rb, ...), SciPy (.npz), MATLAB (.mat), HDF5, SuiteSparse (.tar.gz), asterism's own (.ast)."
    )


def format_with(path: str, name: str | None, named: tuple[str, ...]) -> str:
    """Return the format; raise if a name is given where nothing in the file has one."""
    kind = format_of(path)
    if name is not None and kind not in named:
        one = kind not in ("archive", "matlab", "hdf5", "npz")
        raise InputError(
            f"name '{name}': '{path}' ({kind}) holds one thing without a name. Leave the name out."
            if one
            else f"name '{name}': vectors are not read by name from files of format {kind}. Those of {', '.join(named)} are."
        )
    return kind


def check_vector_name(path: str | Path, ranks: int) -> None:
    """Raise unless `write_vector` knows the ending, and so many ranks can write it."""
    if not str(path).endswith((*PETSC, ".ast", ".npy", *MATRIX_MARKET, *COMPRESSED)):
        raise InputError(f"'{path}': a vector is written as .mtx, .mtx.gz, .petsc, .npy or .ast.")
    if str(path).endswith(".npy"):
        _alone(ranks, path)


def check_matrix_name(path: str | Path, ranks: int) -> None:
    """Raise unless `write_matrix` knows the ending, so many ranks can write it, and what it needs is installed."""
    p = str(path)
    if p.endswith((*PETSC, ".ast", *MATRIX_MARKET, *COMPRESSED)):
        return
    needs = {".npz": "scipy", ".mat": "scipy", ".h5": "h5py", ".hdf5": "h5py"}.get(Path(p).suffix)
    if needs is None:
        raise InputError(f"'{p}': a matrix is written as .mtx, .mtx.gz, .petsc, .npz, .mat, .h5 or .ast.")
    _alone(ranks, p)
    try:
        importlib.import_module(needs)
    except ImportError as error:
        raise UnsupportedError(f"'{p}': writing {Path(p).suffix} needs {needs}: pip install {needs}") from error


def _alone(ranks: int, path: str | Path) -> None:
    if ranks > 1:
        raise UnsupportedError(
            f"'{path}': this format is written by one process. On several write .ast, .petsc or .mtx."
        )
