"""Parts of matrices, and matrices and vectors moved to other ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_indices
from ..base.values import unmasked
from ..comm.communicator import one_call, reported
from ..comm.forest import StarForest
from ..errors import InputError, ShapeError, UnsupportedError
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

    Raises
    ------
    InputError
        An index is outside of the matrix, or a column is asked for twice; or A is no `Matrix`.

    Notes
    -----
    Collective; bad input raises on all ranks. Two star forests find which columns are wanted and by which numbers; the
    entries then pass once from the rows' owners. Block size and near-null space are not taken over. Source: Zhang et al. (2022), section 5.1.

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
        own = _own(A, "Submatrix: A")
        self._h = _core.Submatrix(own._h, *own._selected(rows, cols))

    @property
    def _comm(self) -> _core.Communicator:
        return self.matrix._comm

    def __reduce__(self) -> Any:  # of copy.copy too: an update would change both
        raise UnsupportedError(
            "a Submatrix cannot be copied or pickled. Make another one; its matrix can be, on one process."
        )

    def __repr__(self) -> str:
        return f"<asterism.Submatrix {self.matrix._h.describe()}>"

    @property
    def matrix(self) -> Matrix:
        """What was extracted."""
        return Matrix(self._h.matrix)

    @one_call("Submatrix.update")
    def update(self, A: Matrix) -> Matrix:
        """Extract the values of A again.

        Parameters
        ----------
        A : Matrix
            Of the same dtype, with entries at the same places in the rows that are taken.

        Returns
        -------
        Matrix
            The new `matrix`.

        Raises
        ------
        InputError
            These rows have other entries than before. Nothing is changed.
        DtypeError
            A has another dtype.

        Notes
        -----
        Collective. Only values are sent.
        """
        self._h.update(_own(A, "Submatrix.update: A")._h)
        return self.matrix


class Redistribution:
    """Rows, columns and vectors dealt to the ranks anew, e.g. as a partitioner says.

    Parameters
    ----------
    A : Matrix, shape (n, n)
        Whose rows are dealt.
    owners : array of int, shape (my rows,)
        The new rank of each of my rows. On it they stand by their old rank and row.

    Attributes
    ----------
    forest : StarForest
        From old to new places: its roots are my old rows, its leaves my new ones.

    Raises
    ------
    ShapeError
        There are not as many owners as rows.
    InputError
        There is no such rank; or A is no `Matrix`.

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
        self._h = _core.Redistribution(
            _own(A, "Redistribution: A")._h.rows, as_indices(owners, "Redistribution: owners")
        )
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
        """Return a matrix with its rows and columns moved.

        Parameters
        ----------
        A : Matrix, shape (n, n)
            With rows dealt as those of the matrix that this was made for.

        Returns
        -------
        Matrix
            Block size, near-null space and coordinates go with it.

        Raises
        ------
        ShapeError
            A's rows are dealt otherwise.
        InputError
            Rows of one node of the mesh go to different ranks; or A is no `Matrix`.

        Notes
        -----
        Collective. Every row passes once.
        """
        return Matrix(self._h.matrix(_own(A, "Redistribution.matrix: A")._h))

    @property
    def _comm(self) -> _core.Communicator:
        return self.forest._comm

    @reported("Redistribution.forward")
    def forward(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return a vector on the new ranks.

        Parameters
        ----------
        x : array, shape (my old rows,) or (my old rows, k)
            Of any NumPy dtype without objects.

        Returns
        -------
        array, shape (my rows now,) or (my rows now, k)

        Raises
        ------
        ShapeError
            x has another number of rows, or of axes.

        Notes
        -----
        Collective. A message to each rank that gets rows of mine.
        """
        values = self._checked(x, self._old)
        out = np.empty((self.forest.nleaves, *values.shape[1:]), dtype=values.dtype)
        self.forest.bcast(values, out)
        return out

    @reported("Redistribution.back")
    def back(self, x: NDArray[Any]) -> NDArray[Any]:
        """Undo `forward`.

        Parameters
        ----------
        x : array, shape (my rows now,) or (my rows now, k)
            Of any NumPy dtype without objects.

        Returns
        -------
        array, shape (my old rows,) or (my old rows, k)

        Raises
        ------
        ShapeError
            x has another number of rows, or of axes.

        Notes
        -----
        Collective. A message to each rank that had rows of mine.
        """
        values = self._checked(x, self.forest.nleaves)
        out = np.empty((self._old, *values.shape[1:]), dtype=values.dtype)
        self.forest.reduce(values, out, "replace")
        return out

    def _checked(self, x: Any, rows: int) -> NDArray[Any]:
        values = np.asarray(unmasked(x, "x"))
        if values.ndim not in (1, 2) or values.shape[0] != rows:
            raise ShapeError(f"x has shape {values.shape}; ({rows},) or ({rows}, k) is needed here.")
        return np.ascontiguousarray(values)


def _own(A: Any, what: str) -> Matrix:
    if not isinstance(A, Matrix):
        raise InputError(
            f"{what} is a {type(A).__name__}; an asterism.Matrix is needed. Use am.Matrix.from_scipy(S) for SciPy's."
        )
    return A
