"""Options of the whole process: from a file, the environment and, if asked for, the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core
from .errors import OptionError

__all__ = ["add_options", "apply_to_process", "process_options", "use_argv"]

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
