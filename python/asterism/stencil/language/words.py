"""A value of a stencil as people would write it, for `repr`.

Input: an expression. Output: one line, cut after some 160 characters.
"""

from __future__ import annotations

from .expressions import Condition, Constant, Expr, Integer, Operation, Quotient, Ref, Remainder, Value, Where, walk

__all__ = ["in_words"]

_LONGEST = 160
_SUM, _PRODUCT, _SIGN, _WHOLE = 1, 2, 3, 4  # how tightly a text holds together
_SIGNS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_NAMES = {"min": "minimum", "max": "maximum"}
_Text = tuple[str, int]


def _integer(terms: tuple[tuple[str, int, int], ...], add: int) -> _Text:
    names = [("ijk"[a] + (".extent" if s == "n" else ""), f) for s, a, f in terms]
    parts = [(f < 0, name if abs(f) == 1 else f"{abs(f)} * {name}") for name, f in names]
    if add or not parts:
        parts.append((add < 0, str(abs(add))))
    (negative, text), *more = parts
    text = f"-{text}" if negative else text
    text += "".join(f" {'-' if less else '+'} {part}" for less, part in more)
    return text, _SUM if more else _SIGN if negative else _PRODUCT if "*" in text else _WHOLE


def _within(part: _Text, least: int) -> str:
    text, holds = part
    return text if holds >= least else f"({text})"


def _of(e: Expr, known: dict[int, _Text]) -> _Text:
    parts = [known[id(c)] for c in e.children()]
    texts = [text for text, _ in parts]
    match e:
        case Value():
            return str(e.value), _WHOLE if isinstance(e.value, complex) or e.value >= 0 else _SIGN
        case Constant():
            return e.name, _WHOLE
        case Integer():
            return _integer(e.terms, e.add)
        case Quotient():
            quotient = f"{_within(_integer(e.of.terms, e.of.add), _WHOLE)} // 2"
            return (f"{quotient} {'-' if e.add < 0 else '+'} {abs(e.add)}", _SUM) if e.add else (quotient, _PRODUCT)
        case Remainder():
            return f"{_within(_integer(e.of.terms, e.of.add), _WHOLE)} % {e.by}", _PRODUCT
        case Ref():
            at = [_integer((("i", a, e.scale),), add) for a, add in enumerate(e.offsets)]
            return (
                f"{e.grid.name}({', '.join(_within(t, _WHOLE) + ' // 2' if e.divide == 2 else t[0] for t in at)})",
                _WHOLE,
            )
        case Where():
            return f"where({', '.join(texts)})", _WHOLE
        case Operation() if e.op in _SIGNS:
            holds = _SIGNS[e.op]
            right = _within(parts[1], holds + (e.op in "-/"))
            return f"{_within(parts[0], holds)} {e.op} {right}", holds
        case Operation() if e.op == "neg":
            return f"-{_within(parts[0], _WHOLE)}", _SIGN
        case Operation():
            return f"{_NAMES.get(e.op, e.op)}({', '.join(texts)})", _WHOLE
        case Condition() if e.op == "~":
            return f"~{_within(parts[0], _WHOLE)}", _SIGN
        case Condition():
            # comparisons in parentheses, as they must be written
            left, right = (_within(p, _WHOLE) if e.op in "&|" else p[0] for p in parts)
            return f"{left} {e.op} {right}", 0
        case _:
            return type(e).__name__, _WHOLE


def in_words(expression: Expr) -> str:
    """Return an expression as text."""
    known: dict[int, _Text] = {}
    for e in walk(expression):
        text, holds = _of(e, known)
        known[id(e)] = (text, holds) if len(text) <= _LONGEST else (f"{text[: _LONGEST - 4].rstrip(' .')} ...", _WHOLE)
    return known[id(expression)][0]
