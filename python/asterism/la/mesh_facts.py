"""What preconditioners are told of a matrix: the nodes of its mesh, and vectors that it maps to nearly zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count
from ..comm.agree import agreed
from ..errors import DtypeError, InputError, ShapeError
from .given_rows import as_coordinates
from .operator import Operator, as_values

__all__ = ["MeshFacts"]


class MeshFacts(Operator):
    """Block size, near-null space and coordinates of a matrix."""

    _h: _core.Matrix

    @property
    def block_size(self) -> int:
        """Rows per node of the mesh; setting it is collective, and needs whole nodes on each rank.

        Coordinates of nodes of another size are forgotten.
        """
        return int(self._h.block_size)

    @block_size.setter
    def block_size(self, bs: int) -> None:
        self._describe(bs, None, None)

    @property
    def near_null_space(self) -> NDArray[Any] | None:
        """Vectors that the operator maps to nearly zero, (my rows, k); setting them is collective.

        Without any, those that follow from the `coordinates`: rigid-body modes. NaN is refused; a warning says if they are not
        mapped to nearly zero.
        """
        found: NDArray[Any] | None = self._h.near_null_space()
        return found

    @near_null_space.setter
    def near_null_space(self, B: Any) -> None:
        self._describe(None, None, B)

    @property
    def coordinates(self) -> NDArray[np.float64] | None:
        """Where my nodes are, (my nodes, d), a copy; setting them is collective.

        Setting them makes `block_size` d, and forgets a `near_null_space` that was set before. One that is set later is used instead of
        the rigid-body modes. NaN is refused; a warning says if the nodes do not seem to be in the order of the rows.
        """
        found: NDArray[np.float64] | None = self._h.coordinates()
        return found

    @coordinates.setter
    def coordinates(self, xyz: Any) -> None:
        self._describe(None, xyz, None)

    def _near_null_space_of(self, B: Any) -> NDArray[Any]:
        array = as_values(B, "near_null_space")
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[0] != self.local_shape[0]:
            raise ShapeError(f"near_null_space has shape {array.shape}; ({self.local_shape[0]}, k) is needed here.")
        if np.iscomplexobj(array) and self.dtype.kind != "c":
            raise DtypeError(
                f"near_null_space is {array.dtype}, complex, and the matrix {self.dtype}. Use its real part."
            )
        return np.ascontiguousarray(array.astype(self.dtype))

    def _describe(self, block_size: int | None, coordinates: Any, near_null_space: Any) -> None:
        """Attach what is said of the mesh and of the operator. Collective."""

        def look() -> tuple[int | None, NDArray[np.float64] | None, NDArray[Any] | None]:
            xyz = None if coordinates is None else as_coordinates(coordinates)
            size = None if block_size is None else as_count(block_size, "block_size")
            if xyz is None:
                return size, None, None if near_null_space is None else self._near_null_space_of(near_null_space)
            if near_null_space is not None:
                raise InputError(
                    "coordinates= and near_null_space= are both given: rigid-body modes are made of the first. Give one."
                )
            if size not in (None, 1, xyz.shape[1]):
                raise ShapeError(
                    f"block_size is {size}, but coordinates has {xyz.shape[1]} columns: so many unknowns a node."
                )
            return None, xyz, None

        size, xyz, near = agreed(self._comm, look)
        given = {
            "block_size": size,
            "columns of coordinates": None if xyz is None else xyz.shape[1],
            "columns of near_null_space": None if near is None else near.shape[1],
        }
        self._comm.require_same("Matrix", [(what, str(v)) for what, v in given.items() if v is not None])
        if xyz is not None:
            self._h.set_coordinates(xyz)
        elif size is not None and size != self.block_size:
            self._h.block_size = size
        if near is not None:
            self._h.set_near_null_space(near)
