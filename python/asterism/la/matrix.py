"""Matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.display import html_table, si_bytes
from ..base.indices import as_count, as_counts, as_indices
from ..base.values import dtype_name, unmasked
from ..comm.communicator import as_communicator, one_call, reported
from ..errors import ShapeError, UnsupportedError
from .given_rows import Csr, as_coordinates, as_csr, checksum, from_rows, own_rows, rows_of_a_block, shape_of, whole
from .mesh_facts import MeshFacts
from .operator import Operator, as_values
from .products import Arithmetic, Transposed, is_factor, multiply

__all__ = ["Matrix", "as_operator"]


class Matrix(Arithmetic, MeshFacts):
    """A sparse matrix, distributed by rows.

    One is made by `Matrix.from_scipy`, `Matrix.coo`, `Builder`, `Assembly`, `read_matrix` or the gallery. Entries cannot be changed.

    It has the sizes `shape`, `local_shape`, `row_range` and `nnz`, the `dtype`, `comm_size` and `storage`. `block_size`,
    `near_null_space` and `coordinates` tell preconditioners of the mesh, and may be set. ``A @ x`` multiplies, `T` and `H` transpose.
    """

    def __init__(self, handle: _core.Matrix) -> None:
        if not isinstance(handle, _core.Matrix):
            raise TypeError(
                f"Matrix cannot be made from a {type(handle).__name__}. Use Matrix.from_scipy(S) or Matrix.coo(...)."
            )
        self._h = handle

    @classmethod
    @one_call("Matrix.from_scipy")
    def from_scipy(
        cls,
        S: Any,
        comm: Any = None,
        *,
        distribute: bool = False,
        shape: tuple[int, int] | None = None,
        block_size: int | None = None,
        near_null_space: Any = None,
        coordinates: Any = None,
    ) -> Matrix:
        """Build from a SciPy sparse matrix or array (or a dense array).

        Parameters
        ----------
        S : sparse matrix or array, shape (n, m)
            The whole matrix on one process; with a communicator, my rows with global columns.
        comm : None or mpi4py.MPI.Comm
        distribute : bool
            With a communicator: every rank passes the same whole matrix and keeps its part.
        shape : (int, int), optional
            Global size, which is checked. Needed only where each rank's rows of a rectangular matrix are square themselves.
        block_size : int, optional
            Rows per node of the mesh; by default those of a block of a BSR matrix, else 1.
        near_null_space : array, shape (my rows, k), optional
            Vectors that the operator maps to nearly zero, e.g. rigid-body modes.
        coordinates : array, shape (my nodes, d), optional
            Where my nodes are: amg makes rigid-body modes of them; ``block_size`` becomes d. The nodes stand in the order of the rows,
            each with its d unknowns one after the other; a warning says if they do not seem to.

        Returns
        -------
        Matrix

        Raises
        ------
        ShapeError
            Ranks give rows of other lengths, each rank a square matrix without ``shape``, or what does not fit.
        InputError
            ``coordinates`` and ``near_null_space`` are both given; or ``distribute`` is true, and the ranks' matrices differ.
        DtypeError
            The entries are no numbers of the four dtypes.

        Notes
        -----
        Collective. Cost: one pass over the entries; with ``distribute`` some more, to see that all ranks have the same ones. S is not changed.

        Examples
        --------
        >>> import asterism as am, scipy.sparse as sp
        >>> am.Matrix.from_scipy(sp.csr_array([[2.0, -1.0], [-1.0, 2.0]])).nnz
        4
        """
        c = as_communicator(comm)
        n, m = shape_of(S)
        whole_shape = None if shape is None else tuple(as_counts(shape, 2, "from_scipy: shape"))
        xyz = None if coordinates is None else as_coordinates(coordinates)
        stored = rows_of_a_block(S, c)
        block_size = block_size if block_size is not None else stored if xyz is None else 1
        together = block_size if xyz is None else xyz.shape[1]  # rows that stay on one rank
        part = slice(0, n)
        if c.size > 1:
            dtype = as_values(np.empty(0, S.dtype), "the matrix").dtype.name
            said = [("distribute", str(bool(distribute))), ("the dtype", dtype), ("shape", str(whole_shape))]
            if distribute:
                S = S.tocsr() if hasattr(S, "tocsr") else S
                said += [("the shape", f"{n} x {m}"), ("the checksum of its entries", checksum(S))]
            c.require_same("from_scipy", said)
        if c.size > 1 and not distribute:
            rows = own_rows(c, n, m, shape)
        elif c.size > 1:
            rows = _core.Layout.even(c, n, together)
            part = slice(rows.begin, rows.end)
            if near_null_space is not None:
                near_null_space = whole(near_null_space, n, "near_null_space")[part]
            if xyz is not None:
                xyz = whole(xyz, n // together, "coordinates")[rows.begin // together : rows.end // together]
        else:
            rows = _core.Layout(c, n)
        if whole_shape not in (None, (rows.global_size, m)):
            raise ShapeError(f"from_scipy: shape is {whole_shape}, but {rows.global_size} x {m} was given.")
        cols = rows if rows.global_size == m else _core.Layout.even(c, m)
        A = cls(from_rows(rows, cols, as_csr(S, part)))
        A._describe(block_size, xyz, near_null_space)
        return A

    @classmethod
    @one_call("Matrix.coo")
    def coo(
        cls, shape: tuple[int, int], i: Any, j: Any, v: Any, comm: Any = None, *, local_rows: int | None = None
    ) -> Matrix:
        """Build from entries: repeats are summed, negative i or j ignored, remote rows sent to their owner.

        Parameters
        ----------
        shape : (int, int)
            Global size.
        i, j : arrays of int, shape (entries,)
            Where one is negative the other one must be inside of the matrix all the same, and the value finite.
        v : array, shape (entries,)
        comm : None or mpi4py.MPI.Comm
        local_rows : int, optional
            Rows of a square matrix that this rank owns, e.g. its points of a `grid.Grid`; dealt evenly by default.

        Returns
        -------
        Matrix

        Raises
        ------
        InputError
            An index is out of range, or a value not finite; the error has the first bad triple.
        ShapeError
            ``i``, ``j`` and ``v`` have different shapes.

        Notes
        -----
        Collective. `Builder` takes entries as they come, `Assembly` values again
        and again.
        """
        rows, cols = layouts_of(shape, as_communicator(comm), local_rows, "coo")
        ii, jj, given, vv = unmasked(i, "coo: i"), unmasked(j, "coo: j"), unmasked(v, "v"), as_values(v, "v")
        if not ii.shape == jj.shape == given.shape:
            raise ShapeError(f"coo: i, j and v have shapes {ii.shape}, {jj.shape} and {given.shape}.")
        return cls(_core.Matrix.from_coo(rows, cols, as_indices(ii, "coo: i"), as_indices(jj, "coo: j"), vv))

    @property
    def row_range(self) -> tuple[int, int]:
        """First of my global rows, and one past the last."""
        return int(self._h.rows.begin), int(self._h.rows.end)

    @property
    def nnz(self) -> int:
        """Stored entries, all ranks."""
        return int(self._h.nnz)

    @property
    def comm_size(self) -> int:
        """Number of ranks."""
        return int(self._h.comm.size)

    @property
    def storage(self) -> str:
        """How products read this rank's block: csr, sell, bcsr or row_pattern (la/formats/format.hpp), or half of a symmetric matrix."""
        return str(self._h.storage)

    def _described(self, block_size: int | None, coordinates: Any, near_null_space: Any) -> Matrix:
        """Return a matrix with this one's entries, of which that is said; this one, if nothing is. Collective."""
        said = {"block_size": block_size, "coordinates": coordinates, "near_null_space": near_null_space}
        given = [(what, "not given" if v is None else "given") for what, v in said.items()]
        self._comm.require_same("Matrix", given)  # on one rank only, the others would not come to what follows
        if all(v is None for v in said.values()):
            return self
        A = Matrix(self._h.shared())
        A._describe(block_size, coordinates, near_null_space)
        return A

    def __reduce__(self) -> Any:
        if self.comm_size > 1:
            raise UnsupportedError(
                f"a matrix on {self.comm_size} ranks cannot be pickled: each has its rows alone. Use am.save(path, comm, A=A) and "
                "am.load, or pickle A.to_scipy(), my rows."
            )
        said = (self.block_size, self.coordinates, self._h.near_null_space(made=False))
        return _unpickled, (self.shape, *self._rows(), said, self._h.half)

    def __copy__(self) -> Matrix:
        return Matrix(self._h.shared())

    def __deepcopy__(self, memo: dict[int, Any]) -> Matrix:
        return Matrix(self._h.shared())  # entries cannot be changed, the rest is the copy's own

    def __repr__(self) -> str:
        return f"<asterism.Matrix {self._h.describe()}>"

    def _repr_html_(self) -> str:
        near, xyz = self.near_null_space, self.coordinates
        n, m = self.shape
        return html_table(
            "asterism.Matrix",
            {
                "shape": f"{n} x {m}",
                "dtype": self.dtype,
                "entries": f"{self.nnz}, {self.nnz / max(n, 1):.1f} a row",
                "ranks": self.comm_size,
                "block size": self.block_size,
                "near-null space": "not given" if near is None else f"{near.shape[1]} vectors",
                "coordinates": "not given" if xyz is None else f"{len(xyz)} nodes in {xyz.shape[1]} dimensions",
                "memory": si_bytes(self._h.memory_bytes) + (" on this rank" if self.comm_size > 1 else ""),
            },
        )

    def make_vector(self, columns: int = 1, fill: float = 0.0) -> NDArray[Any]:
        """Return an array of my rows.

        Parameters
        ----------
        columns : int
            1 makes the shape (n), others (n, columns).
        fill : float
            What each entry is.

        Returns
        -------
        array, shape (my rows,) or (my rows, columns)
            Of the matrix's dtype.
        """
        n = self.local_shape[0]
        return np.full(n if columns == 1 else (n, columns), fill, dtype=self.dtype)

    @reported("A.T @ x")
    def _transposed_product(self, x: Any, conjugate: bool) -> NDArray[Any]:
        array = self._operand(x, "A.T @ x")
        y = np.empty((self.local_shape[1], *array.shape[1:]), dtype=self.dtype)
        self._h.apply_transpose(array, y, conjugate)
        return y

    def __matmul__(self, x: Any) -> Any:
        """Product with my part of a vector, (n) or (n, k), with a `Vector`, or with a matrix, ``B.T`` or ``B.H``. Collective."""
        return multiply(self, x) if is_factor(x) else super().__matmul__(x)

    @one_call("Matrix.transpose")
    def transpose(self, conjugate: bool = False) -> Matrix:
        """Return A^T as a matrix of its own; ``A.T`` and ``A.H`` are enough for products and sums.

        Parameters
        ----------
        conjugate : bool
            Return A^H. For a real matrix the two are one.

        Returns
        -------
        Matrix

        Notes
        -----
        Collective. Every entry passes once. The memory is that of another matrix.
        """
        return Matrix(_core.matrix_transposed(self._h, conjugate))

    @property
    def T(self) -> Transposed:
        """The transpose, for products and sums."""
        return Transposed(self, False)

    @property
    def H(self) -> Transposed:
        """The Hermitian transpose, for products and sums."""
        return Transposed(self, True)

    def diagonal(self) -> NDArray[Any]:
        """My part of the diagonal, (n)."""
        return np.asarray(self._h.diagonal())

    @one_call("Matrix.with_values")
    def with_values(self, values: Any) -> Matrix:
        """Return a matrix with entries at the same places and other values.

        Parameters
        ----------
        values : array, shape (my entries,)
            In the order of ``to_scipy().data``: my rows one after the other, columns ascending. NaN and infinite ones are refused.

        Returns
        -------
        Matrix
            Of the values' dtype.

        Raises
        ------
        ShapeError
            There are other than as many values as my entries.
        InputError
            A value is NaN or infinite; the text has its row.

        Notes
        -----
        Collective. One pass over the values; pattern and messages are shared with this matrix. `Solver.update` takes it.
        """
        return Matrix(self._h.with_values(as_values(values, "with_values")))

    @one_call("Matrix.with_storage")
    def with_storage(self, storage: str) -> Matrix:
        """Return the same matrix stored otherwise.

        Parameters
        ----------
        storage : {"auto", "symmetric", "hermitian"}
            Half of it (A^T = A or A^H = A; one and the same where it is real): of the block that each rank has to itself only the
            diagonal and what is right of it are held: in float64 5.3 bytes for each entry of the whole block where a row has 60 to
            80, 8.7 where it has 5, instead of 12 and more. Products with large matrices of many entries a row get a little faster (0.86
            of the time where it has 77), others take 1.8 to 2.5 times as long, grids with constant coefficients 5 times.
            "auto": the whole again. The same on all ranks.

        Returns
        -------
        Matrix

        Raises
        ------
        InputError
            If an entry and its mirror image are not the same up to rounding (100 eps of the largest entry of their rows), or only one of
            them is there.

        Notes
        -----
        Products, residuals and norms, and with them all methods, ``jacobi`` and ``chebyshev`` need nothing else (the latter makes rows
        for a moment, for its estimate). What needs rows (the other preconditioners, `to_scipy`, files, ``-reproducible``) makes and
        keeps them. `with_values` keeps the storage, `astype` does not. On a GPU's queue such products run on the host. The original
        matrix keeps its memory: drop it.
        """
        return Matrix(self._h.with_storage(str(storage)))

    @one_call("Matrix.astype")
    def astype(self, dtype: Any) -> Matrix:
        """Return the matrix in another precision, or a real one as complex.

        Parameters
        ----------
        dtype : NumPy dtype
            float32, float64, complex64 or complex128. Values beyond the range of a narrower one become infinite.

        Returns
        -------
        Matrix
            One that shares the entries where the dtype is its own; what is said of the mesh is the copy's own.

        Raises
        ------
        DtypeError
            It is none of the four, or real where the matrix is complex.

        Notes
        -----
        Collective. One pass over the values.
        """
        name = dtype_name(dtype, "Matrix.astype")
        self._comm.require_same("Matrix.astype", [("dtype", name)])
        return Matrix(self._h.shared() if name == self.dtype.name else self._h.converted(name))

    @one_call("Matrix.submatrix")
    def submatrix(self, rows: Any = None, cols: Any = None) -> Matrix:
        """Return ``A[rows][:, cols]``. Collective.

        Parameters
        ----------
        rows, cols : array of int, optional
            Global rows and columns that become mine, as for `Submatrix`. Default: my own.

        Returns
        -------
        Matrix

        Raises
        ------
        InputError
            An index is out of range, or a column is given twice.

        Examples
        --------
        >>> import asterism as am
        >>> am.gallery.poisson((4, 4)).submatrix([5, 6], [6, 5]).toarray()
        array([[-1.,  4.],
               [ 4., -1.]])
        """
        return Matrix(_core.Submatrix(self._h, *self._selected(rows, cols)).matrix)

    def _selected(self, rows: Any, cols: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Global rows and columns of a part; my own where nothing is said."""
        own = self._h.cols
        r = np.arange(*self.row_range, dtype=np.int64) if rows is None else as_indices(rows, "rows")
        return r, np.arange(own.begin, own.end, dtype=np.int64) if cols is None else as_indices(cols, "cols")

    def _rows(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """My rows: offsets, global columns, values; indices as narrow as they can be."""
        ptr, col, val = self._h.to_rows()
        index = np.int32 if max(self.shape[1], len(col)) < 2**31 else np.int64
        return ptr.astype(index), col.astype(index), val

    def to_scipy(self) -> Any:
        """Return my rows as a SciPy CSR array with global columns.

        Returns
        -------
        csr_array, shape (my rows, m)
            A copy. Its columns ascend within a row.
        """
        try:
            import scipy.sparse as sparse
        except ImportError as error:
            raise ImportError("to_scipy needs SciPy: pip install scipy") from error
        ptr, col, val = self._rows()
        return sparse.csr_array((val, col, ptr), shape=(self.local_shape[0], self.shape[1]))

    def toarray(self) -> NDArray[Any]:
        """Return my rows as a dense array, (my rows, m).

        Examples
        --------
        >>> import asterism as am
        >>> am.gallery.poisson((3,)).toarray()
        array([[ 2., -1.,  0.],
               [-1.,  2., -1.],
               [ 0., -1.,  2.]])
        """
        ptr, col, val = self._rows()
        out = np.zeros((self.local_shape[0], self.shape[1]), self.dtype)
        out[np.repeat(np.arange(len(out)), np.diff(ptr)), col] = val
        return out


def layouts_of(shape: tuple[int, int], comm: Any, local_rows: int | None, what: str) -> tuple[Any, Any]:
    """Return who owns which rows and columns of a matrix that entries are given for."""
    n, m = as_counts(shape, 2, f"{what}: shape")
    given = [("shape", f"({n}, {m})"), ("local_rows", "not given" if local_rows is None else "given")]
    comm.require_same(what, given)
    if local_rows is None:
        rows = _core.Layout.even(comm, n)
    else:
        rows = _core.Layout(comm, as_count(local_rows, f"{what}: local_rows"))
        if not n == m == rows.global_size:
            raise ShapeError(f"{what}: the ranks' rows are {rows.global_size}, but the shape is {tuple(shape)}.")
    return rows, rows if n == m else _core.Layout.even(comm, m)


def _unpickled(shape: tuple[int, int], ptr: Any, col: Any, val: Any, said: tuple[int, Any, Any], half: str) -> Matrix:
    rows, cols = layouts_of(shape, as_communicator(None), None, "Matrix")
    A = Matrix(from_rows(rows, cols, Csr(ptr, col, val)))
    block_size, xyz, near = said
    A._describe(block_size, xyz, None)
    A._describe(None, None, near)
    return A.with_storage(half) if half else A


def as_operator(A: Any, what: str, dtype: Any = None) -> Operator:
    """Return a matrix, a function's operator, or what can be made one."""
    if isinstance(A, Operator):
        return A
    if hasattr(A, "tocsr") or isinstance(A, np.ndarray):
        M = Matrix.from_scipy(A)
        return M if dtype is None or M.dtype == dtype else M.astype(dtype)
    if hasattr(A, "matvec") and hasattr(A, "shape"):
        return Operator.of(A, dtype)
    raise TypeError(
        f"{what} is a {type(A).__name__}; an asterism.Matrix or Operator, a SciPy sparse matrix, a 2-D array, or an object "
        "with shape and matvec is needed."
    )
