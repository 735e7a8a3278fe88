"""Random solves, each looked at in more digits than it was made with, and against LAPACK and SciPy.

    python tests/fuzz/solves.py --solves 100000
    mpiexec -n 3 python tests/fuzz/solves.py --solves 5000 --busy 2 --json runs.json

Matrices of many kinds, all dtypes, one or several right-hand sides, entries scaled by 1e-300 to 1e300 (what the dtype holds), either sign,
every method and preconditioner, initial guesses. A wrong answer is one that is called converged and whose residual, in long double, is
above the tolerance (or above what rounding leaves), or which is farther from LAPACK's than the condition number allows. Systems on which the
same method of SciPy's converges and which are no harder than a shift of the identity must converge.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import multiprocessing
import os
import pathlib
import re
import sys
import time
import traceback
import warnings

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am
from asterism import _core

DTYPES = ["float32", "float64", "complex64", "complex128"]
KINDS = [
    "definite", "definite", "laplacian", "graph", "shifted", "hermitian", "dominant", "general", "triangular", "permuted", "diagonal",
    "graded", "singular", "zero row", "blocks",
]  # fmt: skip
METHODS, PRECONDITIONERS = (sorted(names - {"bcgs", "gamg"}) for names in map(set, _core.component_names()))
LARGEST = {
    "float32": 36,
    "complex64": 17,
    "float64": 300,
    "complex128": 150,
}  # decimal exponents of matrices and right-hand sides
#: SciPy's method of the same name.
PEERS = {"cg": spla.cg, "gmres": spla.gmres, "bicgstab": spla.bicgstab, "minres": spla.minres}
logging.getLogger("asterism").setLevel(logging.CRITICAL)


def entries(rng, n, m, dtype):
    v = rng.standard_normal((n, m))
    return (v + 1j * rng.standard_normal((n, m)) if dtype.startswith("complex") else v).astype(
        "complex128" if dtype[0] == "c" else "float64"
    )


def system(rng, kind, n, dtype):
    """A dense matrix of the kind, with some zeros, its largest entries near 1."""
    R = entries(rng, n, n, dtype) * (rng.random((n, n)) < min(1.0, rng.choice([2, 4, 8]) / n))
    if kind == "definite":
        return R @ R.conj().T / n + rng.choice([1e-3, 0.1, 1]) * np.eye(n)
    if kind == "laplacian":
        return (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)).astype(R.dtype)
    if kind == "graph":
        W = np.abs(R) + np.abs(R).T
        np.fill_diagonal(W, 0)
        return (np.diag(W.sum(1) + rng.choice([1e-2, 1])) - W).astype(R.dtype)
    if kind == "shifted":
        return 0.3 * R / max(1, np.linalg.norm(R, 2)) + np.eye(n)
    if kind == "hermitian":
        return R + R.conj().T + np.diag(rng.choice([-2.0, 2.0], n))
    if kind == "dominant":
        return R + np.diag(np.abs(R).sum(1) + 0.5)
    if kind == "triangular":
        return np.tril(R, -1) * 0.3 + np.eye(n)
    if kind == "permuted":
        return (R * 0.1 + np.eye(n))[rng.permutation(n)]
    if kind == "diagonal":
        return np.diag(entries(rng, n, 1, dtype)[:, 0] + 3)
    if kind == "graded":
        d = 10.0 ** rng.uniform(-6, 0, n)
        return (R @ R.conj().T / n + np.eye(n)) * d[:, None] * d
    if kind == "singular":
        W = (R != 0) | (R != 0).T
        return (np.diag((W & ~np.eye(n, dtype=bool)).sum(1)) - (W & ~np.eye(n, dtype=bool))).astype(R.dtype)
    if kind == "zero row":
        R[rng.integers(n)] = 0
        return R
    if kind == "blocks":
        return np.kron(np.eye(-(-n // 3)), np.array([[4, 1, 0], [1, 3, 1], [0, 1, 5]]))[:n, :n] + 0.1 * (R + R.conj().T)
    return R + np.eye(n) * rng.choice([0.0, 1.0])


def case(seed):
    """All that makes one solve, from its seed: the same on all ranks."""
    rng = np.random.default_rng(seed)
    dtype, kind = str(rng.choice(DTYPES)), str(rng.choice(KINDS))
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 21, 34, 55], p=[0.04, 0.04, 0.04, 0.08, 0.1, 0.15, 0.2, 0.2, 0.15]))
    A = system(rng, kind, n, dtype) * rng.choice([-1, 1])
    ksp, pc = (str(rng.choice([*names, "auto"])) for names in (METHODS, PRECONDITIONERS))
    limit = LARGEST[dtype]

    def scale():
        return rng.choice([0, 0, rng.uniform(-limit, limit), rng.uniform(-10, 10), -limit, limit])

    columns = int(rng.choice([0, 0, 1, 2, 3, 5]))
    b = entries(rng, n, max(columns, 1), dtype)
    if rng.random() < 0.1:
        b = A @ b
    if rng.random() < 0.1:
        b[:, rng.integers(b.shape[1])] = 0
    if rng.random() < 0.2:
        b *= 10.0 ** rng.uniform(-6, 6, b.shape[1])
    # decimal exponents; the answer, near b / A, must be a number of the dtype too
    a_scale, b_scale = scale(), scale()
    b_scale = np.clip(np.clip(b_scale, a_scale + 10 - limit, a_scale + limit - 10), -limit, limit - 7)
    with np.errstate(all="ignore"):
        A, b = (A * 10.0**a_scale).astype(dtype), (b * 10.0**b_scale).astype(dtype)
    x0 = None
    if rng.random() < 0.2:
        guess = 10.0 ** np.clip(b_scale - a_scale + rng.choice([-3, 0, 3]), -limit, limit - 5)
        x0 = (entries(rng, n, b.shape[1], dtype) * guess).astype(dtype)
    single = dtype in ("float32", "complex64")
    rtol = float(rng.choice([1e-3, 1e-5] if single else [1e-5, 1e-8, 1e-10]))
    if columns == 0:
        b, x0 = b[:, 0], None if x0 is None else x0[:, 0]
    return kind, A, b, x0, ksp, pc, rtol


def wide(a):
    return a.astype(np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def norm(v):
    m = np.abs(v).max(initial=0)
    return m * np.sqrt((np.abs(v / m) ** 2).sum()) if m > 0 else m


def in_range(A, B):
    """B without what no product with A, a Laplacian of a graph, reaches: its mean in each component."""
    _, component = sp.csgraph.connected_components(sp.csr_array(A != 0), directed=False)
    Q = np.equal.outer(component, component)
    return B - (Q / Q.sum(1)) @ B


def wrong(kind, A, b, x, rtol):
    """What is wrong with an answer that is called converged, or nothing."""
    if not np.all(np.isfinite(x)):
        return "not finite"
    LA, B, X = wide(A), wide(b.reshape(len(b), -1)), wide(x.reshape(len(b), -1))
    if kind == "singular":  # the part of b that can be reached is solved for, and the summary says so
        B = in_range(A, B)
    eps = np.finfo(A.dtype).eps
    tiny = np.longdouble(np.finfo(A.dtype).tiny)
    for j in range(B.shape[1]):
        r, size = norm(B[:, j] - LA @ X[:, j]), norm(B[:, j])
        rounding = 4 * eps * norm(np.abs(LA) @ np.abs(X[:, j])) + tiny * len(b) * (1 + np.abs(LA).max(initial=0))
        if r > 1.01 * rtol * size + rounding:
            return f"column {j}: residual {float(r / size) if size else r:.2e} of ||b||, the tolerance is {rtol}"
    a, s = np.abs(LA).max(initial=0), np.abs(B).max(initial=0)
    if a == 0 or s == 0:
        return ""
    D = (LA / a).astype(np.complex128 if np.iscomplexobj(A) else np.float64)
    condition = np.linalg.cond(D)
    if condition < 1e-3 / eps:
        best = np.linalg.solve(D, (B / s).astype(D.dtype))
        with np.errstate(all="ignore"):
            error = norm((X * (a / s) - best).ravel()) / norm(best.ravel())
        # per column above; columns of very different size here
        most = condition * (rtol + 50 * eps) * len(b) * 1.01
        if error > most * max(1, B.shape[1]):
            return f"{float(error):.2e} from LAPACK's answer; the condition number is {condition:.2e}"
    return ""


def is_representable(A, b):
    """Whether the dtype holds the answer, if the matrix has an inverse."""
    a, s = np.abs(wide(A)).max(), np.abs(wide(b)).max()
    if a == 0 or s == 0:
        return True
    try:
        y = np.linalg.solve((wide(A) / a).astype(np.complex128), (wide(b) / s).astype(np.complex128))
    except np.linalg.LinAlgError:
        return True
    return not np.abs(y).max() * s / a > np.finfo(A.dtype).max


def should_converge(kind, A, b, ksp, pc, rtol):
    """Systems that are easy for the method, whatever the scales, to a tolerance above what the dtype can attain."""
    if b.ndim > 1 and b.shape[1] > 1 or not np.any(A) or not np.all(np.isfinite(A)):
        return False
    D = (wide(A) / np.abs(wide(A)).max()).astype(np.complex128)
    if rtol < 10 * np.finfo(A.dtype).eps * np.linalg.cond(D):
        return False
    if kind == "shifted" and pc in ("none", "jacobi", "auto"):
        return ksp in ("gmres", "fgmres", "bicgstab", "gcr", "auto")
    if kind in ("definite", "graph", "laplacian") and pc in ("none", "jacobi", "auto"):
        return ksp in ("cg", "cr", "minres", "auto")
    return False


def peer_converges(A, b, ksp, rtol):
    """Whether SciPy's method does, on the system scaled to 1."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        a, s = np.abs(A).max(), np.abs(b).max()
        if a == 0 or s == 0:
            return True
        D, c = (wide(A) / a).astype(A.dtype), (wide(b.ravel()) / s).astype(A.dtype)
        try:
            x, _ = PEERS.get(ksp, spla.gmres)(sp.csr_array(D), c, rtol=rtol, maxiter=400)
        except ValueError:  # minres finds rounding to be indefinite
            return False
        return norm(c - D @ x) <= 1.01 * rtol * norm(c)


def burn():
    while True:
        pass


def look_at(seed, comm, tally):
    kind, A, b, x0, ksp, pc, rtol = case(seed)
    rank, ranks = (0, 1) if comm is None else (comm.rank, comm.size)
    how = {} if ksp == "auto" else {"ksp": ksp}
    how |= {} if pc == "auto" else {"pc": pc}
    how |= {"options": "-ksp_ksp_rtol 1e-2 -ksp_ksp_max_it 10"} if pc == "ksp" else {}
    n = len(A)
    lo, hi = n * rank // ranks, n * (rank + 1) // ranks
    M = am.Matrix.from_scipy(sp.csr_array(A), comm, distribute=comm is not None)
    lo, hi = M.row_range
    try:
        x, info = am.solve(
            M, b[lo:hi], None if x0 is None else x0[lo:hi], rtol=rtol, maxiter=300, raise_on_failure=False, **how
        )
    except am.AsterismError as error:  # an answer too, if a clear one
        tally[type(error).__name__ + ": " + re.sub(r"[0-9][-+.0-9e]*", "#", str(error))[:70]] += 1
        if should_converge(kind, A, b, ksp, pc, rtol) and peer_converges(A, b, ksp, rtol):
            return f"{type(error).__name__}: {error}"
        return ""
    if comm is not None:
        x = np.concatenate(comm.allgather(x))
    tally["converged" if info.converged else info.reason] += 1
    if info.converged:
        return wrong(kind, A, b, x, rtol) if rank == 0 else ""
    if not np.any(np.isfinite(x)) and is_representable(A, b):
        return f"{info.reason}, and x is not finite"
    if should_converge(kind, A, b, ksp, pc, rtol) and peer_converges(A, b, ksp, rtol):
        return f"{info.reason}: {info.why}, where SciPy converges"
    return ""


def record(args, ranks, failed, tally, seconds):
    """Append what this run found to the file."""
    file = pathlib.Path(args.json)
    runs = json.loads(file.read_text()) if file.exists() else []
    refused = sum(times for what, times in tally.items() if ": " in what)
    runs.append(
        {
            "ranks": ranks,
            "busy": args.busy,
            "seed": args.seed,
            "solves": args.solves,
            "converged": tally["converged"],
            "refused": refused,
            "not_converged": sum(tally.values()) - tally["converged"] - refused,
            "wrong": failed,
            "seconds": round(seconds),
        }
    )
    file.write_text(json.dumps(runs, indent=1))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--solves", type=int, default=2000)
    p.add_argument("--seed", type=int, default=0, help="of the first")
    p.add_argument("--busy", type=int, default=0, help="processes that keep cores busy meanwhile")
    p.add_argument("--json", metavar="FILE", help="append the counts of this run to the list in FILE")
    args = p.parse_args()
    comm = None
    if (size := int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))) > 1:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    first = comm is None or comm.rank == 0
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=burn, daemon=True) for _ in range(args.busy if first else 0)]
    for o in others:
        o.start()
    tally: collections.Counter[str] = collections.Counter()
    failed, start = 0, time.perf_counter()
    for seed in range(args.seed, args.seed + args.solves):
        try:
            what = look_at(seed, comm, tally)
        except Exception:
            what = traceback.format_exc()
        if what:
            failed += 1
            kind, A, b, x0, ksp, pc, rtol = case(seed)
            print(
                f"seed {seed}: {kind} {len(A)} {A.dtype} max {np.abs(A).max():.1e}, b {b.shape} max {np.abs(b).max():.1e}, x0 {x0 is not None}, "
                f"{ksp} + {pc}, rtol {rtol}: {what}",
                flush=True,
            )
        if first and sys.stderr.isatty() and seed % 100 == 0:
            done = seed - args.seed + 1
            print(
                f"\r{done} of {args.solves}, {done / (time.perf_counter() - start):.0f} a second, {failed} wrong ",
                end="",
                file=sys.stderr,
            )
    for o in others:
        with contextlib.suppress(Exception):
            o.terminate()
    if first:
        print(f"{args.solves} solves on {size} rank(s) beside {args.busy} busy processes, {failed} wrong")
        for what, times in tally.most_common():
            print(f"{times:8d}  {what}")
        if args.json:
            record(args, size, failed, tally, time.perf_counter() - start)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
