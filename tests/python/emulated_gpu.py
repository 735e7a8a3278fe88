"""The text of a stencil for GPUs, compiled by g++ and run on the CPU: lanes in lock-step (tests/gpu_emulation/warp)."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from asterism import stencil as st
from asterism.stencil.codegen.emit_gpu import GPU_TARGETS, GUARDS
from asterism.stencil.kernels.kernel import Bricks, Kernel

FOLDER = Path(__file__).parents[1] / "gpu_emulation" / "warp"
REDUCED = {"sum": np.sum, "max": np.max, "min": np.min}


class EmulatedKernel(Kernel):
    """Takes arrays as other kernels do."""

    def __init__(self, stencil, points, periodic, target, brick, dtype, folder, blocks=2, warps=2):
        self.stencil, self.shape, self.periodic = stencil, points, periodic
        self.source = st.generate(stencil, target, brick, dtype)
        self.library = self.compiled = self._build(folder)
        self.blocks, self.warps = blocks, warps
        coarse = points if stencil.facts.space != "fine" else tuple((n + 1) // 2 for n in points)
        self._points, self._fine = Bricks(coarse, self.source.brick, periodic), None

    def _build(self, folder):
        s, lanes = self.source, GPU_TARGETS[self.source.target].lanes
        path = Path(folder) / f"{s.name}.cpp"
        path.write_text(
            f'#define WARP_LANES {lanes}\n#include "warp.hpp"\n{s.text}\n'
            f'extern "C" int launch(Arguments const* a, int blocks, int threads) {{\n'
            f"  return warp::launch(blocks, threads, [](void const* p) {{ {s.name}(*(Arguments const*)p); }}, a);\n}}\n"
        )
        flags = [
            "-O0",
            "-std=c++17",
            "-fPIC",
            "-shared",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-clobbered",
            f"-I{FOLDER}",
        ]
        done = subprocess.run(["g++", *flags, path, "-o", path.with_suffix(".so")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
        return ctypes.CDLL(str(path.with_suffix(".so")))

    def _run(self, library, arrays, constants, dtype):
        f, points, fine = self.stencil.facts, self._points, self._fine_bricks(arrays)
        d, g = f.dimensions, len(f.grids)
        held = {n: (fine if n in self.source.fine else points) for n in f.grids}
        bricks = {n: held[n].empty(dtype) for n in f.grids}
        for n, b in bricks.items():
            b[:-1] = np.nan  # what a kernel does not write is found
            if n in arrays:
                held[n].pack(arrays[n], b)
        of_complex = dtype.kind == "c"
        scalars = np.array([*(constants[n] for n, _ in f.constants), *[0] * (not f.constants)], dtype)
        scalars = scalars.view(scalars.real.dtype)  # both parts of each
        number = np.ctypeslib.as_ctypes_type(scalars.dtype)
        many = self.blocks * self.warps
        parts = np.full((max(1, len(f.reductions) * (1 + of_complex)), many), np.nan)
        pointers = [bricks[n].ctypes.data for n in f.grids]
        null = ctypes.c_void_p
        fields = [
            ("bricks", ctypes.c_long, points.bricks), ("visit", null, None),
            ("neighbours", null, points.neighbours.ctypes.data), ("origin", null, points.origin.ctypes.data),
            ("extent", ctypes.c_int * d, points.shape), ("grids", null * g, pointers), ("ghosts", null * g, [None] * g),
            ("owned", ctypes.c_long, points.bricks + 1),
            ("constants", number * scalars.size, scalars.tolist()),
        ]  # fmt: skip
        if f.reductions:
            fields.append(("reductions", null, parts.ctypes.data))
        if fine is not None:
            children = self._children(points, fine)
            fields += [
                ("children", null, children.ctypes.data), ("fine_neighbours", null, fine.neighbours.ctypes.data),
                ("fine_extent", ctypes.c_int * d, fine.shape), ("fine_owned", ctypes.c_long, fine.bricks + 1),
            ]  # fmt: skip
        fields += [("guards", ctypes.c_long * (2 * GUARDS), [0] * (2 * GUARDS)), ("guard_count", ctypes.c_int, 0)]
        kind = type("Arguments", (ctypes.Structure,), {"_fields_": [(n, t) for n, t, _ in fields]})
        a = kind(*(t(*v) if isinstance(v, (list, tuple)) else v for _, t, v in fields))
        threads = self.warps * GPU_TARGETS[self.source.target].lanes
        assert library.launch(ctypes.byref(a), self.blocks, threads) == 0, "lanes were not in lock-step"
        for n in f.outputs:
            held[n].pack(held[n].unpack(bricks[n]), padded := held[n].empty(dtype))
            assert np.array_equal(padded, bricks[n], equal_nan=True), f"the padding of {n} is not zero"
        out = {n: held[n].unpack(bricks[n]) for n in f.outputs}
        ops = [op for _, op in f.reductions for _ in range(1 + of_complex)]
        out.update(self._reduced([REDUCED[op](part) for op, part in zip(ops, parts, strict=False)]))
        return out
