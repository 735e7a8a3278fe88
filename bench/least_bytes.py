"""The least bytes of an iteration of cg with multigrid, from what `Solver.view` prints of the levels."""

import re
import statistics

LEVEL = re.compile(r"^ +(\d+) +(\d+) +(\d+) +[\d.]+(?: +\d+)? +(bfloat16|float32|float64) +(\d+) +(\S+)", re.M)


def least_bytes(view: str, columns: int = 1) -> int:
    """Return the least bytes of an iteration of cg (float64) with a V(1,1) cycle of the levels of a view.

    columns: right-hand sides that are solved together. Each has its vectors; matrices are read once for all.

    - All that a level holds is read once.
    - Its matrix is read a second time, because a step and the residual are apart; the finest also in float64 by cg. That is its values,
      and their columns where rows have no patterns. Of rows with patterns, only the diagonal and what is right of it counts: cg has
      symmetric matrices. A few patterns that hold the values too cost nothing.
    - cg moves 11 vectors: 2 for A p, 3 each for x, r and p. The dots are fused.
    - The cycle moves 11 vectors on each level: 2 and 3 for its two steps, 3 for the residual, 3 for transfers.
    - The finest vectors are converted to the cycle's precision and back (3 and 3 of them). Coarse ones are written and read by transfers.
    """
    total = 0
    for level, rows, entries, values, held, storage in LEVEL.findall(view):
        size = {"bfloat16": 2, "float32": 4, "float64": 8}[values]
        vectors = 17 * size + 11 * 8 if level == "0" else 13 * size
        total += int(held) + columns * vectors * int(rows)
        has_patterns = storage.startswith("row_pattern")
        values_read = (int(entries) + int(rows)) // 2 if has_patterns else int(entries)
        few = storage.startswith("dense") or (has_patterns and int(held) < values_read * size)
        column = 4 if storage.startswith(("sell", "csr")) else 0
        if not few:
            total += values_read * (size + column + (8 + column if level == "0" else 0))
    return total


def of_least_bytes(view: str, runs: list[dict], again: int, streams: list[float]) -> str:
    """Return what an iteration takes of its least bytes at the speed of the triad of one thread."""
    seconds = statistics.median(x["solve"][again] / x["iterations"] for x in runs)
    return f"an iteration {1e3 * seconds:.1f} ms, {seconds * 1e9 * statistics.median(streams) / least_bytes(view):.2f} of its least bytes"
