"""Functions that construct expressions: indices, grids, constants, choices, functions of values.

Input: names, numbers and expressions of the user. Output: an `Expr`, a `Grid` or indices.
"""

from __future__ import annotations

from ...errors import InputError
from .expressions import Condition, Constant, Expr, Grid, Index, Number, Operation, Where, _expr
from .numerals import as_integer, as_number
from .user_line import fail_here

__all__ = ["constant", "cos", "exp", "grid", "indices", "log", "maximum", "minimum", "sin", "sqrt", "where"]


def indices(dimensions: int) -> tuple[Index, ...]:
    """Return the indices of 1, 2 or 3 axes; the last is the fastest, as in a NumPy array.

    Parameters
    ----------
    dimensions : int
        The number of axes.

    Returns
    -------
    tuple of Index
        ``i.extent`` is the number of points along the axis of ``i``.

    Raises
    ------
    InputError
        ``dimensions`` is not 1, 2 or 3.
    """
    count = as_integer(dimensions)
    if count not in (1, 2, 3):
        fail_here(f"a stencil has 1, 2 or 3 dimensions, not {dimensions!r}.")
    return tuple(Index(axis) for axis in range(count))


def grid(name: str, dimensions: int) -> Grid:
    """Return a grid of this name: a field, a right-hand side, or coefficients that vary from point to point. ``u(i, j)`` reads it.

    Parameters
    ----------
    name : str
        The keyword that gives its array: an identifier without ``_`` at its ends.
    dimensions : int
        The number of its axes: 1, 2 or 3.

    Returns
    -------
    Grid

    Raises
    ------
    InputError
        ``name`` is no such identifier, or ``dimensions`` is another number.
    """
    return Grid(name, dimensions)


def constant(name: str, default: float | complex | None = None) -> Expr:
    """Return a number that is given when the kernel runs. Kernels need no new compilation for another value.

    Parameters
    ----------
    name : str
        The keyword that gives it: an identifier without ``_`` at its ends.
    default : number, optional

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``name`` is no such identifier, or ``default`` is no number.
    """
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or name.endswith("_"):
        fail_here(f"a constant's name must be an identifier without _ at its ends, not {name!r}.")
    if default is not None:
        try:
            default = as_number(default, f"the default of '{name}'")
        except InputError as error:
            fail_here(str(error))
    return Constant(name, default)


def where(condition: object, a: Expr | Number, b: Expr | Number) -> Expr:
    """Return ``a`` at points where the condition holds, and ``b`` elsewhere, as `numpy.where`.

    Parameters
    ----------
    condition : Expr
        A comparison, such as ``i == 0`` or ``u(i, j) > 0``. ``&``, ``|`` and ``~`` combine comparisons in parentheses.
    a, b : Expr or number

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``condition`` is no condition. A value is a condition, or is no expression and no number.
    """
    if not isinstance(condition, Condition):
        fail_here(f"where needs a condition such as i == 0 or u(i, j) > 0, not a {type(condition).__name__}.")
    return Where(condition, _expr(a), _expr(b))


def minimum(a: Expr | Number, b: Expr | Number) -> Expr:
    """Return the smaller of both at each point.

    Parameters
    ----------
    a, b : Expr or number
        Real values. Complex numbers have no order: `generate` and `Stencil.interpret` refuse them.

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        A value is a condition, or is no expression and no number.
    """
    return Operation("min", _expr(a), _expr(b))


def maximum(a: Expr | Number, b: Expr | Number) -> Expr:
    """Return the larger of both at each point.

    Parameters
    ----------
    a, b : Expr or number
        Real values. Complex numbers have no order: `generate` and `Stencil.interpret` refuse them.

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        A value is a condition, or is no expression and no number.
    """
    return Operation("max", _expr(a), _expr(b))


def sqrt(a: Expr | Number) -> Expr:
    """Return the square root at each point; of a complex number on the negative real axis i times a positive one.

    Parameters
    ----------
    a : Expr or number
        In a real dtype the result is NaN where ``a`` is negative.

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``a`` is a condition, or is no expression and no number.
    """
    return Operation("sqrt", _expr(a))


def exp(a: Expr | Number) -> Expr:
    """Return e to the power ``a`` at each point.

    Parameters
    ----------
    a : Expr or number

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``a`` is a condition, or is no expression and no number.
    """
    return Operation("exp", _expr(a))


def log(a: Expr | Number) -> Expr:
    """Return the natural logarithm at each point; of a complex number on the negative real axis its imaginary part is pi.

    Parameters
    ----------
    a : Expr or number
        In a real dtype the result is NaN where ``a`` is negative.

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``a`` is a condition, or is no expression and no number.
    """
    return Operation("log", _expr(a))


def sin(a: Expr | Number) -> Expr:
    """Return the sine at each point, of an angle in radians.

    Parameters
    ----------
    a : Expr or number

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``a`` is a condition, or is no expression and no number.
    """
    return Operation("sin", _expr(a))


def cos(a: Expr | Number) -> Expr:
    """Return the cosine at each point, of an angle in radians.

    Parameters
    ----------
    a : Expr or number

    Returns
    -------
    Expr

    Raises
    ------
    InputError
        ``a`` is a condition, or is no expression and no number.
    """
    return Operation("cos", _expr(a))
