"""Parameters of machines with many GPUs: what a prediction stands on, each with its source.

Output: `Machine`, and three of them in `MACHINES`. A JSON file with the same names describes another one.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.values import is_number
from ..errors import FileError, InputError
from .operations import OPERATIONS
from .paper import TABLE_III, TABLE_V

__all__ = ["MACHINES", "Machine", "read_machine"]


@dataclass(frozen=True)
class Machine:
    """A rank's GPU, its node and the network. Bytes, seconds and flops.

    Attributes
    ----------
    name : str
    ranks_per_node, nics_per_node : int
    memory_bandwidth : float
        Of a rank's GPU, in bytes per second.
    kernel_latency : float
        Seconds of a kernel without work: alpha of its fit.
    roofline, intensity : mapping of str to float
        The fractions of bandwidth and of the theoretical intensity that each operation reaches.
    exchange_latency : float
        Seconds of an exchange without bytes: alpha of its fit.
    nic_bandwidth : float
        Bytes per second of one NIC that a rank reaches: beta of its fit.
    node_bandwidth : float
        Bytes per second of a rank to others of its node.
    staged : bool
        Messages are copied to the host and from there. Both copies add to the time.
    host_bandwidth : float
        Of these copies.
    far_nic : bool
        Ranks use a NIC at another socket. Their bytes cross `socket_bandwidth` too.
    socket_bandwidth : float
    """

    name: str
    ranks_per_node: int
    nics_per_node: int
    memory_bandwidth: float
    kernel_latency: float
    exchange_latency: float
    nic_bandwidth: float
    node_bandwidth: float
    host_bandwidth: float = math.inf
    socket_bandwidth: float = math.inf
    staged: bool = False
    far_nic: bool = False
    roofline: Mapping[str, float] = dataclasses.field(default_factory=lambda: dict.fromkeys(OPERATIONS, 1.0))
    intensity: Mapping[str, float] = dataclasses.field(default_factory=lambda: dict.fromkeys(OPERATIONS, 1.0))

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            least = 0.0 if f.name.endswith("latency") else 1e-300
            if f.type in ("int", "float") and not (is_number(value) and value >= least):
                raise InputError(f"machine '{self.name}': {f.name} is {value!r}; a positive number is needed.")
            if f.type == "int" and (math.isinf(value) or value != int(value)):
                raise InputError(f"machine '{self.name}': {f.name} is {value!r}; an integer is needed.")
            if f.type == "bool" and not isinstance(value, bool):
                raise InputError(f"machine '{self.name}': {f.name} is {value!r}; true or false is needed.")
        for name, table in (("roofline", self.roofline), ("intensity", self.intensity)):
            if not isinstance(table, Mapping) or set(table) != set(OPERATIONS):
                raise InputError(
                    f"machine '{self.name}': {name} needs one fraction for each of {', '.join(OPERATIONS)}."
                )
            for op, e in table.items():
                if not (is_number(e) and 0 < e <= 1):
                    raise InputError(
                        f"machine '{self.name}': {name} of {op} is {e!r}; it must be above 0, and at most 1."
                    )
        if self.staged and math.isinf(self.host_bandwidth):
            raise InputError(f"machine '{self.name}' is staged: host_bandwidth is needed.")
        if self.far_nic and math.isinf(self.socket_bandwidth):
            raise InputError(f"machine '{self.name}' has far_nic: socket_bandwidth is needed.")


def _fractions(column: int) -> dict[str, Any]:
    """Return the efficiencies of Tables III and V."""
    return {
        "roofline": {op: row[column] for op, row in TABLE_III.items()},
        "intensity": {op: row[column] for op, row in TABLE_V.items()},
    }


# Section VI of the paper: kernels 5 to 20 us with NVIDIA's the least; exchanges 25 to 200 us and 7 to 16 GB/s, Frontier's the best and
# Sunspot's the last. Where it gives a range only, the value is its end, or its geometric mean for Perlmutter's exchange. Bandwidth is the
# measured one of the A100, and the nominal ones of the others. Sunspot's NIC is as Frontier's (the same network); the host's bandwidth then
# follows from its 7 GB/s: 1/7 = 1/16 + 2/host. Bandwidths within a node, and NICs of Perlmutter and Frontier (four), are nominal ones of the
# vendors' pages.
MACHINES: dict[str, Machine] = {
    "perlmutter": Machine(
        "perlmutter", 4, 4, 1420e9, 5e-6, math.sqrt(25e-6 * 200e-6), 14e9, 100e9, 32e9, 36e9, **_fractions(0)
    ),
    "frontier": Machine("frontier", 8, 4, 1600e9, 20e-6, 25e-6, 16e9, 50e9, 36e9, 36e9, **_fractions(1)),
    "sunspot": Machine(
        "sunspot", 12, 8, 1640e9, 20e-6, 200e-6, 16e9, 20e9, 2 / (1 / 7e9 - 1 / 16e9), 48e9, True, **_fractions(2)
    ),
}


def read_machine(path: str | Path) -> Machine:
    """Read a machine from a JSON file with the names of `Machine`, or as ``asterism model scaling --json`` writes one.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Machine

    Raises
    ------
    FileError
        The file cannot be read, or is no JSON.
    InputError
        It holds no machine, or several, or a value is out of its range.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: an object with the parameters of a machine is needed.")
    if isinstance(cases := found.get("cases"), list):
        several = [c["machine"] for c in cases if isinstance(c, dict) and isinstance(c.get("machine"), dict)]
        if not several or any(m != several[0] for m in several):
            raise InputError(f"{path}: {len(cases)} cases of several machines, or of none; one machine is needed.")
        found = several[0]
    found = {k: v for k, v in found.items() if v is not None}  # infinity, as --json writes it
    names = {
        f.name: f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        for f in dataclasses.fields(Machine)
    }
    unknown, missing = (
        sorted(set(found) - set(names)),
        sorted(n for n, needed in names.items() if needed and n not in found),
    )
    if unknown or missing:
        parts = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(missing)}"] * bool(missing)
        raise InputError(f"{path}: {'; '.join(parts)}. asterism model scaling --json shows a whole machine.")
    return Machine(**found)
