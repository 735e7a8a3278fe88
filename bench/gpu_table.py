"""Prints what `make gpu-check` measured: python bench/gpu_table.py build/gpu-check"""

import json
import sys
from pathlib import Path

from asterism.cli import bench_assembly, bench_forest_gpu, bench_gpu, bench_queues, bench_stencil


def main(folder: Path) -> None:
    printers = {
        "gpu_launch": bench_queues.print_launch,
        "gpu_spmv": bench_gpu.print_spmv,
        "gpu_assembly": bench_assembly.print_assembly,
        "gpu_pingpong": bench_forest_gpu.print_pingpong,
        "gpu_unpack": bench_forest_gpu.print_unpack,
        "gpu_vectors": bench_gpu.print_vectors,
        "gpu_stencil_256": bench_stencil.print_stencil,
        "gpu_stencil_512": bench_stencil.print_stencil,
        "gpu_async": bench_queues.print_async,
    }
    for name, show in printers.items():
        file = folder / f"{name}.json"
        if file.exists():
            print(f"-- {file.name}")
            show(json.loads(file.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "bench/results"))
