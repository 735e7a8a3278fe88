"""What stands before the function in the text of every kernel: types, the caller's arguments, shifts of vectors.

Input: the shape of bricks, and a plan. Output: C++ text.
"""

from __future__ import annotations

from dataclasses import dataclass

from .complex_numbers import complex_numbers
from .passes import Plan

__all__ = ["Shape", "prelude"]

ARGUMENTS = """struct Arguments {
  long bricks;            // how many to visit
  int const* visit;       // their ids; null: 0 to bricks - 1
  int const* neighbours;  // [id][3^d]
  int const* origin;      // [id][d]
  int const* extent;      // [d]
  T* const* grids;
  T* const* ghosts;
  long owned;
  T const* constants;
  double* reductions;
  int const* children;  // [id][2^d], of the finer space
  int const* fine_neighbours;
  int const* fine_extent;
  long fine_owned;
  void const* program;  // of kernels that read a table
  int first, last;      // planes of each brick along the first axis: from first to before last
  int const* const* slots;  // null, or [grid]: null, or where its bricks are, by their ids
  int streams;          // not 0: what is written goes past the caches
};
"""


@dataclass(frozen=True)
class Shape:
    """Of a brick with three axes; ``missing`` of them, the first ones, are not there and have one point."""

    brick: tuple[int, int, int]
    missing: int
    dtype: str

    @property
    def complex(self) -> bool:
        """Whether grids and constants are."""
        return self.dtype.startswith("complex")

    @property
    def real_size(self) -> int:
        """Bytes of a real number."""
        return 8 if self.dtype in ("float64", "complex128") else 4

    @property
    def points(self) -> int:
        """Of a brick."""
        return self.brick[0] * self.brick[1] * self.brick[2]

    @property
    def dimensions(self) -> int:
        """Of the grids."""
        return 3 - self.missing


def prelude(shape: Shape, plan: Plan, many: bool) -> str:
    """Return the text before the function. With ``many`` grids the function that finds a brick is not inlined."""
    size = shape.real_size
    R, integer = ("double", "long") if size == 8 else ("float", "int")
    V, (b0, b1, b2) = plan.vector, shape.brick
    order = ", ".join
    shifts = "".join(
        f"static inline V shift{s}(V x, V y) {{ return __builtin_shufflevector(x, y, {order(str(s + m) for m in range(V))}); }}\n"
        for s in range(1, V)
    )
    low, high = (order(str(m // 2 + (V if m % 2 else 0) + h) for m in range(V)) for h in (0, V // 2))
    even = order(str(2 * m) for m in range(V))
    if V == 1:
        low, high = "0", "1"
    shuffled = f"""{shifts}static inline V even(V x, V y) {{ return __builtin_shufflevector(x, y, {even}); }}
static inline V low(V x, V y) {{ return __builtin_shufflevector(x, y, {low}); }}
static inline V high(V x, V y) {{ return __builtin_shufflevector(x, y, {high}); }}
static inline V absolute(V x) {{ return x < 0 ? -x : x + 0; }}
static inline V root(V x) {{
  for (int l = 0; l < {V}; ++l) x[l] = {"__builtin_sqrt" if R == "double" else "__builtin_sqrtf"}(x[l]);
  return x;
}}
"""
    name = "R" if shape.complex else "T"
    alias = f"typedef {name} A __attribute__((vector_size({V * size}), may_alias));\n" if shape.complex else ""
    types = f"""typedef {R} {name};
typedef {integer} E;
typedef {name} V __attribute__((vector_size({V * size}){"" if shape.complex else ", may_alias"}));
{alias}typedef {name} U __attribute__((vector_size({V * size}), may_alias, aligned({size})));
typedef E I __attribute__((vector_size({V * size})));
typedef double W __attribute__((vector_size({V * 8})));
typedef long L __attribute__((vector_size({V * 8})));
"""
    if shape.complex:
        odd = order(str(2 * m + 1) for m in range(V))
        numbers = _complex(V, shuffled, odd)
        shuffled = ""
    else:
        numbers = ""
        shuffled = f"""static inline V load(T const* p) {{ return *(V const*)p; }}
static inline V loadu(T const* p) {{ return *(U const*)p; }}
static inline void store(T* p, V x) {{ *(V*)p = x; }}
static inline void stream(T* p, V x) {{ past_caches((V*)p, x); }}
{shuffled}"""
    return f"""{types}{_past_caches(V * size)}{numbers}{ARGUMENTS}
{"__attribute__((noinline)) static" if many else "static inline"} T* brick_of(Arguments const* a, int grid, long owned, long id) {{
  if (a->slots && a->slots[grid]) return a->grids[grid] + (long)a->slots[grid][id] * {shape.points};
  return id < owned ? a->grids[grid] + id * {shape.points} : a->ghosts[grid] + (id - owned) * {shape.points};
}}
{shuffled}static inline void take_max(double* p, double x) {{ *p = x > *p || x != x ? x : *p; }}
static inline void take_min(double* p, double x) {{ *p = x < *p || x != x ? x : *p; }}
static I const lane = {{{order(str(m) for m in range(V))}}};
static inline bool any(I x) {{
  E of_all = 0;
  for (int l = 0; l < {V}; ++l) of_all |= x[l];
  return of_all;
}}

// zeros at the points from n0, n1, n2 on
static inline void clear(T* p, long n0, long n1, long n2) {{
  for (long i = 0; i < {b0}; ++i)
    for (long j = 0; j < {b1}; ++j)
      for (long k = 0; k < {b2}; ++k)
        if (i >= n0 || j >= n1 || k >= n2) p[(i * {b1} + j) * {b2} + k] = {"T(0)" if shape.complex else 0};
}}

// a plane, with zeros at the points from n1, n2 on
static inline void put(T* p, T const* from, long n1, long n2, bool past) {{
  for (int j = 0; j < {b1}; ++j)
    for (int k = 0; k < {b2}; k += {V}) {{
      I const inside = lane + E(k) < E(j < n1 ? n2 : 0);
      auto const x = {f"choose(inside, load(from + j * {b2} + k), C{{}})" if shape.complex else f"inside ? load(from + j * {b2} + k) : V{{}}"};
      if (past) stream(p + j * {b2} + k, x); else store(p + j * {b2} + k, x);
    }}
}}

"""


def _past_caches(size: int) -> str:
    """Return stores of vectors that do not read the lines of memory before; others see them after `end_streams`."""
    plain = "template <class P, class X> static inline void past_caches(P* p, X x) { *p = x; }\nstatic inline void end_streams() {}\n"
    known = {16: ("", "__SSE2__"), 32: ("256", "__AVX__"), 64: ("512", "__AVX512F__")}
    if size not in known:
        return plain
    width, macro = known[size]
    return f"""#if defined({macro})
#if defined(__clang__)
template <class P, class X> static inline void past_caches(P* p, X x) {{ __builtin_nontemporal_store(x, p); }}
#else
typedef double D __attribute__((vector_size({size})));
template <class P, class X> static inline void past_caches(P* p, X x) {{ __builtin_ia32_movntpd{width}((double*)p, (D)x); }}
#endif
static inline void end_streams() {{ __builtin_ia32_sfence(); }}
#else
{plain}#endif
"""


def _complex(V: int, real: str, odd: str) -> str:
    """Return complex numbers and vectors; in memory the parts of a number are side by side."""
    both = "".join(
        f"static inline C {name}(C x, C y) {{ return {{{name}(x.re, y.re), {name}(x.im, y.im)}}; }}\n"
        for name in (*(f"shift{s}" for s in range(1, V)), "even", "low", "high")
    )
    loads = "".join(
        f"""static inline C load{u}(T const* p) {{
  V const x = *({kind} const*)p, y = *({kind} const*)((R const*)p + {V});
  return {{even(x, y), odd(x, y)}};
}}
"""
        for u, kind in (("", "A"), ("u", "U"))
    )
    return f"""{real}static inline V odd(V x, V y) {{ return __builtin_shufflevector(x, y, {odd}); }}
static inline R absolute(R x) {{ return __builtin_fabs(x); }}
static inline R root(R x) {{ return __builtin_sqrt(x); }}
{complex_numbers("static inline", "__attribute__((noinline)) static")}typedef Complex<R> T;
typedef Complex<V> C;
{both}{loads}static inline void store(T* p, C x) {{
  *(A*)p = low(x.re, x.im);
  *(A*)((R*)p + {V}) = high(x.re, x.im);
}}
static inline void stream(T* p, C x) {{
  past_caches((A*)p, low(x.re, x.im));
  past_caches((A*)((R*)p + {V}), high(x.re, x.im));
}}
"""
