"""Precisions of multigrid's levels: iterations, memory, and time of an iteration; bench/run.py runs it."""

from collections.abc import Callable

import numpy as np
from multigrid import diffusion

import asterism as am

LISTS = ("float64", "float32", "float32,bfloat16", "bfloat16")


def _cases() -> dict[str, tuple[Callable[[], am.Matrix], bool]]:
    """Each makes its matrix, and says whether it is large enough to be timed."""
    g = am.gallery
    return {
        "Poisson 96^3": (lambda: g.poisson((96, 96, 96)), True),
        "coefficients 0.5 to 1.5, 96^3": (lambda: diffusion(96, False), True),
        "elasticity 28^3": (lambda: g.elasticity((28, 28, 28)), True),
        "Poisson 300^2": (lambda: g.poisson((300, 300)), False),
        "27 points, 40^3": (lambda: g.poisson((40, 40, 40), stencil="box"), False),
        "stretched cells 40^3": (lambda: g.diffusion((40, 40, 40), stretch=1.2), False),
        "anisotropy 1e-3, 200^2": (lambda: g.poisson((200, 200), epsilon=(1, 1e-3)), False),
        "elasticity 20^3, Poisson's ratio 0.49": (lambda: g.elasticity((20, 20, 20), poisson_ratio=0.49), False),
        "jumps of 1e3, 64^3": (lambda: diffusion(64, True), False),
        "jumps of 1e6, 200^2": (lambda: g.diffusion((200, 200), contrast=1e6), False),
    }


def _bytes_of_levels(view: str) -> list[int]:
    """Read the table of the levels."""
    rows = view.split("storage, smoother\n")[1].splitlines()
    return [int(row.split()[5]) for row in rows if row[:7].strip().isdigit()]


def precisions(rounds: int) -> dict:
    """Cg + amg to 1e-8 with a right-hand side at random; solves of the precisions interleaved."""
    out = {}
    for name, (make, timed) in _cases().items():
        A = make()
        b = np.random.default_rng(1).standard_normal(A.shape[0])
        solvers = {p: am.Solver(A, ksp="cg", pc="amg", rtol=1e-8, maxiter=500, pc_amg_dtype=p) for p in LISTS}
        runs: dict[str, dict] = {}
        for _ in range(rounds if timed else 1):
            for p, s in solvers.items():
                s.solve(b, raise_on_failure=False)
                assert s.info is not None
                r = runs.setdefault(
                    p,
                    {
                        "iterations": s.info.iterations,
                        "converged": bool(s.info.converged),
                        "bytes_of_levels": _bytes_of_levels(s.view()),
                        "seconds_per_iteration": [],
                    },
                )
                if timed:
                    r["seconds_per_iteration"].append(s.info.solve_seconds / s.info.iterations)
        out[name] = runs
    return {"bench": "precisions", "cases": out}
