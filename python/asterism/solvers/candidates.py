"""What `advise` tries, and what it varies: one line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import _core
from ..la.matrix import Matrix

__all__ = ["CANDIDATES", "LADDERS", "NOT_TRIED", "Look", "candidates", "look"]


@dataclass(frozen=True)
class Look:
    """What one look at a matrix finds: that of ``auto``, and what the options of preconditioners depend on."""

    rows: int
    entries: int
    dtype: str
    ranks: int
    Hermitian: bool
    asymmetry: float
    positive_diagonal: bool
    negative_diagonal: bool
    zeros_on_the_diagonal: int
    null_vectors: int
    null_components: int  #: connected components that have null vectors of their own
    block_size: int
    near_null_vectors: int
    largest_entry: float
    smallest_diagonal: float
    largest_diagonal: float
    auto: tuple[str, str]  #: the method, and the options of the preconditioner that comes first

    @property
    def definite(self) -> bool:
        """Whether the matrix may be definite: Hermitian with a diagonal of one sign."""
        return self.Hermitian and (self.positive_diagonal or self.negative_diagonal)

    def words(self) -> list[str]:
        """Return the same in words."""
        sign = "positive" if self.positive_diagonal else "negative" if self.negative_diagonal else ""
        out = ["Hermitian" if self.Hermitian else f"not Hermitian (asymmetry {self.asymmetry:.1e})"]
        if self.zeros_on_the_diagonal:
            out.append(f"{self.zeros_on_the_diagonal} zeros on the diagonal")
        else:
            out.append(f"{sign} diagonal" if sign else "a diagonal of both signs" + ": indefinite" * self.Hermitian)
        out.append(
            f"entries up to {self.largest_entry:.1e}, on the diagonal {self.smallest_diagonal:.1e} to {self.largest_diagonal:.1e}"
        )
        if self.block_size > 1:
            out.append(f"{self.block_size} unknowns a node")
        if self.near_null_vectors:
            out.append(f"{self.near_null_vectors} near-null vectors are given")
        if self.null_vectors:
            where = f" of {self.null_components} connected components" if self.null_components > 1 else ""
            out.append(f"singular: {self.null_vectors} null vector(s){where}, which are projected out")
        return out

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "auto": list(self.auto)}


def look(A: Matrix) -> Look:
    """Look at a square matrix: a pass over its entries and a few products. Collective."""
    found = _core.look(A._h)
    ksp, attempts = _core.automatic_choice(A._h)
    d = np.abs(A.diagonal())
    comm = A._comm
    near = A.near_null_space
    return Look(
        rows=A.shape[0],
        entries=A.nnz,
        dtype=str(A.dtype),
        ranks=comm.size,
        **found,
        block_size=A.block_size if A.block_size > 1 else int(A._h.detected_block_size()),
        near_null_vectors=0 if near is None else near.shape[1],
        smallest_diagonal=-comm.max(-float(d.min(initial=np.inf))) + 0.0 if A.shape[0] else 0.0,
        largest_diagonal=comm.max(float(d.max(initial=0.0))),
        auto=(ksp, attempts[0]),
    )


Suits = Callable[[Look], bool]


def _any(_: Look) -> bool:
    return True


def _definite(a: Look) -> bool:
    return a.definite


def _indefinite(a: Look) -> bool:
    return a.Hermitian and not a.definite


def _pivots(a: Look) -> bool:
    return a.zeros_on_the_diagonal == 0


def _unsymmetric_pivots(a: Look) -> bool:
    return not a.Hermitian and a.zeros_on_the_diagonal == 0


# in the order of the trials: what is likely to win comes first, since it shortens the trials after it
CANDIDATES: tuple[tuple[str, Suits], ...] = (
    ("-ksp_type cg -pc_type amg", _definite),
    ("-ksp_type cg -pc_type amg -pc_amg_type classical", _definite),
    ("-ksp_type cg -pc_type amg -mg_levels_ksp_type chebyshev", _definite),
    ("-ksp_type cg -pc_type amg -mg_levels_ksp_type richardson -mg_levels_pc_type color_sor", _definite),
    ("-ksp_type cg -pc_type icc -pc_factor_shift_type positive_definite", _definite),
    ("-ksp_type cg -pc_type sor", _definite),
    ("-ksp_type cg -pc_type chebyshev", _definite),
    ("-ksp_type cg -pc_type jacobi", _definite),
    ("-ksp_type minres -pc_type jacobi -pc_jacobi_type rowl1", _indefinite),
    ("-ksp_type gmres -pc_type ilu", _pivots),
    ("-ksp_type bicgstab -pc_type ilu", _unsymmetric_pivots),
    ("-ksp_type gmres -pc_type ilut -pc_ilut_drop 1e-4 -pc_ilut_fill 10", _any),
    (
        "-ksp_type gmres -pc_type ilut -pc_factor_matching true -pc_ilut_drop 1e-06 -pc_ilut_fill 100",
        _any,
    ),
    ("-ksp_type gmres -pc_type asm -sub_pc_type ilu", lambda a: a.ranks > 1 and _pivots(a)),
    ("-ksp_type gmres -pc_type amg", lambda a: not a.Hermitian and a.positive_diagonal),
    ("-ksp_type gmres -pc_type amg -pc_amg_type classical", lambda a: not a.Hermitian and a.positive_diagonal),
    ("-ksp_type idr -pc_type jacobi -pc_jacobi_type rowl1", lambda a: not a.Hermitian),
    ("-ksp_type preonly -pc_type cholesky", lambda a: a.Hermitian),
    ("-ksp_type preonly -pc_type lu", _any),
)

# no preconditioners by themselves, or another name of one, or not for matrices
NOT_TRIED = ("none", "bjacobi", "gamg", "gmg", "ksp")


def candidates(a: Look) -> list[str]:
    """Return the options that the look allows, what ``auto`` takes first; a preconditioner without a line above is tried as it is."""
    out = [options for options, suits in CANDIDATES if suits(a)]
    named = {words[words.index("-pc_type") + 1] for words in (options.split() for options, _ in CANDIDATES)}
    method = "cg" if a.definite else "gmres"
    for name in _core.component_names()[1]:
        if name not in named and name not in NOT_TRIED:
            out.append(f"-ksp_type {method} -pc_type {name}")
    first = f"-ksp_type {a.auto[0]} {a.auto[1]}"
    return sorted(dict.fromkeys([first, *out]), key=lambda options: not f"{options} ".startswith(f"{first} "))


# -pc_type or -ksp_type, the option, and its values, each the neighbour of the next
LADDERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("amg", "mg_levels_ksp_type", ("auto", "richardson", "chebyshev")),
    ("amg", "mg_levels_ksp_max_it", ("1", "2", "3", "4", "6")),
    ("amg", "pc_amg_threshold", ("0", "0.01", "0.02", "0.04", "0.08", "0.16", "0.25")),
    ("amg", "mg_levels_pc_type", ("auto", "spai0", "jacobi", "color_sor")),
    ("amg", "mg_levels_ksp_chebyshev_kind", ("opt_fourth", "fourth", "first")),
    ("amg", "pc_amg_cycle_type", ("v", "w")),
    ("amg", "pc_amg_coarse_size", ("100", "500", "2000")),
    ("ilu", "pc_factor_levels", ("0", "1", "2", "3", "4")),
    ("ilu", "pc_factor_matching", ("false", "true")),
    ("ilut", "pc_factor_mat_ordering_type", ("auto", "natural", "rcm", "amd")),
    ("ilu", "pc_factor_mat_ordering_type", ("auto", "natural", "rcm", "amd")),
    ("ilut", "pc_factor_matching", ("auto", "true", "false")),
    ("ilut", "pc_ilut_drop", ("0.01", "0.001", "0.0001", "1e-05", "1e-06", "1e-08")),
    ("ilut", "pc_ilut_fill", ("1", "2", "3", "5", "10", "20", "40")),
    ("icc", "pc_factor_shift_type", ("none", "positive_definite")),
    ("asm", "pc_asm_overlap", ("0", "1", "2", "3")),
    ("chebyshev", "pc_chebyshev_degree", ("2", "4", "6", "8", "12")),
    ("chebyshev", "pc_chebyshev_ratio", ("10", "30", "100")),
    ("sor", "pc_sor_its", ("1", "2", "3")),
    ("sor", "pc_sor_omega", ("0.8", "1", "1.2", "1.4", "1.6", "1.8")),
    ("jacobi", "pc_jacobi_type", ("diagonal", "rowl1")),
    ("cholesky", "pc_factor_mat_ordering_type", ("nd", "auto", "amd")),
    ("lu", "pc_factor_mat_ordering_type", ("nd", "auto", "colamd", "amd")),
    ("lu", "pc_factor_pivot_threshold", ("0.001", "0.01", "0.1", "0.5", "1")),
    ("gmres", "ksp_gmres_restart", ("15", "30", "60", "100", "200")),
    ("idr", "ksp_idr_s", ("1", "2", "4", "8", "16")),
)
