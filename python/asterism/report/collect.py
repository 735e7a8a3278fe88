"""Gathers what a report needs: the problem, the options, the events of all ranks, the machine's limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..machine import memory_bandwidth
from ..solve import SolveInfo, Solver

__all__ = ["Findings", "collect"]


@dataclass(repr=False)
class Findings:
    """Everything a report shows; plain data."""

    problem: str
    info: SolveInfo
    view: str
    options: list[dict[str, str]]
    events: list[dict[str, Any]]
    ranks: int
    threads: int
    triad: float
    error: float | None = None
    advice: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<asterism.report.Findings on {self.problem}: {self.info._summary()}>"


_PHASES = {"KSPSolve", "PCSetUpAMG", "PCApplyAMG", "SolverInspect"}


def collect(problem: str, solver: Solver, info: SolveInfo, comm: Any = None, error: float | None = None) -> Findings:
    """Gather on all ranks (collective); events are the slowest rank's times and all ranks' traffic."""
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
    )
    out.advice = _advice(out)
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
        out.append(
            f"Set-up took {100 * info.setup_seconds / total:.0f} % of the time ({again:.1f} times one solve): keep the "
            "Solver for further right-hand sides, or try a cheaper preconditioner (-pc_type jacobi) for a single easy one."
        )
    streaming = [
        e
        for e in f.events
        if e["name"].startswith(("Mat", "Vec", "PCApply"))
        and e["name"] != "MatAssemble"
        and e["bytes"] > 0
        and e["self_seconds"] > 0.02 * max(total, 1e-12)
    ]
    if streaming:
        top = max(streaming, key=lambda e: float(e["self_seconds"]))
        rate = top["bytes"] / top["self_seconds"]
        share = 100 * rate / f.triad
        cached = " (its data fit the cache)" if share > 130 else ""
        out.append(
            f"{top['name']} moved its data at {rate / 1e9:.1f} GB/s, {share:.0f} % of the {f.triad / 1e9:.1f} GB/s that this "
            f"machine gave to a STREAM triad on {f.ranks} rank(s) x {f.threads} thread(s){cached}."
        )
        if share >= 60:
            out.append(
                "The solve is limited by memory bandwidth: fewer bytes help (-pc_dtype float32), more cores of the same chip hardly."
            )
        elif f.ranks > 1:
            out.append(
                "It stays well below the memory limit: look at the messages below, or use fewer ranks for this size."
            )
        else:
            out.append(
                "It stays below the memory limit: indices are irregular or rows short; a reordering of the unknowns may help."
            )
    if info.converged and info.iterations > 200:
        out.append(
            f"{info.iterations} iterations are many: try -pc_type amg (symmetric) or ilu, and give coordinates or the block size of a vector problem."
        )
    if info.converged and info.resumes:
        out.append(
            f"The verified residual missed the target {info.resumes} time(s) and the method went on: the tolerance is near what {f.problem.split(',')[0]} allows."
        )
    if not out:
        out.append("Nothing stood out.")
    return out
