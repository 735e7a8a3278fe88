"""Data described by MPI datatypes: (buffer, datatype) pairs as mpi4py has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import DtypeError, ShapeError
from .flight import Flight
from .items import TYPES, Op, address_of

if TYPE_CHECKING:
    from .forest import StarForest

__all__ = ["begin_derived"]


class Typed:
    """A buffer of items of an MPI datatype, item i at i times its extent; only the bytes of its map are read or written."""

    def __init__(self, name: str, data: Any, rows: int, written: bool) -> None:
        from mpi4py import MPI

        if not (isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], MPI.Datatype)):
            raise DtypeError(f"{name}: a pair (array, MPI datatype) is needed where the other array is one.")
        array, self.datatype = data
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            raise DtypeError(f"{name}: the first of the pair must be a C-contiguous NumPy array.")
        if written and not array.flags.writeable:
            raise ShapeError(f"{name} is read-only, but the operation writes to it.")
        low, self.extent = self.datatype.Get_extent()
        true_low, true_extent = self.datatype.Get_true_extent()
        self.size = self.datatype.Get_size()
        if low < 0 or true_low < 0 or true_low + true_extent > self.extent:
            raise DtypeError(
                f"{name}: the datatype reaches from byte {true_low} to {true_low + true_extent} of an extent of {self.extent}; "
                "items must not overlap. Set its extent with Create_resized."
            )
        self.name, self.rows = name, rows
        raw = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
        if raw.size < rows * self.extent:
            raise ShapeError(
                f"{name} has {raw.size} bytes, but {rows} rows of {self.extent} bytes (the datatype's extent) are needed."
            )
        self.raw: NDArray[np.uint8] = raw[: rows * self.extent]
        self._comm = MPI.COMM_SELF

    def pack(self) -> NDArray[np.uint8]:
        """Return the items one behind the other, shape (rows, size)."""
        out = np.empty((self.rows, self.size), np.uint8)
        if out.size:
            self.datatype.Pack(self.raw, out, 0, self._comm)
        return out

    def unpack(self, packed: NDArray[np.uint8]) -> None:
        """Undo `pack`; bytes between the parts of an item stay as they are."""
        if packed.size:
            self.datatype.Unpack(packed, 0, self.raw, self._comm)

    def operation(self, op: Any) -> Callable[[int, int, int], None]:
        """Return a user's MPI operation as a function of addresses."""
        from mpi4py import MPI

        if not isinstance(op, MPI.Op) or op.is_predefined:
            raise DtypeError(
                f"{self.name}: op must be 'replace' or an MPI.Op made with MPI.Op.Create for items of an MPI datatype."
            )

        def apply(source: int, target: int, n: int) -> None:
            have = MPI.memory.fromaddress(source, n * self.extent, readonly=True)
            inout = MPI.memory.fromaddress(target, n * self.extent)
            op.Reduce_local([have, n, self.datatype], [inout, n, self.datatype])

        return apply


def begin_derived(forest: StarForest, operation: str, op: Op, **data: Any) -> Flight:
    """Begin an operation on (array, MPI datatype) pairs."""
    spaces = {"rootdata": forest.nroots, "leafdata": forest.nleafspace, "leafupdate": forest.nleafspace}
    target = {"bcast": ("leafdata",), "reduce": ("rootdata",), "fetch_and_op": ("rootdata", "leafupdate")}[operation]
    typed = {name: Typed(name, d, spaces[name], name in target) for name, d in data.items()}
    first = next(iter(typed.values()))
    begin = getattr(forest._sf, operation + "_begin")
    if op == "replace":
        for t in typed.values():
            if t.size != first.size:
                raise DtypeError(f"{first.name} and {t.name} have items of {first.size} and {t.size} bytes.")
        packed = {name: t.pack() for name, t in typed.items()}
        addresses = [address_of(p) for p in packed.values()]

        def finish() -> None:
            for name in target:
                typed[name].unpack(packed[name])

        core = begin(*addresses, int(TYPES["bytes"]), first.size, 1, _core.reduce_op("replace"))
        return Flight(core, (typed, packed), finish)
    for t in typed.values():
        if (t.size, t.extent) != (first.size, first.extent):
            raise DtypeError(f"{first.name} and {t.name} are of different MPI datatypes.")
    addresses = [address_of(t.raw) for t in typed.values()]
    return Flight(begin(*addresses, int(TYPES["bytes"]), first.extent, 1, first.operation(op)), (typed, data))
