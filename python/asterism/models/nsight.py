"""Reads what Nsight Compute prints as CSV: bytes, flops and time of each launch.

Input: a file of ``ncu --csv``, of the page "raw" (a column for each metric) or of the others (a line for each metric). Output: a list of
`KernelCounters`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import FileError, FormatError

__all__ = ["METRICS", "KernelCounters", "read_nsight"]

_FLOPS = {
    f"smsp__sass_thread_inst_executed_op_{p}{op}_pred_on.sum": 2 if op == "fma" else 1
    for p in "dfh"
    for op in ("add", "mul", "fma")
}
_TIME, _BYTES, _CYCLES = "gpu__time_duration.sum", "dram__bytes.sum", "smsp__cycles_elapsed.avg"
_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
METRICS = ",".join((_TIME, _BYTES, *_FLOPS))  # for ncu --metrics
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_UNITS = {f"{p}byte": f for p, f in _PREFIX.items()} | {
    "nsecond": 1e-9,
    "usecond": 1e-6,
    "msecond": 1e-3,
    "second": 1.0,
}
_UNITS |= {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "inst": 1.0, "cycle": 1.0, "": 1.0}
_NAMED = {"kinst": 1e3, "minst": 1e6, "ginst": 1e9, "kcycle": 1e3, "mcycle": 1e6, "gcycle": 1e9}


@dataclass(frozen=True)
class KernelCounters:
    """What one launch of a kernel did; made by `models.read_nsight`.

    Attributes
    ----------
    name : str
    seconds, bytes : float
        Time, and bytes between the GPU and its memory.
    flops : float or None
        Additions and multiplications of all precisions; None if they were not counted.
    """

    name: str
    seconds: float
    bytes: float
    flops: float | None

    @property
    def intensity(self) -> float | None:
        """Flops a byte."""
        return None if self.flops is None else self.flops / self.bytes


def read_nsight(path: str | Path) -> list[KernelCounters]:
    """Read a file of ``ncu --csv``.

    Parameters
    ----------
    path : path-like
        Of the page "raw", or of one with a line for each metric. The program's own output may stand between.

    Returns
    -------
    list of KernelCounters
        One for each launch, in the order of the file.

    Raises
    ------
    FileError
        The file cannot be read.
    FormatError
        It has no table, a needed metric is missing, or a unit is not known. The text names both.

    Notes
    -----
    ``ncu --csv --page raw --metrics METRICS`` writes what is needed; `asterism.models.nsight.METRICS` has the list. A report of ``--set
    full`` has it too: ``ncu --import FILE --csv --page raw``.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {error}") from error
    lines = [line for line in text.splitlines() if line.startswith('"')]  # the program's own output stands between
    try:
        rows = list(csv.reader(lines, strict=True)) if lines else []
    except csv.Error as error:
        raise FormatError(f"{path} is no CSV: {error}. The file may be cut.") from error
    if not rows or "Kernel Name" not in rows[0]:
        raise FormatError(f"{path}: no table of Nsight Compute. Write it with ncu --csv --page raw.")
    head = rows[0]
    wide = "Metric Name" not in head
    return [
        _counters(str(path), name, values) for name, values in (_wide if wide else _long)(str(path), head, rows[1:])
    ]


def _number(path: str, metric: str, unit: str, text: str) -> float:
    kind = unit.strip().lower().split("/")[0]
    factor = _UNITS.get(kind, _NAMED.get(kind))
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise FormatError(
            f"{path}: the metric {metric} is {text!r}; a number is needed. Try ncu --print-units base."
        ) from None
    if factor is None:
        raise FormatError(
            f"{path}: the metric {metric} has the unit {unit!r}, which is not known. Try ncu --print-units base."
        )
    return value * factor


def _needed(metric: str) -> bool:
    plain = metric.removesuffix(".per_cycle_elapsed")
    return metric in (_TIME, _BYTES, *_PARTS, _CYCLES) or plain in _FLOPS


def _wide(path: str, head: list[str], rows: list[list[str]]) -> Iterator[tuple[str, dict[str, float]]]:
    if not rows:
        return
    name = head.index("Kernel Name")
    units, launches = rows[0], rows[1:]
    if units[name]:
        raise FormatError(f"{path}: the line of units is missing after the head.")
    for row in launches:
        if len(row) != len(head):
            raise FormatError(f"{path}: a line has {len(row)} fields, and the head {len(head)}. The file may be cut.")
        yield (
            row[name],
            {m: _number(path, m, u, v) for m, u, v in zip(head, units, row, strict=True) if _needed(m) and v},
        )


def _long(path: str, head: list[str], rows: list[list[str]]) -> Iterator[tuple[str, dict[str, float]]]:
    launch, name, metric, unit, value = (
        head.index(h) for h in ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
    )
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if len(row) != len(head):
            raise FormatError(f"{path}: a line has {len(row)} fields, and the head {len(head)}. The file may be cut.")
        one = found.setdefault((row[launch], row[name]), {})
        if _needed(row[metric]):
            one[row[metric]] = _number(path, row[metric], row[unit], row[value])
    for (_, kernel), values in found.items():
        yield kernel, values


def _counters(path: str, kernel: str, values: Mapping[str, float]) -> KernelCounters:
    if _BYTES in values:
        moved = values[_BYTES]
    elif all(p in values for p in _PARTS):
        moved = sum(values[p] for p in _PARTS)
    else:
        raise FormatError(f"{path}: no {_BYTES} of the kernel {kernel}. Profile with ncu --metrics {METRICS}")
    if _TIME not in values:
        raise FormatError(f"{path}: no {_TIME} of the kernel {kernel}. Profile with ncu --metrics {METRICS}")
    counts = []
    for metric, factor in _FLOPS.items():
        by_cycle = f"{metric}.per_cycle_elapsed"  # as ncu --set full has them
        if metric in values:
            counts.append(factor * values[metric])
        elif by_cycle in values and _CYCLES in values:
            counts.append(factor * values[by_cycle] * values[_CYCLES])
    return KernelCounters(kernel, values[_TIME], moved, sum(counts) if counts else None)
