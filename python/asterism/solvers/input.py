"""What a solve is given, checked before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.aligned import aligned
from ..base.files import check_target
from ..base.indices import as_count
from ..errors import DtypeError, InputError, ShapeError, UnsupportedError
from ..la.operator import Operator, as_values

__all__ = ["check_checkpoint", "checked_columns", "checked_rule", "columns_of", "prepared"]


def columns_of(a: NDArray[Any]) -> NDArray[Any]:
    """Return (n) as (n, 1)."""
    return a[:, None] if a.ndim == 1 else a


def checked_columns(vectors: Any, what: str) -> NDArray[Any]:
    """Return numbers of shape (n,) or (n, k) as (n, k)."""
    a = as_values(vectors, what)
    if a.ndim not in (1, 2):
        raise ShapeError(f"{what} has shape {a.shape}; (n,) or (n, k) is needed.")
    return columns_of(a)


def checked_rule(rtol: Any, atol: Any, maxiter: Any) -> tuple[float | None, float | None, int | None]:
    """Return the tolerances and the limit of one solve as numbers; None: not given."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if value is not None and not number:  # the core looks at the value
            raise InputError(f"solve: {name} is {value!r}; a number of at least 0 is needed.")
    r, a = (None if value is None else float(value) for value in (rtol, atol))
    return r, a, None if maxiter is None else as_count(maxiter, "maxiter")


def parts_of(a: NDArray[Any]) -> NDArray[Any]:
    """Return real parts and imaginary parts of (n) or (n, k) as columns, (n, 2 k)."""
    return np.concatenate([np.real(columns_of(a)), np.imag(columns_of(a))], axis=1)


def joined(parts: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return what `parts_of` took apart."""
    k = parts.shape[1] // 2
    out: NDArray[Any] = (parts[:, :k] + 1j * parts[:, k:]).reshape(shape)
    return out


def prepared(A: Operator, b: Any, x0: Any, monitor: Any, checkpoint: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check what a solve is given, before any work, and return b and the first x; both are complex if b is and A is not."""
    rhs = as_values(A._entries(b, "b"), "b")
    rows = int(A._h.rows.local_size)
    if rhs.ndim not in (1, 2) or rhs.shape[0] != rows:
        lo, n = int(A._h.rows.begin), int(A._h.rows.global_size)
        whole = f" Of the whole b it is b[{lo}:{lo + rows}]." if rhs.ndim in (1, 2) and rhs.shape[0] == n > rows else ""
        raise ShapeError(f"b has shape {rhs.shape}; ({rows},) or ({rows}, k) is needed here.{whole}")
    if monitor is not None and not callable(monitor):
        raise InputError(f"monitor is {monitor!r}; a function of the iteration and the residual norm is needed.")
    if checkpoint is not None:
        check_order(A)
    parts = np.iscomplexobj(rhs) and A.dtype.kind != "c"
    if parts and checkpoint is not None:
        raise UnsupportedError(
            f"a checkpoint of a real A with a complex b is not offered. {A._advice_for('complex128')}"
        )
    wide = np.promote_types(np.real(rhs).dtype if parts else rhs.dtype, A.dtype)
    if wide != A.dtype:
        raise DtypeError(f"b is {rhs.dtype}, A {A.dtype}. {A._advice_for(wide)}")
    rhs = rhs.astype(np.promote_types(A.dtype, np.complex64) if parts else A.dtype, copy=False)
    if x0 is None:
        return rhs, aligned(rhs.shape, rhs.dtype, zero=True)
    guess = as_values(A._entries(x0, "x0"), "x0")
    if guess.shape != rhs.shape:
        raise ShapeError(f"x0 has shape {np.shape(x0)}, b {np.shape(b)}; they must be the same.")
    if np.iscomplexobj(guess) and not np.iscomplexobj(rhs):
        raise DtypeError(f"x0 is {guess.dtype}, b and A are real. Use x0.real, or: {A._advice_for('complex128')}")
    return rhs, np.array(guess, dtype=rhs.dtype, order="C")


def check_order(A: Operator) -> None:
    """Raise where entries are in an order of the operator's own, which a file would not tell."""
    if A._has_own_order:
        raise UnsupportedError(
            f"checkpoints of {A!r} are not offered: its vectors are in the order of its bricks. Save x yourself."
        )


def check_checkpoint(path: str | Path, every: int, asynchronous: bool) -> None:
    """Raise where iterates could not be kept there."""
    if as_count(every, "checkpoint_every") < 1:
        raise InputError(f"checkpoint_every is {every}; at least 1.")
    if asynchronous:
        raise UnsupportedError("checkpoints need the iterate, which -ksp_asynchronous looks at late.")
    check_target(path, "checkpoint")
    if not str(path).endswith(".ast"):
        raise InputError(f"checkpoint='{path}': a checkpoint is a file of asterism's own format. Name it FILE.ast.")
