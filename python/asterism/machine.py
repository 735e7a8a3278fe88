"""What this machine gives: cores, threads, measured memory bandwidth (cached)."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

from . import _core
from .files import replacing

__all__ = ["describe", "memory_bandwidth"]


def _cache_file() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "asterism" / "machine.json"


def memory_bandwidth(comm: Any = None, *, refresh: bool = False) -> float:
    """Bytes per second of the STREAM triad with all ranks of ``comm`` at once, in total.

    Measured once per machine, ranks and threads (median of 9, 24 bytes an element), then read from
    ``~/.cache/asterism/machine.json``. Collective.
    """
    size = 1 if comm is None else comm.Get_size()
    rank = 0 if comm is None else comm.Get_rank()
    key = f"{platform.node()} {os.cpu_count()} cores, {size} ranks x {_core.team_size()} threads"
    value: float | None = None
    path = _cache_file()
    if rank == 0 and not refresh:
        try:
            value = float(json.loads(path.read_text())[key])
        except (OSError, ValueError, KeyError, TypeError):
            value = None
    if comm is not None:
        value = comm.bcast(value, root=0)
    if value is not None:
        return value
    n = 8_000_000
    if comm is not None:
        comm.Barrier()
    mine = 24.0 * n / statistics.median(_core.stream_triad(n, 9))
    total = mine if comm is None else float(comm.allreduce(mine))
    if rank == 0:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                known = json.loads(path.read_text())
            except (OSError, ValueError):
                known = {}
            known[key] = total
            with replacing(path) as f:
                json.dump(known, f, indent=1)
        except OSError:
            pass  # a read-only home: measured again next time
    return total


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def describe(*, measure: bool = True) -> dict[str, Any]:
    """Return what ``asterism info`` prints."""
    build = _core.build_info()
    out: dict[str, Any] = {
        "asterism": _core.version(),
        "python": sys.version.split()[0],
        "compiler": build["compiler"],
        "kernels": f"{build['kernels']} (-march={build['arch']})",
        "cpu": _cpu_name(),
        "cores_allowed": _core.allowed_cores(),
        "threads": _core.team_size(),
        "memory_GB": round(_memory_bytes() / 1e9, 1),
        "dtypes": ["float32", "float64", "complex64", "complex128"],
    }
    found, text = _core.gpu_available("auto")
    out["gpu"] = text if found else f"none ({text})"
    here = Path(_core.__file__).parent / "lib"
    out["mpi_plugins"] = sorted(p.stem.removeprefix("libasterism_mpi_") for p in here.glob("libasterism_mpi_*.so"))
    try:
        from mpi4py import MPI

        out["mpi"] = MPI.Get_library_version().splitlines()[0].strip("\x00 ")
    except Exception as error:
        out["mpi"] = f"none ({error})"
    for name in ("numpy", "scipy", "mpi4py", "matplotlib"):
        try:
            out[name] = __import__(name).__version__
        except ImportError:
            out[name] = "not installed"
    if measure:
        out["triad_GB_per_s"] = round(memory_bandwidth(refresh=True) / 1e9, 1)
    return out


def gpu_library_folders() -> list[str]:
    """Return where wheels of the GPU's vendor (``nvidia-cusparse`` and the like) have their libraries."""
    found = importlib.util.find_spec("nvidia")
    roots = [] if found is None else list(found.submodule_search_locations or [])
    return [str(folder) for root in roots for folder in sorted(Path(root).glob("*/lib"))]
