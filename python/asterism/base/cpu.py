"""What Linux says of the CPU; works without the compiled library."""

from __future__ import annotations

import platform
from pathlib import Path


def _cpuinfo(field: str) -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == field:
                return value.strip()
    except OSError:
        pass
    return ""


def cpu_name() -> str:
    """Return the model's name."""
    return _cpuinfo("model name") or platform.processor() or "unknown"


def cpu_flags() -> frozenset[str]:
    """Return the instruction sets, such as "avx2"; none where they are not known."""
    return frozenset(_cpuinfo("flags").split())
