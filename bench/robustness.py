"""Iterations of multigrid on model problems and real matrices, with each family, beside PyAMG; bench/run.py runs it."""

import contextlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from multigrid import amgcl_program, write_for_peers
from programs import hypre_program, json_line

import asterism as am

RTOL, MOST = 1e-8, 1000
FAMILIES = {
    "default": "",
    "classical strength": "-pc_amg_strength classical",
    "evolution strength": "-pc_amg_strength evolution",
    "classical, PMIS": "-pc_amg_type classical",
    "classical, HMIS": "-pc_amg_type classical -pc_amg_coarsen_type hmis",
    "pairwise, K cycle, fgmres": "-pc_amg_agg_type pairwise -pc_amg_cycle_type k",
}
REAL = "1138_bus G2_circuit ani4 bar bcsstk13 bcsstk16 bcsstk38 ex15 maxwell_M1 mhd1280b s3rmt3m3 unit_square"


def problems() -> dict[str, Callable[[], am.Matrix]]:
    """Each makes its matrix."""
    g = am.gallery
    return {
        "Poisson 200^2": lambda: g.poisson((200, 200)),
        "Poisson 40^3": lambda: g.poisson((40, 40, 40)),
        "Poisson 40^3, 27 points": lambda: g.poisson((40, 40, 40), stencil="box"),
        "Neumann 200^2": lambda: g.poisson((200, 200), neumann=True),
        "anisotropy 1e-3": lambda: g.poisson((200, 200), epsilon=(1, 1e-3)),
        "anisotropy 1e-3, turned by 30 degrees": lambda: g.rotated_anisotropy((200, 200), theta=np.pi / 6),
        "anisotropy 1e-3, turned by 45 degrees": lambda: g.rotated_anisotropy((200, 200)),
        "anisotropy 1, 1e-3, 1e-3 in 40^3": lambda: g.poisson((40, 40, 40), epsilon=(1, 1e-3, 1e-3)),
        "jumps of 1e6 in 200^2": lambda: g.diffusion((200, 200), contrast=1e6),
        "jumps of 1e6 in 40^3": lambda: g.diffusion((40, 40, 40), contrast=1e6),
        "stretched cells 200^2": lambda: g.diffusion((200, 200), stretch=1.04),
        "stretched cells 40^3": lambda: g.diffusion((40, 40, 40), stretch=1.2),
        "elasticity 12 x 12 x 12": lambda: g.elasticity((12, 12, 12)),
        "elasticity 12 x 12 x 12, Poisson's ratio 0.49": lambda: g.elasticity((12, 12, 12), poisson_ratio=0.49),
        "wind, epsilon 1": lambda: g.convection_diffusion((200, 200), (1.0, 0.5), 1.0),
        "wind, epsilon 1e-2": lambda: g.convection_diffusion((200, 200), (1.0, 0.5), 1e-2),
        "wind, epsilon 1e-4": lambda: g.convection_diffusion((200, 200), (1.0, 0.5), 1e-4),
    }


def real_matrices() -> dict[str, Callable[[], am.Matrix]]:
    """Those that are Hermitian and positive definite, where ASTERISM_DATA names their folder."""
    folder = os.environ.get("ASTERISM_DATA")
    return {
        name: (lambda f=Path(folder or "") / f"{name}.mtx.gz": am.read_matrix(f)) for name in REAL.split() if folder
    }


def is_positive_definite(S: Any) -> bool:
    """By the pivots of a factorisation on the diagonal."""
    if abs(S - S.conj().T).max() > 1e-12 * abs(S).max():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lu = spla.splu(
                sp.csc_matrix(S),
                "MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True, "Equil": False},
            )
        except RuntimeError:
            return False
    return bool(np.all(lu.U.diagonal().real > 0) and np.array_equal(lu.perm_r, lu.perm_c))


def ours(A: am.Matrix, b: np.ndarray, ksp: str, options: str) -> dict:
    """One solve: iterations, seconds, the true residual, or why there is none."""
    start = time.perf_counter()
    try:
        solver = am.Solver(A, options, ksp=ksp, pc="amg", rtol=RTOL, max_it=MOST)
        x = solver.solve(b, raise_on_failure=False)
    except am.AsterismError as e:
        return {"refused": str(e)}
    info = solver.info
    return {
        "converged": bool(info.converged),
        "iterations": info.iterations,
        "seconds": time.perf_counter() - start,
        "residual": float(np.linalg.norm(b - A @ x) / np.linalg.norm(b)),
        "preconditioner": info.preconditioner,
    }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what compiled code prints, which may be thousands of lines."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def pyamgs(S: Any, b: np.ndarray, ksp: str, make: Callable[..., Any]) -> dict:
    """The same with one of PyAMG's hierarchies, with its defaults."""
    start = time.perf_counter()
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        try:
            residuals: list[float] = []
            x = make(S).solve(b, tol=RTOL, accel=ksp, maxiter=MOST if ksp == "cg" else 100, residuals=residuals)
        except Exception as e:  # noqa: BLE001 whatever it is, it is the answer
            return {"refused": f"{type(e).__name__}: {e}"}
    residual = float(np.linalg.norm(b - S @ x) / np.linalg.norm(b))
    return {
        "converged": residual <= 10 * RTOL,
        "iterations": len(residuals) - 1,
        "seconds": time.perf_counter() - start,
        "residual": residual,
    }


def by_program(command: list[str]) -> dict:
    """The same by a program that prints a line of JSON."""
    try:
        r = json_line(command)
    except Exception as e:  # noqa: BLE001 whatever it is, it is the answer
        return {"refused": f"{type(e).__name__}: {e}"}
    residual = r["residual"]
    return {
        "converged": residual is not None and residual <= 10 * RTOL,
        "iterations": r["iterations"],
        "seconds": r["seconds"] if "seconds" in r else r["setup"][0] + r["solve"][0],
        "residual": residual,
    }


def programs(A: am.Matrix, b: np.ndarray, ksp: str) -> dict[str, dict]:
    """Solve by AMGCL with its defaults and hypre with its recommended settings, where they are found."""
    amgcl, _ = amgcl_program()
    hypre, _ = hypre_program()
    runs = {}
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        write_for_peers(Path(file.name), A, b)
        if amgcl and ksp == "cg":
            runs["AMGCL"] = by_program([str(amgcl), file.name, "1", "double", str(MOST)])
        for coarsening, smoother in (("hmis", "l1-gs"), ("hmis", "l1-jacobi"), ("pmis", "l1-gs")) if hypre else ():
            command = [str(hypre), file.name, ksp, coarsening, smoother, str(MOST)]
            runs[f"hypre, {coarsening.upper()}, {smoother}"] = by_program(command)
    return runs


def robustness() -> dict:
    """Each problem by cg, gmres where there is a wind, to a relative residual of 1e-8."""
    peers: dict[str, Callable[..., Any]] = {}
    try:
        import pyamg

        peers = {
            "PyAMG, smoothed aggregation": pyamg.smoothed_aggregation_solver,
            "PyAMG, Ruge-Stueben": pyamg.ruge_stuben_solver,
        }
        version = pyamg.__version__
    except ImportError:
        version = None
    cases, left_out = {}, []
    for name, make in {**problems(), **real_matrices()}.items():
        A = make()
        S = sp.csr_matrix(A.to_scipy())
        S.indptr, S.indices = S.indptr.astype(np.int32), S.indices.astype(np.int32)
        ksp = "gmres" if name.startswith("wind") else "cg"
        if name in REAL.split() and not is_positive_definite(S):
            left_out.append(name)
            continue
        b = S @ np.random.default_rng(0).random(S.shape[0])
        case = {"rows": S.shape[0], "entries": S.nnz, "ksp": ksp, "runs": {}}
        for family, options in FAMILIES.items():
            case["runs"][family] = ours(A, b, "fgmres" if "cycle_type k" in options else ksp, options)
        for peer, hierarchy in peers.items():
            case["runs"][peer] = pyamgs(S, b, ksp, hierarchy)
        case["runs"].update(programs(A, b, ksp))
        cases[name] = case
    return {
        "bench": "robustness",
        "rtol": RTOL,
        "most_iterations": MOST,
        "options": FAMILIES,
        "cases": cases,
        "not_positive_definite": left_out,
        "peers": {
            **(
                {f"pyamg {version}": "its two solvers with their defaults, accelerated by cg or gmres"}
                if version
                else {}
            ),
            **amgcl_program()[1],
            **hypre_program()[1],
        },
    }
