"""What this machine gives: cores, threads, measured memory bandwidth (cached)."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from .. import _core
from .cpu import cpu_name
from .files import cache_folder, replacing

__all__ = [
    "WaitsForCores",
    "describe",
    "last_level_cache_bytes",
    "machine_key",
    "memory_bandwidth",
    "remember",
    "remembered",
]


def remembered(name: str) -> dict[str, Any]:
    """Return what was measured here before, of the cache's file of that name; empty if there is none."""
    try:
        return {str(k): v for k, v in json.loads((cache_folder() / name).read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def remember(name: str, key: str, value: Any) -> None:
    """Keep a measurement in the cache, if there is a place for one."""
    try:
        path = cache_folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as f:
            json.dump({**remembered(name), key: value}, f, indent=1)
    except OSError:
        pass  # a read-only home: measured again next time


def machine_key(ranks: int) -> str:
    """Return what tells measurements of this machine with so many ranks from others."""
    return f"{platform.node()} {os.cpu_count()} cores, {ranks} ranks x {_core.team_size()} threads"


def memory_bandwidth(comm: Any = None, *, refresh: bool = False) -> float:
    """Bytes per second of the STREAM triad with all ranks of ``comm`` at once, in total.

    Measured once per machine, ranks and threads (best of 9 as STREAM does, 24 bytes an element), then read from
    ``~/.cache/asterism/machine.json``. Measured again, up to three times, where other programs had the cores meanwhile; what is found
    beside them is not kept. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
    refresh : bool
        Measure, whatever is known. Beside other programs the larger of both is returned.
    """
    size = 1 if comm is None else comm.Get_size()
    rank = 0 if comm is None else comm.Get_rank()
    key = machine_key(size)
    found = remembered("machine.json").get(key) if rank == 0 else None
    value = float(found) if isinstance(found, (int, float)) else None
    if comm is not None:
        value = comm.bcast(value, root=0)
    if value is not None and not refresh:
        return value
    best, calm = 0.0, False
    for _ in range(3):
        if comm is not None:
            comm.Barrier()
        waits = WaitsForCores()
        mine = 24.0 * _TRIAD / min(_core.stream_triad(_TRIAD, 9))
        busy = waits.share()
        best = max(best, mine if comm is None else float(comm.allreduce(mine)))
        calm = all(share < 0.05 for share in ([busy] if comm is None else comm.allgather(busy)))
        if calm:
            break
    if rank == 0 and calm:
        remember("machine.json", key, best)
    return best if calm else max(best, value or 0.0)


_TRIAD = 8_000_000


class WaitsForCores:
    """How long threads of this process wait for a core because others have it, from now on.

    Read from ``/proc/self/task/*/schedstat`` (Linux: nanoseconds that a thread was ready to run and did not).
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._before = self._nanoseconds()

    @staticmethod
    def _nanoseconds() -> dict[str, int]:
        out = {}
        for path in Path("/proc/self/task").glob("*/schedstat"):
            try:
                out[path.parent.name] = int(path.read_text().split()[1])
            except (OSError, ValueError, IndexError):
                continue
        return out

    @classmethod
    def of_process(cls) -> float:
        """Return the same of the time since this process began."""
        try:
            ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
            elapsed = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError, AttributeError):
            return 0.0
        longest = max(cls._nanoseconds().values(), default=0)
        return min(1.0, 1e-9 * longest / elapsed) if elapsed > 0 else 0.0

    def share(self) -> float:
        """Return the longest wait of a thread, as a share of the time since the start; 0 where the system does not tell."""
        elapsed = time.perf_counter() - self._start
        now = self._nanoseconds()
        longest = max((n - self._before.get(t, 0) for t, n in now.items()), default=0)
        return min(1.0, 1e-9 * longest / elapsed) if elapsed > 0 else 0.0


def last_level_cache_bytes() -> int:
    """Return what the caches of the last level hold that the allowed cores have, together; 0 if it is not known."""
    found: dict[str, int] = {}
    for core in os.sched_getaffinity(0):
        levels = {}
        for cache in Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*"):
            try:
                text = (cache / "size").read_text().strip()
                unit = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1:], 1)
                size = int(text.rstrip("KMG")) * unit
                levels[int((cache / "level").read_text())] = ((cache / "shared_cpu_list").read_text().strip(), size)
            except (OSError, ValueError):
                continue
        if levels:
            shared_by, size = levels[max(levels)]
            found[shared_by] = size
    return sum(found.values())


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
        "cpu": cpu_name(),
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


def metis_of_pymetis() -> str:
    """Return the file of the ``pymetis`` package that METIS is in; empty if the package is absent."""
    found = importlib.util.find_spec("pymetis")
    roots = [] if found is None else list(found.submodule_search_locations or [])
    return next((str(file) for root in roots for file in sorted(Path(root).glob("_internal*.so"))), "")


def gpu_library_folders() -> list[str]:
    """Return where wheels of the GPU's vendor (``nvidia-cusparse`` and the like) have their libraries."""
    found = importlib.util.find_spec("nvidia")
    roots = [] if found is None else list(found.submodule_search_locations or [])
    return [str(folder) for root in roots for folder in sorted(Path(root).glob("*/lib"))]
