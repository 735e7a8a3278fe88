"""Models of time: latency and throughput, rooflines, performance portability, multigrid on many GPUs.

One file each: `latency`, `roofline`, `nsight`, `portability`, `machines`, `vcycle`, `paper` (the published figures that the models are
compared with), `records` (reads the JSON of benchmarks) and `plots`. Fits need SciPy, plots matplotlib.
"""

from __future__ import annotations

from .latency import LatencyThroughput, fit
from .machines import MACHINES, Machine
from .nsight import KernelCounters, read_nsight
from .portability import performance_portability, potential_speedup
from .roofline import Roofline
from .vcycle import Cycle, Placement, Prediction, predict, scaling

__all__ = [
    "MACHINES",
    "Cycle",
    "KernelCounters",
    "LatencyThroughput",
    "Machine",
    "Placement",
    "Prediction",
    "Roofline",
    "fit",
    "performance_portability",
    "potential_speedup",
    "predict",
    "read_nsight",
    "scaling",
]


def __dir__() -> list[str]:
    return __all__
