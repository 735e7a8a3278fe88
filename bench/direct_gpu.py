"""Solves with the factors of lu and cholesky on a GPU beside the same on the host: python bench/direct_gpu.py [n ...].

For each n: Poisson on n^3 points, convection and diffusion on (8 n)^2, with 1 and 8 right-hand sides. An application is what an iteration
of richardson takes: the solve, a product and a norm. Nothing is kept.
"""

import sys
import time

import numpy as np

import asterism as am

ITERATIONS = (2, 22)


def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def application(A, options, b):
    """Seconds: the difference of two solves that differ in the number of their iterations."""
    stop = "-ksp_type richardson -ksp_rtol 0 -ksp_atol 0 -ksp_error_if_not_converged 0"
    solvers = [am.Solver(A, f"{options} {stop} -ksp_max_it {m}") for m in ITERATIONS]
    best = float("inf")
    for _ in range(4):
        spent = [seconds(lambda s=s: s.solve(b, raise_on_failure=False)) for s in solvers]
        best = min(best, (spent[1] - spent[0]) / (solvers[1].info.iterations - solvers[0].info.iterations))
    return best


def main():
    for n in [int(v) for v in sys.argv[1:]] or [40, 60]:
        poisson, convection = am.gallery.poisson((n, n, n)), am.gallery.convection_diffusion((8 * n, 8 * n), (3.0, 1.0))
        for name, A, pc in [
            ("Poisson", poisson, "cholesky"),
            ("Poisson", poisson, "cholesky -pc_cholesky_type indefinite"),
            ("Poisson", poisson, "lu"),
            ("convection", convection, "lu"),
        ]:
            for k in (1, 8):
                b = np.cos(np.arange(A.shape[0] * k, dtype=float)).reshape(-1, k)
                b = b if k > 1 else b[:, 0]
                print(f"{name}, {A.shape[0]} rows, {pc}, {k} right-hand side(s)")
                first = None
                for device in ("host", "cuda"):
                    options = f"-pc_type {pc}" + (" -device cuda" if device == "cuda" else "")
                    solver = am.Solver(A, options + " -ksp_type preonly")
                    x = solver.solve(b)
                    first = x if first is None else first
                    info, other = solver.info, np.linalg.norm(x - first) / np.linalg.norm(first)
                    del solver
                    print(
                        f"  {device}: set-up {info.setup_seconds:.2f} s, application {1e3 * application(A, options, b):.3f} ms, "
                        f"backward error {np.max(info.backward_error):.1e}, beside the host's answer {other:.0e}"
                    )
                    if device == "cuda":
                        print(
                            "   ",
                            "; ".join(
                                t for t in info.notes if "steps" in t or "step(s)" in t or "solves on the host" in t
                            ),
                        )


main()
