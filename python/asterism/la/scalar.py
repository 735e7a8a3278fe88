"""Numbers that a queue may still be computing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..device.queue import Queue, queue_of
from ..errors import DtypeError, InputError, ShapeError

__all__ = ["Scalar", "handle_of_scalar", "select"]


class Scalar:
    """A number, or k of them, that a queue may still be computing.

    Arithmetic with scalars and numbers, `sqrt`, ``abs``, `conj`, `real`, `minimum`, `maximum`, comparisons and `select` give new
    ones and launch nothing: they are evaluated where the operation that takes them starts. ``float()``, ``complex()``, ``bool()``
    and `values` wait. Comparisons give 1 or 0 (real parts; false with NaN).

    Parameters
    ----------
    value : number, or array of numbers, shape (k,)
        One number goes with vectors of any number of columns.

    Raises
    ------
    ShapeError
        The array has no entries, or two dimensions; or scalars of k and of other than k or 1 numbers meet.
    DtypeError
        ``value`` is no number.

    Notes
    -----
    Numbers are complex128 on the way, whatever the vectors' dtype.

    Examples
    --------
    >>> import asterism as am
    >>> x = am.Vector(am.gallery.poisson((4,)), fill=2.0)
    >>> float((1 / x.norm()).sqrt())
    0.5
    """

    __slots__ = ("_h",)
    __array_ufunc__ = None  # NumPy scalars leave the arithmetic to this class

    def __init__(self, value: Any) -> None:
        if isinstance(value, (int, float, complex)):
            self._h = _core.Scalar.number(value)
        else:
            given = np.asarray(value)
            if given.size and given.dtype.kind not in "biufc":
                raise DtypeError(f"Scalar: {value!r:.40} is no number.")
            array = np.atleast_1d(given.astype(np.complex128))
            if array.ndim > 1 or array.size == 0:
                raise ShapeError(f"Scalar: an array of shape {np.shape(value)}; one number, or one for each column.")
            self._h = _core.Scalar.of(array.tolist())

    @classmethod
    def _of(cls, handle: _core.Scalar) -> Scalar:
        s = cls.__new__(cls)
        s._h = handle
        return s

    @property
    def width(self) -> int:
        """How many numbers: one for each column of the vectors it comes from."""
        return int(self._h.width)

    @property
    def known(self) -> bool:
        """Whether reading it does not wait."""
        return bool(self._h.known)

    def values(self) -> NDArray[np.complex128]:
        """Wait, and return all numbers.

        Returns
        -------
        array of complex128, shape (width,)
        """
        if self.known:
            return np.asarray(self._h.values(), dtype=np.complex128)
        read = self._h.values()
        self._h = _core.Scalar.of(read)  # known from now on
        return np.asarray(read, dtype=np.complex128)

    def stored(self, queue: Queue) -> Scalar:
        """Return it computed by a queue and held: for values that go from iteration to iteration, whose expressions would grow.

        Parameters
        ----------
        queue : Queue
            That of the vectors it comes from.

        Returns
        -------
        Scalar
            One that is known stays as it is.

        Notes
        -----
        Does not wait. Cost: one launch.
        """
        return Scalar._of(self._h.stored(queue_of(queue, "stored")))

    def _one(self) -> complex:
        if self.width != 1:
            raise ShapeError(f"a scalar of {self.width} columns is not one number. Use values(), or any().")
        return complex(self.values()[0])

    def __complex__(self) -> complex:
        return self._one()

    def __float__(self) -> float:
        v = self._one()
        if v.imag != 0 and v.real == v.real:  # the imaginary part of a NaN is one too
            raise InputError(f"{v} is not real. Use complex(), real() or abs().")
        return v.real

    def __bool__(self) -> bool:
        return self._one() != 0

    def __repr__(self) -> str:
        if not self.known:
            return f"<asterism.Scalar, {self.width} wide, not read yet>"
        return f"<asterism.Scalar {self.values().tolist()}>"

    def _with(self, op: str, other: Any, swapped: bool = False) -> Scalar:
        o = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar._of(o._h.combined(op, self._h) if swapped else self._h.combined(op, o._h))

    def __add__(self, other: Any) -> Scalar:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Scalar:
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> Scalar:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Scalar:
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> Scalar:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Scalar:
        return self._with("*", other, True)

    def __truediv__(self, other: Any) -> Scalar:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._with("/", other, True)

    def __lt__(self, other: Any) -> Scalar:
        return self._with("<", other)

    def __le__(self, other: Any) -> Scalar:
        return self._with("<=", other)

    def __gt__(self, other: Any) -> Scalar:
        return self._with("<", other, True)

    def __ge__(self, other: Any) -> Scalar:
        return self._with("<=", other, True)

    def __eq__(self, other: object) -> Scalar:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: object) -> Scalar:  # type: ignore[override]
        return 1 - self._with("==", other)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Scalar:
        return Scalar._of(self._h.mapped("-"))

    def __abs__(self) -> Scalar:
        return Scalar._of(self._h.mapped("abs"))

    def sqrt(self) -> Scalar:
        """Return the square root; of a negative number imaginary."""
        return Scalar._of(self._h.mapped("sqrt"))

    def conj(self) -> Scalar:
        """Return the complex conjugate."""
        return Scalar._of(self._h.mapped("conj"))

    def real(self) -> Scalar:
        """Return the real part."""
        return Scalar._of(self._h.mapped("real"))

    def any(self) -> Scalar:
        """Return 1 if any column is not zero, one wide."""
        return Scalar._of(self._h.mapped("any"))

    def minimum(self, other: Any) -> Scalar:
        """Return the number whose real part is the smaller.

        Parameters
        ----------
        other : Scalar, number or array of numbers

        Returns
        -------
        Scalar
            A NaN here stays; one in `other` does not count.
        """
        return self._with("min", other)

    def maximum(self, other: Any) -> Scalar:
        """Return the number whose real part is the larger.

        Parameters
        ----------
        other : Scalar, number or array of numbers

        Returns
        -------
        Scalar
            A NaN here stays; one in `other` does not count.
        """
        return self._with("max", other)


def handle_of_scalar(a: Any) -> _core.Scalar:
    """Return the core's scalar of a `Scalar`, or of numbers."""
    return a._h if isinstance(a, Scalar) else Scalar(a)._h


def select(mask: Any, a: Any, b: Any) -> Scalar:
    """Return a where mask is not zero, else b, column by column; a NaN in the other one does no harm.

    Parameters
    ----------
    mask, a, b : Scalar, number or array of numbers
        Of one width; single numbers go with any.

    Returns
    -------
    Scalar

    Notes
    -----
    Nothing is launched, and nobody waits.

    Examples
    --------
    >>> import asterism as am
    >>> am.select([1, 0], [2.0, 3.0], 5.0).values().real
    array([2., 5.])
    """
    return Scalar._of(_core.Scalar.select(handle_of_scalar(mask), handle_of_scalar(a), handle_of_scalar(b)))
