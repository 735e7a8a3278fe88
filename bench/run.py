"""Compares with STREAM and the peers found, interleaved; keeps the raw runs and prints the ratios.

    make bench                                # or: python bench/run.py [--n 128] [--rounds 3]
    AMGCL_ROOT=/path/to/amgcl make bench      # peers that are headers are found by a variable
    HPGMG_ROOT=/path/to/programs make bench   # hpgmg*, built by you; HPGMG_MPIEXEC: the launcher of their MPI
    OLD_ASTERISM=/path/to/python make bench   # an interpreter with another build of asterism, for the waits
    OLD_SCIPY=/path/to/python make bench      # an interpreter with SciPy < 1.12, whose mmread is its own (later ones: fast_matrix_market)

Peers: SciPy and PyAMG where installed, AMGCL where AMGCL_ROOT names its headers, HPGMG-FV where HPGMG_ROOT names programs, PETSc
and SuperLU_DIST where pkg-config finds them, CHOLMOD and UMFPACK where their headers are.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import scipy.sparse.linalg as spla  # noqa: E402
from assembly import assembly  # noqa: E402
from by_default import by_default  # noqa: E402
from direct import direct  # noqa: E402
from gmg import gmg  # noqa: E402
from high_order import high_order  # noqa: E402
from multigrid import amg, blocks, multigrid, triad  # noqa: E402
from precisions import precisions  # noqa: E402
from products import products  # noqa: E402
from programs import (  # noqa: E402
    READ_BY_SCIPY,
    READ_ON_RANKS,
    json_line,
    mpiexec,
    petsc,
    petsc_forest,
    weak,
    write_petsc_binary,
)
from random_solves import random_solves  # noqa: E402
from robustness import robustness  # noqa: E402
from stencils import kernels as stencils  # noqa: E402
from tables import show  # noqa: E402
from triangular import sptrsv  # noqa: E402
from waits import waits  # noqa: E402

import asterism as am  # noqa: E402
from asterism import _core  # noqa: E402
from asterism.base.cpu import cpu_name  # noqa: E402
from asterism.cli.bench_products import spmv_case, spmv_summary  # noqa: E402
from asterism.cli.bench_queues import async_cases, launch_cases  # noqa: E402

HERE = Path(__file__).resolve().parent


def spmv(n: int, rounds: int) -> dict:
    """Products by the bytes that plain CSR must move, against the triad of the same run, SciPy and PETSc's formats.

    Symmetric matrices also in the storage that holds half of them, and PETSc's.
    """
    peer = petsc("petsc_spmv.c")
    rng = np.random.default_rng(0)
    cases = {}
    A = am.gallery.poisson((n, n, n))
    S = A.to_scipy().tocsr()
    cases[f"poisson {n}^3, constant coefficients"] = S.copy()
    S.data = S.data * (1 + 0.1 * rng.random(S.nnz))
    cases[f"poisson {n}^3, perturbed values"] = S
    perm = rng.permutation(S.shape[0])
    cases["the same, randomly permuted"] = S[perm][:, perm].tocsr()
    cases["elasticity 40^3"] = am.gallery.elasticity((40, 40, 40)).to_scipy().tocsr()
    data = os.environ.get("ASTERISM_DATA")
    if data:
        import scipy.io

        for name in ("bcsstk16", "G2_circuit", "memplus", "cage10"):
            cases[name] = scipy.io.mmread(Path(data) / f"{name}.mtx.gz").tocsr()
    out = {}
    for name, M in cases.items():
        M = sp.csr_array(M)
        M.sort_indices()
        A = am.Matrix.from_scipy(M)
        try:
            half = A.with_storage("symmetric")
        except am.InputError:
            half = None
        M.indptr, M.indices = M.indptr.astype(np.int32), M.indices.astype(np.int32)
        x = rng.standard_normal(M.shape[1])
        runs: list[dict] = []
        halves: list[float] = []
        times: list[float] = []
        theirs: dict[str, list[float]] = {}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "matrix.bin"
            if peer:
                write_petsc_binary(M, file)
            for _ in range(max(7, rounds)):  # neighbours on a shared machine come and go: each round has them all
                runs.append(spmv_case(A, 1))
                if half:
                    halves.append(spmv_case(half, 1)["seconds"][0])
                inner = max(1, int(0.02 / runs[0]["seconds"][0]))
                M @ x
                t0 = time.perf_counter()
                for _ in range(inner):
                    M @ x
                times.append((time.perf_counter() - t0) / inner)
                for form in ("aij", "sell", *(["sbaij"] if half else [])) if peer else ():
                    r = json_line([str(peer), "-f", str(file), "-repeats", "3", "-inner", str(inner), "-format", form])
                    theirs.setdefault(r["peer"], []).append(statistics.median(r["seconds"]))
        ours = spmv_summary(A, [r["seconds"][0] for r in runs], [1e9 * r["triad_GB_per_s"] for r in runs])
        ours["scipy_seconds"] = times
        ours["scipy_over_ours"] = statistics.median(times) / statistics.median(ours["seconds"])
        ours["petsc"] = theirs
        if half:
            ours["symmetric"] = {
                "seconds": halves,
                "bytes": half._h.memory_bytes,
                "bytes_of_general": A._h.memory_bytes,
            }
        out[name] = ours
    return {"bench": "spmv", "cases": out}


def queues(rounds: int) -> dict:
    """Empty tasks, short vector operations, and CG and TFQMR at once, by a worker's queue and asynchronously."""
    return {
        "bench": "queues",
        "launch": launch_cases(max(3, rounds)),
        "async": async_cases(max(3, rounds), 1e7),
        "scipy": scipy_cg(rounds),
    }


def busy(rounds: int) -> dict:
    """Solves and exchanges beside busy processes, of 1 rank with all threads, 2 ranks and 4."""
    out = []
    for ranks in (1, 2, 4):
        command = [sys.executable, "-m", "asterism", "bench", "busy", "--repeats", str(rounds), "--json"]
        more = [] if ranks == 1 else ["--ranks", str(ranks), "--oversubscribe"]
        env = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "ASTERISM_NUM_THREADS")}
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=True, env=env)
        out.append(json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{"))))
    return {"bench": "busy", "cases": out}


def scipy_cg(rounds: int) -> list[dict]:
    """SciPy's cg with a jacobi preconditioner on the smallest and the largest of those grids, for the scale."""
    from scipy.sparse.linalg import cg

    out = []
    for n in (45, 447):
        S = am.gallery.poisson((n, n)).to_scipy()
        its, b, M = 200, np.ones(n * n), sp.diags_array(1 / S.diagonal())
        times = []
        for _ in range(max(3, rounds)):
            t0 = time.perf_counter()
            cg(S, b, rtol=1e-300, maxiter=its, M=M)
            times.append((time.perf_counter() - t0) / its)
        out.append({"case": "cg, 2-D 5-point", "nonzeros": int(S.nnz), "seconds_per_iteration": times})
    return out


def forest(rounds: int) -> dict:
    """Star forests between two ranks, beside raw MPI (the same run) and PETSc's (its own MPI, runs in turn with ours).

    In turns, since two cores of a virtual machine are near each other at one time and far at another.
    """
    peer = petsc("petsc_sf.c")
    launcher = shutil.which("mpiexec.openmpi")

    def measure(name: str, repeats: int) -> list[dict]:
        command = [
            *mpiexec(2),
            sys.executable,
            "-m",
            "asterism",
            "bench",
            name,
            "--json",
            "--repeats",
            str(repeats),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))

    def extend(rows: list[dict], more: list[dict]) -> list[dict]:
        for row, new in zip(rows, more, strict=True):
            for k, v in new.items():
                if isinstance(v, list):
                    row[k] += v
                elif isinstance(v, dict):
                    extend([row[k]], [v])
        return rows or more

    out: dict = {"bench": "forest", "ranks": 2, "petsc": []}
    for name in ("unpack", "transports", "halo"):
        out[name] = measure(name, 2 * rounds + 1)
    for turn in range(rounds):
        for name in ("pingpong", "sfsetup"):
            out[name] = extend(out[name], measure(name, 3)) if turn else measure(name, 3)
        theirs = [petsc_forest(peer, launcher, row, 3) for row in out["pingpong"]] if peer and launcher else []
        if all(theirs):
            out["petsc"] = extend(out["petsc"], theirs) if turn else theirs
    return out


def cg_jacobi(n: int, rounds: int) -> dict:
    """One CG + Jacobi iteration against (A once + the fewest vector passes) / triad: 12 n values."""
    A = am.gallery.poisson((n, n, n))
    b = np.ones(n**3)
    ours, streams, scipys = [], [], []
    S = A.to_scipy().tocsr()
    its = 60
    for _ in range(rounds):
        streams.append(triad())
        s = am.Solver(A, ksp="cg", pc="jacobi", rtol=1e-30, maxiter=its)
        s.solve(b, raise_on_failure=False)
        ours.append(s.info.solve_seconds / s.info.iterations)
        t0 = time.perf_counter()
        spla.cg(S, b, rtol=1e-30, maxiter=its, M=sp.diags_array(np.full(n**3, 1 / 6.0)))
        scipys.append((time.perf_counter() - t0) / its)
    least = 12.0 * A.nnz + 8.0 * 12 * n**3
    limit = least / (statistics.median(streams) * 1e9)
    return {
        "bench": "cg_jacobi",
        "n": n,
        "seconds_per_iteration": ours,
        "scipy": scipys,
        "limit": limit,
        "over_limit": statistics.median(ours) / limit,
        "triad": streams,
    }


def dropin(n: int, rounds: int) -> dict:
    """asterism.scipy beside SciPy: the same call, conversion of the matrix included, to the same residual or number of steps."""
    import asterism.scipy as ours

    S = am.gallery.poisson((n, n, n)).to_scipy().tocsr()
    b = np.ones(n**3)
    M = sp.diags_array(1 / S.diagonal()).tocsr()
    calls = {
        "cg, rtol 1e-8": ("cg", {"rtol": 1e-8}),
        "cg, M sparse, rtol 1e-8": ("cg", {"rtol": 1e-8, "M": M}),
        "bicgstab, 40 iterations": ("bicgstab", {"rtol": 0, "atol": 1e-300, "maxiter": 40}),
        "gmres(20), 3 restarts": ("gmres", {"rtol": 0, "atol": 1e-300, "maxiter": 3, "restart": 20}),
    }
    out = {}
    for name, (method, kw) in calls.items():
        times: dict[str, list[float]] = {"asterism": [], "scipy": []}
        residuals = {}
        for _ in range(rounds):
            for who, module in (("asterism", ours), ("scipy", spla)):
                t0 = time.perf_counter()
                x, _info = getattr(module, method)(S, b, **kw)
                times[who].append(time.perf_counter() - t0)
                residuals[who] = float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))
        out[name] = {
            **times,
            "residuals": residuals,
            "ratio": statistics.median(times["asterism"]) / statistics.median(times["scipy"]),
        }
    return {"bench": "scipy", "n": n, "calls": out}


def read(rounds: int) -> dict:
    """A Matrix Market file of about 50 MB, to a matrix that can be multiplied with: beside SciPy (to CSR) and fast_matrix_market."""
    import scipy.io

    try:
        import fast_matrix_market as fmm
    except ImportError:
        fmm = None
    A = am.gallery.poisson((60, 60, 60)).to_scipy()
    A.data = A.data * (1 + 0.1 * np.random.default_rng(0).random(A.nnz))
    out: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {k: str(Path(folder) / f"A.{k}") for k in ("mtx", "petsc", "ast")}
        for f in files.values():
            am.write_matrix(f, am.Matrix.from_scipy(A))
        size = os.path.getsize(files["mtx"])

        def timed(name: str, f: Callable[[], object]) -> None:
            t0 = time.perf_counter()
            f()
            out.setdefault(name, []).append(time.perf_counter() - t0)

        for _ in range(max(5, rounds)):
            for kind, f in files.items():
                for ranks in (1, 2) if kind == "mtx" else (2,):
                    line = json_line([*mpiexec(ranks), sys.executable, "-c", READ_ON_RANKS, f, "4"])
                    out.setdefault(f"asterism .{kind}, {ranks} rank(s)", []).append(line["seconds"][-1])
            for threads in (1, 2):
                if fmm:
                    timed(
                        f"fast_matrix_market, {threads} thread(s)",
                        lambda t=threads: fmm.read_scipy(files["mtx"], parallelism=t).tocsr(),
                    )
            timed(f"scipy {scipy.__version__} mmread", lambda: scipy.io.mmread(files["mtx"]).tocsr())
            if older := os.environ.get("OLD_SCIPY"):
                line = json_line([older, "-c", READ_BY_SCIPY, files["mtx"]])
                out.setdefault(f"scipy {line['version']} mmread", []).append(line["seconds"])
    return {"bench": "read", "bytes": size, "entries": int(A.nnz), "seconds": out}


def switched(name: str, switch: Callable[[bool], None], usual: bool, rounds: int) -> dict:
    """On against off: time of 20 CG + AMG iterations."""
    out = {}
    for n in (32, 128):
        A = am.gallery.poisson((n, n, n))
        b = np.ones(n**3)
        solvers = {}
        for on in (True, False):
            switch(on)
            solvers[on] = am.Solver(A, ksp="cg", pc="amg", rtol=1e-30, maxiter=20 if n > 64 else 200)
            solvers[on].solve(b, raise_on_failure=False)
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(3 * rounds):
            for on, s in solvers.items():
                switch(on)
                s.solve(b, raise_on_failure=False)
                times[on].append(s.info.solve_seconds)
        switch(usual)
        out[str(n)] = {
            "on": times[True],
            "off": times[False],
            "ratio": statistics.median(times[True]) / statistics.median(times[False]),
        }
    return {"bench": name, "cases": out}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--n", type=int, default=128)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument(
        "--only",
        choices=[
            "amg",
            "multigrid",
            "blocks",
            "precisions",
            "spmv",
            "cg_jacobi",
            "profiling",
            "reproducible",
            "queues",
            "busy",
            "forest",
            "scipy",
            "read",
            "assembly",
            "products",
            "by_default",
            "random_solves",
            "weak",
            "robustness",
            "waits",
            "stencils",
            "direct",
            "sptrsv",
            "gmg",
            "high_order",
        ],
    )
    args = p.parse_args()
    _core.set_team_size(1)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    ).stdout.strip()
    context = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "compiler": _core.build_info()["compiler"],
        "python": platform.python_version(),
    }
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    for name, f in (
        ("spmv", lambda: spmv(args.n, args.rounds)),
        ("cg_jacobi", lambda: cg_jacobi(args.n, args.rounds)),
        ("scipy", lambda: dropin(args.n, args.rounds)),
        ("read", lambda: read(args.rounds)),
        ("assembly", lambda: assembly(args.rounds, triad)),
        ("products", lambda: products(args.n, args.rounds)),
        ("by_default", lambda: by_default(args.rounds)),
        ("profiling", lambda: switched("profiling", _core.profile_enable, True, args.rounds)),
        ("reproducible", lambda: switched("reproducible", _core.set_reproducible, False, args.rounds)),
        ("queues", lambda: queues(args.rounds)),
        ("busy", lambda: busy(args.rounds)),
        ("forest", lambda: forest(args.rounds)),
        ("amg", lambda: amg(args.n, args.rounds)),
        ("multigrid", lambda: multigrid(args.n, args.rounds)),
        ("blocks", lambda: blocks(args.n, args.rounds)),
        ("precisions", lambda: precisions(args.rounds)),
        ("random_solves", random_solves),
        ("weak", lambda: weak(args.rounds)),
        ("robustness", robustness),
        ("waits", lambda: waits(args.rounds)),
        ("stencils", stencils),
        ("direct", lambda: direct(args.rounds)),
        ("sptrsv", lambda: sptrsv(args.rounds)),
        ("gmg", gmg),
        ("high_order", lambda: high_order(args.rounds)),
    ):
        if args.only and args.only != name:
            continue
        r = {**context, **f()}
        (folder / f"{name}.json").write_text(json.dumps(r, indent=1))
        show(r)
    return 0


if __name__ == "__main__":
    sys.exit(main())
