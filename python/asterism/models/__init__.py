"""Models of time: latency and throughput, rooflines, performance portability, multigrid on many GPUs, triangular solves on many ranks.

One file each: `latency`, `roofline`, `nsight`, `portability`, `machines`, `vcycle`, `triangular`, `paper` (the published figures that the
models are compared with), `records` (reads the JSON of benchmarks) and `plots`. Fits need SciPy, plots matplotlib.
"""

from __future__ import annotations

from .latency import LatencyThroughput, fit
from .machines import MACHINES, Machine
from .nsight import KernelCounters, read_nsight
from .portability import performance_portability, potential_speedup
from .roofline import Roofline
from .triangular import FactorPattern, Link, SweepPrediction, TriangularMachine, TriangularPrediction
from .vcycle import Cycle, Placement, Prediction, predict, scaling

__all__ = [
    "MACHINES",
    "Cycle",
    "FactorPattern",
    "KernelCounters",
    "LatencyThroughput",
    "Link",
    "Machine",
    "Placement",
    "Prediction",
    "Roofline",
    "SweepPrediction",
    "TriangularMachine",
    "TriangularPrediction",
    "fit",
    "performance_portability",
    "potential_speedup",
    "predict",
    "read_nsight",
    "scaling",
]


def __dir__() -> list[str]:
    return __all__
