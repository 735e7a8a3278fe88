"""Finite differences: weights for any derivative and order, and stencils with one-sided closures at boundaries.

Input: offsets of points, or a grid and its indices. Output: weights, or an `Expr`.
"""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Rational
from typing import TypeVar

import numpy as np

from ...errors import InputError
from .constructors import where
from .expressions import Expr, Grid, Index, Integer, Quotient, Where
from .numerals import as_integer, as_number
from .user_line import fail, line_of_user

__all__ = ["derivative", "laplacian", "weights"]

N = TypeVar("N", Fraction, float)


def weights(
    order: int, offsets: Sequence[int | float | Fraction], at: int | float | Fraction = 0
) -> list[Fraction] | list[float]:
    """Return the weights w with sum(w[m] * f(offsets[m])) = the derivative of that order at ``at``, for polynomials through the points.

    Parameters
    ----------
    order : int
        Of the derivative; 0 interpolates.
    offsets : sequence
        Distinct points, in units of the spacing; divide the weights by spacing ** order.
    at : number

    Returns
    -------
    list
        Of exact fractions where all points are integers or fractions, else of floats.

    Notes
    -----
    Algorithm of B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", 1988. O(n^2 order) operations.

    Examples
    --------
    >>> import asterism as am
    >>> [str(w) for w in am.stencil.weights(2, (-2, -1, 0, 1, 2))]
    ['-1/12', '4/3', '-5/2', '4/3', '-1/12']
    """
    if isinstance(offsets, str) or not np.iterable(offsets):
        fail(line_of_user(), f"weights: offsets is {offsets!r}; a sequence of numbers is needed, such as (-1, 0, 1).")
    points, place = [_exact(p, "an offset") for p in offsets], _exact(at, "at")
    exact = all(isinstance(p, Fraction) for p in [*points, place])
    if not exact:
        points = [float(p) for p in points]
    if len(set(points)) < len(points):
        fail(line_of_user(), f"weights: the offsets {', '.join(map(str, points))} are not distinct.")
    degree = as_integer(order)
    if degree is None or degree < 0:
        fail(line_of_user(), f"weights: order is {order!r}; an integer from 0 is needed.")
    if degree >= len(points):
        fail(
            line_of_user(),
            f"weights: derivative {order!r} needs at least {order!r} + 1 points; there are {len(points)}.",
        )
    if not exact:
        return _fornberg(degree, [float(p) for p in points], float(place), 1.0)
    return _fornberg(degree, [Fraction(p) for p in points], Fraction(place), Fraction(1))


def _exact(given: object, what: str) -> Fraction | float:
    """Return an integer or a fraction as a fraction, another real number as a float."""
    if isinstance(given, Rational):
        return Fraction(int(given.numerator), int(given.denominator))
    try:
        number = as_number(given, what)
    except InputError as error:
        fail(line_of_user(), f"weights: {error}")
    if isinstance(number, complex) or not cmath.isfinite(number):
        fail(line_of_user(), f"weights: {what} is {number}; a real and finite number is needed.")
    return number


def _fornberg(order: int, x: list[N], at: N, one: N) -> list[N]:
    w: list[list[N]] = [[one * 0] * (order + 1) for _ in x]
    w[0][0], before = one, one
    for n in range(1, len(x)):
        product = one
        for v in range(n):
            gap = x[n] - x[v]
            product *= gap
            if v == n - 1:
                for m in range(min(n, order), -1, -1):
                    lower = m * w[v][m - 1] if m else one * 0
                    w[n][m] = before / product * (lower - (x[v] - at) * w[v][m])
            for m in range(min(n, order), -1, -1):
                lower = m * w[v][m - 1] if m else one * 0
                w[v][m] = ((x[n] - at) * w[v][m] - lower) / gap
        before = product
    return [row[order] for row in w]


def derivative(
    u: Grid,
    at: Sequence[Index],
    axis: int,
    order: int,
    accuracy: int = 2,
    spacing: Expr | float = 1.0,
    closure: bool = False,
) -> Expr:
    """Return the derivative of a grid along one axis, by central differences.

    Parameters
    ----------
    u : Grid
    at : sequence of Index
        The point.
    axis : int
    order : int
        Of the derivative, at least 1.
    accuracy : int
        The error is O(spacing ** accuracy); even.
    spacing : float or Expr
    closure : bool
        Near both ends use one-sided differences of the same accuracy, with the points that are there. The axis needs ``order + accuracy``
        points. Without closures points beyond the ends are read: zeros, or the other end where the axis is periodic.

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``u`` is no grid, or ``at`` is not one index for each of its axes. ``axis``, ``order`` or ``accuracy`` is out of range.
        ``1 / spacing ** order`` is not finite. ``at`` has ``i + 1`` or ``2 * i`` instead of the index of ``axis``, and ``closure`` is
        True.

    Examples
    --------
    >>> import asterism as am
    >>> i, = am.stencil.indices(1)
    >>> u, out = am.stencil.grid("u", 1), am.stencil.grid("out", 1)
    >>> second = am.stencil.assign(out(i), am.stencil.derivative(u, (i,), 0, 2, 4, spacing=0.1, closure=True))
    >>> y = second.interpret(u=[(0.1 * n) ** 5 for n in range(12)])["out"]
    >>> bool(abs(y[0] - 0.0) < 1e-9 and abs(y[5] - 20 * 0.5**3) < 1e-9)
    True
    """
    point = _point("derivative", u, at)
    along = as_integer(axis)
    if along is None or not 0 <= along < u.dimensions:
        fail(line_of_user(), f"derivative: axis {axis!r} is not one of the {u.dimensions} dimensions of '{u.name}'.")
    m, even = as_integer(order), as_integer(accuracy)
    if m is None or m < 1 or even is None or even < 2 or even % 2:
        fail(
            line_of_user(),
            f"derivative: order {order!r} must be at least 1, and accuracy {accuracy!r} even and at least 2.",
        )
    half = (m + 1) // 2 + even // 2 - 1
    index = point[along]
    value = _weighted(u, point, along, m, range(-half, half + 1))
    if closure:
        if not isinstance(index, Index):
            text = f"derivative: closure=True needs the index of axis {along} itself in at=, "
            fail(line_of_user(), text + "such as i, not i + 1 or 2 * i.")
        one_sided = m + even
        for p in reversed(range(half)):
            first, last = range(-p, one_sided - p), range(p + 1 - one_sided, p + 1)
            value = where(index == p, _weighted(u, point, along, m, first), value)
            value = where(index == index.extent - 1 - p, _weighted(u, point, along, m, last), value)
            assert isinstance(value, Where)
            value.least = along, one_sided
    return value * _inverse(spacing, m)


def _inverse(spacing: Expr | float, order: int) -> Expr | complex:
    """Return 1 / spacing ** order."""
    if isinstance(spacing, Expr):
        step = spacing
        for _ in range(order - 1):
            step = step * spacing
        return 1.0 / step
    try:
        number = as_number(spacing, "the spacing")
    except InputError as error:
        fail(line_of_user(), f"derivative: {error}")
    power: complex = 1.0
    for _ in range(order):
        power *= number
    if not power or not cmath.isfinite(power) or not cmath.isfinite(1.0 / power):
        text = f"derivative: the spacing is {number}, and 1 / spacing ** {order} is to be a finite number."
        fail(line_of_user(), f"{text} Give another spacing.")
    return 1.0 / power


def _point(what: str, u: object, at: object) -> tuple[Integer | Quotient, ...]:
    """Return the indices of the point at which a grid is differentiated."""
    if not isinstance(u, Grid):
        fail(line_of_user(), f"{what}: a {type(u).__name__} is no grid; give u itself, and its indices as at=(i, j).")
    point = tuple(at) if isinstance(at, Iterable) else ()
    if len(point) != u.dimensions or not all(isinstance(i, (Integer, Quotient)) for i in point):
        got = f"has {', '.join(type(i).__name__ for i in point)}" if point else f"is a {type(at).__name__}"
        need = ("(i,)", "(i, j)", "(i, j, k)")[u.dimensions - 1]
        fail(line_of_user(), f"{what}: at {got}; '{u.name}' has {u.dimensions} dimensions: at={need} is needed.")
    return point


def _weighted(u: Grid, at: Sequence[Integer | Quotient], axis: int, order: int, offsets: range) -> Expr:
    total: Expr | None = None
    factors: Sequence[Fraction | float] = weights(order, offsets)
    for o, w in zip(offsets, factors, strict=True):
        if w:
            term = float(w) * u(*(i + o if a == axis else i for a, i in enumerate(at)))
            total = term if total is None else total + term
    assert total is not None
    return total


def laplacian(
    u: Grid,
    at: Sequence[Index],
    accuracy: int = 2,
    spacing: float | Expr | Sequence[float | Expr] = 1.0,
    closure: bool = False,
) -> Expr:
    """Return the sum of the second derivatives along all axes, each by `derivative`.

    Parameters
    ----------
    u : Grid
    at : sequence of Index
        The point.
    accuracy : int
        The error is O(spacing ** accuracy); even.
    spacing : float or Expr, or a sequence of them
        One for all axes, or one for each.
    closure : bool
        One-sided differences near both ends, as for `derivative`.

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        As for `derivative`, or the number of spacings is not that of the axes.

    Examples
    --------
    >>> import asterism as am
    >>> at = am.stencil.indices(3)
    >>> u, out = am.stencil.grid("u", 3), am.stencil.grid("out", 3)
    >>> len(am.stencil.assign(out(*at), am.stencil.laplacian(u, at, accuracy=4)).offsets("u"))
    13
    """
    _point("laplacian", u, at)
    steps = list(spacing) if np.iterable(spacing) else [spacing] * u.dimensions
    if len(steps) != u.dimensions:
        fail(line_of_user(), f"laplacian: {len(steps)} spacings for {u.dimensions} dimensions.")
    total = derivative(u, at, 0, 2, accuracy, steps[0], closure)
    for axis in range(1, u.dimensions):
        total = total + derivative(u, at, axis, 2, accuracy, steps[axis], closure)
    return total
