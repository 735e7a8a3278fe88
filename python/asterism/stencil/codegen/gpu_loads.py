"""Loads in the text for GPUs: in front of what uses them, and only by the lanes that are asked for them.

Input: the lines of some rows. Output: the same in another order, and pointers that they need.
"""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["arranged"]

_LOAD = re.compile(r"T const (\w+) = (\w+)\[(\d+)\];$")
_SHIFT = re.compile(r"\bshift\((\w+), (\w+), (\d+)\)")


def arranged(block: list[str], read: set[str], most: int, lanes: int) -> tuple[list[str], dict[str, str]]:
    """Return the lines, and pointers by name.

    Parameters
    ----------
    block : list of str
    read : set of str
        Pointers to grids that are only read. A compiler moves no load over a store, since it cannot know that the grids are different.
    most : int
        So many loads are under way before the first one is used, and as many stay so.
    lanes : int
        Of a row.
    """
    loads = {m[1]: (m[2], m[3]) for line in block if (m := _LOAD.match(line)) and m[2] in read}
    asked = _lanes(block, lanes)
    texts = {name: f"{plane}[{at}]" for name, (plane, at) in loads.items()}
    for name in texts.keys() & asked.keys():
        low, high = asked[name]
        texts[name] = f"{f'k < {high}' if low == 0 else f'k >= {low}'} ? {texts[name]} : T(0)"
    renamed, pointers = {}, {}
    for after, (right, at) in loads.items():
        stem = after.removesuffix(f"_k{lanes}")
        before = f"{stem}_km{lanes}"
        if after in asked and before in asked and before in loads and loads[before][1] == at:
            # of both neighbours along the row: different lanes of one value
            high, low, left = asked[after][1], asked[before][0], loads[before][0]
            if asked[after][0] == 0 and high <= lanes // 2 <= low:
                pointers[f"{right}_or_{left}"] = f"k < {lanes // 2} ? {right} : {left}"
                texts[f"{stem}_ends"] = f"k < {high} || k >= {low} ? {right}_or_{left}[{at}] : T(0)"
                renamed[after] = renamed[before] = f"{stem}_ends"
    names = list(dict.fromkeys(renamed.get(name, name) for name in loads))
    lines = [f"T const {name} = {texts[name]};" for name in names]
    out, moved, passed = lines[:most], most, set()
    for line in block:
        m = _LOAD.match(line)
        if not m or m[1] not in loads:
            out.append(re.sub(r"\w+", lambda w: renamed.get(w[0], w[0]), line))
        elif (name := renamed.get(m[1], m[1])) not in passed:
            passed.add(name)
            out += lines[moved : moved + 1]
            moved += 1
    return out, pointers


def _lanes(block: list[str], lanes: int) -> dict[str, tuple[int, int]]:
    """Return which lanes of a value are asked for, from one to before another, where only shifts ask."""
    text = "\n".join(block)
    uses = Counter(re.findall(r"\w+", text))
    found: dict[str, list[tuple[int, int]]] = {}
    for left, right, by in _SHIFT.findall(text):
        found.setdefault(left, []).append((int(by), lanes))
        found.setdefault(right, []).append((0, int(by)))
    return {
        name: (min(a for a, _ in ranges), max(b for _, b in ranges))
        for name, ranges in found.items()
        if uses[name] == 1 + len(ranges) and len({a == 0 for a, _ in ranges}) == 1
    }
