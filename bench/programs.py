"""Programs that benchmarks start: ours on several ranks, and the peers' of bench/peers, built where the peers are found."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

PEERS = Path(__file__).resolve().parent / "peers"

SOLVE_ON_RANKS = """
import json, sys, numpy as np, asterism as am
from mpi4py import MPI
c = MPI.COMM_WORLD
n = int(sys.argv[1])
A = am.gallery.poisson((n, n, n), c); b = np.ones(A.local_shape[0])
setup, solve = [], []
for k in range(2):
    s = None
    s = am.Solver(A, ksp="cg", pc="amg", rtol=1e-8); s.solve(b)
    setup.append(s.info.setup_seconds); solve.append(s.info.solve_seconds)
# not ru_maxrss, which a process takes over from the one that started it
peak = c.gather(1024 * int(next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1]), root=0)
if c.rank == 0: print(json.dumps({"peak_bytes_of_ranks": peak, "view": s.view(), "setup": setup, "solve": solve, "iterations": s.info.iterations, "memory_bytes": s.info.memory_bytes}))
"""

ASSEMBLE_ON_RANKS = """
import json, sys, time, numpy as np, asterism as am
from asterism.cli.bench_assembly import trilinear_entries
from mpi4py import MPI
c = MPI.COMM_WORLD
e, repeats = int(sys.argv[1]), int(sys.argv[2])
nodes, i, j = trilinear_entries(e, e * c.rank // c.size, e * (c.rank + 1) // c.size)
v = 1.0 + np.arange(len(i)) % 7
setup, values = [], []
A = plan = None
for _ in range(3):
    A = plan = None
    c.Barrier(); t = time.perf_counter()
    plan = am.Assembly((nodes, nodes), i, j, c)
    c.Barrier(); setup.append(time.perf_counter() - t)
    for _ in range(repeats):
        t = time.perf_counter()
        A = plan.matrix(v)
        c.Barrier(); values.append(time.perf_counter() - t)
norm = c.allreduce(float(np.sum(A.to_scipy().data ** 2))) ** 0.5
if c.rank == 0: print(json.dumps({"setup": setup, "values": values, "nnz": A.nnz, "norm": norm}))
"""

INSERT_ON_RANKS = """
import json, sys, time, numpy as np, asterism as am
from asterism.cli.bench_assembly import trilinear_nodes
from mpi4py import MPI
c = MPI.COMM_WORLD
e, repeats = int(sys.argv[1]), int(sys.argv[2])
size, nodes = trilinear_nodes(e, e * c.rank // c.size, e * (c.rank + 1) // c.size)
v = 1.0 + np.arange(8 * nodes.size).reshape(-1, 8, 8) % 7
seconds = {"stack": [], "again": [], "layers": [], "one": []}
def timed(name, give, builder):
    c.Barrier(); t = time.perf_counter()
    give(builder)
    A = builder.matrix()
    c.Barrier(); seconds[name].append(time.perf_counter() - t)
    return A
def in_parts(of):
    def give(builder):
        for k in range(0, len(nodes), of): builder.add(nodes[k : k + of], nodes[k : k + of], v[k : k + of])
    return give
def alone(builder):
    for k in range(len(nodes)): builder.add(nodes[k], nodes[k], v[k])
A = None
for _ in range(repeats):
    for name, give in (("layers", in_parts(e * e)), ("one", alone), ("stack", in_parts(len(nodes)))):
        A = builder = None
        builder = am.Builder((size, size), comm=c)
        A = timed(name, give, builder)
    A = timed("again", in_parts(len(nodes)), builder)
norm = c.allreduce(float(np.sum(A.to_scipy().data ** 2))) ** 0.5
if c.rank == 0: print(json.dumps({"seconds": seconds, "nnz": A.nnz, "norm": norm}))
"""

READ_ON_RANKS = """
import json, sys, time, asterism as am
from mpi4py import MPI
c = MPI.COMM_WORLD
times = []
for _ in range(int(sys.argv[2])):
    A = None
    c.Barrier()
    t = time.perf_counter()
    A = am.read_matrix(sys.argv[1], c)
    c.Barrier()
    times.append(time.perf_counter() - t)
if c.rank == 0: print(json.dumps({"seconds": times, "entries": A.nnz}))
"""

READ_BY_SCIPY = """
import json, sys, time, scipy.io
t = time.perf_counter()
scipy.io.mmread(sys.argv[1]).tocsr()
print(json.dumps({"seconds": time.perf_counter() - t, "version": scipy.__version__}))
"""


def weak(rounds: int) -> dict:
    """Weak scaling of multigrid on 1 to 8 ranks, in fresh processes."""
    command = [sys.executable, "-m", "asterism", "bench", "weak", "--repeats", str(rounds), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {"bench": "weak", **json.loads(done.stdout.splitlines()[-1])}


def build_peer(source: Path, flags: list[str], compiler: str) -> Path | None:
    out = Path(tempfile.gettempdir()) / f"asterism-bench-{source.stem}"
    done = subprocess.run(
        [compiler, "-O3", "-march=native", str(source), *flags, "-o", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"({source.name} does not build: {done.stderr.splitlines()[0] if done.stderr else '?'})", file=sys.stderr)
        return None
    return out


def commit_of(folder: Path) -> str:
    """Day and short name of the commit that is checked out there."""
    command = ["git", "-C", str(folder), "log", "-1", "--format=%cs, %h"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "an unknown commit"


def json_line(command: list[str], limit: float = 900) -> dict:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{Path(command[0]).name}: did not end within {limit:g} s") from None
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError(f"{Path(command[0]).name}: {done.stderr[-300:]}")


def mpiexec(n: int) -> list[str]:
    for p in ("OMPI", "PRTE"):
        os.environ[f"{p}_ALLOW_RUN_AS_ROOT"] = os.environ[f"{p}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    beside = Path(sys.executable).parent / "mpiexec"
    return [str(beside) if beside.exists() else "mpiexec", "-n", str(n)]


def petsc(source: str) -> Path | None:
    """A peer's program, where pkg-config finds PETSc."""
    if not shutil.which("pkg-config"):
        return None
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True, check=False)
    if flags.returncode:
        return None
    return build_peer(PEERS / source, flags.stdout.split(), shutil.which("mpicc.openmpi") or "mpicc")


@functools.cache
def hypre_program() -> tuple[Path | None, dict[str, str]]:
    """Return hypre's program where an MPI compiler finds it, and its settings."""
    compiler = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    flags = ["-I/usr/include/hypre", "-lHYPRE", "-lm"]
    program = build_peer(PEERS / "hypre_solve.c", flags, compiler) if compiler else None
    what = "extended+i interpolation, 4 entries a row, threshold 0.25; HMIS or PMIS, symmetric l1-Gauss-Seidel or l1-Jacobi"
    header = Path("/usr/include/hypre/HYPRE_config.h")
    version = re.search(r'HYPRE_RELEASE_VERSION "([^"]*)"', header.read_text()) if header.exists() else None
    return program, {f"hypre {version[1] if version else ''}".strip(): what} if program else {}


def write_petsc_binary(M: sp.csr_array, file: Path) -> None:
    """PETSc's binary format: big-endian class id, sizes, row lengths, columns, values."""
    with file.open("wb") as f:
        np.array([1211216, *M.shape, M.nnz], dtype=">i4").tofile(f)
        np.diff(M.indptr).astype(">i4").tofile(f)
        M.indices.astype(">i4").tofile(f)
        M.data.astype(">f8").tofile(f)


def petsc_forest(peer: Path, launcher: str, row: dict, rounds: int) -> dict | None:
    """PETSc's forest on messages of the row's length, contiguous and permuted."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_MCA", "OPAL_", "PRTE_MCA"))}
    sizes = ["-n", str(row["bytes"] // 8), "-repeats", str(row["repeats"]), "-rounds", str(rounds)]
    done = subprocess.run(
        [launcher, "-n", "2", str(peer), *sizes], capture_output=True, text=True, check=False, env=clean
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) != 2:
        print(f"(petsc_sf: {done.stderr[-200:]})", file=sys.stderr)
        return None
    return {"bytes": row["bytes"], "contiguous": lines[0], "permuted": lines[1]}
