"""Geometric multigrid on bricks beside HPGMG-FV; bench/run.py runs it.

HPGMG_ROOT names a folder with programs hpgmg* that their user built: each solves its own problem (Poisson on cells, zero at the border), by
F cycles or by V cycles as it was built.

python bench/gmg.py operations|cycles|factors    # one part, on the ranks of mpiexec: a line of JSON
"""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from programs import json_line, mpiexec
from stencils import kernels

import asterism as am
from asterism import _core, bricks
from asterism import stencil as st
from asterism.base.aligned import aligned
from asterism.cli.bench_gmg import PAST_CACHES

N = 256
SMOOTHERS = {
    "default": "",
    "default of a symmetric method": "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 2",
    "degree 3": "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 3",
    "fourth kind": "-mg_levels_ksp_chebyshev_kind fourth -mg_levels_ksp_max_it 2",
    "optimal fourth kind": "-mg_levels_ksp_chebyshev_kind opt_fourth -mg_levels_ksp_max_it 2",
    "jacobi": "-mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2",
    "colours": "-mg_levels_pc_type color_sor -mg_levels_ksp_max_it 2",
}
CHEBYSHEV4 = "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 4"  # as HPGMG's
V_CYCLES = 11  # of a solve, as HPGMG's


def poisson(n: int, cells: bool, comm: Any = None, dtype: str = "float64") -> Any:
    """-laplace u on about n^3 points of the unit cube, zero at the border, which is half a spacing away from cells."""
    at = st.indices(3)
    u, out, h = st.grid("u", 3), st.grid("out", 3), st.constant("h")
    terms = []
    for axis, step in itertools.product(range(3), (-1, 1)):
        value = u(*(i + step * (a == axis) for a, i in enumerate(at)))
        end = at[axis] == 0 if step < 0 else at[axis] == at[axis].extent - 1
        terms.append(u(*at) - (st.where(end, -1.0 * u(*at), value) if cells else value))
    s = st.assign(out(*at), sum(terms[1:], terms[0]) / (h * h))
    m = n if cells else n - 1
    return st.operator(s, (m,) * 3, False, comm, h=1 / n, points="cells" if cells else "nodes", dtype=dtype)


def _mpi() -> Any:
    from mpi4py import MPI

    return MPI


def best(call: Callable[[], Any], seconds: float, comm: Any = None) -> float:
    """Return the least seconds of the slowest rank, of at least three calls."""
    call()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        if comm is not None:
            comm.Barrier()
        begun = time.perf_counter()
        call()
        took = time.perf_counter() - begun
        times.append(took if comm is None else comm.allreduce(took, op=_mpi().MAX))
    return min(times)


def triad(past_caches: bool = False) -> float:
    """Return the bytes a second of a triad of all threads, of vectors of N^3 numbers, with the usual stores or with those past the caches."""
    return 24 * N**3 / min(_core.stream_triad(N**3, 3, past_caches))


def operations() -> dict[str, Any]:
    """The finest level: operations as shares of a triad, and steps in one pass over memory beside steps one after the other."""
    out: dict[str, Any] = {"threads": _core.team_size(), "operations": [], "steps": []}
    for cells, dtype in itertools.product((False, True), ("float64", "float32")):
        L = poisson(N, cells, dtype=dtype)
        points, size = int(np.prod(L.grid_shape)), np.dtype(dtype).itemsize
        b, x, y, r, weights = (aligned((int(L._h.rows.local_size),), dtype) for _ in range(5))
        for v in (b, x, y, r):
            v[...] = 1
        L._h.diagonal(weights)
        weights[...] = 0.8 / weights
        speed, speed_past = triad(), triad(True)

        def steps(count: int, at_once: int, residual: bool, fresh: bool = False) -> Callable[[], Any]:
            prepared = L._h.steps([(weights, 1.0)] * count, at_once)  # noqa: B023
            return lambda: prepared.run(L._h, b, x, y, fresh, r if residual else None)  # noqa: B023

        where = "cells" if cells else "nodes"
        if not cells:
            coarse, P, R, _ = bricks.coarse_level(bricks.make, L._how, L._h, L._domain, "again", 0)
            c = aligned((int(coarse._h.rows.local_size),), dtype)
            c[...] = 1
            for name, bytes_of_point, call in (
                ("applyOp", 2, lambda: L._h.apply(x, y)),  # noqa: B023
                ("smooth", 3, steps(1, 1, False)),
                ("smooth + residual", 4, steps(1, 2, True)),
                ("restriction", 72 / 64, lambda: R.apply(x, c)),  # noqa: B023
                ("interpolation + increment", 136 / 64, lambda: P.apply_add(c, y)),  # noqa: B023
            ):
                seconds = best(call, 0.5)
                least = bytes_of_point * size * points
                # each beside the triad with its kind of stores: of all it writes, or of the residual alone
                stores = PAST_CACHES.get(name, 0.0)
                best_speed = 1 / (stores / speed_past + (1 - stores) / speed)
                out["operations"].append(
                    {"dtype": dtype, "operation": name, "seconds": seconds, "of_triad": least / seconds / best_speed}
                )
        for count, residual, fresh in ((2, False, False), (2, True, True), (4, False, False)):
            one_pass = best(steps(count, 8, residual, fresh), 0.7)
            separate = best(steps(count, 1, residual, fresh), 0.7)
            out["steps"].append(
                {
                    "points": where, "dtype": dtype, "steps": count, "residual": residual, "from_zero": fresh,
                    "one_pass": one_pass, "separate": separate, "of_separate": one_pass / separate,
                }
            )  # fmt: skip
        out["triad_bytes_per_s"], out["triad_past_caches_bytes_per_s"] = speed, speed_past
    return out


def cycles(comm: Any) -> dict[str, Any]:
    """A V cycle and full multigrid on cells, as HPGMG's, and the error of full multigrid beside that of the solution."""
    L = poisson(N, True, comm)
    at = (np.arange(N) + 0.5) / N
    wave, second = (
        np.sin(np.pi * at) * np.exp(at),
        np.exp(at) * ((np.pi**2 - 1) * np.sin(np.pi * at) - 2 * np.pi * np.cos(np.pi * at)),
    )
    mine = [[v[s] for s in L.owned] for v in (wave, second)]
    parts = [np.einsum("i,j,k->ijk", *(mine[int(a == axis)][a] for a in range(3))) for axis in range(3)]
    u, b = np.einsum("i,j,k->ijk", *mine[0]), sum(parts[1:], parts[0])
    bv = L.make_vector(b)

    def error(x: Any) -> float:
        return comm.allreduce(float(np.abs(x - u).max()), op=_mpi().MAX)

    exact = error(am.Solver(L, "-pc_type gmg", ksp="cg", rtol=1e-9).solve(b))
    out = []
    for name, options in (
        ("V", CHEBYSHEV4),
        ("V", SMOOTHERS["default of a symmetric method"]),
        ("full", CHEBYSHEV4),
        ("full", ""),
    ):
        kind = "-pc_gmg_cycle_type full" if name == "full" else ""
        s = am.Solver(L, f"-pc_type gmg {kind} {options}", ksp="richardson", maxiter=1)
        share = error(s.solve(b, raise_on_failure=False)) / exact
        seconds = best(lambda s=s: s.solve(bv, raise_on_failure=False), 2, comm)
        of_many = None
        if name == "V":
            many = am.Solver(L, f"-pc_type gmg {options}", ksp="richardson", rtol=1e-30, maxiter=V_CYCLES)
            of_many = best(lambda many=many: many.solve(bv, raise_on_failure=False), 2, comm) / many.info.iterations
        _core.profile_reset()
        s.solve(bv, raise_on_failure=False)
        inside = next(e["seconds"] for e in _core.profile_snapshot() if e["name"] == "PCApplyGMG")
        smoother = s.view().split("operator, smoother\n")[1].splitlines()[0].split(", ", 1)[1]
        out.append(
            {
                "cycle": name, "smoother": smoother, "solve": seconds, "of_many": of_many, "cycle_alone": inside,
                "error_of_discretisation": share, "ranks": comm.size, "threads": _core.team_size(),
            }
        )  # fmt: skip
    return {"cycles": out}


def factors(comm: Any) -> dict[str, Any]:
    """The mean factor of the residual's 2-norm in a V(2,2) cycle, down to 1e-9, from a random right-hand side; the default has its own steps."""
    out = []
    for n in (32, 64, 128, 256):
        L = poisson(n, False, comm)
        b = np.random.default_rng(1).standard_normal(L.grid_shape)[L.owned]
        for name, options in SMOOTHERS.items():
            s = am.Solver(L, f"-pc_type gmg {options}", ksp="richardson", rtol=1e-9, maxiter=60)
            s.solve(b, raise_on_failure=False)
            norms = s.info.residual_norms
            smoother = s.view().split("operator, smoother\n")[1].splitlines()[0].rsplit(", float64, ", 1)[-1]
            factor = (norms[-1] / norms[0]) ** (1 / (len(norms) - 1))
            out.append({"n": n, "smoother": name, "is": smoother, "factor": factor, "cycles": len(norms) - 1})
    return {"factors": out}


def hpgmg() -> dict[str, Any]:
    """Run the programs that HPGMG_ROOT names on 2 ranks, 8 boxes of 128^3: the seconds of a solve, and its cycles."""
    out: dict[str, Any] = {}
    root = os.environ.get("HPGMG_ROOT")
    launcher = os.environ.get("HPGMG_MPIEXEC", mpiexec(2)[0])  # of the MPI that it was built with
    for program in sorted(Path(root).glob("hpgmg*")) if root else ():
        if not (program.is_file() and os.access(program, os.X_OK)):
            continue
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_MCA", "OPAL_", "PRTE_MCA"))}
        done = subprocess.run(
            [launcher, "-n", "2", str(program), "7", "4"],
            capture_output=True, text=True, check=False, timeout=300, env={**clean, "OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        finest = re.search(r"DOF=([0-9.e+]+)\s+time=([0-9.]+)", done.stdout)
        if not finest:
            print(f"({program.name}: {(done.stderr or done.stdout)[-200:]})", file=sys.stderr)
            continue
        counts = [int(c) for c in re.findall(r"v-cycle=\s*(\d+)", done.stdout.split("Running")[1].split("Timing")[0])]
        kind = "full" if "f-cycle" in done.stdout else "V"
        out[program.name] = {
            "cycle": kind,
            "points": float(finest[1]),
            "solve": float(finest[2]),
            "cycles": max(counts, default=1),
        }
    return out


def gmg() -> dict[str, Any]:
    """All parts, each in a fresh process; the peer between them."""
    me = str(Path(__file__).resolve())
    out: dict[str, Any] = {"bench": "gmg", "n": N, "operations": []}
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("ASTERISM_STENCIL_CACHE")
        out["first_use"] = [
            {k: r[k] for k in ("points", "first_use_s", "again_s")} for r in kernels(sizes=(), seconds=0.1)["kernels"]
        ]
        os.environ["ASTERISM_STENCIL_CACHE"] = before or f"{folder}/cache"
        for threads in (1, 2):
            os.environ["ASTERISM_NUM_THREADS"] = str(threads)
            out["operations"].append(json_line([sys.executable, me, "operations"]))
        os.environ["ASTERISM_NUM_THREADS"] = "1"
        out["hpgmg"] = hpgmg()
        out |= json_line([*mpiexec(2), sys.executable, me, "cycles"])
        out |= json_line([*mpiexec(2), sys.executable, me, "factors"])
        del os.environ["ASTERISM_NUM_THREADS"]
        if before is None:
            del os.environ["ASTERISM_STENCIL_CACHE"]
    return out


def table(r: dict) -> None:
    """Print it in words."""
    for k in r["first_use"]:
        print(
            f"gmg  a stencil of {k['points']:3d} points: first use {k['first_use_s']:.2f} s, from the cache {1e3 * k['again_s']:.1f} ms"
        )
    for o in r["operations"]:
        on = f"{o['threads']} thread(s)"
        print(f"gmg  {r['n']}^3, {on}: triad {o['triad_bytes_per_s'] / 1e9:.1f} GB/s")
        for p in o["operations"]:
            print(
                f"gmg  {on} {p['dtype']} {p['operation']:26s} {1e3 * p['seconds']:6.1f} ms, {p['of_triad']:.2f} of the triad"
            )
        for p in o["steps"]:
            what = f"{p['steps']} steps{' from zero' if p['from_zero'] else ''}{' + residual' if p['residual'] else ''}"
            print(
                f"gmg  {on} {p['dtype']} {p['points']} {what:29s} {1e3 * p['one_pass']:6.1f} ms in one pass, {p['of_separate']:.2f} of "
                f"{1e3 * p['separate']:.1f} ms"
            )
    theirs: dict[str, float] = {}
    for name, p in r["hpgmg"].items():
        theirs[p["cycle"]] = min(theirs.get(p["cycle"], np.inf), p["solve"] / p["cycles"])
        print(f"gmg  {name}, 2 ranks: {p['cycle']} cycle {1e3 * p['solve'] / p['cycles']:.0f} ms")
    for c in r["cycles"]:
        line = f"gmg  {c['cycle']:4s} cycle, {c['ranks']} ranks: {1e3 * c['solve']:.0f} ms, the cycle alone {1e3 * c['cycle_alone']:.0f} ms"
        if c.get("of_many"):
            line += f", {1e3 * c['of_many']:.0f} ms each of {V_CYCLES}"
        if c["cycle"] in theirs and (c["cycle"] == "full" or " x 4 " in c["smoother"]):  # V: of as many sweeps
            line += f", {(c.get('of_many') or c['solve']) / theirs[c['cycle']]:.2f} of HPGMG's"
        if c["cycle"] == "full":
            line += f", {c['error_of_discretisation']:.2f} times the error of the discretisation"
        print(f"{line}; {c['smoother']}")
    for name in dict.fromkeys(f["smoother"] for f in r["factors"]):
        rows = [f for f in r["factors"] if f["smoother"] == name]
        text = ", ".join(f"{f['factor']:.3f}" for f in rows)
        print(f"gmg  factor of a cycle, n = {', '.join(str(f['n']) for f in rows)}: {text}; {name}: {rows[0]['is']}")


if __name__ == "__main__":
    part, world = sys.argv[1], _mpi().COMM_WORLD
    line = operations() if part == "operations" else (cycles if part == "cycles" else factors)(world)
    if world.rank == 0:
        print(json.dumps(line))
