"""Multigrid beside AMGCL, PyAMG and PETSc; bench/run.py runs it.

python bench/multigrid.py CASE|FILE N    # one case on the ranks of mpiexec: a line of JSON
"""

import functools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from programs import PEERS, SOLVE_ON_RANKS, build_peer, commit_of, json_line, mpiexec, petsc

import asterism as am
from asterism import _core

GRIDS = ("variable", "jumps")
REAL = ("G2_circuit", "bcsstk38", "ex15", "stokes_lsc_F", "s3rmt3m3", "bcsstk16", "maxwell_S")
RUN_LIMIT = 60  # seconds that a run of multigrid() may take, but for PyAMG's


def diffusion(n: int, jumps: bool, comm=None):  # noqa: ANN001, ANN201
    """-div(k grad u) on n^3 points with a coefficient on each edge: random in 0.5 to 1.5, or 1 and 1000 in blocks of (n/8)^3.

    Beyond that, 1e-8 of ||b|| is below the rounding of A x.
    """
    A = am.gallery.poisson((n, n, n), comm)
    begin, S = A.row_range[0], A.to_scipy().tocoo()
    i, j = S.row.astype(np.int64) + begin, S.col.astype(np.int64)
    beside = i != j
    low, high = np.minimum(i, j)[beside].astype(np.uint64), np.maximum(i, j)[beside].astype(np.uint64)
    if jumps:

        def coefficient(v):  # noqa: ANN001, ANN202
            cell = max(n // 8, 1)
            v = v.astype(np.int64)
            return np.where((v // (n * n) // cell + v // n % n // cell + v % n // cell) % 2 == 0, 1.0, 1e3)

        a, b = coefficient(low), coefficient(high)
        k = 2 * a * b / (a + b)
    else:
        h = low * np.uint64(0x9E3779B97F4A7C15) ^ high * np.uint64(0xC2B2AE3D27D4EB4F)
        h = (h ^ h >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
        k = 0.5 + (h >> np.uint64(40)).astype(float) / 2.0**24
    values = np.empty(len(i))
    values[beside] = -k
    rows = A.local_shape[0]
    walls = 6 - np.bincount(S.row[beside], minlength=rows)
    values[~beside] = np.bincount(S.row[beside], weights=k, minlength=rows) + walls
    return am.Matrix.coo(A.shape, i, j, values, comm, local_rows=rows)


def case(name: str, n: int, comm=None):  # noqa: ANN001, ANN201
    """Return the matrix of a case, or of a file."""
    if os.sep in name:
        return am.read_matrix(name, comm)
    if name in GRIDS:
        return diffusion(n, name == "jumps", comm)
    if name == "elasticity":
        return am.gallery.elasticity((48, 48, 48), comm=comm)
    return am.read_matrix(Path(os.environ["ASTERISM_DATA"]) / f"{name}.mtx.gz", comm)


def write_for_peers(path: Path, A: am.Matrix, b: np.ndarray | None = None) -> None:
    """Write a matrix of one process as bench/peers/amgcl_solve.cpp and hypre_solve.c read it."""
    S = A.to_scipy().tocsr()
    S.eliminate_zeros()
    B = A.near_null_space
    modes = 0 if B is None else B.shape[1]
    with path.open("wb") as f:
        f.write(np.array([S.shape[0], S.nnz, A.block_size, modes], np.int64).tobytes())
        f.write(S.indptr.astype(np.int32).tobytes() + S.indices.astype(np.int32).tobytes() + S.data.tobytes())
        if B is not None:
            f.write(np.ascontiguousarray(B).tobytes())
        if b is not None:
            f.write(b.tobytes())


@functools.cache
def amgcl_program() -> tuple[Path | None, dict[str, str]]:
    """Return AMGCL's program where AMGCL_ROOT names its headers, and what it was made of."""
    root = os.environ.get("AMGCL_ROOT")
    flags = ["-std=c++20", "-fopenmp", "-DNDEBUG", "-DAMGCL_NO_BOOST"]
    program = build_peer(PEERS / "amgcl_solve.cpp", [*flags, f"-I{root}"], "g++") if root else None
    of = f"source of {commit_of(Path(root))}, g++ -O3 -march=native {' '.join(flags)}" if program and root else ""
    return program, {"amgcl": of} if program else {}


def ours(name: str, n: int, comm=None) -> dict:  # noqa: ANN001
    """Set-up and solve by cg + amg, right-hand side 1."""
    A = case(name, n, comm)
    solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8, maxiter=5000)
    solver.solve(np.ones(A.local_shape[0]))
    info = solver.info
    assert info is not None
    times = {"setup": [info.setup_seconds], "solve": [info.solve_seconds]}
    return {**times, "iterations": info.iterations, "view": solver.view()}


def with_pyamg(name: str, n: int) -> dict:
    """The same by PyAMG with its defaults; the near-null space and block size are given to it too."""
    import pyamg

    A = case(name, n)
    S = sp.csr_matrix(A.to_scipy())
    if A.block_size > 1:
        S = S.tobsr((A.block_size, A.block_size))
    S.indptr, S.indices = S.indptr.astype(np.int32), S.indices.astype(np.int32)
    residuals: list[float] = []
    t0 = time.perf_counter()
    ml = pyamg.smoothed_aggregation_solver(S, B=A.near_null_space, max_coarse=500)
    t1 = time.perf_counter()
    b = np.ones(S.shape[0])
    x = ml.solve(b, tol=1e-8, accel="cg", maxiter=5000, residuals=residuals)
    t2 = time.perf_counter()
    true = float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))
    return {"setup": [t1 - t0], "solve": [t2 - t1], "iterations": len(residuals) - 1, "relative_residual": true}


def triad() -> float:
    """Return the bandwidth of a thread, GB/s."""
    return 24 * 16e6 / statistics.median(_core.stream_triad(16_000_000, 5)) / 1e9


def multigrid(n: int, rounds: int) -> dict:
    """Matrices without constant rows: variable and jumping coefficients, elasticity with rigid-body modes, real matrices.

    Interleaved, in fresh processes, of PyAMG once; a failure is recorded as its message.
    """
    amgcl, peers = amgcl_program()
    names = [*GRIDS, "elasticity", *(REAL if os.environ.get("ASTERISM_DATA") else ())]
    cases: dict[str, dict[str, list[dict]]] = {}
    streams = []
    for name in names:
        runs: dict[str, list[dict]] = {}
        with tempfile.TemporaryDirectory() as folder:
            file, matrix = Path(folder) / "matrix.bin", name
            A = case(name, n)
            write_for_peers(file, A)
            if name in GRIDS:  # which take longer to make than to solve
                matrix = str(Path(folder) / "matrix.ast")
                am.write_matrix(matrix, A)
            del A

            def keep(run: str, f: Callable[[], dict], runs: dict = runs, name: str = name) -> None:
                print(f"{name}: {run}", file=sys.stderr)
                try:
                    runs.setdefault(run, []).append(f())
                except Exception as error:  # a failure is a result too
                    runs.setdefault(run, []).append(
                        {"failure": str(error).splitlines()[0] if str(error) else repr(error)}
                    )

            for turn in range(rounds):
                streams.append(triad())
                for ranks, threads in ((1, 1), (1, 2), (2, 1)):
                    launcher = mpiexec(ranks) if ranks > 1 else []  # which would give both threads one core
                    command = [*launcher, sys.executable, str(Path(__file__).resolve()), matrix, str(n)]
                    os.environ["ASTERISM_NUM_THREADS"] = str(threads)
                    keep(f"asterism, {ranks} x {threads}", lambda c=command: json_line(c, RUN_LIMIT))
                os.environ.pop("ASTERISM_NUM_THREADS")
                for threads in (1, 2) if amgcl else ():
                    os.environ["OMP_NUM_THREADS"] = str(threads)
                    keep(
                        f"amgcl float, {threads} thread(s)",
                        lambda f=file: json_line([str(amgcl), str(f), "1", "float"], RUN_LIMIT),
                    )
                os.environ["OMP_NUM_THREADS"] = "1"
                if turn == 0:
                    keep("pyamg", lambda matrix=matrix: with_pyamg(matrix, n))
        cases[name] = runs
    return {"bench": "multigrid", "n": n, "triad_GB_per_s_1_thread": streams, "cases": cases, "peers": peers}


def blocks(n: int, rounds: int) -> dict:
    """Two, three and eight right-hand sides at once beside one: seconds of an iteration of cg + amg, in one process, interleaved.

    Vectors cost as many times as much, or more where one of them fits the third cache; the matrix is read once. So the ratio tells what an
    iteration spends on vectors.
    """
    cases: dict[str, dict] = {}
    before, streams = _core.team_size(), []
    for name in ("constant", "variable", "elasticity"):
        A = am.gallery.poisson((n, n, n)) if name == "constant" else case(name, n)
        B = np.random.default_rng(0).random((A.shape[0], 8))
        right = {"1": B[:, 0].copy(), **{str(k): B[:, :k].copy() for k in (2, 3, 8)}}
        for threads in (1, 2):
            print(f"blocks: {name}, {threads} thread(s)", file=sys.stderr)
            _core.set_team_size(threads)
            solver = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8)
            seconds: dict[str, list[float]] = {k: [] for k in right}
            for turn in range(rounds + 1):
                for k, b in right.items():
                    solver.solve(b)
                    if turn > 0:  # the first pays for memory
                        seconds[k].append(solver.info.solve_seconds / solver.info.iterations)
            medians = {k: statistics.median(v) for k, v in seconds.items()}
            cases[f"{name}, {threads} thread(s)"] = {
                "rows": A.shape[0],
                "entries": A.nnz,
                "levels": solver.view(),
                "seconds_per_iteration": seconds,
                "ratios": {k: m / medians["1"] for k, m in medians.items()},
            }
        _core.set_team_size(1)
        streams.append(triad())
    _core.set_team_size(before)
    return {"bench": "blocks", "n": n, "triad_GB_per_s_1_thread": streams, "cases": cases}


def amg(n: int, rounds: int) -> dict:
    """CG + AMG, Poisson n^3, rtol 1e-8 on the true residual: set-up + solve, seconds, [first, again in the same process].

    The first time pays for fresh memory, which some virtual machines hand out at less than 1 GB/s.
    """
    runs: dict[str, list[dict]] = {}
    amgcl, peers = amgcl_program()
    gamg = petsc("petsc_poisson.c")
    with tempfile.NamedTemporaryFile(suffix=".bin", delete=False) as file:
        write_for_peers(Path(file.name), am.gallery.poisson((n, n, n)))
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as script:
        script.write(SOLVE_ON_RANKS)
    streams = []
    for _ in range(rounds):
        streams.append(triad())
        for ranks, threads in ((1, 1), (1, 2), (2, 1)):
            name = f"asterism, {ranks} rank{'s' * (ranks > 1)} x {threads} thread{'s' * (threads > 1)}"
            launcher = mpiexec(ranks) if ranks > 1 else []  # which would give both threads one core
            os.environ["ASTERISM_NUM_THREADS"] = str(threads)
            r = json_line([*launcher, sys.executable, script.name, str(n)])
            view = r.pop("view")
            runs.setdefault(name, []).append(r)
        os.environ.pop("ASTERISM_NUM_THREADS")
        if amgcl:
            for threads in (1, 2):
                os.environ["OMP_NUM_THREADS"] = str(threads)
                for precision in ("float", "double"):
                    r = json_line([str(amgcl), file.name, "2", precision])
                    name = f"amgcl, 32-bit indices, preconditioner in {precision}, 1 rank x {threads} thread(s)"
                    runs.setdefault(name, []).append({k: r[k] for k in ("setup", "solve", "iterations", "peak_bytes")})
            os.environ["OMP_NUM_THREADS"] = "1"
        if gamg:
            r = json_line([str(gamg), "-n", str(n)])
            runs.setdefault(f"{r['peer']} gamg, 1 rank", []).append(
                {"setup": r["setup"], "solve": r["solve"], "iterations": r["iterations"], "spmv": r["spmv"]}
            )
        try:
            import pyamg

            S = am.gallery.poisson((n, n, n)).to_scipy().tocsr()
            S.indptr, S.indices = S.indptr.astype(np.int32), S.indices.astype(np.int32)
            setup, solve, res = [], [], []
            for _again in range(2):
                ml = None
                t0 = time.perf_counter()
                ml = pyamg.smoothed_aggregation_solver(sp.csr_matrix(S), max_coarse=500)
                t1 = time.perf_counter()
                res = []
                ml.solve(np.ones(n**3), tol=1e-8, accel="cg", residuals=res)
                setup.append(t1 - t0)
                solve.append(time.perf_counter() - t1)
            runs.setdefault(f"pyamg {pyamg.__version__}, 1 rank", []).append(
                {"setup": setup, "solve": solve, "iterations": len(res) - 1}
            )
            del ml, S
        except ImportError:
            pass
    os.unlink(script.name)
    os.unlink(file.name)
    return {
        "bench": "amg",
        "n": n,
        "triad_GB_per_s_1_thread": streams,
        "runs": runs,
        "peers": peers,
        "levels": view,
    }


if __name__ == "__main__":
    from mpi4py import MPI

    line = ours(sys.argv[1], int(sys.argv[2]), MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(line))
