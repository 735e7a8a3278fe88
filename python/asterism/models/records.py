"""Reads the JSON of benchmarks: series of sizes and seconds, and efficiencies of kernels.

Input: a file of ``asterism bench ... --json`` or of ``bench/results/``, or a CSV of Nsight Compute. Output: `Series`, `Platform`.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FileError, FormatError, InputError
from .nsight import KernelCounters, read_nsight
from .operations import OPERATIONS, costs
from .roofline import Roofline

__all__ = ["LevelTimes", "Platform", "Series", "read_json", "read_levels", "read_platform", "read_series"]


@dataclass(frozen=True)
class Series:
    """Seconds for each size; ``unit`` is "bytes" or "points"."""

    name: str
    unit: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Platform:
    """Fractions of the roofline, and of the theoretical intensity where it was measured, by kernel."""

    name: str
    roofline: Mapping[str, float]
    intensity: Mapping[str, float]


@dataclass(frozen=True)
class LevelTimes:
    """Seconds of a solve on each level of multigrid, by operation; of several ranks the mean."""

    name: str
    levels: tuple[Mapping[str, float], ...]

    @property
    def totals(self) -> tuple[float, ...]:
        """Seconds of each level."""
        return tuple(sum(level.values()) for level in self.levels)


def read_json(path: str | Path) -> Any:
    """Return what a JSON file holds.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    object
        Of dicts, lists, texts and numbers.

    Raises
    ------
    FileError
        The file cannot be read.
    FormatError
        It is no JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is no JSON: {error}. A benchmark writes it with --json.") from error


def read_series(path: str | Path) -> list[Series]:
    """Return every series of three sizes or more.

    A series is a list of objects with a size ("bytes", "points", or "n" beside "points_per_s") and times. Times are the numbers or lists of
    numbers beside it, in seconds ("raw_mpi": [...], "seconds": ...), or "points_per_s". Of a list the median counts. Where a size comes
    several times, what tells the rows apart joins the name, such as "sweep forward"; of rows that are alike the median counts.

    Parameters
    ----------
    path : path-like
        Of what ``asterism bench NAME --json`` has written.

    Returns
    -------
    list of Series

    Raises
    ------
    FileError
        The file cannot be read.
    FormatError
        It is no JSON, or has no times of three sizes.
    """
    found: dict[tuple[str, str], list[_Point]] = {}
    for name, rows, around in _lists(read_json(path), "", {}):
        for row in rows:
            for (label, unit), (size, seconds) in _points(name, row):
                found.setdefault((label, unit), []).append(_Point(size, seconds, _marks(row, around)))
    out = []
    for (label, unit), points in found.items():
        for name, sizes in _told_apart(label, points).items():
            if len(sizes) > 2:
                of_size = [(x, statistics.median(sizes[x])) for x in sorted(sizes)]
                out.append(Series(name, unit, *zip(*of_size, strict=True)))
    if not out:
        raise FormatError(f"{path} has no times of three sizes or more. Try the JSON of asterism bench pingpong.")
    return out


def read_levels(path: str | Path) -> LevelTimes:
    """Return what ``asterism bench gmg --json`` has measured on each level.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    LevelTimes

    Raises
    ------
    FileError
        The file cannot be read.
    FormatError
        It is no JSON, or has no times of levels.
    """
    found = read_json(path)
    try:
        numbers = [o["level"] for o in found["operations"]]
        if any(n not in range(100) for n in numbers):
            raise ValueError(numbers)
        levels: list[dict[str, float]] = [{} for _ in range(1 + max(numbers))]
        for o in found["operations"]:
            seconds = found["cycles"] * statistics.mean(map(float, o["seconds"]))
            if not 0 <= seconds < math.inf:
                raise ValueError(seconds)
            levels[o["level"]][o["operation"]] = seconds
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise FormatError(f"{path} has no times of levels. asterism bench gmg --json writes them.") from error
    return LevelTimes(Path(path).stem, tuple(levels))


class _Point(NamedTuple):
    size: float
    seconds: float
    marks: Mapping[str, Any]  # of its row, and of what is around that


def _marks(value: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may tell one row from another, the nearest first: texts and integers; other numbers were measured."""
    own = {k: v for k, v in value.items() if isinstance(v, (str, int))}
    return own | {k: v for k, v in around.items() if k not in value}


def _told_apart(label: str, points: list[_Point]) -> dict[str, dict[float, list[float]]]:
    """Return the seconds of each size by label, with as few marks in it as tell repeated sizes apart: texts rather than numbers."""
    keys: list[str] = []

    def chosen(p: _Point, those: list[str]) -> tuple[Any, ...]:
        return (p.size, *(p.marks.get(k) for k in those))

    different = len({chosen(p, keys) for p in points})
    known = list(dict.fromkeys(k for p in points for k in p.marks))
    known.sort(key=lambda k: not all(isinstance(p.marks.get(k, ""), str) for p in points))
    for key in known:
        more = len({chosen(p, [*keys, key]) for p in points})
        if more > different and different < len(points):
            keys.append(key)
            different = more
    out: dict[str, dict[float, list[float]]] = {}
    for p in points:
        name = " ".join([label, *(f"{k} {p.marks[k]}" for k in keys if k in p.marks)])
        out.setdefault(name, {}).setdefault(p.size, []).append(p.seconds)
    return out


def _lists(value: Any, name: str, around: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], Mapping[str, Any]]]:
    """Yield the name of each list of objects, its objects, and the marks of those around it."""
    if isinstance(value, dict):
        mine = value.get("case", value.get("operation", value.get("points", "")))
        mine = "" if isinstance(mine, list) else mine
        label = " ".join(str(v) for v in (name, mine) if v != "")
        for key, inner in value.items():
            yield from _lists(inner, f"{label} {key}".strip(), _marks(value, around))
    elif isinstance(value, list):
        rows = [v for v in value if isinstance(v, dict)]
        if rows:
            yield name, rows, around
        for row in rows:
            yield from _lists(row, name, around)


_NO_TIMES = ("bytes", "points", "n", "repeats", "ranks", "level")


def _points(name: str, row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], tuple[float, float]]]:
    label = f"{name} {row['case']}".strip() if isinstance(row.get("case"), str) else name
    if _positive(row.get("n")) and _positive(row.get("points_per_s")):
        points = float(row["n"]) ** 3
        yield (label, "points"), (points, points / float(row["points_per_s"]))
        return
    # beside a rate of stencils "points" are those that the stencil reads
    units = ("bytes",) if "GStencil_per_s" in row else ("bytes", "points")
    unit = next((u for u in units if _positive(row.get(u))), None)
    if unit is None:
        return
    if _positive(row.get("points_per_s")):
        yield (label, unit), (float(row[unit]), float(row[unit]) / float(row["points_per_s"]))
        return
    for key, value in row.items():
        if key == "seconds" and _positive(value):
            yield (label, unit), (float(row[unit]), float(value))
        elif key not in _NO_TIMES and isinstance(value, list) and value and all(map(_positive, value)):
            series = label if key == "seconds" else f"{label} {key}".strip()
            yield (series, unit), (float(row[unit]), statistics.median(map(float, value)))


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def read_platform(path: str | Path, roofline: Roofline | None = None) -> Platform:
    """Return the efficiencies of one platform.

    The file is a CSV of Nsight Compute (which needs the roofline), the JSON of the benchmark of stencils, or an object {"platform": name,
    "roofline": {kernel: fraction}, "intensity": {kernel: fraction}}.

    Parameters
    ----------
    path : path-like
    roofline : Roofline, optional
        Of the platform, for a CSV.

    Returns
    -------
    Platform

    Raises
    ------
    FileError
        The file cannot be read.
    FormatError
        It has no efficiencies, or one that is no positive number.
    InputError
        A CSV without a roofline.
    """
    if str(path).endswith(".csv"):
        if roofline is None:
            raise InputError(f"{path}: counters need the GPU's bandwidth: give --bandwidth, in GB/s.")
        return _of_counters(Path(path).stem, read_nsight(path), roofline)
    found = read_json(path)
    if isinstance(found, dict) and found.get("bench") == "stencils":
        return _of_stencils(path, found)
    tables: list[Any] = [found.get("roofline"), found.get("intensity") or {}] if isinstance(found, dict) else []
    if not tables or not tables[0] or not all(isinstance(t, dict) for t in tables):
        raise FormatError(
            f'{path} has no efficiencies: {{"platform": name, "roofline": {{kernel: fraction}}}} is needed.'
        )
    for table in tables:
        for kernel, e in table.items():
            if e is not None and not _positive(e):
                raise FormatError(
                    f"{path}: the fraction of {kernel} is {e!r}; a number between 0 and 1, or null, is needed."
                )
    return Platform(str(found.get("platform", Path(path).stem)), *tables)


def _of_stencils(path: str | Path, found: Mapping[str, Any]) -> Platform:
    try:
        largest = {f"{k['points']} points": max(k["runs"], key=lambda run: run["n"]) for k in found["kernels"]}
        return Platform(
            str(found.get("cpu", "host")), {name: float(run["of_limit"]) for name, run in largest.items()}, {}
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: a record of stencils without {error}. bench/run.py stencils writes it.") from error


def _of_counters(name: str, counters: list[KernelCounters], roofline: Roofline) -> Platform:
    """Return the median over the launches of each operation, whose name the kernel's has: smooth+residual is smooth_residual there."""
    launches: dict[str, list[KernelCounters]] = {}
    for c in counters:
        text = c.name.lower().replace("_", "").replace("+", "")
        match = [op for op in OPERATIONS if op.lower().replace("+increment", "").replace("+", "") in text]
        launches.setdefault(max(match, key=len) if match else c.name, []).append(c)
    fractions = {
        op: statistics.median(roofline.fraction(c.flops or 0.0, c.bytes, c.seconds) for c in those)
        for op, those in launches.items()
    }
    theory = costs()
    intensity = {
        op: min(1.0, statistics.median(c.intensity or 0.0 for c in those) / theory[op].intensity)
        for op, those in launches.items()
        if op in theory and all(c.flops is not None for c in those)
    }
    return Platform(name, fractions, intensity)
