"""Messages and solves of two ranks that wait for each other, beside another build of this library; bench/run.py runs it."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

from programs import json_line, mpiexec

#: Works with builds since f1d2d94, whose waits only looked and never slept.
MEASURE = """
import json, numpy as np, asterism as am
from asterism import _core
from mpi4py import MPI
c = MPI.COMM_WORLD
replace, total = _core.reduce_op("replace"), _core.reduce_op("sum")
out = {}
for size, repeats in ((8, 30000), (4096, 15000), (1 << 20, 200)):
    n = size // 8
    order, here, roots = np.random.default_rng(0).permutation(n), c.rank == 1, n if c.rank == 0 else 0
    plain = am.StarForest(c, roots, None, [(0, i) for i in range(n)] if here else [], transport="shm")
    leaves, remote = (2 * np.arange(n), np.column_stack([0 * order, order])) if here else ([], [])
    mixed = am.StarForest(c, roots, leaves, remote, transport="shm")
    cases = {"contiguous": (plain, replace), "contiguous, sums": (plain, total), "permuted": (mixed, replace)}
    for turn in range(8):
        for name, (forest, op) in cases.items():
            seconds = _core.time_forest_pingpong(forest._sf, 1, op, False, repeats)
            if turn: out.setdefault(f"message of {size} bytes, {name}", []).append(seconds)
for pc in ("jacobi", "amg"):
    for n in (60, 300):
        A = am.gallery.poisson((n, n), c); b = np.ones(A.local_shape[0])
        s = am.Solver(A, ksp="cg", pc=pc, rtol=1e-8)
        for turn in range(8):
            repeats = max(1, 2400 // n // n) * (1 if pc == "jacobi" else 2)
            c.Barrier(); start = MPI.Wtime()
            for _ in range(repeats): s.solve(b)
            if turn: out.setdefault(f"solve of {n}^2 unknowns, cg + {pc}", []).append(c.allreduce((MPI.Wtime() - start) / repeats, MPI.MAX))
if c.rank == 0: print(json.dumps(out))
"""


def waits(rounds: int) -> dict:
    """Seconds of messages and solves on two ranks of one thread; in turn with the build of the interpreter OLD_ASTERISM, if there is one."""
    builds = {"this": sys.executable}
    if older := os.environ.get("OLD_ASTERISM"):
        builds["other"] = older
    runs: dict[str, dict[str, list[list[float]]]] = {}
    for turn in range(max(5, rounds)):
        for name, python in list(builds.items())[:: 1 if turn % 2 else -1]:
            launcher = Path(python).parent / "mpiexec"  # of the environment's own MPI
            start = [str(launcher), *mpiexec(2)[1:], "--bind-to", "none", python, "-c", MEASURE]
            for case, seconds in json_line(["env", "ASTERISM_NUM_THREADS=1", *start]).items():
                runs.setdefault(case, {}).setdefault(name, []).append(seconds)
    cases = {}
    for case, of in runs.items():
        medians = {name: [statistics.median(s) for s in seconds] for name, seconds in of.items()}
        cases[case] = {"seconds": of, **{f"median_of_{name}": statistics.median(m) for name, m in medians.items()}}
        if "other" in medians:
            cases[case]["this_over_other"] = cases[case]["median_of_this"] / cases[case]["median_of_other"]
    return {"bench": "waits", "other": older and _version(older), "ranks": 2, "cases": cases}


def _version(python: str) -> str:
    """The commit of a build that is installed from a checkout."""
    where = [python, "-c", "import asterism; print(asterism.__path__[0])"]
    folder = subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()
    return subprocess.run(
        ["git", "-C", folder, "log", "-1", "--format=%h %cs"], capture_output=True, text=True, check=False
    ).stdout.strip()
