"""Poisson's operator by differences of the tenth order with one-sided closures, beside PETSc's product with the assembled matrix.

bench/run.py runs it. One thread, and two threads beside two ranks of PETSc. PETSc has its usual format and its fastest for vectors (sell).
"""

import functools
import json
import operator
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from gmg import best, triad
from programs import json_line, petsc, write_petsc_binary

import asterism as am
from asterism import _core
from asterism import stencil as st
from asterism.base.aligned import aligned

ACCURACY = 10
SIZES = (96, 256)
ASSEMBLED = 96  # 27 million entries
PETSC_RANKS = 2


def poisson(n: int) -> am.stencil.Stencil:
    """-laplace u on n^3 points of the unit cube; points at the border keep their values."""
    at = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)
    ends = [end for i in at for end in (i == 0, i == i.extent - 1)]
    border = functools.reduce(operator.or_, ends)
    laplace = st.laplacian(u, at, accuracy=ACCURACY, spacing=1 / (n - 1), closure=True)
    return st.assign(out(*at), st.where(border, u(*at), -laplace))


def assembled(n: int) -> sp.csr_array:
    """The same operator as a matrix."""
    (i,) = st.indices(1)
    u, out = st.grid("u", 1), st.grid("out", 1)
    second = st.assign(out(i), st.derivative(u, (i,), 0, 2, ACCURACY, spacing=1 / (n - 1), closure=True))
    D = sp.csr_array(np.column_stack([second.interpret(u=e)["out"] for e in np.eye(n)]))
    one = sp.eye_array(n)
    A = -(sp.kron(sp.kron(D, one), one) + sp.kron(sp.kron(one, D), one) + sp.kron(sp.kron(one, one), D))
    inside = np.pad(np.ones((n - 2,) * 3), 1).ravel()
    return sp.csr_array(sp.diags_array(inside) @ A + sp.diags_array(1 - inside))


def measured() -> dict[str, Any]:
    """Products on this process's threads, and the triad before each."""
    out: dict[str, Any] = {"threads": _core.team_size()}
    for n in SIZES:
        L = st.operator(poisson(n), (n, n, n))
        x, y = (aligned((int(L._h.rows.local_size),), np.float64) for _ in range(2))
        x[...] = 1
        speed = max(triad(), triad(True))
        out[str(n)] = {"seconds": best(lambda: L._h.apply(x, y), 0.5), "triad_bytes_per_s": speed}  # noqa: B023
    return out


def high_order(rounds: int) -> dict[str, Any]:
    """Medians of rounds in turn."""
    peer = petsc("petsc_spmv.c")
    ours: dict[str, list[dict[str, Any]]] = {}
    theirs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "matrix.bin"
        A = assembled(ASSEMBLED)
        L = st.operator(poisson(ASSEMBLED), (ASSEMBLED,) * 3)
        x = np.random.default_rng(0).random(A.shape[0])
        want = A @ x
        if np.abs(L @ x - want).max() > 1e-12 * np.abs(want).max():
            raise RuntimeError("the operator and the matrix differ")
        if peer:
            A.indptr, A.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
            write_petsc_binary(A, file)
        for _ in range(rounds):
            for threads in (1, 2):
                environment = {**os.environ, "ASTERISM_NUM_THREADS": str(threads)}
                done = subprocess.run(
                    [sys.executable, __file__], env=environment, capture_output=True, text=True, check=True
                )
                ours.setdefault(f"{threads} threads", []).append(json.loads(done.stdout.splitlines()[-1]))
            for ranks in (1, PETSC_RANKS) if peer else ():
                launch = [shutil.which("mpiexec.openmpi") or "mpiexec", "-n", str(ranks)]
                for form in ("aij", "sell"):
                    r = json_line(
                        [*launch, str(peer), "-f", str(file), "-repeats", "5", "-inner", "5", "-format", form]
                    )
                    theirs.setdefault(f"{r['peer']}, {ranks} ranks", []).append(min(r["seconds"]))
    products = {}
    for name, runs in ours.items():
        for n in SIZES:
            seconds = statistics.median(r[str(n)]["seconds"] for r in runs)
            limit = 16 * n**3 / statistics.median(r[str(n)]["triad_bytes_per_s"] for r in runs)
            products[f"{n}^3, {name}"] = {"seconds": seconds, "over_least_bytes": seconds / limit}
    medians = {name: statistics.median(t) for name, t in theirs.items()}
    for ranks in (1, PETSC_RANKS) if peer else ():
        fastest = min(t for name, t in medians.items() if name.endswith(f", {ranks} ranks"))
        entry = products[f"{ASSEMBLED}^3, {ranks} threads"]
        entry["faster_than_petsc"] = fastest / entry["seconds"]
    return {"bench": "high_order", "accuracy": ACCURACY, "entries": int(A.nnz), "products": products, "petsc": medians}


def table(r: dict) -> None:
    """Products of the tenth order, of the least bytes and beside PETSc's assembled ones."""
    for name, p in r["products"].items():
        beside = f"; {p['faster_than_petsc']:.1f} times as fast as PETSc" if "faster_than_petsc" in p else ""
        line = f"order {r['accuracy']}, {name:18s} {1e3 * p['seconds']:7.2f} ms, {p['over_least_bytes']:.2f} of the least bytes"
        print(line + beside)
    for name, seconds in r["petsc"].items():
        print(f"{name:28s} {1e3 * seconds:7.2f} ms")


if __name__ == "__main__":
    print(json.dumps(measured()))
