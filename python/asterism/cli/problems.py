"""What is solved: files and built-in problems by name, and what is said of them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core, gallery
from ..errors import AsterismError, FileError, InputError, ShapeError
from ..la.file_formats import format_of
from ..la.io import read_matrix, read_vector
from ..la.matrix import Matrix

__all__ = [
    "BUILT_IN",
    "add_description",
    "check",
    "check_description",
    "check_vector",
    "count",
    "described",
    "list_built_in",
    "load",
    "number",
    "print_options",
    "rhs",
    "vector",
    "whole",
]

BUILT_IN = {
    "poisson1d": (100_000, "-u'' on n points"),
    "poisson2d": (300, "5-point Laplace on n x n points"),
    "poisson3d": (64, "7-point Laplace on n x n x n points"),
    "poisson3d27": (48, "27-point Laplace on n x n x n points"),
    "neumann2d": (200, "5-point Laplace, pure Neumann: singular, the constants are projected out"),
    "anisotropic2d": (300, "5-point, coefficients 1 and 0.01"),
    "convection2d": (200, "upwind convection-diffusion, unsymmetric"),
    "elasticity3d": (20, "3-D elasticity, n x n x n cells, clamped on one side"),
    "laplace3dq2": (16, "3-D Laplace, triquadratic elements on n x n x n cells"),
}


def list_built_in() -> str:
    """Return a line for each built-in problem."""
    return "\n".join(f"  {k:<15} {v[1]} (n = {v[0]})" for k, v in BUILT_IN.items())


def add_description(p: Any) -> None:
    """Declare the problem, and the arguments that say more of it."""
    p.add_argument(
        "problem",
        nargs="?",
        help="a file (.mtx, .mtx.gz, PETSc, .npz, .mat, .rb, .tar.gz, .ast, ...) or a built-in problem",
    )
    p.add_argument("--n", type=whole, help="size of a built-in problem")
    p.add_argument("--name", help="which matrix, in a file that holds several")
    p.add_argument(
        "--rhs",
        metavar="FILE[:NAME]",
        help="right-hand side (NAME: which one, in a file that holds several); default: A x* with a known x*",
    )
    p.add_argument("--block-size", type=count, default=1, help="unknowns per node of a vector problem in a file")
    p.add_argument("--near-null-space", metavar="FILE[:NAME]", help="Matrix Market array (n, k): e.g. rigid-body modes")
    p.add_argument(
        "--coordinates", metavar="FILE[:NAME]", help="Matrix Market array (nodes, d): rigid-body modes are made from it"
    )
    p.add_argument(
        "--dtype", choices=("float32", "float64", "complex64", "complex128"), help="convert the matrix first"
    )


def whole(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def count(text: str) -> int:
    """Return a number that is at least 1."""
    value = whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def check_description(args: argparse.Namespace) -> None:
    """Raise for what can be known to be wrong of the arguments of `add_description`, before anything is read."""
    if args.problem is None:
        raise InputError("which problem? Give a file or one of: " + ", ".join(BUILT_IN))
    check(args.problem, args.n, args.name)
    for name in ("rhs", "near_null_space", "coordinates"):
        if spec := getattr(args, name):
            check_vector(f"--{name.replace('_', '-')}", spec)
    if args.near_null_space and args.coordinates:
        raise InputError(
            "--near-null-space and --coordinates are both given: modes are made of the coordinates. Give one."
        )


def files_of(args: argparse.Namespace) -> dict[str, str | None]:
    """Return the files that the description names, by what the user calls them."""
    out: dict[str, str | None] = {"the problem": args.problem}
    for name in ("rhs", "near_null_space", "coordinates"):
        spec = getattr(args, name)
        out["--" + name.replace("_", "-")] = _named(spec)[0] if spec else None
    return out


def check_vector(argument: str, spec: str) -> None:
    """Raise unless it is a file that can hold vectors, as far as its name and its beginning say."""
    try:
        format_of(_named(spec)[0])
    except AsterismError as error:
        raise type(error)(f"{argument}: {error}") from None


def check(name: str, n: int | None, which: str | None = None) -> None:
    """Raise unless it is a file or a built-in problem, and --n and --name go with it."""
    if name in BUILT_IN:
        if n is not None and n < 1:
            raise InputError(f"--n {n}: at least 1.")
        if which is not None:
            raise InputError(f"--name goes with a file, not with the built-in problem {name}.")
        return
    if not Path(name).exists():
        near = _core.nearest(name, list(BUILT_IN))
        hint = f" Did you mean {near}?" if near else ""
        raise FileError(f"'{name}' is neither a file nor a built-in problem ({', '.join(BUILT_IN)}).{hint}")
    if n is not None:
        raise InputError(f"--n goes with a built-in problem, not with the file '{name}'.")


def load(name: str, n: int | None, comm: Any, block_size: int, which: str | None = None) -> tuple[Matrix, str]:
    """Return the matrix and a line that describes it."""
    check(name, n, which)
    if name in BUILT_IN:
        if block_size != 1:
            raise InputError(f"--block-size is for files; {name} has its own.")
        size = BUILT_IN[name][0] if n is None else n
        A = {
            "poisson1d": lambda: gallery.poisson((size,), comm),
            "poisson2d": lambda: gallery.poisson((size, size), comm),
            "poisson3d": lambda: gallery.poisson((size,) * 3, comm),
            "poisson3d27": lambda: gallery.poisson((size,) * 3, comm, stencil="box"),
            "neumann2d": lambda: gallery.poisson((size, size), comm, neumann=True),
            "anisotropic2d": lambda: gallery.poisson((size, size), comm, epsilon=(1.0, 0.01)),
            "convection2d": lambda: gallery.convection_diffusion((size, size), (20.0, 10.0), 1.0, comm),
            "elasticity3d": lambda: gallery.elasticity((size,) * 3, comm),
            "laplace3dq2": lambda: gallery.laplace_q2((size,) * 3, comm),
        }[name]()
        return A, f"{name} with n = {size}, {A.shape[0]} unknowns, {A.nnz} entries"
    A = read_matrix(name, comm, block_size=block_size, name=which)
    return A, f"{Path(name).name}, {A.shape[0]} x {A.shape[1]}, {A.nnz} entries, {A.dtype}"


def described(A: Matrix, args: argparse.Namespace) -> Matrix:
    """Return the matrix, a square one, with what the arguments say of it. Collective."""
    if args.dtype:
        A = A.astype(args.dtype)
    if args.near_null_space:
        A.near_null_space = vector(args.near_null_space, A, "near_null_space")
    if args.coordinates:
        _attach_modes(A, vector(args.coordinates, usual="coordinates"))
    return A


def rhs(A: Matrix, args: argparse.Namespace) -> tuple[Any, Any]:
    """Return this rank's part of the right-hand side, and of the x* that it was made of or None."""
    if args.rhs:
        b = vector(args.rhs, A, "b")
        if np.iscomplexobj(b) and A.dtype.kind != "c":
            raise ShapeError(f"'{args.rhs}' is complex, the matrix real; use --dtype complex128.")
        return b.astype(A.dtype), None
    # x* depends on the global index alone, so every number of ranks solves the same problem
    known = np.empty(A.local_shape[1], dtype=A.dtype)
    _core.fill_hashed(A._h.cols, known, 3)
    return A @ known, known


def _named(spec: str) -> tuple[str, str | None]:
    """Part FILE:NAME; a file that is there with all of it is a file."""
    path, colon, name = spec.rpartition(":")
    return (path, name) if colon and path and not os.path.exists(spec) else (spec, None)


def vector(spec: str, A: Any = None, usual: str = "x") -> Any:
    """Read FILE or FILE:NAME; of several vectors in one of asterism's own files the `usual` one, if nothing is said."""
    path, name = _named(spec)
    if name is None and format_of(path) == "archive" and usual in _core.archive_names(path)[1]:
        name = usual
    return read_vector(path, A, name=name)


def _attach_modes(A: Any, nodes: Any) -> None:
    """Rigid-body modes from the coordinates of all nodes (every rank has them all)."""
    if nodes.ndim != 2 or nodes.shape[1] not in (2, 3):
        raise ShapeError(f"--coordinates: shape {nodes.shape}; (nodes, 2) or (nodes, 3) is needed.")
    d = nodes.shape[1]
    if A.shape[0] % d or nodes.shape[0] < A.shape[0] // d:
        raise ShapeError(
            f"--coordinates: {nodes.shape[0]} nodes do not fit a matrix of {A.shape[0]} rows in {d} dimensions."
        )
    lo, hi = A.row_range
    if lo % d or hi % d:
        raise ShapeError(f"--coordinates: a node's rows are on two ranks; add --block-size {d}.")
    mine = np.ascontiguousarray(nodes[lo // d : hi // d].real)
    A._describe(d, mine, None)


def print_options() -> int:
    """Print every option with its default and meaning."""
    for group, name, default, text, choices in _core.option_tables():
        shown = f" [{' '.join(choices)}]" if choices else ""
        print(f"-{name:<30} {default:<12} {text}{shown}  ({group})")
    print("\nBlocks of bjacobi and asm take -sub_pc_type.")
    return 0
