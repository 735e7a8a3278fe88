"""Parts of matrices, and matrices and vectors moved to other ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_indices
from ..comm.communicator import one_call, reported
from ..comm.forest import StarForest
from ..errors import InputError, ShapeError
from .matrix import Matrix

__all__ = ["Redistribution", "Submatrix"]


class Submatrix:
    """``A[rows][:, cols]`` on any ranks, which can be taken again when A has new values.

    Parameters
    ----------
    A : Matrix, shape (n, m)
    rows : array of int, optional
        Global rows that become mine, in any order, of any owner; they may repeat. Default: my own.
    cols : array of int, optional
        Global columns that become mine, each at most once over all ranks; their entries are my diagonal block. Default:
        my own.

    Notes
    -----
    Collective; bad input raises on all ranks. Two star forests find which columns are wanted and by which numbers; the
    entries then pass once from the rows' owners. Block size and near-null space are not taken over.

    Examples
    --------
    >>> import asterism as am
    >>> A = am.gallery.poisson((4, 4))
    >>> am.Submatrix(A, [5, 6], [6, 5]).matrix.to_scipy().toarray()
    array([[-1.,  4.],
           [ 4., -1.]])
    """

    @one_call("Submatrix")
    def __init__(self, A: Matrix, rows: Any = None, cols: Any = None) -> None:
        self._h = _core.Submatrix(A._h, *A._selected(rows, cols))

    @property
    def _comm(self) -> _core.Communicator:
        return self.matrix._comm

    def __repr__(self) -> str:
        return f"<asterism.Submatrix {self.matrix._h.describe()}>"

    @property
    def matrix(self) -> Matrix:
        """What was extracted."""
        return Matrix(self._h.matrix)

    @one_call("Submatrix.update")
    def update(self, A: Matrix) -> Matrix:
        """Extract the values of A again and return the new matrix; raises if its pattern is another. Collective."""
        if not isinstance(A, Matrix):
            raise InputError(f"Submatrix.update: A is {A!r}; an asterism.Matrix is needed.")
        self._h.update(A._h)
        return self.matrix


class Redistribution:
    """Rows, columns and vectors dealt to the ranks anew, e.g. as a partitioner says.

    Parameters
    ----------
    A : Matrix, shape (n, n)
        Whose rows are dealt.
    owners : array of int, shape (my rows,)
        The new rank of each of my rows. On it they stand by their old rank and row.

    Notes
    -----
    Collective; bad input raises on all ranks. Cost: every row passes once.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> A = am.gallery.poisson((4, 4))
    >>> move = am.Redistribution(A, np.zeros(16, int))
    >>> move.matrix(A).shape, move.order[:3]
    ((16, 16), array([0, 1, 2]))
    """

    @one_call("Redistribution")
    def __init__(self, A: Matrix, owners: Any) -> None:
        self._h = _core.Redistribution(A._h.rows, as_indices(owners, "Redistribution: owners"))
        self._old = A.local_shape[0]
        self.forest = StarForest._of(self._h.forest)

    def __repr__(self) -> str:
        return f"<asterism.Redistribution of {self._old} rows here, {self.forest.nleaves} afterwards>"

    @property
    def order(self) -> NDArray[np.int64]:
        """The old global indices of my rows now, shape (my rows now,)."""
        return np.asarray(self._h.order, dtype=np.int64)

    @one_call("Redistribution.matrix")
    def matrix(self, A: Matrix) -> Matrix:
        """Return A with its rows and columns moved; block size and near-null space go with it. Collective."""
        return Matrix(self._h.matrix(A._h))

    @property
    def _comm(self) -> _core.Communicator:
        return self.forest._comm

    @reported("Redistribution.forward")
    def forward(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return a vector, (old rows[, k]) of any dtype, on the new ranks. Collective."""
        out = np.empty((self.forest.nleaves, *x.shape[1:]), dtype=x.dtype)
        self.forest.bcast(self._checked(x, self._old), out)
        return out

    @reported("Redistribution.back")
    def back(self, x: NDArray[Any]) -> NDArray[Any]:
        """Undo `forward`. Collective."""
        out = np.empty((self._old, *x.shape[1:]), dtype=x.dtype)
        self.forest.reduce(self._checked(x, self.forest.nleaves), out, "replace")
        return out

    def _checked(self, x: NDArray[Any], rows: int) -> NDArray[Any]:
        if x.ndim not in (1, 2) or x.shape[0] != rows:
            raise ShapeError(f"x has shape {x.shape}; ({rows},) or ({rows}, k) is needed here.")
        return np.ascontiguousarray(x)
