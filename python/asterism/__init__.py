"""Asterism: large sparse systems from PDEs, the same on a laptop, a cluster and GPUs.

Names are loaded when they are used, and the compiled library with the first that needs it.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from . import _core as _core
    from . import errors as errors
    from . import gallery as gallery
    from . import grid as grid
    from . import models as models
    from . import pyamg as pyamg
    from . import report as report
    from . import scipy as scipy
    from . import stencil as stencil
    from .base.options import configure as configure
    from .base.options import use_argv as use_argv
    from .comm.channels import Channels as Channels
    from .comm.forest import StarForest as StarForest
    from .comm.forest import shared_zeros as shared_zeros
    from .comm.queued_forest import QueuedForest as QueuedForest
    from .comm.report import CommReport as CommReport
    from .comm.report import comm_report as comm_report
    from .device.gpu import gpu_state as gpu_state
    from .device.kernel import Kernel as Kernel
    from .device.queue import Event as Event
    from .device.queue import Queue as Queue
    from .errors import AsterismError as AsterismError
    from .errors import BreakdownError as BreakdownError
    from .errors import CommError as CommError
    from .errors import ConvergenceError as ConvergenceError
    from .errors import DtypeError as DtypeError
    from .errors import FileError as FileError
    from .errors import FormatError as FormatError
    from .errors import InputError as InputError
    from .errors import InternalError as InternalError
    from .errors import OptionError as OptionError
    from .errors import OutOfMemoryError as OutOfMemoryError
    from .errors import ShapeError as ShapeError
    from .errors import TimeLimitError as TimeLimitError
    from .errors import UnsupportedError as UnsupportedError
    from .la.assembly import Assembly as Assembly
    from .la.assembly import VectorAssembly as VectorAssembly
    from .la.builder import Builder as Builder
    from .la.io import load as load
    from .la.io import read_matrix as read_matrix
    from .la.io import read_vector as read_vector
    from .la.io import save as save
    from .la.io import write_matrix as write_matrix
    from .la.io import write_vector as write_vector
    from .la.matrix import Matrix as Matrix
    from .la.operator import Operator as Operator
    from .la.products import ProductPlan as ProductPlan
    from .la.products import ptap as ptap
    from .la.products import rap as rap
    from .la.scalar import Scalar as Scalar
    from .la.scalar import select as select
    from .la.submatrix import Redistribution as Redistribution
    from .la.submatrix import Submatrix as Submatrix
    from .la.vector import Vector as Vector
    from .la.vector import dots as dots
    from .report.trace import Trace as Trace
    from .solvers.advise import Advice as Advice
    from .solvers.advise import advise as advise
    from .solvers.factorized import factorized as factorized
    from .solvers.factors import Factors as Factors
    from .solvers.info import SolveInfo as SolveInfo
    from .solvers.least_squares import LeastSquaresInfo as LeastSquaresInfo
    from .solvers.least_squares import least_squares as least_squares
    from .solvers.solve import solve as solve
    from .solvers.solver import Solver as Solver
    from .solvers.taken_factors import TakenFactors as TakenFactors
    from .vtk import write_vtk as write_vtk

# the same names as above, for the interpreter (tests/python/test_package.py compares)
_ROOMS = {
    "base.options": ("configure", "use_argv"),
    "comm.channels": ("Channels",),
    "comm.forest": ("StarForest", "shared_zeros"),
    "comm.queued_forest": ("QueuedForest",),
    "comm.report": ("CommReport", "comm_report"),
    "device.gpu": ("gpu_state",),
    "device.kernel": ("Kernel",),
    "device.queue": ("Event", "Queue"),
    "errors": (
        "AsterismError",
        "BreakdownError",
        "CommError",
        "ConvergenceError",
        "DtypeError",
        "FileError",
        "FormatError",
        "InputError",
        "InternalError",
        "OptionError",
        "OutOfMemoryError",
        "ShapeError",
        "TimeLimitError",
        "UnsupportedError",
    ),
    "la.assembly": ("Assembly", "VectorAssembly"),
    "la.builder": ("Builder",),
    "la.io": ("load", "read_matrix", "read_vector", "save", "write_matrix", "write_vector"),
    "la.matrix": ("Matrix",),
    "la.operator": ("Operator",),
    "la.products": ("ProductPlan", "ptap", "rap"),
    "la.scalar": ("Scalar", "select"),
    "la.submatrix": ("Redistribution", "Submatrix"),
    "la.vector": ("Vector", "dots"),
    "report.trace": ("Trace",),
    "solvers.advise": ("Advice", "advise"),
    "solvers.factorized": ("factorized",),
    "solvers.factors": ("Factors",),
    "solvers.info": ("SolveInfo",),
    "solvers.least_squares": ("LeastSquaresInfo", "least_squares"),
    "solvers.solve": ("solve",),
    "solvers.solver": ("Solver",),
    "solvers.taken_factors": ("TakenFactors",),
    "vtk": ("write_vtk",),
}
_PLACE = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = ("errors", "gallery", "grid", "models", "pyamg", "report", "scipy", "stencil")

__all__ = [*_PLACE, *_MODULES]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def _load_core() -> _Any:
    """Load the compiled library and tell it of Python's errors, log and terminal."""
    try:
        core = _importlib.import_module("._core", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}._core":
            raise
        raise ImportError(
            "asterism's compiled library is not there: a checkout is built by `pip install -e .`"
        ) from error
    from . import errors

    core.set_error_classes(errors.by_name)
    errors.refuse_pickles(core)
    core.check_cpu()
    from .base import live, machine

    live.connect()
    core.set_library_folders(machine.gpu_library_folders())
    core.set_metis(machine.metis_of_pymetis())
    return core


def __getattr__(name: str) -> _Any:
    if name in _PLACE:
        globals()[name] = found = getattr(_importlib.import_module(f".{_PLACE[name]}", __name__), name)
        return found
    if name in _MODULES:
        return _importlib.import_module(f".{name}", __name__)
    if name == "_core":
        return _load_core()
    if name == "__version__":
        return _load_core().version()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])  # without the modules that the public names come from
