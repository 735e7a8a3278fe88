"""Matrices and vectors from entries whose values come many times."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..base.indices import as_count, as_indices
from ..base.values import unmasked
from ..comm.communicator import as_communicator, one_call
from ..errors import InputError, ShapeError
from .matrix import Matrix, layouts_of
from .operator import as_values
from .vector import Vector

__all__ = ["Assembly", "VectorAssembly"]


class _Entries:
    """What is known of the places of my entries."""

    _h: Any

    @property
    def _comm(self) -> _core.Communicator:
        return self._h.entries.comm

    @property
    def _vector_layout(self) -> _core.Layout:
        return self._h.entries

    @property
    def entries(self) -> int:
        """My entries, as given."""
        return int(self._h.entries.local_size)


class Assembly(_Entries):
    """Entries (i, j) given once, values as often as you like: for finite elements, Newton's method, time steps.

    Parameters
    ----------
    shape : (int, int)
        Global size of the matrix.
    i, j : arrays of int, shape (entries,)
        Or any other shape, which both have. Global rows and columns of my entries, in any order and of any rank's rows. Repeats are summed. They are not kept.
        Entries with a negative one are ignored, but the other one must be inside of the matrix.
    comm : None or mpi4py.MPI.Comm
    local_rows : int, optional
        Rows of a square matrix that this rank owns; dealt evenly by default.

    Raises
    ------
    InputError
        An index is outside of the matrix, on all ranks with the first bad entry.
    ShapeError
        i and j differ in length, ``shape`` is not two numbers, or the ranks' ``local_rows`` do not add up to the rows.

    Notes
    -----
    Collective. Cost: the entries are sorted within their rows,
    and those of other ranks' rows announced there. Afterwards 4 bytes an entry and 8 for each of the matrix are kept, and the memory
    of the last two matrices' values for the next.
    Source: Mills et al. (2025), section 3; PETSc's MatSetPreallocationCOO and MatSetValuesCOO.

    Examples
    --------
    >>> import asterism as am
    >>> plan = am.Assembly((2, 2), [0, 0, 1, 1, 1], [0, 1, 0, 1, 1])
    >>> plan.matrix([4.0, -1.0, -1.0, 2.0, 2.0]).to_scipy().toarray()
    array([[ 4., -1.],
           [-1.,  4.]])
    """

    @one_call("Assembly")
    def __init__(
        self, shape: tuple[int, int], i: Any, j: Any, comm: Any = None, *, local_rows: int | None = None
    ) -> None:
        rows, cols = layouts_of(shape, as_communicator(comm), local_rows, "Assembly")
        ii, jj = unmasked(i, "Assembly: i"), unmasked(j, "Assembly: j")
        if ii.shape != jj.shape:
            raise ShapeError(f"Assembly: i and j have shapes {ii.shape} and {jj.shape}.")
        self._given = ii.shape
        self._h = _core.Assembly(rows, cols, as_indices(ii, "Assembly: i"), as_indices(jj, "Assembly: j"))
        self.shape = (rows.global_size, cols.global_size)
        self.dtype = np.dtype(np.float64)  # of a Vector of values that is not asked for another

    @property
    def nnz(self) -> int:
        """Entries of the matrix, all ranks."""
        return int(self._h.nnz)

    def __repr__(self) -> str:
        return (
            f"<asterism.Assembly of {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self.entries} given here>"
        )

    @one_call("Assembly.matrix")
    def matrix(self, values: Any, *, add_to: Matrix | None = None) -> Matrix:
        """Return the matrix of these values.

        Parameters
        ----------
        values : array or Vector, shape (entries,)
            In the order of i and j; or an array of their shape. A `Vector` of this assembly (``Vector(plan, queue)``, ``Vector.wrap(plan, array,
            queue)``) is summed by its queue: on a GPU there, where the matrix's values stay.
        add_to : Matrix, optional
            From this assembly, of the same dtype: its entries are added. It is not changed.

        Returns
        -------
        Matrix

        Raises
        ------
        ShapeError
            There are other than as many values as entries.
        DtypeError
            The values are of none of the four dtypes.
        InputError
            ``add_to`` is no matrix of this assembly.

        Notes
        -----
        Collective. NaN is not looked for here; a solver refuses the matrix. A queue's matrix is returned at once; whatever uses it comes after, and what needs its values on the host waits and
        copies them there (``am.gpu_state()["copies"]``). The order of sums is (rank, position), so the bits are the same every time and on
        every queue. Several matrices of one assembly share their pattern, and `Solver.update` sees that.
        """
        if add_to is not None and not isinstance(add_to, Matrix):
            raise InputError(f"Assembly.matrix: add_to is {add_to!r}; a matrix of this assembly is needed.")
        base = None if add_to is None else add_to._h
        if isinstance(values, Vector):
            return Matrix(self._h.matrix(values._h, base))
        given = as_values(values, "Assembly.matrix: values")
        return Matrix(self._h.matrix_of_array(given.reshape(-1) if given.shape == self._given else given, base))


class VectorAssembly(_Entries):
    """Entries of a vector given once, values as often as you like: loads of finite elements.

    Parameters
    ----------
    size : int
        Global length of the vector.
    i : array of int, any shape
        Global places of my entries, in any order, of any rank's part. Repeats are summed, negative ones ignored. They are not kept.
    comm : None or mpi4py.MPI.Comm
    local_size : int, optional
        Entries of the vector that this rank owns; dealt evenly by default.
    insert : bool
        Of several values at one place the last one counts, instead of their sum.
    remote : "send" or "error"
        What becomes of entries in other ranks' parts.

    Raises
    ------
    InputError
        An index is outside of the vector, or of my part with ``remote="error"``; on all ranks with the first bad entry.
    ShapeError
        The ranks' ``local_size`` do not add up to the size.
    OptionError
        ``remote`` is another word.

    Notes
    -----
    Collective. Sums and the last value follow the order (rank, position).
    So the bits are those of one process that has all entries of rank 0, then those of rank 1, and so on. Cost: linear in the entries;
    afterwards 4 bytes an entry and 4 for each of the vector are kept.
    Source: PETSc's VecSetPreallocationCOO and VecSetValuesCOO.

    Examples
    --------
    >>> import asterism as am
    >>> plan = am.VectorAssembly(3, [[0, 1], [1, 2]])
    >>> plan.vector([[1.0, 1.0], [2.0, 2.0]])
    array([1., 3., 2.])
    """

    @one_call("VectorAssembly")
    def __init__(
        self,
        size: int,
        i: Any,
        comm: Any = None,
        *,
        local_size: int | None = None,
        insert: bool = False,
        remote: str = "send",
    ) -> None:
        c, n = as_communicator(comm), as_count(size, "VectorAssembly: size")
        c.require_same(
            "VectorAssembly", [("size", str(n)), ("local_size", "not given" if local_size is None else "given")]
        )
        layout = _core.Layout.even(c, n)
        if local_size is not None:
            layout = _core.Layout(c, as_count(local_size, "VectorAssembly: local_size"))
            if layout.global_size != n:
                raise ShapeError(f"VectorAssembly: the ranks' parts are {layout.global_size}, but the size is {n}.")
        self._h = _core.VectorAssembly(layout, as_indices(i, "VectorAssembly: i"), bool(insert), str(remote))
        self.dtype = np.dtype(np.float64)  # of a Vector of values that is not asked for another

    @property
    def size(self) -> int:
        """Of the vector, all ranks."""
        return int(self._h.rows.global_size)

    def __repr__(self) -> str:
        return f"<asterism.VectorAssembly of {self.size}, {self.entries} entries given here>"

    @one_call("VectorAssembly.vector")
    def vector(self, values: Any) -> Any:
        """Return my part of the vector of these values; zero where there are none.

        Parameters
        ----------
        values : array or Vector
            As many as entries, in the order of i; an array of any shape. A `Vector` of this assembly (``Vector(plan, queue)``) is summed by
            its queue, and gives a `Vector`.

        Returns
        -------
        array, shape (my entries of the vector,), or Vector

        Raises
        ------
        ShapeError, DtypeError
            As for `Assembly.matrix`.

        Notes
        -----
        Collective.
        """
        if isinstance(values, Vector):
            return Vector._of(self._h.vector(values._h), values.queue, True)
        return self._h.vector_of_array(as_values(values, "VectorAssembly.vector: values").reshape(-1))
