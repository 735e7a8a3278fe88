"""Every square matrix of ASTERISM_DATA by default settings beside SuperLU; bench/run.py runs it."""

import os
import time
from pathlib import Path

import numpy as np
import scipy
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import asterism as am

RTOLS = (1e-5, 1e-8)  # the default, and what the table of real matrices has


def by_default(rounds: int) -> dict:
    """am.solve(A, b, rtol) and nothing else, for b = A x* with x*_i = cos(i + 1); residuals by SciPy from the answers."""
    data = Path(os.environ["ASTERISM_DATA"])
    cases = {}
    for file in sorted(data.glob("*.mtx.gz")):
        S = scipy.io.mmread(file)
        if not sp.issparse(S) or S.shape[0] != S.shape[1]:
            continue
        S = sp.csr_array(S)
        A, C = am.Matrix.from_scipy(S), sp.csc_array(S)
        b = S @ np.cos(np.arange(S.shape[0]) + 1.0).astype(S.dtype)
        case = {
            "rows": S.shape[0],
            "entries": S.nnz,
            "complex": bool(np.iscomplexobj(S.data)),
            "superlu": _superlu(C, S, b),
        }
        for rtol in RTOLS:
            case[f"rtol {rtol:g}"] = _ours(A, S, b, rtol)
        for _ in range(rounds - 1):
            case["superlu"]["seconds"] += _superlu(C, S, b)["seconds"]
            for rtol in RTOLS:
                case[f"rtol {rtol:g}"]["seconds"] += _ours(A, S, b, rtol)["seconds"]
        cases[file.name.removesuffix(".mtx.gz")] = case
    return {
        "bench": "by_default",
        "rtols": RTOLS,
        "cases": cases,
        "peers": {"SuperLU": f"scipy {scipy.__version__}, COLAMD"},
    }


def _residual(S: sp.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))


def _superlu(C: sp.csc_array, S: sp.csr_array, b: np.ndarray) -> dict:
    start = time.perf_counter()
    try:
        x = spla.splu(C).solve(b)
    except RuntimeError as error:  # singular
        return {"seconds": [], "why": str(error)}
    return {"seconds": [time.perf_counter() - start], "residual": _residual(S, b, x)}


def _ours(A: am.Matrix, S: sp.csr_array, b: np.ndarray, rtol: float) -> dict:
    start = time.perf_counter()
    try:
        x, info = am.solve(A, b, rtol=rtol, raise_on_failure=False)
    except am.AsterismError as error:
        return {"seconds": [time.perf_counter() - start], "reason": type(error).__name__, "why": str(error)}
    return {
        "seconds": [time.perf_counter() - start],
        "reason": info.reason,
        "iterations": info.iterations,
        "residual": _residual(S, b, x),
        "solver": f"{info.method} + {info.preconditioner.split(', each rank')[0]}",
        "attempts": 1 + sum(n.startswith("pc auto") and "iterations" in n for n in info.notes),
    }
