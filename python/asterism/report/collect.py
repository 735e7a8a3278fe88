"""Gathers what a report needs: the problem, the options, the events of all ranks, the machine's limits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..base.machine import WaitsForCores, last_level_cache_bytes, memory_bandwidth
from ..la.matrix import Matrix
from ..solvers.info import SolveInfo
from ..solvers.solver import Solver

__all__ = ["Findings", "collect"]


@dataclass(repr=False)
class Findings:
    """Everything a report shows, plain data; made by `report.collect`, shown by `summary` and `write_html`.

    Attributes
    ----------
    problem : str
        What was solved.
    info : SolveInfo
    view : str
        The solver in words: `Solver.view`.
    options : list of dict
        `Solver.options_in_force`.
    events : list of dict
        ``name``, ``calls``, ``seconds``, ``self_seconds`` (without the events within) of the slowest rank; ``bytes``, ``flops`` and
        ``messages`` of all ranks.
    ranks, threads : int
        Of the communicator; of a rank.
    triad : float
        Bytes per second of the STREAM triad, all ranks together.
    error : float or None
        Relative error of x, if the solution is known.
    waited : float
        Share of the time that a thread waited for a core.
    cores : int
        That the ranks may use.
    cache : int
        Bytes of the last level; 0: not known.
    storage : str
        `Matrix.storage`; empty of an operator.
    entries_per_row : float
    spread : float
        Bytes of the vector between the entries of a row, in the mean; of csr only.
    advice : list of str
        What limited the speed, a sentence each.
    """

    problem: str
    info: SolveInfo
    view: str
    options: list[dict[str, str]]
    events: list[dict[str, Any]]
    ranks: int
    threads: int
    triad: float
    error: float | None = None
    waited: float = 0.0  # share of the time that a thread waited for a core
    cores: int = 1
    cache: int = 0  # bytes of the last level, 0: not known
    storage: str = ""
    entries_per_row: float = 0.0
    spread: float = 0.0  # bytes of the vector between the entries of a row, in the mean; csr only
    advice: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<asterism.report.Findings on {self.problem}: {self.info._summary()}>"


_PHASES = {"KSPSolve", "PCSetUpAMG", "PCApplyAMG", "SolverInspect"}


def collect(
    problem: str,
    solver: Solver,
    info: SolveInfo,
    comm: Any = None,
    error: float | None = None,
    waited: float | None = None,
) -> Findings:
    """Gather what a report shows of a solve.

    Parameters
    ----------
    problem : str
        What was solved, for the head of the report.
    solver : Solver
    info : SolveInfo
        Of its solve, ``solver.info``.
    comm : mpi4py.MPI.Comm, optional
        That of the solver's matrix, if it has one.
    error : float, optional
        Relative error of x, if the solution is known.
    waited : float, optional
        Share of the time that threads of this rank waited for a core; since the process began by default, as the events.

    Returns
    -------
    Findings

    Notes
    -----
    Collective. Events are the slowest rank's times and all ranks' traffic. The first call measures the bandwidth of the memory.

    Examples
    --------
    >>> import asterism as am, numpy as np
    >>> solver = am.Solver(am.gallery.poisson((30, 30)), rtol=1e-8)
    >>> x = solver.solve(np.ones(900))
    >>> found = am.report.collect("Poisson", solver, solver.info)
    >>> found.problem, found.ranks
    ('Poisson', 1)
    """
    waited = WaitsForCores.of_process() if waited is None else waited
    mine = _core.profile_snapshot()
    everyone = [mine] if comm is None else comm.allgather(mine)
    names: list[str] = []
    for events in everyone:
        names += [e["name"] for e in events if e["name"] not in names]
    merged = []
    for name in names:
        rows = [e for events in everyone for e in events if e["name"] == name]
        merged.append(
            {
                "name": name,
                "calls": max(e["calls"] for e in rows),
                "seconds": max(e["seconds"] for e in rows),
                "self_seconds": max(e["self_seconds"] for e in rows),
                "bytes": sum(e["bytes"] for e in rows),
                "flops": sum(e["flops"] for e in rows),
                "messages": sum(e["messages"] for e in rows),
                "message_bytes": sum(e["message_bytes"] for e in rows),
                "reductions": max(e["reductions"] for e in rows),
            }
        )
    merged.sort(key=lambda e: -float(e["self_seconds"]))
    cores = os.sched_getaffinity(0)
    out = Findings(
        problem,
        info,
        solver.view(),
        solver.options_in_force(),
        merged,
        len(everyone),
        _core.team_size(),
        memory_bandwidth(comm),
        error,
        waited if comm is None else max(comm.allgather(waited)),
        len(cores if comm is None else set().union(*comm.allgather(cores))),
        # the same on all ranks, which may be bound to different cores: whether the triad is measured again depends on it
        last_level_cache_bytes() if comm is None else max(comm.allgather(last_level_cache_bytes())),
    )
    if isinstance(solver.A, Matrix):
        out.storage = solver.A.storage
        out.entries_per_row = solver.A.nnz / max(solver.A.shape[0], 1)
        out.spread = _spread(solver.A) if out.storage == "csr" else 0.0
    if _looks_wrong(out):  # the triad, perhaps measured when others used the cores
        out.triad = max(out.triad, memory_bandwidth(comm, refresh=True))
    out.advice = _advice(out)
    return out


def _spread(A: Matrix, sample: int = 2000) -> float:
    """Bytes of the vector between the first and the last entry of a row, the mean of some rows of this rank."""
    ptr, col, _ = A._rows()
    n = len(ptr) - 1
    rows = np.unique(np.linspace(0, n - 1, min(sample, n)).astype(int)) if n else np.empty(0, int)
    widths = [col[ptr[i + 1] - 1] - col[ptr[i]] for i in rows if ptr[i + 1] > ptr[i]]
    return float(np.mean(widths)) * A.dtype.itemsize if widths else 0.0


def _streaming(f: Findings) -> dict[str, Any] | None:
    """Return the event that moved data for longest, if any took a notable share of the time."""
    total = f.info.setup_seconds + f.info.solve_seconds
    events = [
        e
        for e in f.events
        if e["name"].startswith(("Mat", "Vec", "PCApply"))
        and e["name"] != "MatAssemble"
        and e["bytes"] > 0
        and e["self_seconds"] > 0.02 * max(total, 1e-12)
    ]
    return max(events, key=lambda e: float(e["self_seconds"]), default=None)


def _fits_cache(f: Findings, event: dict[str, Any]) -> bool:
    """Whether what one call of an event moves is less than the caches hold."""
    return bool(0 < event["bytes"] / max(event["calls"], 1) < 0.8 * f.cache)


def _looks_wrong(f: Findings) -> bool:
    """Whether an event is faster than the memory is said to be, with more data than the caches hold."""
    return any(
        e["bytes"] > 1.1 * f.triad * e["self_seconds"] > 0 and not _fits_cache(f, e)
        for e in f.events
        if e["name"].startswith(("Mat", "Vec"))
    )


def _busy(f: Findings) -> str | None:
    if f.waited < 0.05:
        return None
    ours = f.ranks * f.threads
    fewer = ", or ASTERISM_NUM_THREADS=1" if f.threads > 1 else ""
    leave = "; ASTERISM_NUM_THREADS=1 leaves cores to others" if f.threads > 1 else ""
    why = (
        f"{ours} threads of this program share {f.cores} core(s). Use fewer ranks{fewer}."
        if ours > f.cores
        else f"other programs used the cores. Times and rates say less then{leave}."
    )
    return f"The machine was busy: a thread waited for a core {100 * f.waited:.0f} % of the time, since {why}"


def _what_limited(f: Findings, top: dict[str, Any]) -> list[str]:
    """Say how fast the longest event was, beside what is known of its data."""
    rate = top["bytes"] / top["self_seconds"]
    share = 100 * rate / f.triad
    fits = _fits_cache(f, top)
    out = [
        f"{top['name']} moved its data at {rate / 1e9:.1f} GB/s, {share:.0f} % of the {f.triad / 1e9:.1f} GB/s that this "
        f"machine gave to a STREAM triad on {f.ranks} rank(s) x {f.threads} thread(s)"
        + (f"; its data fit the {f.cache / 1e6:.0f} MB of cache." if fits else ".")
    ]
    each = top["self_seconds"] / max(top["calls"], 1)
    if fits and share >= 60:
        out.append("The data come from cache: the memory's bandwidth is no limit at this size.")
    elif share >= 60:
        out.append(
            "The solve is limited by memory bandwidth: fewer bytes help (-pc_dtype float32), more cores of the same chip hardly."
        )
    elif f.waited >= 0.05:
        pass  # the load explains it
    elif each < 2e-5 * f.threads:
        out.append(f"Its calls are short, {1e6 * each:.0f} us each: the problem is small for so many threads.")
    elif f.ranks > 1:
        out.append("It stays well below the memory limit: look at the messages, or use fewer ranks for this size.")
    elif top["name"].startswith("PCApply"):
        out.append("Its rows wait for each other: amg or jacobi have more work to do at once.")
    elif f.storage == "csr" and f.spread > 0.5 * f.cache > 0:
        out.append(
            f"The entries of a row are {f.spread / 1e6:.0f} MB of the vector apart, in the mean, beside {f.cache / 1e6:.0f} MB "
            "of cache: another order of the unknowns may help (scipy.sparse.csgraph.reverse_cuthill_mckee)."
        )
    elif f.storage == "csr" and f.entries_per_row < 4:
        out.append(f"Rows are short, {f.entries_per_row:.1f} entries in the mean: vectors weigh as much as the matrix.")
    return out


def _advice(f: Findings) -> list[str]:
    """Say what limited the speed, and what to try."""
    out: list[str] = []
    info = f.info
    total = info.setup_seconds + info.solve_seconds
    if not info.converged:
        out.append(f"The solve ended with {info.reason}: {info.why}")
    if total > 0 and info.setup_seconds > 0.5 * total and info.iterations > 0:
        again = info.setup_seconds / max(info.solve_seconds, 1e-9)
        cheaper = info.preconditioner.startswith("amg") and info.iterations <= 30
        out.append(
            f"Set-up took {100 * info.setup_seconds / total:.0f} % of the time ({again:.1f} times one solve): keep the "
            "Solver for further right-hand sides"
            + (", or try a cheaper preconditioner (-pc_type jacobi) for a single one." if cheaper else ".")
        )
    if busy := _busy(f):
        out.append(busy)
    if top := _streaming(f):
        out += _what_limited(f, top)
    if info.converged and info.iterations > 200:
        said = "coordinates=, near_null_space= or block_size= of a vector problem"
        out.append(
            f"{info.iterations} iterations are many: "
            + (
                f"give {said}, or try a smaller -pc_amg_threshold"
                if info.preconditioner.startswith("amg")
                else f"try -pc_type amg (symmetric), with {said}; or ilu"
            )
            + ", or solve directly: -ksp_type preonly -pc_type lu. `asterism advise` tries several."
        )
    if info.converged and info.resumes:
        out.append(
            f"The verified residual missed the target {info.resumes} time(s) and the method went on: the tolerance is near the rounding of b - A x."
        )
    if not out:
        out.append("Nothing stood out.")
    return out
