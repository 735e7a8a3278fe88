"""How the speed of stencils on a GPU depends on bricks, loads under way, threads of a block and registers.

python bench/gpu_stencil_variants.py [points of an axis] [seconds at most]
"""

import argparse
import itertools
import json
import sys
import time

from asterism.bricks import making
from asterism.cli.bench_stencil import print_stencil, stencil_case
from asterism.stencil import compiler, emit_gpu

KERNEL, FLAGS = making.gpu_kernel, compiler._GPU_FLAGS


def variants():
    """Brick, registers ahead, threads of a block, rounds of a warp, most registers (0: any); the usual one first."""
    usual = ((8, 8, 8), 96, 128, 1, 0)
    yield usual
    for brick in ((4, 4, 32), (8, 8, 16), (8, 8, 32), (4, 8, 16)):
        yield (brick, *usual[1:])
    for ahead, most in itertools.product((0, 48, 96), (0, 64, 80, 128)):
        if (ahead, most) != (96, 0):
            yield ((8, 8, 8), ahead, 128, 1, most)
    for threads, rounds in itertools.product((64, 128, 256), (1, 4)):
        if (threads, rounds) != (128, 1):
            yield ((8, 8, 8), 96, threads, rounds, 0)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    end = time.time() + (float(sys.argv[2]) if len(sys.argv) > 2 else 1e9)
    for brick, ahead, threads, rounds, most in variants():
        if time.time() > end:
            break
        emit_gpu.AHEAD = ahead
        compiler._GPU_FLAGS = (*FLAGS, f"-maxrregcount={most}") if most else FLAGS

        def kernel(*given, threads=threads, rounds=rounds):
            path, name, usual, planes = KERNEL(*given)
            return path, name, threads, planes * threads // max(usual, 1) * rounds

        making.gpu_kernel = kernel
        args = argparse.Namespace(
            device="cuda", n=n, repeats=5, brick=brick, points=[7, 27], dtypes=["float64", "float32"], cycles=False
        )
        found = stencil_case(args)
        said = {"ahead": ahead, "threads": threads, "rounds": rounds, "most_registers": most}
        print(json.dumps({**said, **found}), file=sys.stderr, flush=True)
        print(said)
        print_stencil(found)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
