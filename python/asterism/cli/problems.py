"""What can be solved: files and built-in problems by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import _core, gallery
from ..errors import FileError, InputError
from ..la.io import read_matrix
from ..la.matrix import Matrix

__all__ = ["BUILT_IN", "check", "load", "print_options"]

BUILT_IN = {
    "poisson1d": (100_000, "-u'' on n points"),
    "poisson2d": (300, "5-point Laplace on n x n points"),
    "poisson3d": (64, "7-point Laplace on n x n x n points"),
    "poisson3d27": (48, "27-point Laplace on n x n x n points"),
    "neumann2d": (200, "5-point Laplace, pure Neumann: singular, the constants are projected out"),
    "anisotropic2d": (300, "5-point, coefficients 1 and 0.01"),
    "convection2d": (200, "upwind convection-diffusion, unsymmetric"),
    "elasticity3d": (20, "3-D elasticity, n x n x n cells, clamped on one side"),
}


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
        }[name]()
        return A, f"{name} with n = {size}, {A.shape[0]} unknowns, {A.nnz} entries"
    A = read_matrix(name, comm, block_size=block_size, name=which)
    return A, f"{Path(name).name}, {A.shape[0]} x {A.shape[1]}, {A.nnz} entries, {A.dtype}"


def print_options() -> int:
    """Print every option with its default and meaning."""
    for group, name, default, text, choices in _core.option_tables():
        shown = f" [{' '.join(choices)}]" if choices else ""
        print(f"-{name:<30} {default:<12} {text}{shown}  ({group})")
    print("\nBlocks of bjacobi and asm take -sub_pc_type.")
    return 0
