"""Generated stencil kernels on bricks, one thread: time of first use, and rate against the least bytes at triad speed and tiled loops.

bench/run.py runs it. The bricks are in lexicographic order, periodic. The tiled loops are plain C++ on a ghosted array, tiles of 8 x 8 rows, g++ -O3 -march=native.
"""

import ctypes
import itertools
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from asterism import stencil as st
from asterism.stencil.kernels import compiler
from asterism.stencil.kernels.compiler import _FLAGS
from asterism.stencil.kernels.kernel import Bricks, _Arguments

TRIAD = """
extern "C" void triad(double* a, double const* b, double const* c, long n) { for (long i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i]; }
"""


def stencils():
    """Name to stencil: stars of radius 1 and 2, boxes of 27 and 125 points with symmetric coefficients."""
    at = st.indices(3)
    u, out = st.grid("u", 3), st.grid("out", 3)

    def box(radius, kept):
        total = None
        for o in itertools.product(range(-radius, radius + 1), repeat=3):
            if kept(o):
                distance = sorted(abs(x) for x in o)
                term = (
                    1.0
                    / (1 + distance[0] + 3 * distance[1] + 9 * distance[2])
                    * u(*(i + x for i, x in zip(at, o, strict=True)))
                )
                total = term if total is None else total + term
        return st.assign(out(*at), total)

    star = lambda o: sum(x != 0 for x in o) < 2  # noqa: E731
    return {"7": box(1, star), "13": box(2, star), "27": box(1, lambda o: True), "125": box(2, lambda o: True)}


def tiled(stencil, n, radius):
    """C++ text of tiled loops over an array with ghosts."""
    from asterism.stencil.language.cost import linear

    m = n + 2 * radius
    terms = linear(stencil.statements[0].value)
    total = " + ".join(f"{c[0]!r} * p[{(o[0] * m + o[1]) * m + o[2]}]" for (_, _, _, _, o), c in terms.items())
    return f"""extern "C" void tiled(double const* __restrict u, double* __restrict out) {{
  for (long ii = 0; ii < {n}; ii += 8) for (long jj = 0; jj < {n}; jj += 8)
    for (long i = ii; i < ii + 8; ++i) for (long j = jj; j < jj + 8; ++j)
      for (long k = 0; k < {n}; ++k) {{
        double const* p = u + ((i + {radius}) * {m}L + j + {radius}) * {m}L + k + {radius};
        out[((i + {radius}) * {m}L + j + {radius}) * {m}L + k + {radius}] = {total};
      }}
}}"""


def best(call, seconds):
    """Median and least seconds of one call."""
    call()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        t = time.perf_counter()
        call()
        times.append(time.perf_counter() - t)
    return statistics.median(times), min(times)


def library(text, name, folder, suffix=""):
    """A compiled function."""
    path = Path(folder) / f"{name}{suffix}.so"
    path.with_suffix(".cpp").write_text(text)
    subprocess.run(
        ["g++", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", path.with_suffix(".cpp"), "-o", path],
        check=True,
    )
    return ctypes.CDLL(str(path))[name]


def kernel_call(stencil, n, target):
    """A function of no arguments that runs the kernel once over n^3 points."""
    source = st.generate(stencil, target)
    built = st.build(source)
    bricks = Bricks((n,) * 3, source.brick, (True,) * 3)
    arrays = {g: bricks.empty(np.float64) for g in source.grids}
    for a in arrays.values():
        a[:-1] = np.random.default_rng(0).random(a[:-1].shape)
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays.values()))
    extent = np.full(3, n, np.int32)
    argument = _Arguments(
        bricks.bricks,
        bricks.visits.ctypes.data,
        bricks.neighbours.ctypes.data,
        bricks.origin.ctypes.data,
        extent.ctypes.data,
    )
    argument.grids = argument.ghosts = ctypes.addressof(pointers)
    argument.owned = bricks.bricks + 1
    argument.last = source.brick[0]
    f = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(built.address)
    kept = (arrays, pointers, extent, bricks, argument)
    return lambda: (f(ctypes.addressof(argument)), kept)[0]


def kernels(sizes=(24, 128, 256), seconds=0.8):
    """Of each stencil: first use, use from the cache, points per second."""
    out = {"bench": "stencils", "flags": list(_FLAGS), "kernels": []}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASTERISM_STENCIL_CACHE"] = folder + "/cache"
        triad = library(TRIAD, "triad", folder)
        n = 20_000_000
        a, b, c = (np.ones(n) for _ in range(3))
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)]
        out["triad_bytes_per_s"] = bandwidth = 24 * n / best(lambda: triad(*pointers, ctypes.c_long(n)), seconds)[1]
        for name, stencil in stencils().items():
            radius = stencil.facts.reach[0][0]
            first = time.perf_counter()
            built = st.build(st.generate(stencil))
            first = time.perf_counter() - first
            compiler._loaded.clear()
            same = stencils()[name]
            again = time.perf_counter()  # as in a new process, but for its imports
            st.build(st.generate(same))
            again = time.perf_counter() - again
            entry = {
                "points": int(name),
                "first_use_s": first,
                "compiled": built.compiled,
                "again_s": again,
                "runs": [],
            }
            for n in sizes:
                m = n + 2 * radius
                x, y = np.random.default_rng(0).random((m, m, m)), np.zeros((m, m, m))
                loops = library(tiled(stencil, n, radius), "tiled", folder, f"{name}_{n}")
                px, py = (ctypes.c_void_p(v.ctypes.data) for v in (x, y))
                ours, theirs = best(kernel_call(stencil, n, None), seconds), best(lambda: loops(px, py), seconds)  # noqa: B023
                limit = bandwidth / 16
                run = {"n": n, "points_per_s": n**3 / ours[0], "tiled_points_per_s": n**3 / theirs[0]}
                run |= {"of_limit": run["points_per_s"] / limit, "over_tiled": theirs[0] / ours[0]}
                entry["runs"].append(run)
            out["kernels"].append(entry)
    return out
