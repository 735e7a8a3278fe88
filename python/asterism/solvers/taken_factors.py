"""Factors that another library made, to solve with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import DtypeError, InputError, ShapeError, UnsupportedError
from ..la.matrix import Matrix
from .factors import Explicit, Factors
from .solver import Solver

__all__ = ["TakenFactors", "given_factors"]


class TakenFactors(Factors):
    """Another library's factors to solve with, made by `factorized` from them.

    As `Factors`, with solves by asterism's kernels. A itself is not known: answers are not refined, ``info`` is None, there is no
    ``solver``, and no new values can be factored.
    """

    def __init__(self, given: Explicit, kind: str) -> None:
        import scipy.sparse as sp

        L: Any = given.L
        n = int(L.shape[0])
        dtype = np.promote_types(given.L.dtype, given.U.dtype)
        by_columns = Matrix.from_scipy(sp.csr_array(sp.csc_array(L).T).astype(dtype, copy=False))
        by_rows = Matrix.from_scipy(sp.csr_array(given.U).astype(dtype, copy=False))
        self._taken = _core.TakenFactors(
            by_columns._h, by_rows._h, given.perm_r.tolist(), given.perm_c.tolist(), given.R.tolist()
        )
        self._explicit = given
        self._shape, self._dtype = (n, n), dtype
        sign, log = self._taken.determinant()
        self._known = {
            "kind": kind,
            "entries": self._taken.nnz,
            "memory_bytes": self._taken.memory_bytes,
            "ordering": "given",
            "sign": sign,
            "logabsdet": log,
            "negative": 0,
            "replaced": 0,
            "zero": 0,
        }

    @property
    def solver(self) -> Solver:  # type: ignore[override]
        """Refused: there is none."""
        raise UnsupportedError("these factors came from another library and have no solver: A is not known.")

    @property
    def _comm(self) -> _core.Communicator:
        return _core.Communicator()

    @property
    def _rows(self) -> int:
        return self._shape[0]

    @property
    def info(self) -> None:
        """None: without A there is no backward error."""
        return None

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the factors."""
        return self._dtype

    @property
    def condition(self) -> float:
        """An estimate of the condition number of ``diag(R) @ A`` in the 1-norm, by some solves and products with L and U."""
        return float(self._taken.condition())

    def _solved(self, b: Any, trans: str) -> NDArray[Any]:
        values = np.asarray(b)
        if values.ndim not in (1, 2) or values.shape[0] != self._rows:
            raise ShapeError(f"solve: b has shape {values.shape}; ({self._rows},) or ({self._rows}, k) is needed.")
        if not np.can_cast(values.dtype, self._dtype, "same_kind"):
            raise DtypeError(
                f"solve: b is {values.dtype}, and the factors are {self._dtype}. Solve with b.real and b.imag."
            )
        x = np.array(values, self._dtype, order="C")
        if not np.isfinite(x).all():
            raise InputError("solve: b has entries that are NaN or infinite.")
        self._taken.solve("C" if trans == "H" else trans, 1 if x.ndim == 1 else x.shape[1], x)
        return x

    def update(self, A: Any) -> None:
        """Refused: what made these factors must make new ones.

        Parameters
        ----------
        A
            Is not looked at.

        Raises
        ------
        UnsupportedError
            Always.
        """
        raise UnsupportedError(
            "update: these factors came from another library. Make new ones there, or use am.factorized(A)."
        )


def given_factors(A: Any) -> tuple[Explicit, str] | None:
    """Return what A holds, if it is another library's factors, and their kind."""
    lower, order = getattr(A, "L", None), getattr(A, "P", None)
    if callable(lower) and callable(order):  # CHOLMOD's, by scikit-sparse: L L^H = A[p][:, p]
        import scipy.sparse as sp

        L: Any = sp.csc_array(lower())
        p = np.asarray(order())
        place = np.empty(p.size, np.int32)
        place[p] = np.arange(p.size, dtype=np.int32)
        ones = np.ones(p.size)
        return Explicit(L, sp.csc_array(L.conj().T), place, place, ones, ones), "cholesky"
    if not all(hasattr(type(A), name) for name in ("L", "U", "perm_r", "perm_c", "solve")):
        return None
    scales = getattr(A, "R", None)
    ones = np.ones(A.shape[0])
    R = ones if scales is None else np.asarray(scales, np.float64)
    if type(A).__module__.startswith("scikits.umfpack"):  # Pr R^-1 A Pc = L U
        R = 1 / R
    return Explicit(A.L, A.U, np.asarray(A.perm_r, np.int32), np.asarray(A.perm_c, np.int32), R, ones), "lu"
