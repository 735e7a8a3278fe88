"""Functions of numbers: which the language has, and their text in kernels.

Input: the text of a kernel's function. Output: C++ text of the functions that it calls, for what stands before it.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS", "NAMES", "text_of_functions", "value_of"]

#: Of one argument, by what they are called in a kernel's text. abs and sqrt are there spelled as each text needs it.
NAMES = {"exp": "exponential", "log": "logarithm", "sin": "sine", "cos": "cosine"}
FUNCTIONS = ("sqrt", *NAMES)

# what the complex ones need besides those of their own name, of real numbers
_NEEDED = {
    "exponential": ("sine", "cosine"),
    "logarithm": ("angle",),
    "sine": ("cosine", "hyperbolic_sine", "hyperbolic_cosine"),
    "cosine": ("sine", "hyperbolic_sine", "hyperbolic_cosine"),
}
_LIBRARY = {v: k for k, v in NAMES.items()} | {"hyperbolic_sine": "sinh", "hyperbolic_cosine": "cosh", "angle": "atan2"}
_COMPLEX = {
    # neither part overflows before it must, and what is real stays real
    "exponential": (
        "X const half = exponential(z.re / 2);",
        "z.im == 0 ? half * half : half * cosine(z.im) * half, z.im == 0 ? X{} : half * sine(z.im) * half",
    ),
    # the sign of a zero decides nothing
    "logarithm": ("", "logarithm(absolute(z)), angle(z.im == 0 ? X{} : z.im, z.re)"),
    "sine": (
        "",
        "z.re == 0 ? z.re : sine(z.re) * hyperbolic_cosine(z.im), z.im == 0 ? z.im : cosine(z.re) * hyperbolic_sine(z.im)",
    ),
    "cosine": (
        "",
        "cosine(z.re) * hyperbolic_cosine(z.im), (z.re == 0) | (z.im == 0) ? X{} : -sine(z.re) * hyperbolic_sine(z.im)",
    ),
}


def value_of(op: str, x: complex) -> complex | None:
    """Return the function of a number, or None where a kernel is to find out: at a pole, a negative root, or past the largest number."""
    of_complex = isinstance(x, complex)
    if of_complex and op in ("sqrt", "log"):
        x = complex(x.real, x.imag + 0.0)  # the sign of a zero decides nothing
    function: Callable[[Any], complex] = getattr(cmath if of_complex else math, op)
    try:
        return function(x)
    except (ValueError, OverflowError):
        return None


def text_of_functions(
    text: str, number: str, lanes: int, of_complex: bool, before: str, long: str, prefix: str = "", suffix: str = ""
) -> str:
    """Return the text of those that a kernel calls.

    Parameters
    ----------
    text : str
        Of the kernel.
    number : str
        The type of real numbers.
    lanes : int
        Of the type V of vectors; 0 where there is none.
    of_complex : bool
        Of complex numbers and their vectors too.
    before, long : str
        What stands before functions, and before those whose text shall be there once.
    prefix, suffix : str
        Of the functions of the C library.
    """
    called = [name for name in NAMES.values() if re.search(rf"\b{name}\(", text)]
    if not called:
        return ""
    real = [*called]
    if of_complex:
        real += [other for name in called for other in _NEEDED[name]]
    lines = []
    for name in dict.fromkeys(real):
        one, two = ("x", "X x") if name != "angle" else ("y, x", "X y, X x")
        library = prefix + _LIBRARY[name] + suffix
        lines.append(f"{before} {number} {name}({two.replace('X', number)}) {{ return {library}({one}); }}")
        if lanes:
            lane = one.replace("y", "y[l]").replace("x", "x[l]")
            lines += [
                f"{long} V {name}({two.replace('X', 'V')}) {{",
                f"  for (int l = 0; l < {lanes}; ++l) x[l] = {name}({lane});",
                "  return x;",
                "}",
            ]
    if of_complex:
        for name in called:
            first, parts = _COMPLEX[name]
            body = f"{first} return {{{parts}}};".strip()
            lines += ["template <class X>", f"{long} Complex<X> {name}(Complex<X> z) {{ {body} }}"]
    return "".join(f"{line}\n" for line in lines)
