"""The stages from a stencil to the text of a kernel.

Input: a `Stencil`, a target, the shape of bricks. Output: `Source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...base.cpu import cpu_flags
from ...base.values import dtype_name
from ...errors import InputError, OptionError
from ..language.checks import check_dtype
from ..language.stencil import Stencil, as_brick, as_stencil
from .edge_body import has_long_ends
from .emit import emit_cpp
from .emit_gpu import GPU_TARGETS, emit_gpu
from .fingerprint import fingerprint
from .lower import lower
from .nodes import Builder, Program, postorder
from .passes import Plan, depends_on_place, fold, group, interior, plan, reuse
from .prelude import Shape

__all__ = ["TARGETS", "Source", "generate", "native_target"]

# bytes of a register, number of registers, flags of the compiler, what the CPU must have
TARGETS: dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]] = {
    "generic": (16, 16, (), ()),
    "avx2": (32, 16, ("-march=x86-64-v3",), ("avx2", "fma")),
    "avx512": (64, 32, ("-march=x86-64-v4",), ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
}
_LANE_REGISTERS = 64  # numbers that a lane of a GPU keeps at once
_MOST_VECTORS = 40_000  # of a kernel; more take minutes to compile
# grids; where more are read, rows that share registers gain nothing, and their text takes long to compile
_MOST_UNROLLED = 40
_FURTHEST = 1000  # points that a read is away; more take minutes too


@dataclass(frozen=True)
class Source:
    """A kernel of a stencil, made by `stencil.generate`: what its caller must know, and its text, generated when it is first read.

    Attributes
    ----------
    stencil : Stencil
    target, dtype : str
    brick : tuple of int
    digest : str
        Of all that the text depends on: a compiled kernel is found by it without the text.
    """

    stencil: Stencil
    target: str
    dtype: str
    brick: tuple[int, ...]
    digest: str

    @property
    def name(self) -> str:
        """Return the name of the function."""
        return f"stencil_{self.digest[:12]}"

    @property
    def text(self) -> str:
        """Return C++, CUDA or HIP."""
        return self._generated[0]

    @property
    def plan(self) -> Plan:
        """Return what the passes chose."""
        return self._generated[1]

    @property
    def grids(self) -> tuple[str, ...]:
        """Return the names of the grids in the order of the arrays; outputs first."""
        return self.stencil.facts.grids

    @property
    def fine(self) -> frozenset[str]:
        """Return the grids in the finer index space."""
        f = self.stencil.facts
        if f.space == "coarse":
            return f.elsewhere
        return frozenset(f.grids) - f.elsewhere if f.space == "fine" else frozenset()

    @property
    def constants(self) -> tuple[tuple[str, complex | None], ...]:
        """Return the names of the constants, and their defaults."""
        return self.stencil.facts.constants

    @property
    def reductions(self) -> tuple[tuple[str, str], ...]:
        """Return the names of the reductions, and what they are."""
        return self.stencil.facts.reductions

    @property
    def radius(self) -> tuple[tuple[int, int], ...]:
        """Return how far reads go below and above along each axis, in points of the grid that is read."""
        return self.stencil.facts.reach

    @cached_property
    def _generated(self) -> tuple[str, Plan]:
        return _generate(self.stencil, self.target, self.brick, self.dtype, self.name)

    @property
    def flags(self) -> tuple[str, ...]:
        """What the C++ compiler is given for the target. g++ -O2 takes minutes for long kernels of complex numbers, -O1 seconds."""
        flags = TARGETS[self.target][2]
        return (*flags, "-O1") if self.dtype.startswith("complex") else flags


def native_target() -> str:
    """Return the widest target that this CPU runs."""
    found = cpu_flags()
    return [name for name, t in TARGETS.items() if found.issuperset(t[3])][-1]


def generate(
    stencil: Stencil, target: str | None = None, brick: int | Sequence[int] | None = None, dtype: Any = np.float64
) -> Source:
    """Return the source of a kernel.

    Parameters
    ----------
    stencil : Stencil
    target : {"generic", "avx2", "avx512", "cuda", "hip"}, optional
        By default the widest that this CPU has. Text for GPUs is for reading, or for a compiler of your own.
    brick : int or sequence of int, optional
        Points of a brick; 8 along each axis by default.
    dtype : {float64, float32, complex128, complex64}

    Returns
    -------
    Source

    Raises
    ------
    OptionError
        ``target`` is another word.
    InputError
        ``stencil`` is none. ``brick`` has other dimensions than the stencil, a size of 0, or an odd size where there are two spaces. The
        stencil has complex numbers in a real dtype, or an order of complex ones. `Source.text` raises it for bricks that make the kernel
        too long to compile.
    DtypeError
        ``dtype`` is another one, or a size of ``brick`` is no integer.
    ShapeError
        A size of ``brick`` is negative.
    """
    f = as_stencil(stencil, "stencil.generate").facts
    target = native_target() if target is None else target
    if target not in TARGETS and target not in GPU_TARGETS:
        raise OptionError(f"target '{target}' is not one of {', '.join([*TARGETS, *GPU_TARGETS])}.")
    sizes = as_brick(8 if brick is None else brick, f.dimensions, "brick")
    if len(sizes) != f.dimensions or any(n < 1 for n in sizes):
        raise InputError(f"brick={sizes}: {f.dimensions} positive sizes are needed.")
    if f.space != "one" and any(n % 2 for n in sizes):
        raise InputError(f"brick={sizes}: stencils on a fine and a coarse grid need even sizes.")
    name = dtype_name(dtype, "stencil")
    check_dtype(stencil.statements, name)
    key = (target, sizes, name)
    if key not in stencil._sources:
        stencil._sources[key] = Source(stencil, target, name, sizes, fingerprint(stencil.statements, *key))
    found: Source = stencil._sources[key]
    return found


def _generate(stencil: Stencil, target: str, sizes: tuple[int, ...], name: str, function: str) -> tuple[str, Plan]:
    f = stencil.facts
    furthest = max((abs(end) for ends in f.reach for end in ends), default=0)
    if furthest > _FURTHEST:
        raise InputError(
            f"the stencil reads {furthest} points far: the kernel would be too long to compile. At most {_FURTHEST} points are offered."
        )
    missing = 3 - f.dimensions
    three = (1,) * missing + sizes
    shape = Shape((three[0], three[1], three[2]), missing, name)
    gpu = GPU_TARGETS.get(target)
    if gpu:
        vector, registers = group(gpu.lanes, sizes[-1]), _LANE_REGISTERS
    else:
        width, registers, _, _ = TARGETS[target]
        vector = fold(width, shape.real_size, sizes[-1])
    if shape.complex:
        registers //= 2
    b = Builder(name)
    program = lower(stencil.statements, f, b)
    inner, margins = interior(program, b)
    can_loop = not gpu and f.space == "one"
    long_ends, loops = can_loop and has_long_ends(inner, program), can_loop and len(f.grids) > _MOST_UNROLLED
    whole = inner if loops else reuse(inner, b)
    chosen = plan(whole, shape.brick, vector, registers)
    edge = None
    if depends_on_place(program) or f.reductions:
        edge = program if loops or long_ends else reuse(program, b)
    rows = shape.brick[1]
    work = _work(whole, b) * (1 if loops else rows)
    if edge:
        work = max(work, _work(edge, b) * (1 if loops or long_ends else rows))
    if work * (shape.brick[2] // vector) > _MOST_VECTORS:
        raise InputError(f"brick={sizes}: the kernel would be too long to compile. Take smaller bricks.")
    title = f"{', '.join([*f.outputs, *(n for n, _ in f.reductions)])} for {target}, {name}"
    parts = (f, shape, chosen, b, whole, edge, margins, title)
    head, rest = emit_gpu(gpu, *parts) if gpu else emit_cpp(*parts, long_ends, loops)
    return head + function + rest, chosen


def _work(program: Program, b: Builder) -> int:
    """Return how many values each vector of points is made of."""
    values = [s.value for s in program.stores]
    return sum(len(n.args) + 1 for n in postorder(*values) if n in b.kept) + sum(len(v.args) + 1 for v in values)
