"""Triangular solves driven by messages, on ranks and threads, beside their model; bench/run.py runs it."""

import os
import statistics
import sys
from pathlib import Path

from programs import json_line

RANKS_AND_THREADS = ((1, 1), (1, 2), (2, 1), (4, 1))


def sptrsv(rounds: int) -> dict:
    """Forward and backward with one column: a 3-D problem, and a real matrix where the data is."""
    problems = [["poisson3d", "--n", "40"]]
    if folder := os.environ.get("ASTERISM_DATA"):
        problems.append([str(Path(folder) / "G2_circuit.mtx.gz")])
    program = [sys.executable, "-m", "asterism", "bench", "sptrsv"]
    runs = []
    for _ in range(rounds):
        for problem in problems:
            for ranks, threads in RANKS_AND_THREADS:
                os.environ["ASTERISM_NUM_THREADS"] = str(threads)
                r = json_line([*program, *problem, "--ranks", str(ranks), "--json"])
                runs.append({"file": Path(problem[0]).name, "ranks": ranks, "threads": threads, **r})
    os.environ.pop("ASTERISM_NUM_THREADS")
    return {"bench": "sptrsv", "rounds": rounds, "runs": runs}


def table(r: dict) -> None:
    """Print medians over the rounds: of measured solves, and of the model of each round."""
    cases: dict[tuple, list[dict]] = {}
    for run in r["runs"]:
        for c in run["cases"]:
            key = (run["file"], c["ranks"], run["threads"], c["layout"], c["sweep"])
            cases.setdefault(key, []).append({**c, "more_than_cores": c["ranks"] > run["cores"]})
    for (file, ranks, threads, layout, sweep), rows in cases.items():
        measured = statistics.median(s for row in rows for s in row["measured"])
        simulated = statistics.median(row["simulated"] for row in rows)
        line = (
            f"sptrsv  {file:20s} {ranks} rank(s) x {threads} thread(s) {layout:4s} {sweep:8s} {1e3 * measured:7.2f} ms"
        )
        if rows[0]["more_than_cores"]:
            line += ", more ranks than cores"
        if threads == 1:
            line += f", simulated {1e3 * simulated:.2f} ms, {simulated / measured:.2f} of it"
        print(f"{line}, {rows[0]['sent']} messages of {rows[0]['messages']} predicted")
