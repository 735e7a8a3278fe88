"""The stencil language: indices, grids, constants, conditions; it builds trees and computes nothing.

Input: Python expressions of the user. Output: trees of `Expr` that know their source line.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .numerals import as_integer, short, simplest
from .user_line import fail, fail_here, line_of_user

__all__ = ["Expr", "Grid", "Index"]

Number = int | float | complex
LARGEST = 2**31 - 1  # of the integers in indices, as kernels count


class Expr:
    """A value at each point. Operators build larger ones; comparisons build conditions for `where`."""

    __slots__ = ("line",)

    def __init__(self) -> None:
        self.line = line_of_user()

    def children(self) -> tuple[Expr, ...]:
        """Return what it is made of."""
        return ()

    def __repr__(self) -> str:
        from .words import in_words

        return f"<asterism.stencil.Expr {in_words(self)}>"

    def __add__(self, other: Expr | Number) -> Expr:
        return Operation("+", self, _expr(other))

    def __radd__(self, other: Number) -> Expr:
        return Operation("+", _expr(other), self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return Operation("-", self, _expr(other))

    def __rsub__(self, other: Number) -> Expr:
        return Operation("-", _expr(other), self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return Operation("*", self, _expr(other))

    def __rmul__(self, other: Number) -> Expr:
        return Operation("*", _expr(other), self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        return Operation("/", self, _expr(other))

    def __rtruediv__(self, other: Number) -> Expr:
        return Operation("/", _expr(other), self)

    def __pow__(self, power: int) -> Expr:
        times = as_integer(power)
        if times is None or not 1 <= times <= 16:
            what = "a value of the stencil" if isinstance(power, Expr) else repr(power)
            fail_here(
                f"a power must be an integer from 1 to 16, not {what}. Write others as products, or with sqrt.",
            )
        out = self
        for _ in range(times - 1):
            out = Operation("*", out, self)
        return out

    def __rpow__(self, other: object) -> NoReturn:
        fail_here("a power must be an integer from 1 to 16; here it is a value of the stencil.")

    def __neg__(self) -> Expr:
        return Operation("neg", self)

    def __abs__(self) -> Expr:
        return Operation("abs", self)

    def __lt__(self, other: Expr | Number) -> Condition:
        return Condition("<", self, _expr(other))

    def __le__(self, other: Expr | Number) -> Condition:
        return Condition("<=", self, _expr(other))

    def __gt__(self, other: Expr | Number) -> Condition:
        return Condition(">", self, _expr(other))

    def __ge__(self, other: Expr | Number) -> Condition:
        return Condition(">=", self, _expr(other))

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Condition("==", self, _expr(other))

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Condition("!=", self, _expr(other))

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        """Serve NumPy's functions that the language has, and NumPy's numbers as operands."""
        name = ufunc.__name__
        if method != "__call__" or more:
            fail_here(f"numpy.{name} with {', '.join(f'{k}=' for k in more) or method} is not in the stencil language.")
        if name not in NUMPY:
            problem = f"numpy.{name} is not in the stencil language, which has + - * / ** abs sqrt exp log sin cos minimum maximum where."
            fail_here(f"{problem} Compute other functions of given numbers with NumPy, and give the result as a grid.")
        try:
            return NUMPY[name](_operand(inputs[0]), *(v if name == "power" else _operand(v) for v in inputs[1:]))
        except TypeError:
            fail_here(f"numpy.{name} does not take these values in a stencil.")

    def __float__(self) -> float:
        fail_here(
            "a stencil's value is known at run time only; float() and functions of Python's math are not in the language."
        )

    def __bool__(self) -> bool:
        fail_here(
            "a stencil's value is known at run time only: write am.stencil.where(condition, a, b) instead of if, and, or, numpy.where.",
        )

    def __and__(self, other: object) -> Condition:
        return ~self

    def __or__(self, other: object) -> Condition:
        return ~self

    def __invert__(self) -> Condition:
        fail_here("& | ~ take conditions; this is a number.")


class Value(Expr):
    """A number that is written in the stencil."""

    __slots__ = ("value",)

    def __init__(self, value: Number) -> None:
        super().__init__()
        self.value = value


class Constant(Expr):
    """A number with a name, given when the kernel runs."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: float | complex | None) -> None:
        super().__init__()
        self.name, self.default = name, default


class Integer(Expr):
    """A sum of integers times indices and extents, and an integer.

    ``terms`` has (symbol, axis, factor), sorted; the symbol "i" is the index along the axis, "n" the number of its points.
    """

    __slots__ = ("add", "terms")

    def __init__(self, terms: tuple[tuple[str, int, int], ...], add: int) -> None:
        super().__init__()
        self.terms, self.add = terms, add
        for n in (add, *(f for _, _, f in terms)):
            if abs(n) > LARGEST:
                text = f"an index has {short(n)} in it; at most {LARGEST} is possible. Conditions take floats too."
                fail(self.line, text)

    def _plus(self, other: Integer, sign: int) -> Integer:
        factors = {(s, a): f for s, a, f in self.terms}
        for s, a, f in other.terms:
            factors[s, a] = factors.get((s, a), 0) + sign * f
        return Integer(tuple((s, a, f) for (s, a), f in sorted(factors.items()) if f), self.add + sign * other.add)

    def __add__(self, other: Expr | Number) -> Expr:
        whole = _integer(other)
        return self._plus(whole, 1) if whole is not None else super().__add__(other)

    def __radd__(self, other: Number) -> Expr:
        return self + other

    def __sub__(self, other: Expr | Number) -> Expr:
        whole = _integer(other)
        return self._plus(whole, -1) if whole is not None else super().__sub__(other)

    def __rsub__(self, other: Number) -> Expr:
        whole = _integer(other)
        return whole._plus(self, -1) if whole is not None else super().__rsub__(other)

    def __mul__(self, other: Expr | Number) -> Expr:
        by = as_integer(other)
        if by is not None:
            return Integer(tuple((s, a, f * by) for s, a, f in self.terms if by), self.add * by)
        return super().__mul__(other)

    def __rmul__(self, other: Number) -> Expr:
        return super().__rmul__(other) if as_integer(other) is None else self * other

    def __neg__(self) -> Expr:
        return self * -1

    def __floordiv__(self, other: int) -> Quotient:
        if isinstance(other, Expr) or other != 2:
            fail_here(f"coarse grids have half as many points: i // 2 is there, // {other!r} is not.")
        return Quotient(self, 0)

    def __mod__(self, other: int) -> Remainder:
        by = as_integer(other)
        if by is None or not 1 <= by <= LARGEST:
            fail_here(f"% takes an integer from 1 to {LARGEST}, not {short(by) if by else repr(other)}.")
        return Remainder(self, by)


class Index(Integer):
    """The index of a point along one axis."""

    __slots__ = ("axis",)

    def __init__(self, axis: int) -> None:
        super().__init__((("i", axis, 1),), 0)
        self.axis = axis

    @property
    def extent(self) -> Integer:
        """The number of points along this axis: ``i == i.extent - 1`` holds at the last one."""
        return Integer((("n", self.axis, 1),), 0)


class Quotient(Expr):
    """``of // 2 + add``, an index of a coarse grid."""

    __slots__ = ("add", "of")

    def __init__(self, of: Integer, add: int) -> None:
        super().__init__()
        self.of, self.add = of, add

    def __add__(self, other: Expr | Number) -> Expr:
        more = as_integer(other)
        return super().__add__(other) if more is None else Quotient(self.of, self.add + more)

    def __sub__(self, other: Expr | Number) -> Expr:
        less = as_integer(other)
        return super().__sub__(other) if less is None else Quotient(self.of, self.add - less)


class Remainder(Expr):
    """``of % by``, never negative."""

    __slots__ = ("by", "of")

    def __init__(self, of: Integer, by: int) -> None:
        super().__init__()
        self.of, self.by = of, by


class Operation(Expr):
    """One of + - * / neg abs sqrt exp log sin cos min max."""

    __slots__ = ("arguments", "op")

    def __init__(self, op: str, *arguments: Expr) -> None:
        super().__init__()
        self.op, self.arguments = op, arguments
        for a in arguments:
            if isinstance(a, Condition):
                fail(self.line, "a condition is no number: write where(condition, 1.0, 0.0).")

    def children(self) -> tuple[Expr, ...]:
        """Return the arguments."""
        return self.arguments


class Condition(Expr):
    """A comparison of numbers, or ``&``, ``|``, ``~`` of conditions."""

    __slots__ = ("arguments", "op")

    def __init__(self, op: str, *arguments: Expr) -> None:
        super().__init__()
        self.op, self.arguments = op, arguments
        for a in arguments:
            if isinstance(a, Condition) != (op in ("&", "|", "~")):
                fail(self.line, f"'{op}' between a condition and a number; put each comparison in parentheses.")

    def children(self) -> tuple[Expr, ...]:
        """Return the arguments."""
        return self.arguments

    def __and__(self, other: object) -> Condition:
        return Condition("&", self, _expr(other))

    def __or__(self, other: object) -> Condition:
        return Condition("|", self, _expr(other))

    def __invert__(self) -> Condition:
        return Condition("~", self)


class Where(Expr):
    """``a`` at points where the condition holds, ``b`` at the others.

    ``least`` is the axis and the number of points that a one-sided difference needs; None: it is none.
    """

    __slots__ = ("a", "b", "condition", "least")

    def __init__(self, condition: Condition, a: Expr, b: Expr) -> None:
        super().__init__()
        self.condition, self.a, self.b = condition, a, b
        self.least: tuple[int, int] | None = None
        for v in (a, b):
            if isinstance(v, Condition):
                fail(self.line, "a condition is no number: write where(condition, 1.0, 0.0).")

    def children(self) -> tuple[Expr, ...]:
        """Return the condition and both values."""
        return self.condition, self.a, self.b


class Grid:
    """A grid of numbers, by its name; made by `stencil.grid`. Call it with one index for each axis.

    Attributes
    ----------
    name : str
    dimensions : int
    """

    def __init__(self, name: str, dimensions: int) -> None:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or name.endswith("_"):
            fail_here(f"a grid's name must be an identifier without _ at its ends, not {name!r}.")
        count = as_integer(dimensions)
        if count not in (1, 2, 3):
            fail_here(f"a grid has 1, 2 or 3 dimensions, not {dimensions!r}.")
        self.name, self.dimensions = name, count

    def __call__(self, *subscripts: object) -> Ref:
        """Return the value at these indices.

        Parameters
        ----------
        *subscripts : Expr
            One for each axis, made of the index of that axis: ``i``, ``2 * i`` or ``i // 2``, each plus or minus an integer.

        Returns
        -------
        Expr

        Raises
        ------
        InputError
            The number of subscripts is not that of the axes. One is of another form, or of another axis. Some have ``2 * i`` or
            ``i // 2``, and others have not.
        """
        if len(subscripts) != self.dimensions:
            problem = f"the grid '{self.name}' has {self.dimensions} dimensions; {len(subscripts)} indices are given."
            fail_here(problem)
        return Ref(self, [_subscript(self, axis, s) for axis, s in enumerate(subscripts)])

    def __getitem__(self, _: object) -> Ref:
        fail_here(f"a grid takes its indices in round brackets: {self.name}(i, ...), not {self.name}[i, ...].")

    def __repr__(self) -> str:
        return f"<asterism.stencil.Grid '{self.name}' of {self.dimensions} dimensions>"


class Ref(Expr):
    """A grid at ``(scale * i + add) // divide`` along each axis; scale and divide are 1 or 2, the same for all axes."""

    __slots__ = ("divide", "grid", "offsets", "scale")

    def __init__(self, grid: Grid, subscripts: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.grid = grid
        scales = {s[0::2] for s in subscripts}
        if len(scales) > 1:
            fail(
                self.line, f"the indices of '{grid.name}' are in different spaces; write 2 * i or i // 2 for all axes."
            )
        self.scale, self.divide = scales.pop()
        self.offsets = tuple(s[1] for s in subscripts)


def _subscript(grid: Grid, axis: int, given: object) -> tuple[int, int, int]:
    quotient = given if isinstance(given, Quotient) else None
    whole = quotient.of if quotient is not None else _integer(given)
    if whole is None:
        fail_here(f"an index of '{grid.name}' is a {type(given).__name__}; i + 1, 2 * i, i // 2 are possible.")
    if [t[:2] for t in whole.terms] != [("i", axis)]:
        names = ", ".join(sorted({"ijk"[a] if s == "i" else "an extent" for s, a, _ in whole.terms})) or "none"
        fail_here(
            f"index {axis} of '{grid.name}' must be made of the index '{'ijk'[axis]}' of that axis; it has {names}.",
        )
    factor = whole.terms[0][2]
    if factor not in ((1,) if quotient is not None else (1, 2)):
        fail_here(f"index {axis} of '{grid.name}' has the factor {factor}; i, 2 * i and i // 2 are possible.")
    return (1, whole.add + 2 * quotient.add, 2) if quotient is not None else (factor, whole.add, 1)


def _integer(value: object) -> Integer | None:
    if isinstance(value, Integer):
        return value
    whole = as_integer(value)
    return None if whole is None else Integer((), whole)


def _expr(value: object) -> Expr:
    if isinstance(value, Expr):
        return value
    try:
        number = complex("" if isinstance(value, str) else value)  # type: ignore[call-overload]  # of NumPy
    except (TypeError, ValueError):
        hint = " Call it with indices." if isinstance(value, Grid) else ""
        fail_here(f"a {type(value).__name__} is no value of a stencil.{hint}")
    except OverflowError:
        fail_here(f"{short(value)} is no value of a stencil; the largest is {sys.float_info.max:.2g}.")
    return Value(value if isinstance(value, (int, float)) and not isinstance(value, bool) else simplest(number))


def _operand(value: object) -> Expr | int:
    """Return an operand of a function of NumPy; integers stay integers, as those in indices must be."""
    whole = None if isinstance(value, Expr) else as_integer(value)
    return _expr(value) if whole is None else whole


def walk(*roots: Expr) -> Iterator[Expr]:
    """Yield every node once, children first, left to right."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(c, False) for c in reversed(node.children())]


def _function(op: str) -> Callable[..., Expr]:
    return lambda *operands: Operation(op, *map(_expr, operands))


# by the names of NumPy's functions
NUMPY: dict[str, Callable[..., Any]] = {"absolute": abs, "minimum": _function("min"), "maximum": _function("max")}
NUMPY |= {name: _function(name) for name in ("sqrt", "exp", "log", "sin", "cos")}
NUMPY |= {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
NUMPY |= {"floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "negative": operator.neg}
NUMPY |= {"square": lambda a: a * a, "reciprocal": lambda a: 1 / a, "positive": lambda a: a}
NUMPY |= {"less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge}
NUMPY |= {"equal": operator.eq, "not_equal": operator.ne, "bitwise_and": operator.and_, "bitwise_or": operator.or_}
NUMPY |= {"logical_and": operator.and_, "logical_or": operator.or_}
NUMPY |= {"invert": operator.invert, "logical_not": operator.invert}
