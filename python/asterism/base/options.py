"""Options of the whole process: from a file, the environment and, if asked for, the command line."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import OptionError

__all__ = [
    "add_options",
    "apply_to_process",
    "check_keywords",
    "configure",
    "process_options",
    "refuse_keywords",
    "use_argv",
    "use_file",
]

# what other libraries call our arguments
_ELSEWHERE = {
    "B": "near_null_space",
    "callback": "monitor",
    "method": "ksp",
    "coords": "coordinates",
    "nullspace": "null_space",
    "precond": "pc",
    "preconditioner": "pc",
    "solver": "ksp",
    "tol": "rtol",
    "tolerance": "rtol",
}

_command_line: list[str] = []
_file: list[str] = []
_configured: dict[str, Any] = {}
_read_elsewhere: list[str] = []
_prefixes: list[str] = []


def use_argv(
    argv: list[str] | None = None, *, read_elsewhere: Iterable[str] = (), prefixes: Iterable[str] = ()
) -> None:
    """Let the process's command line set options of everything made from now on (PETSc's habit).

    Parameters
    ----------
    argv : list of str, optional
        The command line; by default that of the process.
    read_elsewhere : iterable of str
        Options that are for something else than what is made next: no warning says that they have no effect.
    prefixes : iterable of str
        The ``prefix=`` of each solver, ``"u_"`` for instance, and ``""`` if one has none. Each takes the options of its own, and leaves
        those of the others, of the environment and the options file too.

    Raises
    ------
    OptionError
        An option of the whole process has a value that is not allowed. Other options are checked where something is made.
    """
    _command_line[:] = sys.argv[1:] if argv is None else argv
    _read_elsewhere[:] = read_elsewhere
    _prefixes[:] = [prefixes] if isinstance(prefixes, str) else prefixes
    apply_to_process()


def use_file(path: str | os.PathLike[str] | None) -> None:
    """Read options of everything made from now on from a file, instead of the one that ``ASTERISM_OPTIONS_FILE`` names; None: from that one."""
    _file[:] = [] if path is None else [str(path)]
    apply_to_process()


def process_options() -> _core.Options:
    """Return the options file, ``ASTERISM_OPTIONS`` and the command line in their layers."""
    o = _core.Options()
    if path := _file[0] if _file else os.environ.get("ASTERISM_OPTIONS_FILE"):
        o.parse_file(path)
    add_options(os.environ.get("ASTERISM_OPTIONS"), _core.OptionLayer.environment, "environment ASTERISM_OPTIONS", o)
    o.set_read_elsewhere(_read_elsewhere)
    o.set_prefixes(_prefixes)
    if _command_line:
        add_options(" ".join(_command_line), _core.OptionLayer.command_line, "command line", o)
    return o


def configure(**options: Any) -> dict[str, str]:
    """Set what holds for the whole process, from now on.

    Parameters
    ----------
    **options
        By their names without the dash: ``reproducible``, ``memory_cap``, ``gpu_memory_cap``, ``hang_timeout``, ``shared_vectors``,
        ``forbid_copies``, ``queue_debug``, ``sf_transport``, ``sf_discovery``, ``sf_progress``, ``sf_debug``, ``gpu_transport``,
        ``use_gpu_aware_mpi``, ``mat_gpu_product``. ``asterism solve --help-options`` says what each does. They win over
        ``ASTERISM_OPTIONS`` and the command line.

    Returns
    -------
    dict
        All of them, and what is in force.

    Raises
    ------
    OptionError
        For another name, or a value that is not allowed; nothing is changed then.

    Notes
    -----
    Not collective. What carries messages and ``reproducible`` must be the same on all ranks; the next `Solver` checks it.

    Examples
    --------
    >>> import asterism as am
    >>> am.configure(hang_timeout=60)["hang_timeout"]
    '60'
    >>> am.configure(hang_timeout=0)["reproducible"]
    'false'
    """
    known = _core.process_defaults()
    for name in options:
        if name not in known:
            near = _core.nearest(name, list(known))
            raise OptionError(
                f"configure: {name} is an option of a solver. Give it to Solver or solve."
                if name in _option_names()
                else f"configure: there is no option {name}. "
                + (f"Did you mean {near}?" if near else f"There are {', '.join(known)}.")
            )
    before = dict(_configured)
    _configured.update(options)
    try:
        apply_to_process()
    except OptionError:
        _configured.clear()
        _configured.update(before)
        raise
    return {**known, **_core.process_settings()}


def apply_to_process() -> None:
    """Let the options of the whole process rule from now on: of the environment, the command line and `configure`."""
    o = process_options()
    add_options(_configured, _core.OptionLayer.call, "configure", o)
    _core.apply_process_options(o)


def add_options(source: Any, layer: _core.OptionLayer, origin: str, out: _core.Options) -> None:
    """Add a string or a dict of options to a layer of `out`."""
    if source is None:
        return
    if isinstance(source, str):
        out.parse(source, layer, origin)
    elif isinstance(source, Mapping):
        for name, value in source.items():
            if not isinstance(name, str):
                raise OptionError(f"option names are strings, not {type(name).__name__} ({name!r}).")
            if value is None:  # as a keyword that is None: not given
                continue
            text = ("true" if value else "false") if isinstance(value, bool | np.bool_) else str(value)
            out.set(name, text, layer, origin)
    else:
        raise OptionError(f"options are a string or a dict, not {type(source).__name__}.")


@functools.cache
def _option_names() -> list[str]:
    return [name for _, name, *_ in _core.option_tables()]


def _arguments(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds and p.name != "self"]


def check_keywords(
    given: Iterable[str], aliases: Container[str], call: Callable[..., Any], others: Sequence[Callable[..., Any]] = ()
) -> None:
    """Raise an OptionError for a keyword that is rather a mistyped argument than a mistyped option, which the core tells.

    Parameters
    ----------
    given : names
        That are no arguments.
    aliases : names
        That are taken too.
    call : function
        That was called.
    others : functions, optional
        Whose arguments a keyword may be meant for.
    """
    for name in given:
        if name in aliases or name in _option_names():
            continue
        if name == "comm":
            raise OptionError(
                f"{call.__qualname__.removesuffix('.__init__')}: there is no argument comm=. Give it to the matrix: "
                "am.Matrix.from_scipy(S, comm, distribute=True) for one that each rank has whole."
            )
        where = {argument: f"Did you mean {argument}=?" for argument in _arguments(call)}
        for other in others:
            for argument in _arguments(other):
                where.setdefault(
                    argument, f"It is an argument of {other.__qualname__.removesuffix('.__init__')}: {argument}=."
                )
        near = _ELSEWHERE.get(name, "") or (name if name in where else _core.nearest(name, [*_option_names(), *where]))
        alike = name in _ELSEWHERE or difflib.SequenceMatcher(None, name, near).ratio() > 0.5
        if near in where and alike:
            called = call.__qualname__.removesuffix(".__init__")
            raise OptionError(f"{called}: there is no argument {name}=. {where[near]}")


def refuse_keywords(given: Iterable[str], call: Callable[..., Any], maker: Callable[..., Any]) -> None:
    """Raise an OptionError for keywords that a call of an object does not take, with the place that does.

    Parameters
    ----------
    given : names
    call : function
        That was called.
    maker : class
        Of the object, whose arguments and options they may be.
    """
    for name in given:
        check_keywords([name], (), call, [maker.__init__])
        of_maker = name in _option_names() or name in _arguments(maker.__init__)
        hint = f"Give it when the object is made: {maker.__name__}({name}=)."
        hint = hint if of_maker else f"It takes {', '.join(_arguments(call))}."
        raise OptionError(f"{call.__qualname__}: there is no argument {name}=. {hint}")
