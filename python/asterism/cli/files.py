"""``asterism convert`` and ``asterism inspect``: files to other formats, and what a matrix looks like."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.files import check_apart, check_target, replacing
from ..errors import InputError, UnsupportedError
from ..la.file_formats import check_matrix_name, check_vector_name, format_of
from ..la.io import read_vector, write_matrix, write_vector
from ..la.matrix import Matrix
from . import launch, problems
from .output import print_json

__all__ = ["add_arguments", "convert", "inspect", "spy"]


def add_arguments(sub: Any) -> None:
    """Declare the arguments."""
    p = sub.add_parser(
        "convert",
        help="write a matrix or vector in another format",
        description="Read a matrix (or, with --vector, a vector) and write it in the format that the new name says.",
        epilog="read: .mtx, .mtx.gz, PETSc binary, .rua/.rb/..., .npz, .npy, .mat, HDF5, SuiteSparse .tar.gz, .ast\n"
        "written: .mtx, .petsc (.bin, .dat), .ast; on one process .mtx.gz, .npz, .mat and HDF5; of vectors also .npy\n\n"
        "examples:\n"
        "  asterism convert K.mtx.gz K.ast\n"
        "  asterism convert HB.tar.gz K.petsc --ranks 2 --block-size 3\n"
        "  asterism convert b.mtx b.petsc --vector",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("source", help="a file, or a built-in problem")
    p.add_argument("target", help="the file to write; replaced when the new one is whole")
    p.add_argument("--vector", action="store_true", help="it is a vector, (n) or (n, k)")
    p.add_argument("--name", help="which one, in files that hold several")
    p.add_argument("--block-size", type=problems.count, default=1, help="unknowns per node, kept where the format can")
    p.add_argument("--n", type=problems.whole, help="size of a built-in problem")
    launch.add_ranks(p)

    p = sub.add_parser(
        "inspect",
        help="what a matrix looks like: statistics and a picture of its pattern",
        description="Say what can be seen of a matrix, and what that means for a solve.",
        epilog="examples:\n  asterism inspect K.mtx.gz\n  asterism inspect K.mtx.gz --spy pattern.png\n  asterism inspect poisson3d --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("source", help="a file, or a built-in problem")
    p.add_argument("--name", help="which one, in files that hold several")
    p.add_argument("--n", type=problems.whole, help="size of a built-in problem")
    p.add_argument("--spy", metavar="FILE", help="write the picture as .png, .svg or .pdf (needs matplotlib)")
    p.add_argument("--json", action="store_true", help="as JSON, without the picture")


def _read(args: argparse.Namespace, comm: Any, block_size: int) -> Matrix:
    return problems.load(args.source, args.n, comm, block_size, args.name)[0]


def check(args: argparse.Namespace, ranks: int) -> None:
    """Raise for what can be known to fail before the work."""
    if args.command == "inspect":
        problems.check(args.source, args.n, args.name)
        if args.spy:
            check_target(args.spy, "--spy")
            _picture_kind(args.spy)
        return
    check_target(args.target, "the target")
    check_apart({"the target": args.target}, {"the source": args.source})
    if args.vector:
        format_of(args.source)
        check_vector_name(args.target, 1)
    else:
        problems.check(args.source, args.n, args.name)
        check_matrix_name(args.target, ranks)


def convert(args: argparse.Namespace) -> int:
    """Read and write."""
    comm = launch.communicator()
    if args.vector:
        x = read_vector(args.source, name=args.name)
        if comm is None or comm.Get_rank() == 0:
            write_vector(args.target, x)
            print(f"{args.target}: {x.shape[0]} x {1 if x.ndim == 1 else x.shape[1]}, {x.dtype}")
        return 0
    A = _read(args, comm, args.block_size)
    write_matrix(args.target, A)
    if comm is None or comm.Get_rank() == 0:
        print(f"{args.target}: {A.shape[0]} x {A.shape[1]}, {A.nnz} entries, {A.dtype}, {format_of(args.target)}")
    return 0


def inspect(args: argparse.Namespace) -> int:
    """Print the statistics, and the pattern."""
    A = _read(args, None, 1)
    found = statistics(A)
    if args.json:
        print_json(found)
        return 0
    width = max(map(len, found))
    for key, value in found.items():
        shown = (
            f"{value:.6g}"
            if isinstance(value, float)
            else "yes"
            if value is True
            else "no"
            if value is False
            else value
        )
        print(f"{key.replace('_', ' '):<{width}}  {shown}")
    print()
    print(spy(A))
    if args.spy:
        _picture(A, args.spy)
        print(f"picture: {args.spy}")
    return 0


def statistics(A: Matrix) -> dict[str, Any]:
    """Return what can be seen of a matrix in a few passes over its entries, and what to try."""
    ptr, col, val = A._rows()
    n, m = A.shape
    lengths = np.diff(ptr)
    rows = np.repeat(np.arange(n), lengths)
    size = np.abs(val)
    nonzero = size[size > 0]
    out: dict[str, Any] = {
        "size": f"{n} x {m}",
        "dtype": str(A.dtype),
        "entries": int(A.nnz),
        "of_them_zero": int((val == 0).sum()),
        "entries_in_a_row": f"{lengths.min(initial=n and lengths[0])} to {lengths.max(initial=0)}, mean {lengths.mean() if n else 0:.1f}",
        "empty_rows": int((lengths == 0).sum()),
        "empty_columns": int(m - np.count_nonzero(np.bincount(col, minlength=m))),
        "bandwidth": int(np.abs(col - rows).max(initial=0)),
        "smallest_entry": float(nonzero.min(initial=nonzero[0] if len(nonzero) else 0.0)),
        "largest_entry": float(size.max(initial=0.0)),
        "storage_for_products": A.storage,
    }
    if n != m or n == 0:
        return out
    d = A.diagonal()
    row_sum = np.bincount(rows, weights=size, minlength=n)
    ones, eps = np.ones(len(val)), float(np.finfo(A.dtype).eps)
    out |= {
        "symmetric_pattern": _asymmetry(n, rows, col, ones) == 0,
        "Hermitian": bool(_asymmetry(n, rows, col, val) <= 50 * eps * size.max(initial=0.0)),
        "zeros_on_the_diagonal": int((d == 0).sum()),
        "structural_rank": _core.matching(A._h)[0],
        "positive_diagonal": bool(np.all(np.real(d) > 0) and np.all(np.imag(d) == 0)),
        "rows_diagonally_dominant": f"{100 * np.mean(2 * np.abs(d) >= row_sum * (1 - 1e-12)):.0f} %",
        "constants_in_null_space": bool(n > 1 and np.abs(A @ np.ones(n, A.dtype)).max() <= 500 * eps * row_sum.max()),
        "block_size_of_the_pattern": A.block_size if A.block_size > 1 else int(A._h.detected_block_size()),
    }
    if out["empty_rows"]:
        out["to_try"] = "rows are empty: the matrix is singular"
        return out
    ksp, attempts = _core.automatic_choice(A._h)
    first, *others = dict.fromkeys(line.replace("-pc_type", "--pc") for line in attempts)
    if first in ("--pc lu", "--pc cholesky"):
        ksp = "preonly"  # as the solver takes it for direct solves
    out["to_try"] = f"--ksp {ksp} {first} (as auto does)"
    out["then"] = ", ".join(others)
    return out


def _asymmetry(n: int, rows: NDArray[Any], cols: NDArray[Any], values: NDArray[Any]) -> float:
    """Largest entry of B - B^H, B having these entries."""
    i, j = np.concatenate([rows, cols]), np.concatenate([cols, rows])
    difference = Matrix.coo((n, n), i, j, np.concatenate([values, -np.conj(values)]))
    return float(np.abs(difference._rows()[2]).max(initial=0.0))


def _places(A: Matrix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the entries."""
    ptr, col, _ = A._rows()
    return np.repeat(np.arange(A.shape[0]), np.diff(ptr)), col.astype(np.int64)


def spy(A: Matrix, width: int = 60) -> str:
    """Return the pattern as text: each character stands for the entries of a rectangle, more the darker."""
    (n, m), (i, j) = A.shape, _places(A)
    if n == 0 or m == 0:
        return "(empty)"
    wide = min(width, m)
    high = max(1, min(n, round(wide * n / m / 2)))  # characters are twice as high as wide
    counts = np.zeros((high, wide))
    np.add.at(counts, (i * high // n, j * wide // m), 1)
    area = (n / high) * (m / wide)
    levels = " .:-=+*#%@"
    fullest = max(counts.max(), 1.0)
    share = np.where(counts > 0, 1 + np.minimum(np.sqrt(counts / min(fullest, area)), 1) * (len(levels) - 2), 0)
    lines = ["".join(levels[int(v)] for v in row) for row in share]
    return "\n".join(["+" + "-" * wide + "+", *("|" + line + "|" for line in lines), "+" + "-" * wide + "+"])


def _picture_kind(path: str) -> str:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise UnsupportedError("--spy needs matplotlib: pip install 'asterism-sparse[report]'") from error
    kind, known = Path(path).suffix.lstrip(".") or "png", FigureCanvasAgg.get_supported_filetypes()
    if kind not in known:
        raise InputError(f"--spy: '{path}' is no picture; {', '.join(known)}.")
    return kind


def _picture(A: Matrix, path: str) -> None:
    kind = _picture_kind(path)
    from matplotlib.figure import Figure

    (n, m), (i, j) = A.shape, _places(A)
    if n == 0 or m == 0:
        raise InputError(f"--spy: a {n} x {m} matrix has no picture.")
    figure = Figure(figsize=(6, 6 * min(max(n / m, 0.2), 3)), layout="constrained")
    high, wide = min(n, 800), min(m, 800)
    counts = np.zeros((high, wide))
    np.add.at(counts, (i * high // n, j * wide // m), 1)
    axes = figure.add_subplot()
    shown = np.ma.masked_equal(counts, 0)
    image = axes.imshow(shown, cmap="viridis_r", extent=(0, m, n, 0), interpolation="nearest", aspect="auto")
    figure.colorbar(image, label=f"entries of {n / high:.3g} x {m / wide:.3g}", shrink=0.7)
    axes.set_title(f"{n} x {m}, {A.nnz} entries")
    axes.set_xlabel("column")
    axes.set_ylabel("row")
    with replacing(path, binary=True) as out:
        figure.savefig(out, dpi=150, format=kind)
