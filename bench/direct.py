"""Sparse factorisations beside CHOLMOD, UMFPACK, SuperLU_DIST and SciPy's SuperLU; bench/run.py runs it.

python bench/direct.py poisson N cholesky|lu ORDER    # one case in this process, or on these ranks: a line of JSON
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from multigrid import triad, write_for_peers
from programs import PEERS, build_peer, json_line, mpiexec

import asterism as am
from asterism import _core

REPEATS = 3


def event(name: str) -> tuple[int, float]:
    """Calls and seconds of an event of the profile."""
    found = [r for r in _core.profile_snapshot() if r["name"] == name]
    return (found[0]["calls"], found[0]["seconds"]) if found else (0, 0.0)


def backward_error(S: sp.csr_array, x: np.ndarray, b: np.ndarray) -> float:
    """Componentwise, in long double: |b - A x| / (|A| |x| + |b|), zero rows left out."""
    size = abs(S) @ np.abs(x) + np.abs(b)
    coo = S.tocoo()
    r = b.astype(np.clongdouble if np.iscomplexobj(x) or np.iscomplexobj(S.data) else np.longdouble)
    np.subtract.at(r, coo.row, coo.data.astype(r.dtype) * x[coo.col])
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.max(np.where(size > 0, np.abs(r) / size, 0), initial=0))


def ours(n: int, kind: str, order: str) -> dict:
    """Seconds of each phase, the numeric one and the solve again and again. With mpi4py imported: of all ranks."""
    comm = sys.modules["mpi4py.MPI"].COMM_WORLD if "mpi4py.MPI" in sys.modules else None
    A = am.gallery.poisson((n, n, n), comm)
    b = (np.random.default_rng(1).random(A.shape[0]) - 0.5)[slice(*A.row_range)]
    solver = am.Solver(A, ksp="preonly", pc=kind, pc_factor_mat_ordering_type=order)
    out: dict = {"numeric": [], "solve": [], "symbolic": event("FactorSymbolic")[1]}
    for _ in range(REPEATS):
        calls, seconds = event("FactorNumeric")
        solver.update(A)
        after = event("FactorNumeric")
        out["numeric"].append((after[1] - seconds) / (after[0] - calls))
        x = solver.solve(b)
        calls, seconds = event("FactorSolve")
        x = solver.solve(b)
        after = event("FactorSolve")
        out["solve"].append((after[1] - seconds) / (after[0] - calls))
    out["entries"] = solver.factors["entries"]
    error = solver.info.backward_error if comm else backward_error(A.to_scipy().tocsr(), x, b)
    out["backward_error"] = float(np.max(error))
    return out


def peers() -> dict[str, Path]:
    """Programs of the peers that are found."""
    out = {}
    if program := build_peer(PEERS / "suitesparse_solve.c", ["-lcholmod", "-lumfpack", "-lm"], "cc"):
        out["suitesparse"] = program
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "superlu_dist"], capture_output=True, text=True, check=False
    )
    compiler = shutil.which("mpicc.openmpi")
    if flags.returncode == 0 and compiler:
        program = build_peer(PEERS / "superlu_dist_solve.c", [*flags.stdout.split(), "-lm"], compiler)
        if program:
            out["superlu_dist"] = program
    return out


def real(name: str, rounds: int) -> dict:
    """A real matrix by preonly + lu, and by SciPy's SuperLU: set-up and solve, right-hand side A times random numbers."""
    A = am.read_matrix(Path(os.environ["ASTERISM_DATA"]) / f"{name}.mtx.gz")
    S = sp.csr_array(A.to_scipy())
    b = S @ np.random.default_rng(7).standard_normal(S.shape[1])
    case: dict = {"rows": S.shape[0], "entries": int(S.nnz), "seconds": [], "superlu": {"seconds": []}}
    for _ in range(rounds):
        t = time.perf_counter()
        try:
            x, info = am.solve(A, b, ksp="preonly", pc="lu")
            case["backward_error"] = backward_error(S, x, b)
            case["reason"] = info.reason
        except am.AsterismError as error:
            case["refused"] = str(error)
        case["seconds"].append(time.perf_counter() - t)
        t = time.perf_counter()
        try:
            x = spla.splu(S.tocsc()).solve(b)
            case["superlu"]["backward_error"] = backward_error(S, x, b)
        except RuntimeError as error:
            case["superlu"]["refused"] = str(error)
        case["superlu"]["seconds"].append(time.perf_counter() - t)
    return case


def direct(rounds: int, sizes: tuple[int, ...] = (40, 60)) -> dict:
    """Poisson n^3 by each phase, interleaved, one thread each unless said; then every square real matrix as a whole."""
    found = peers()
    grids: dict[str, dict[str, list[dict]]] = {}
    streams = []
    me = [sys.executable, str(Path(__file__).resolve()), "poisson"]
    for n in sizes:
        runs: dict[str, list[dict]] = {}
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            write_for_peers(Path(file.name), am.gallery.poisson((n, n, n)))
            for _ in range(rounds):
                streams.append(triad())
                for kind, peer in (("cholesky", "cholmod"), ("lu", "umfpack")):
                    for threads in (1, 2):
                        os.environ["ASTERISM_NUM_THREADS"] = str(threads)
                        r = json_line([*me, str(n), kind, "nd"])
                        runs.setdefault(f"asterism {kind}, {threads} thread(s)", []).append(r)
                    os.environ["ASTERISM_NUM_THREADS"] = "1"
                    r = json_line([*mpiexec(2), *me, str(n), kind, "nd", "ranks"])
                    runs.setdefault(f"asterism {kind}, 2 rank(s)", []).append(r)
                    os.environ.pop("ASTERISM_NUM_THREADS")
                    if program := found.get("suitesparse"):
                        r = json_line([str(program), file.name, peer, "metis", str(REPEATS)])
                        runs.setdefault(f"{peer}, metis", []).append(r)
                if program := found.get("superlu_dist"):
                    for ranks in (1, 2):
                        r = json_line([*_launcher(ranks), str(program), file.name, str(REPEATS)])
                        runs.setdefault(f"superlu_dist, {ranks} rank(s)", []).append(r)
        grids[f"poisson {n}^3"] = runs
    data = Path(os.environ["ASTERISM_DATA"]) if os.environ.get("ASTERISM_DATA") else None
    cases = {}
    if data:
        import csv

        with (data / "MANIFEST.csv").open() as f:
            for row in csv.DictReader(f):
                square = row["rows"] == row["cols"] and row["kind"].startswith("coordinate")
                if square and "pattern" not in row["kind"]:
                    name = row["file"].removesuffix(".mtx.gz")
                    print(name, file=sys.stderr)
                    cases[name] = real(name, rounds)
    return {
        "bench": "direct",
        "triad_GB_per_s_1_thread": streams,
        "grids": grids,
        "real": cases,
        "peers": {k: _version(k) for k in found} | {"superlu": f"SciPy {_scipy_version()}"},
    }


def _launcher(ranks: int) -> list[str]:
    """Debian's launcher, for a program that is linked to Debian's Open MPI."""
    for p in ("OMPI", "PRTE"):
        os.environ[f"{p}_ALLOW_RUN_AS_ROOT"] = os.environ[f"{p}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return [shutil.which("mpiexec.openmpi") or "mpiexec", "-n", str(ranks)]


def _version(peer: str) -> str:
    package = {"suitesparse": "libsuitesparse-dev", "superlu_dist": "libsuperlu-dist-dev"}[peer]
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${Version}", package], capture_output=True, text=True, check=False
    )
    blas = Path("/usr/lib/x86_64-linux-gnu/libblas.so.3")
    return f"{done.stdout or 'an unknown version'}, BLAS {blas.resolve() if blas.exists() else '?'}"


def _scipy_version() -> str:
    import scipy

    return scipy.__version__


def table(r: dict) -> None:
    """Print medians of each phase, and the real matrices in one line each."""

    def median(runs: list[dict], what: str) -> float:
        return statistics.median([s for run in runs for s in run[what]])

    for name, runs in r["grids"].items():
        for run, rows in runs.items():
            kind = "cholesky" if "chol" in run else "lu"
            one = runs[f"asterism {kind}, {'2 rank(s)' if '2 ' in run else '1 thread(s)'}"]
            numeric, solve = median(rows, "numeric"), median(rows, "solve")
            share = (
                ""
                if run.startswith("asterism")
                else f"; ours takes {median(one, 'numeric') / numeric:.2f} and {median(one, 'solve') / solve:.2f}"
            )
            entries = f", {rows[0]['entries'] / 1e6:.2f} M entries" if "entries" in rows[0] else ""
            print(f"direct  {name} {run:26s} numeric {numeric:.3f} s, solve {1e3 * solve:.1f} ms{entries}{share}")
    shares = []
    for name, c in r["real"].items():
        mine = min(c["seconds"])
        theirs = min(c["superlu"]["seconds"])
        error = f"{c['backward_error']:.1e}" if "backward_error" in c else "refused"
        peer = f"{c['superlu']['backward_error']:.1e}" if "backward_error" in c["superlu"] else "refused"
        shares.append(mine / theirs)
        print(f"direct  {name:24s} {mine:.3f} s, backward error {error}; SuperLU {theirs:.3f} s, {peer}")
    if shares:
        print(f"direct  {len(shares)} real matrices: {statistics.median(shares):.2f} of SuperLU's time in the median")


if __name__ == "__main__":
    if sys.argv[5:] == ["ranks"]:
        import mpi4py.MPI
    result = json.dumps(ours(int(sys.argv[2]), sys.argv[3], sys.argv[4]))
    if "mpi4py.MPI" not in sys.modules or mpi4py.MPI.COMM_WORLD.rank == 0:
        print(result)
