"""Trials of solvers on one system under limits of time, which all ranks take alike."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.live import LiveLine
from ..comm.communicator import collective
from ..errors import AsterismError, CommError, TimeLimitError
from ..la.matrix import Matrix
from .solver import Solver

__all__ = ["Trial", "Trials"]

_LOG_SECONDS, _LIVE_SECONDS = 10.0, 0.1
_QUICK, _AGAIN = (
    0.3,
    2,
)  # a trial that takes less than so many seconds is made up to so many times more: of these times the least counts
_LEAST_LIMIT = 0.5  # seconds that every trial has, if the budget has them


@dataclass(frozen=True)
class Trial:
    """One solver on the system.

    Attributes
    ----------
    options : str
        By PETSc's names, for ``options=`` or a command line.
    solver : str
        Method and preconditioner, as it describes itself.
    setup_seconds, solve_seconds : float
        Of the slowest rank.
    memory_bytes : int
        Of the matrix and the preconditioner on all ranks.
    iterations : int
    relative_residual : float
        ``||b - A x|| / ||b||`` of the answer, the worst of the columns; infinite where there is none.
    converged : bool
    result : str
        ``CONVERGED_RTOL`` and others; ``DIVERGED_TIME_LIMIT``; ``ERROR`` where the set-up failed.
    why : str
        Why it did not converge.
    """

    options: str
    solver: str
    setup_seconds: float
    solve_seconds: float
    memory_bytes: int
    iterations: int
    relative_residual: float
    converged: bool
    result: str
    why: str

    @property
    def seconds(self) -> float:
        """Set-up and solve."""
        return self.setup_seconds + self.solve_seconds

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON, where nothing is infinite."""
        found = asdict(self)
        if not math.isfinite(self.relative_residual):
            found["relative_residual"] = None
        return found


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End what is under way after so many seconds: a solve as DIVERGED_TIME_LIMIT, a set-up by an error, on all ranks."""
    _core.set_time_limit(seconds)
    try:
        yield
    finally:
        _core.set_time_limit(math.inf)


class Trials:
    """Makes trials on a system until the time is over.

    Parameters
    ----------
    A : Matrix
    b : array, shape (my rows,) or (my rows, k)
    rtol : float
    budget : float
        Seconds for all trials.
    null_space : array, optional
    in_logs : bool
        Say every 10 s how far it is where ``stderr`` is no terminal.
    """

    def __init__(
        self, A: Matrix, b: NDArray[Any], rtol: float, budget: float, null_space: Any = None, in_logs: bool = False
    ) -> None:
        self.A, self.b, self.rtol, self.budget = A, b, rtol, budget
        self.null_space = null_space
        self.done: list[Trial] = []
        self._start = time.monotonic()
        self._line, self._in_logs = LiveLine(), in_logs and A._comm.rank == 0
        self._logged = self._shown = self._start

    @property
    def best(self) -> Trial | None:
        """The fastest that converged."""
        return min((t for t in self.done if t.converged), key=lambda t: t.seconds, default=None)

    def _most(self, value: float) -> float:
        return float(self.A._comm.max(value))

    def _of_lowest_rank(self, texts: tuple[str, ...], failed: bool) -> list[str]:
        """Texts of the lowest rank that failed: each rank words an error in its own way. Collective."""
        comm = self.A._comm
        lowest = int(-self._most(-comm.rank if failed else -comm.size))
        return str(comm.bcast("\0".join(texts), lowest)).split("\0")

    def seconds_left(self) -> float:
        """Of the budget, the same on all ranks. Collective."""
        with collective(self.A._comm, "advise"):
            return self.budget - self._most(time.monotonic() - self._start)

    def run(self, options: str, what: str, limit: float) -> Trial | None:
        """Try a solver for at most `limit` seconds and what is left of the budget; None where nothing is left. Collective."""
        left = self.seconds_left()
        if left <= 0 and self.done:
            return None
        begun, allowed = time.monotonic(), max(min(limit, left), 0.0)
        fastest = trial = self._once(options, what, allowed, watched=True)
        for _ in range(_AGAIN):
            with collective(self.A._comm, "advise"):
                spent = self._most(time.monotonic() - begun)
            if not trial.converged or trial.seconds > _QUICK or allowed - spent < trial.seconds:
                break
            again = self._once(options, what, allowed - spent)
            if again.converged and again.seconds < fastest.seconds:
                fastest = again
        self.done.append(fastest)
        return fastest

    def _once(self, options: str, what: str, limit: float, watched: bool = False) -> Trial:
        self._show(what)
        begun = time.monotonic()
        comm, solver, why, ended = self.A._comm, None, "", False
        other: BaseException | None = None
        with _time_limit(limit):
            try:
                with collective(comm, "advise: a trial"):
                    solver = Solver(self.A, f"{options} -ksp_rtol {self.rtol:g}", null_space=self.null_space)
                    talks = watched and comm.rank == 0 and (self._line.possible or self._in_logs)
                    with np.errstate(all="ignore"):
                        solver.solve(self.b, monitor=self._monitor(what) if talks else None, raise_on_failure=False)
            except AsterismError as error:  # of all ranks
                why, ended = str(error), isinstance(error, TimeLimitError)
            except BaseException as error:  # Ctrl-C; ranks that were through with the trial are told in the next call
                other = error
            finally:
                self._line.wipe()
        error_name = "DIVERGED_TIME_LIMIT" if ended else "ERROR"
        try:
            with collective(comm, "advise"):  # the ranks recover here where the trial ended by an error
                if other is not None:
                    raise other
                return self._judged(options, solver, error_name, why, time.monotonic() - begun)
        except CommError:
            if other is None:
                raise
            raise other from None  # another rank was here first with the same interrupt

    def _judged(self, options: str, solver: Solver | None, error: str, why: str, seconds: float) -> Trial:
        """What all ranks say of a trial. Collective."""
        info = None if solver is None else solver.info
        if self._most(info is None) or info is None:
            name = "" if solver is None else solver._h.method + " + " + solver._preconditioner()
            result, name, why = self._of_lowest_rank((error, name, why), info is None)
            return Trial(
                options=options,
                solver=name,
                setup_seconds=self._most(seconds),
                solve_seconds=0.0,
                memory_bytes=0,
                iterations=0,
                relative_residual=math.inf,
                converged=False,
                result=result,
                why=why,
            )
        residual = float(np.max(info.relative_residual, initial=0.0))
        return Trial(
            options=options,
            solver=f"{info.method} + {info.preconditioner}",
            setup_seconds=self._most(info.setup_seconds),
            solve_seconds=self._most(info.solve_seconds),
            memory_bytes=self.A._comm.sum(info.memory_bytes),
            iterations=info.iterations,
            relative_residual=residual if math.isfinite(residual) else math.inf,
            converged=info.converged,
            result=info.reason,
            why=info.why,
        )

    def _monitor(self, what: str) -> Any:
        def monitor(it: int, norm: Any) -> None:
            self._show(f"{what}   iteration {it}   ||r|| {float(np.max(norm)):.1e}")

        return monitor

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if self.A._comm.rank != 0:
            return
        said = f"  {text}   {now - self._start:.0f} of {self.budget:.0f} s"
        if self._line.possible and (now - self._shown > _LIVE_SECONDS or not self.done):
            self._line.show(said[:150])
            self._shown = now
        elif self._in_logs and now - self._logged > _LOG_SECONDS:
            print(said, file=sys.stderr, flush=True)
            self._logged = now
