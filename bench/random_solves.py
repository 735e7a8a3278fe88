"""100 000 random systems against LAPACK and SciPy; bench/run.py runs it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from programs import mpiexec

HERE = Path(__file__).resolve().parent


def random_solves() -> dict:
    """100 000 random systems against LAPACK and SciPy, on 1, 2 and 3 ranks, also beside busy processes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.json"
        seed = 0
        for ranks, beside, solves in ((1, 0, 80_000), (1, 2, 10_000), (2, 0, 5_000), (3, 0, 4_000), (2, 2, 1_000)):
            start = [] if ranks == 1 else [*mpiexec(ranks), "--bind-to", "none", "--map-by", ":oversubscribe"]
            more = ["--solves", str(solves), "--seed", str(seed), "--busy", str(beside), "--json", str(file)]
            env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
            done = subprocess.run(
                [*start, sys.executable, HERE.parent / "tests/fuzz/solves.py", *more], check=False, env=env
            )
            if done.returncode not in (0, 1):  # 1: some were wrong, which the record says
                raise RuntimeError(f"random solves ended with {done.returncode}")
            seed += solves
        return {"bench": "random_solves", "runs": json.loads(file.read_text())}
