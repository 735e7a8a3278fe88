"""Products of matrices against SciPy's and PETSc's; bench/run.py runs it."""

import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from programs import json_line, petsc, write_petsc_binary

import asterism as am


def products(n: int, rounds: int) -> dict:
    """A P and P^T A P of a multigrid level, in one go and with new values, against SciPy and PETSc's algorithms. 1 thread."""
    peer = petsc("petsc_products.c")
    out = {}
    for name, A in {
        f"poisson {n}^3": am.gallery.poisson((n, n, n)),
        "elasticity 40^3": am.gallery.elasticity((40, 40, 40)),
    }.items():
        size, group = A.shape[0], 8
        S = A.to_scipy().tocsr()
        places = (np.arange(size), np.arange(size) // group)
        P0 = am.Matrix.from_scipy(sp.csr_array((np.ones(size), places), shape=(size, -(-size // group))))
        P = P0 - 0.66 * (am.Matrix.from_scipy(sp.diags_array(1 / S.diagonal(), format="csr")) @ A @ P0)  # smoothed
        Q, plans = P.to_scipy().tocsr(), {"A P": am.ProductPlan(A, P), "P^T A P": am.ProductPlan(P.T, A, P)}
        for M in (S, Q):
            M.indptr, M.indices = M.indptr.astype(np.int32), M.indices.astype(np.int32)
        transposed = Q.T.tocsr()
        ways = {
            "A P": (lambda A=A, P=P: A @ P, lambda f=plans["A P"], A=A, P=P: f.multiply(A, P), lambda S=S, Q=Q: S @ Q),
            "P^T A P": (
                lambda A=A, P=P: am.ptap(A, P),
                lambda f=plans["P^T A P"], A=A, P=P: f.multiply(P.T, A, P),
                lambda S=S, Q=Q, R=transposed: R @ (S @ Q),
            ),
        }
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / "A.bin", Path(folder) / "P.bin"]
            for M, file in zip((S, Q), files, strict=True):
                write_petsc_binary(M, file)
            for what, (whole, again, theirs) in ways.items():
                case: dict = {"seconds": [], "seconds_new_values": [], "scipy": [], "petsc": {}}
                for _ in range(max(5, rounds)):
                    whole()  # untimed: the first call after the peer's programs pays for fresh pages
                    for key, f in (("seconds", whole), ("seconds_new_values", again), ("scipy", theirs)):
                        t0 = time.perf_counter()
                        f()
                        case[key].append(time.perf_counter() - t0)
                    kind, algorithms = (
                        ("AB", ("default", "sorted", "scalable", "scalable_fast", "heap", "rowmerge"))
                        if what == "A P"
                        else ("PtAP", ("default", "scalable"))
                    )
                    for algorithm in algorithms if peer else ():
                        command = [str(peer), "-a", str(files[0]), "-p", str(files[1]), "-type", kind, "-repeats", "1"]
                        r = json_line([*command, "-algorithm", algorithm])
                        case["petsc"].setdefault(f"{r['peer']} {algorithm}", []).append(r["runs"][0])
                out[f"{what}, {name}"] = case
    return {"bench": "products", "cases": out}
