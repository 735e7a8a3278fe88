"""Puts what `make gpu-check` measured into one file, gpu.json, and prints it: python bench/gpu_table.py build/gpu-check"""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

from asterism import _core
from asterism.base.cpu import cpu_name
from asterism.cli import bench_assembly, bench_forest_gpu, bench_gpu, bench_queues, bench_stencil, bench_triangular

PARTS = {
    "launch": bench_queues.print_launch,
    "spmv": bench_gpu.print_spmv,
    "assembly": bench_assembly.print_assembly,
    "pingpong": bench_forest_gpu.print_pingpong,
    "unpack": bench_forest_gpu.print_unpack,
    "vectors": bench_gpu.print_vectors,
    "async": bench_queues.print_async,
    "stencil_256": bench_stencil.print_stencil,
    "stencil_512": bench_stencil.print_stencil,
    "sptrsv_40": bench_triangular.print_sptrsv_on_device,
    "sptrsv_60": bench_triangular.print_sptrsv_on_device,
}


def show(r: dict) -> None:
    """Print a run's parts."""
    print(r["device"])
    if "runs" in r:
        print(r["runs"])
    for name, part in r["parts"].items():
        print(f"-- {name}")
        PARTS[name](part)


def gathered(folder: Path) -> dict:
    """Return the files gpu_PART.json of a folder as one run, as bench/run.py writes it."""
    parts = {n: json.loads(f.read_text()) for n in PARTS if (f := folder / f"gpu_{n}.json").exists()}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "bench": "gpu",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "compiler": _core.build_info()["compiler"],
        "device": next((p["device"] for p in parts.values() if isinstance(p, dict) and "device" in p), ""),
        "parts": parts,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run = gathered(folder)
    (folder / "gpu.json").write_text(json.dumps(run, indent=1) + "\n")
    show(run)
