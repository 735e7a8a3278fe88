"""Asterism: large sparse systems from PDEs, the same on a laptop, a cluster and GPUs."""

from __future__ import annotations

import importlib as _importlib
import logging as _logging
from typing import Any as _Any

from . import _core as _core
from . import errors as _errors
from .live import show_set_ups as _show_set_ups

_core.check_cpu()
_core.set_error_classes(_errors.by_name)
_logger = _logging.getLogger("asterism")
_show_set_ups()
_core.set_log_sink(lambda level, text: _logger.log((10, 20, 30)[level], "%s", text))

from . import gallery, grid  # noqa: E402
from .assembly import Assembly  # noqa: E402
from .channels import Channels  # noqa: E402
from .comm_report import CommReport, comm_report  # noqa: E402
from .errors import (  # noqa: E402
    AsterismError,
    BreakdownError,
    CommError,
    ConvergenceError,
    DtypeError,
    FileError,
    FormatError,
    InputError,
    InternalError,
    OptionError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
)
from .forest import StarForest, shared_zeros  # noqa: E402
from .formats import load, read_matrix, read_vector, save, write_matrix, write_vector  # noqa: E402
from .la import Matrix  # noqa: E402
from .least_squares import LeastSquaresInfo, least_squares  # noqa: E402
from .machine import gpu_library_folders as _gpu_library_folders  # noqa: E402
from .operator import Operator  # noqa: E402
from .options import use_argv  # noqa: E402
from .queue import Event, Queue  # noqa: E402
from .queued_forest import QueuedForest  # noqa: E402
from .solve import SolveInfo, Solver, solve  # noqa: E402
from .submatrix import Redistribution, Submatrix  # noqa: E402
from .trace import Trace  # noqa: E402
from .vector import Scalar, Vector, dots, gpu_state, select  # noqa: E402

_core.set_library_folders(_gpu_library_folders())

__version__ = _core.version()
__all__ = [
    "Assembly",
    "AsterismError",
    "BreakdownError",
    "Channels",
    "CommError",
    "CommReport",
    "ConvergenceError",
    "DtypeError",
    "Event",
    "FileError",
    "FormatError",
    "InputError",
    "InternalError",
    "LeastSquaresInfo",
    "Matrix",
    "Operator",
    "OptionError",
    "OutOfMemoryError",
    "Queue",
    "QueuedForest",
    "Redistribution",
    "Scalar",
    "ShapeError",
    "SolveInfo",
    "Solver",
    "StarForest",
    "Submatrix",
    "Trace",
    "UnsupportedError",
    "Vector",
    "comm_report",
    "dots",
    "gallery",
    "gpu_state",
    "grid",
    "least_squares",
    "load",
    "read_matrix",
    "read_vector",
    "save",
    "select",
    "shared_zeros",
    "solve",
    "use_argv",
    "write_matrix",
    "write_vector",
]

_modules = ("pyamg", "report", "scipy")  # public, and loaded when they are named


def __getattr__(name: str) -> _Any:
    if name in _modules:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *_modules, "__version__"])  # without the modules that the public names come from
