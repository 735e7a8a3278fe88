"""Matrices from entries that come one after the other, with their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_indices
from ..base.values import dtype_name, unmasked
from ..comm.communicator import as_communicator, one_call, reported
from ..errors import DtypeError, InputError, ShapeError, UnsupportedError
from .matrix import Matrix, layouts_of
from .operator import as_values

__all__ = ["Builder"]


class Builder:
    """A matrix whose entries come with their values, in any order, before anybody knows where they all are.

    Parameters
    ----------
    shape : (int, int)
        Global size of the matrix.
    dtype : optional
        One of the four; float64 by default.
    comm : None or mpi4py.MPI.Comm
    local_rows : int, optional
        Rows of a square matrix that this rank owns; dealt evenly by default.
    remote : "send" or "error"
        What becomes of entries in rows of other ranks: they are sent there by `matrix`, or are an error.

    Raises
    ------
    ShapeError
        ``shape`` is not two numbers from 0 on, or the ranks' ``local_rows`` do not add up to the rows of a square matrix.
    DtypeError
        ``dtype`` is none of the four.
    OptionError
        ``remote`` is another word.

    Notes
    -----
    Collective, as `matrix`; `add`, `insert` and `flush` are not.
    The order of all entries is (flush, adds before inserts, rank, position). Sums are made in this order, and the last insert at a place
    counts. So the result does not depend on timing. Its bits are those of one process that makes all calls of rank 0, then those of rank 1,
    and so on: elements dealt to the ranks in their order give the same bits on any number of ranks.

    Cost: linear in the entries, in time and memory. A value is copied once and takes 8 bytes, and while the matrix is made 12 bytes more.
    The first matrix finds the places, as an `Assembly` does. If the same places are given again in the same order, the next matrix costs its
    sums only, and shares the pattern, which `Solver.update` sees.
    Source: Balay et al., PETSc's MatSetValues.

    Examples
    --------
    >>> import asterism as am
    >>> builder = am.Builder((3, 3))
    >>> for k in range(2):
    ...     builder.add([k, k + 1], [k, k + 1], [[1.0, -1.0], [-1.0, 1.0]])
    >>> builder.insert(0, 0, 5.0)
    >>> builder.matrix().to_scipy().toarray()
    array([[ 5., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """

    @one_call("Builder")
    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any = np.float64,
        comm: Any = None,
        *,
        local_rows: int | None = None,
        remote: str = "send",
    ) -> None:
        rows, cols = layouts_of(shape, as_communicator(comm), local_rows, "Builder")
        self.dtype = np.dtype(dtype_name(dtype, "Builder"))
        self._h = _core.Builder(rows, cols, self.dtype.name, str(remote))
        self.shape = (rows.global_size, cols.global_size)

    @property
    def _comm(self) -> _core.Communicator:
        return self._h.rows.comm

    def __reduce__(self) -> Any:  # of copy.copy too, whose two builders would share what they are given
        raise UnsupportedError("a Builder cannot be copied or pickled. Make another one, and give it the entries too.")

    @property
    def entries(self) -> int:
        """Values that this rank has given since the matrix before."""
        return int(self._h.entries)

    @property
    def row_range(self) -> tuple[int, int]:
        """First of my global rows, and one past the last."""
        return int(self._h.rows.begin), int(self._h.rows.end)

    def __repr__(self) -> str:
        return (
            f"<asterism.Builder of {self.shape[0]} x {self.shape[1]} {self.dtype}, {self.entries} entries given here>"
        )

    @reported("Builder.add")
    def add(self, i: Any, j: Any, v: Any) -> None:
        """Add values at these places.

        Parameters
        ----------
        i, j : int, or array of int
            Global rows and columns, of any rank. Entries with a negative one are ignored, but the other
            one must be inside of the matrix, and the value finite.
        v : number, or array
            One value for each entry; or blocks, which have one axis more:

            - ``i``, ``j``, ``v`` of one shape: single entries, ``v[k]`` at ``(i[k], j[k])``;
            - ``i`` (m), ``j`` (n), ``v`` (m, n): a block, ``v[a, b]`` at ``(i[a], j[b])``;
            - ``i`` (e, m), ``j`` (e, n), ``v`` (e, m, n): a stack of blocks, as all elements of one kind give.

        Raises
        ------
        InputError
            The first entry that is outside of the matrix, not finite, or refused by ``remote="error"``, as ``(i, j, v)``; or that is too
            large for the matrix's dtype. Nothing is added.
            Also where `insert` came before without a `flush`.

        Notes
        -----
        Not collective: each rank gives what it has. If one raises, the others raise the same in their next collective call, `matrix`. The
        arrays are copied.
        """
        self._give(self._h.add, i, j, v, "Builder.add")

    @reported("Builder.insert")
    def insert(self, i: Any, j: Any, v: Any) -> None:
        """Set entries at these places.

        Parameters
        ----------
        i, j, v : int or array of int, number or array
            As for `add`: single entries, a block, or a stack of blocks.

        Raises
        ------
        InputError
            As for `add`.

        Notes
        -----
        An inserted value takes the place of what was added or inserted there before. Of several at one place the last one counts: that of
        the highest rank, and of this rank's the last position. Inserts of all ranks come after the adds of all ranks, so boundary
        conditions are inserted after all elements, whichever rank has those. An `add` after an `insert` needs a `flush` in between.
        """
        self._give(self._h.insert, i, j, v, "Builder.insert")

    def flush(self) -> None:
        """Let all that comes later, on any rank, follow all that came before, on any rank.

        Notes
        -----
        Not collective, and nothing is sent; but every rank must call it as often as the others, or `matrix` raises.
        """
        self._h.flush()

    @one_call("Builder.matrix")
    def matrix(self) -> Matrix:
        """Return the matrix of all that was given since the matrix before.

        Notes
        -----
        Collective. The next `add` or `insert` begins a new matrix. The memory is kept for it.
        """
        return Matrix(self._h.matrix())

    def _converted(self, v: NDArray[Any], what: str) -> NDArray[Any]:
        """Return the values in the matrix's dtype, where none must become infinite."""
        with np.errstate(over="ignore"):
            out = v.astype(self.dtype)
        if bool((fallen := np.isfinite(v) & ~np.isfinite(out)).any()):
            at = int(np.argmax(fallen))
            raise InputError(
                f"{what}: value {at}, {v.flat[at]}, is too large for {self.dtype}, which ends at "
                f"{np.finfo(self.dtype).max:.3g}. Make it am.Builder(shape, '{v.dtype}')."
            )
        return out

    def _give(self, put: Any, i: Any, j: Any, v: Any, what: str) -> None:
        ii, jj, given = unmasked(i, f"{what}: i"), unmasked(j, f"{what}: j"), unmasked(v, f"{what}: v")
        shape, vv = given.shape, as_values(given, f"{what}: v")
        if vv.dtype != self.dtype:
            if not np.can_cast(vv.dtype, self.dtype, "same_kind"):
                raise DtypeError(
                    f"{what}: v is {vv.dtype}, the matrix {self.dtype}. Make it am.Builder(shape, '{vv.dtype}')."
                )
            vv = self._converted(vv, what)
        if ii.shape == jj.shape == shape:
            count = ii.size
        elif ii.ndim and ii.shape[:-1] == jj.shape[:-1] and shape == (*ii.shape, jj.shape[-1]):
            count = math.prod(ii.shape[:-1])
        else:
            raise ShapeError(
                f"{what}: i, j and v have shapes {ii.shape}, {jj.shape} and {shape}. Give three of one shape, or blocks: "
                "(m), (n) and (m, n), or stacks of them: (e, m), (e, n) and (e, m, n)."
            )
        put(count, as_indices(ii, f"{what}: i"), as_indices(jj, f"{what}: j"), vv)
