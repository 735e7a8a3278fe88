"""Published figures of brick multigrid on three machines: O. Antepara, S. Williams, H. Johansen and M. Hall, "High-Performance, Scalable
Geometric Multigrid via Fine-Grain Data Blocking for GPUs", 2024. Nothing here is measured by this project.

Columns are Perlmutter (A100), Frontier (one GCD of an MI250X) and Sunspot (one tile of a PVC).
"""

from __future__ import annotations

__all__ = ["PLATFORMS", "TABLE_II", "TABLE_III", "TABLE_III_PHI", "TABLE_IV", "TABLE_V", "TABLE_V_PHI"]

PLATFORMS = ("A100", "MI250X GCD", "PVC tile")
# shares of the time on the finest level
TABLE_II = {
    "applyOp": (0.250, 0.307, 0.225),
    "smooth+residual": (0.545, 0.500, 0.531),
    "restriction": (0.010, 0.011, 0.015),
    "interpolation+increment": (0.019, 0.054, 0.025),
    "exchange": (0.175, 0.128, 0.204),
}
# fractions of the roofline
TABLE_III = {
    "applyOp": (0.90, 0.77, 0.66),
    "smooth": (0.98, 0.87, 0.64),
    "smooth+residual": (0.94, 0.87, 0.71),
    "restriction": (0.95, 0.79, 0.62),
    "interpolation+increment": (0.88, 0.42, 0.52),
}
TABLE_III_PHI = {
    "applyOp": 0.76, "smooth": 0.80, "smooth+residual": 0.83, "restriction": 0.76, "interpolation+increment": 0.55, "": 0.73,
}  # fmt: skip
# flops a byte
TABLE_IV = {
    "applyOp": 0.50, "smooth": 0.125, "smooth+residual": 0.15, "restriction": 0.11, "interpolation+increment": 0.06,
}  # fmt: skip
# fractions of the theoretical intensity
TABLE_V = {
    "applyOp": (0.98, 0.88, 0.86),
    "smooth": (0.96, 1.00, 0.94),
    "smooth+residual": (1.00, 1.00, 0.71),
    "restriction": (0.99, 0.99, 0.86),
    "interpolation+increment": (1.00, 0.74, 1.00),
}
TABLE_V_PHI = {
    "applyOp": 0.90, "smooth": 0.97, "smooth+residual": 0.88, "restriction": 0.94, "interpolation+increment": 0.90, "": 0.92,
}  # fmt: skip
A100_BANDWIDTH, A100_CEILING = 1420e9, 88.75e9  # measured bytes per second; points of applyOp per second
WEAK_EFFICIENCY = 0.87  # at least, on 512 GPUs (Fig. 8)
FRONTIER_WEAK, FRONTIER_STRONG = 100e9, 12e9  # points per second: "close to" (Fig. 8 and 9)
