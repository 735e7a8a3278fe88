"""A short form of tests/fuzz/solves.py: random solves of all kinds, against more digits, LAPACK and SciPy."""

import os
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE, run_session, under_mpiexec

SOLVES = Path(__file__).resolve().parents[1] / "fuzz" / "solves.py"


@pytest.mark.parametrize(("ranks", "solves", "busy"), [(1, 2500, 0), (1, 300, 3), (2, 200, 0), (3, 150, 1)])
def test_no_random_solve_is_wrong(ranks, solves, busy, tmp_path):
    command = [sys.executable, str(SOLVES), "--solves", str(solves), "--busy", str(busy), "--seed", str(1000 * ranks)]
    env = dict(os.environ, ASTERISM_NUM_THREADS="2" if busy else "1")
    if ranks > 1:
        launcher, settings = under_mpiexec(ranks, tmp_path)
        command, env = [*launcher, *command], env | settings
    code, out = run_session(command, PATIENCE, env)
    assert code == 0 and f"{solves} solves on {ranks} rank(s)" in out and " 0 wrong" in out, out
    converged = [line for line in out.splitlines() if line.endswith("  converged")]
    assert int(converged[0].split()[0]) > 0.5 * solves, out
