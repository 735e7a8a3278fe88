"""Solves positive definite matrices by cg with amg and nothing else given, beside PyAMG's defaults, and writes
docs/reference/multigrid-table.md.

The real matrices are those under ASTERISM_DATA. Each time is the best of three of set-up and solve.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import asterism as am

REAL = [
    *("1138_bus", "bcsstk13", "bcsstk16", "bcsstk38", "s3rmt3m3", "ex15", "G2_circuit", "ani4", "bar", "maxwell_S"),
    *("maxwell_M1", "mhd1280b", "stokes_lsc_F", "unit_square"),
]
MADE = {
    "Poisson, 64^3": lambda: am.gallery.poisson((64, 64, 64)),
    "Poisson, 300^2, anisotropy 1e-3": lambda: am.gallery.poisson((300, 300), epsilon=(1, 1e-3)),
    "elasticity, 20^3": lambda: am.gallery.elasticity((20, 20, 20)),
    "elasticity, 20^3, Poisson ratio 0.49": lambda: am.gallery.elasticity((20, 20, 20), poisson_ratio=0.49),
}
MOST = 4000


def ours(S: Any, block_size: int, b: Any) -> tuple[int, Any, str]:
    s = am.Solver(am.Matrix.from_scipy(S, block_size=block_size), ksp="cg", pc="amg", rtol=1e-8, ksp_max_it=MOST)
    x = s.solve(b, raise_on_failure=False)
    assert s.info is not None
    finest = s.view().split("storage, smoother\n")[1].splitlines()[0]
    return s.info.iterations, x, "none: one level" if "dense inverse" in finest else finest.split(", ", 1)[1]


def pyamgs(S: Any, block_size: int, b: Any) -> tuple[int, Any, str]:
    import pyamg
    from pyamg.krylov import cg

    A = S if block_size == 1 else sp.bsr_matrix(S, blocksize=(block_size, block_size))
    steps = [0]

    def count(_: Any) -> None:
        steps[0] += 1

    M = pyamg.smoothed_aggregation_solver(A).aspreconditioner()
    x, _ = cg(A, b, M=M, tol=1e-8, maxiter=MOST, callback=count)
    return steps[0], x, ""


def best(solve: Callable[[], tuple[int, Any, str]], S: Any, b: Any) -> tuple[str, float, str]:
    """The iterations, or a dash where the residual is not small; the seconds; the smoother."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        iterations, x, smoother = solve()
        seconds.append(time.perf_counter() - started)
    good = np.linalg.norm(b - S @ x) <= 1.01e-8 * np.linalg.norm(b)
    return str(iterations) if good else "-", min(seconds), smoother


def main() -> int:
    data = Path(os.environ["ASTERISM_DATA"])
    warnings.simplefilter("ignore")
    made = {name: (A.to_scipy(), A.block_size) for name, A in ((n, f()) for n, f in MADE.items())}
    real = {name: (sp.csr_array(scipy.io.mmread(data / f"{name}.mtx.gz")), 1) for name in REAL}
    lines = []
    for name, (S, block_size) in {**real, **made}.items():
        b = S @ np.cos(np.arange(S.shape[0]) + 1.0)
        mine, seconds, smoother = best(lambda S=S, n=block_size, b=b: ours(S, n, b), S, b)
        theirs, other, _ = best(lambda S=S, n=block_size, b=b: pyamgs(sp.csr_matrix(S), n, b), S, b)
        lines.append(
            f"| {name} | {S.shape[0]} | {S.nnz} | {smoother} | {mine} | {seconds:.3f} | {theirs} | {other:.3f} |"
        )
        print(lines[-1], flush=True)
    import pyamg

    head = (
        "# Multigrid with its defaults\n\n"
        "cg with amg, and nothing else given, beside PyAMG's `smoothed_aggregation_solver(A)` with cg. The system is\n"
        "b = A x* with x*_i = cos(i + 1). rtol is 1e-8. SciPy computes the residual from the answer. A dash says that it\n"
        f"is not reached in {MOST} iterations. Times are seconds of set-up and solve, the best of three, one process,\n"
        f"PyAMG {pyamg.__version__}. `make table` writes this page. The smoother is that of the finest level, which\n"
        "[the library chooses](../explanation/multigrid.md#the-smoother).\n\n"
        "| matrix | rows | entries | smoother | iterations | seconds | PyAMG: iterations | seconds |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    target = Path(__file__).resolve().parent.parent / "docs" / "reference" / "multigrid-table.md"
    target.write_text(head + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
