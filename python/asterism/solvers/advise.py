"""Advice: a short list of solvers, tried on the system that is to be solved."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..base.display import html_table, si_bytes
from ..base.files import replacing
from ..comm.agree import agreed
from ..comm.communicator import collective, several_calls
from ..errors import InputError, ShapeError, UnsupportedError
from ..la.matrix import Matrix, as_operator
from .candidates import LADDERS, Look, candidates, look
from .input import prepared
from .trials import _LEAST_LIMIT, Trial, Trials

__all__ = ["Advice", "advise"]

_SHARE = 0.3  # of what is left of the budget, for one trial
_SLOWER = 3.0  # times the best so far, after which a trial is given up
_GAIN = 0.03  # a change of an option is kept where it saves this part of the time
_HEAD = ("", "set-up s", "solve s", "memory", "iterations", "||b - A x||/||b||", "result", "options")


class Advice:
    """What `advise` found; made by `advise`.

    Attributes
    ----------
    what : str
        The name of the system.
    look : Look
        What was seen of the matrix.
    trials : list of Trial
        The best first: those that converged by their time, then the others by their residual.
    best : Trial or None
        None where nothing converged.
    not_tried : int
        Solvers of the list for which the budget had no time.
    rtol, budget : float
        As they were given.
    """

    def __init__(
        self, what: str, found: Look, trials: Sequence[Trial], not_tried: int, rtol: float, budget: float
    ) -> None:
        self.what, self.look, self.not_tried, self.rtol, self.budget = what, found, not_tried, rtol, budget
        self.trials = sorted(trials, key=lambda t: (not t.converged, t.seconds if t.converged else t.relative_residual))
        self.best = self.trials[0] if self.trials and self.trials[0].converged else None

    @property
    def options(self) -> str:
        """Of the best, with the tolerance: for ``options=`` or a command line."""
        if self.best is None:
            raise InputError(self.why())
        return f"{self.best.options} -ksp_rtol {self.rtol:g}"

    def why(self) -> str:
        """Return why there is no best: what is known, and what came closest; empty where there is one."""
        if self.best is not None:
            return ""
        ended = [t for t in self.trials if t.result == "DIVERGED_TIME_LIMIT"]
        text = f"none of {len(self.trials)} solver(s) reached {self.rtol:g}"
        if len(ended) == len(self.trials):
            text += f": the budget of {self.budget:g} s ended all of them. Give more time"
        elif ended:
            text += f", of which {len(ended)} had no more time"
        text += f"; there was no time for {self.not_tried} more" * (self.not_tried > 0)
        text += f". Known of the matrix: {', '.join(self.look.words())}."
        closest = self.trials[0] if self.trials else None
        if closest is not None and math.isfinite(closest.relative_residual):
            text += f" Closest: {closest.options}, which came to {closest.relative_residual:.1e}. {closest.why}"
        elif closest is not None:
            text += f" {closest.options}: {closest.why}"
        return text

    def rows(self) -> list[list[str]]:
        """Return the table: a head, and a row for each trial.

        Returns
        -------
        list of list of str
        """
        out: list[list[str]] = [list(_HEAD)]
        for place, t in enumerate(self.trials, 1):
            memory = si_bytes(t.memory_bytes) if t.memory_bytes else "-"
            residual = f"{t.relative_residual:.1e}" if math.isfinite(t.relative_residual) else "-"
            times = [f"{t.setup_seconds:.4f}", f"{t.solve_seconds:.4f}"]
            out.append([str(place), *times, memory, str(t.iterations), residual, t.result, t.options])
        return out

    def save(self, path: str | Path) -> None:
        """Write the options of the best, for ``asterism solve --options-file`` and ``ASTERISM_OPTIONS_FILE``.

        Parameters
        ----------
        path : path-like
            Written beside, then renamed.

        Raises
        ------
        InputError
            Nothing converged: there is no best.
        FileError
            The file cannot be written.

        Notes
        -----
        Not collective: one process calls it.
        """
        t, options = self.best, self.options
        assert t is not None
        seconds = f"set-up {t.setup_seconds:.3g} s, solve {t.solve_seconds:.3g} s"
        words, lines = options.split(), []
        for word in words:
            if word.startswith("-") and word[1:2].isalpha():
                lines.append(word)
            else:
                lines[-1] += f" {word}"
        said = [
            f"asterism advise, {datetime.date.today()}: {self.what}",
            ", ".join(self.look.words()),
            f"{t.solver}: {seconds}, {t.iterations} iterations, residual {t.relative_residual:.1e}, {self.look.ranks} rank(s)",
        ]
        with replacing(path) as out:
            out.write("".join(f"# {line}\n" for line in said) + "".join(f"{line}\n" for line in lines))

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON.

        Returns
        -------
        dict
            Of numbers, texts, lists and dicts.
        """
        return {
            "what": self.what,
            "look": self.look.as_dict(),
            "rtol": self.rtol,
            "budget": self.budget,
            "not_tried": self.not_tried,
            "threads": _core.team_size(),
            "options": None if self.best is None else self.options,
            "why": self.why(),
            "trials": [t.as_dict() for t in self.trials],
        }

    def __repr__(self) -> str:
        said = "nothing converged" if self.best is None else self.options
        return f"<asterism.Advice {said}, of {len(self.trials)} trials>"

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{self.what}: {', '.join(self.look.words())}", *lines, self.why()]).rstrip()

    def _repr_html_(self) -> str:
        head, *rows = self.rows()
        facts = {"matrix": ", ".join(self.look.words()), "options": self.why() or self.options}
        return html_table("asterism.Advice", facts, head, rows)


@several_calls("advise")
def advise(
    A: Any,
    b: Any = None,
    *,
    budget: float = 60.0,
    rtol: float = 1e-8,
    tune: bool = False,
    block_size: int | None = None,
    coordinates: Any = None,
    near_null_space: Any = None,
    null_space: Any = None,
    what: str | None = None,
    in_logs: bool = False,
) -> Advice:
    """Try a short list of solvers on a system, and rank them.

    Parameters
    ----------
    A : Matrix, SciPy sparse matrix or array, shape (n, n)
    b : array, shape (n,) or (n, k), optional
        My rows. By default A x of a known x.
    budget : float
        Seconds for all trials. One of them takes at most 0.3 of what is left, and is given up once it takes 3 times as long as the best so
        far (but each has 0.5 s).
    rtol : float
        Converged is ``||b - A x|| <= rtol ||b||``, by the residual that is computed from the answer.
    tune : bool
        Then vary the options of the best with what is left of the budget: one option after the other goes up and down a ladder of values
        while each step saves 3 % of the time, until a whole pass saves nothing.
    block_size, coordinates, near_null_space, null_space : optional
        As for `Solver`.
    what : str, optional
        The name of the system in what is printed.
    in_logs : bool
        Say every 10 s how far it is where ``stderr`` is no terminal; a terminal shows a line.

    Returns
    -------
    Advice
        Its ``best`` is None where nothing converged; `Advice.why` says what is known.

    Raises
    ------
    InputError
        For what no solver can help with: NaN, an empty row; a budget that is not positive.
    CommError
        The ranks do not give the same.
    ShapeError, UnsupportedError
        A is not square, or has no entries to look at.

    Notes
    -----
    Collective. Ranks agree on the times, so that they decide alike; the time of the slowest counts. Trials under 0.3 s are repeated, and the
    least time counts. A trial whose time is over ends as after Ctrl-C, in a set-up too. The look is the one of ``pc="auto"``.

    Examples
    --------
    >>> import asterism as am
    >>> A = am.gallery.poisson((30, 30))
    >>> advice = am.advise(A, budget=10)
    >>> advice.best.converged
    True
    >>> x, info = am.solve(A, A.make_vector(fill=1.0), options=advice.options)
    """
    M = as_operator(A, "A")

    def check() -> None:
        if not isinstance(M, Matrix):
            raise UnsupportedError(f"advise: A is {M!r}; a matrix is needed, whose entries can be looked at.")
        if M.shape[0] != M.shape[1]:
            raise ShapeError(
                f"advise: the matrix is {M.shape[0]} x {M.shape[1]}; a square one is needed. am.least_squares takes any shape."
            )
        if not _is_between(budget, math.inf):
            raise InputError(f"advise: budget is {budget!r}; a positive number of seconds is needed.")
        if not _is_between(rtol, 1):
            raise InputError(f"advise: rtol is {rtol!r}; a number between 0 and 1 is needed.")
        if b is not None:
            prepared(M, b, None, None, None)

    with collective(M._comm, "advise"):
        agreed(M._comm, check)
        assert isinstance(M, Matrix)
        budget, rtol = float(budget), float(rtol)
        given = {
            "budget": budget,
            "rtol": rtol,
            "tune": bool(tune),
            "b": "not given" if b is None else "given",
            "null_space": "not given" if null_space is None else "given",
        }
        M._comm.require_same("advise", [(name, str(value)) for name, value in given.items()])
        M = M._described(block_size, coordinates, near_null_space)
        if b is None:
            known = np.empty(M.local_shape[1], dtype=M.dtype)
            _core.fill_hashed(M._h.rows, known, 3)  # depends on the global index alone
            b = M @ known
        found = look(M)
        M._comm.max(0)  # an error of one rank finds the others here
    trials = Trials(M, b, rtol, budget, null_space, in_logs)
    listed = candidates(found)
    for place, options in enumerate(listed, 1):
        limit = trials.seconds_left() * _SHARE
        if trials.best is not None:
            limit = min(limit, _SLOWER * trials.best.seconds)
        if trials.run(options, f"{place} of {len(listed)}: {options}", max(limit, _LEAST_LIMIT)) is None:
            break
    not_tried = len(listed) - len(trials.done)
    if tune and trials.best is not None:
        _tune(trials)
    name = what or f"{M.shape[0]} x {M.shape[1]}, {M.nnz} entries, {M.dtype}"
    return Advice(name, found, trials.done, not_tried, rtol, budget)


def _is_between(value: Any, end: float) -> bool:
    """Return whether it is a number above zero and below that; no text."""
    try:
        return bool(0 < value < end and math.isfinite(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _given(options: str) -> dict[str, str]:
    words = options.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def _fallback(given: dict[str, str], name: str) -> str:
    """Return the value that holds where none is given."""
    if name == "mg_levels_ksp_max_it":  # whose own is -1
        return "2" if given.get("-mg_levels_ksp_type") == "chebyshev" else "1"
    return str(next(value for _, known, value, *_ in _core.option_tables() if known == name))


def _steps(given: dict[str, str], name: str, values: Sequence[str]) -> Iterator[list[str]]:
    """Yield the values above the one in force, then those below, each list from the nearest on."""
    now = given.get(f"-{name}") or _fallback(given, name)
    ladder = list(values)
    if now not in ladder:
        try:
            same = [v for v in ladder if math.isclose(float(v), float(now), rel_tol=1e-12)]
            ladder = [now if v in same else v for v in ladder] if same else sorted([*ladder, now], key=float)
        except ValueError:
            ladder.append(now)
    at = ladder.index(now)
    yield ladder[at + 1 :]
    yield ladder[:at][::-1]


def _tune(trials: Trials) -> None:
    """Climb one ladder after the other, until a pass saves nothing or the time is over. Ranks know the same times."""
    best = trials.best
    assert best is not None
    tried = {frozenset(_given(t.options).items()) for t in trials.done}
    better = True
    while better:
        better = False
        for owner, name, values in LADDERS:
            given = _given(best.options)
            if owner not in (given.get("-pc_type"), given.get("-ksp_type")):
                continue
            for way in _steps(given, name, values):
                for value in way:
                    changed = {**_given(best.options), f"-{name}": value}
                    if frozenset(changed.items()) in tried:
                        break
                    tried.add(frozenset(changed.items()))
                    options = " ".join(f"{k} {v}" for k, v in changed.items())
                    limit = max(1.5 * best.seconds, _LEAST_LIMIT)
                    trial = trials.run(options, f"tuning: {options}", limit)
                    if trial is None:
                        return
                    if not trial.converged or trial.seconds > (1 - _GAIN) * best.seconds:
                        break
                    best, better = trial, True
