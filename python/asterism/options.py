"""Options of the whole process: from a file, the environment and, if asked for, the command line."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from . import _core
from .errors import OptionError

__all__ = ["add_options", "apply_to_process", "check_keywords", "process_options", "use_argv"]

# what other libraries call our arguments
_ELSEWHERE = {
    "B": "near_null_space",
    "callback": "monitor",
    "method": "ksp",
    "nullspace": "near_null_space",
    "precond": "pc",
    "preconditioner": "pc",
    "solver": "ksp",
    "tol": "rtol",
    "tolerance": "rtol",
}

_command_line: list[str] = []


def use_argv(argv: list[str] | None = None) -> None:
    """Let the process's command line set options of everything made from now on (PETSc's habit)."""
    _command_line[:] = sys.argv[1:] if argv is None else argv
    apply_to_process()


def process_options() -> _core.Options:
    """Return ``ASTERISM_OPTIONS_FILE``, ``ASTERISM_OPTIONS`` and the command line in their layers."""
    o = _core.Options()
    if path := os.environ.get("ASTERISM_OPTIONS_FILE"):
        o.parse_file(path)
    add_options(os.environ.get("ASTERISM_OPTIONS"), _core.OptionLayer.environment, "environment ASTERISM_OPTIONS", o)
    if _command_line:
        add_options(" ".join(_command_line), _core.OptionLayer.command_line, "command line", o)
    return o


def apply_to_process() -> None:
    """Let the options of the whole process rule from now on.

    Those are ``-reproducible``, ``-shared_vectors``, ``-memory_cap``, ``-forbid_copies``, ``-queue_debug`` and ``-sf_*``.
    """
    _core.apply_process_options(process_options())


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
            text = ("true" if value else "false") if isinstance(value, bool | np.bool_) else str(value)
            out.set(name, text, layer, origin)
    else:
        raise OptionError(f"options are a string or a dict, not {type(source).__name__}.")


def check_keywords(
    given: Iterable[str],
    arguments: list[str],
    aliases: Container[str],
    call: str,
    others: Mapping[str, list[str]] | None = None,
) -> None:
    """Raise an OptionError for a keyword that is rather a mistyped argument than a mistyped option, which the core tells.

    Parameters
    ----------
    given : names
        That are no arguments.
    arguments : list of str
        Of the call, whose name is for the text.
    aliases : names
        That are taken too.
    others : dict of list of str, optional
        Arguments of other calls, by their names, that a keyword may be meant for.
    """
    where = {name: f"Did you mean {name}=?" for name in arguments}
    for other, names in (others or {}).items():
        for name in names:
            where.setdefault(name, f"It is an argument of {other}: {name}=.")
    options = [name for _, name, *_ in _core.option_tables()]
    for name in given:
        if name in aliases:
            continue
        near = _ELSEWHERE.get(name, "") or (name if name in where else _core.nearest(name, [*options, *where]))
        alike = near == _ELSEWHERE.get(name) or difflib.SequenceMatcher(None, name, near).ratio() > 0.5
        if near in where and alike:
            raise OptionError(f"{call}: there is no argument {name}=. {where[near]}")
