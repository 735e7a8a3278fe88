#include "asterism/la/formats/spmv.kernels.hpp"

#include <utility>

#include "asterism/base/dtype.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

/// Not inlined: the loops for one column lose a tenth when this shares their registers.
/// The rows of one group for several columns: row(l) is lane l's row, source(p, l) the row of x that its entry p takes. Values of a
/// uniform run: one an entry, not one a lane.
template <Epilogue E, bool Uniform = false, class T, class Row, class Source>
[[gnu::noinline]] void group_columns(std::int32_t length, T const* v, Row const& row, Source const& source, i64 k, T const* x, T* y,
                                     T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t l = 0; l < W; ++l)
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (std::int32_t p = 0; p < length; ++p) s += v[Uniform ? p : p * W + l] * x[i64(source(p, l)) * k + j];
      finish<E>(s, i64(row(l)), k, j, x, y, b, w);
    }
}

// Rows of one length: the compiler unrolls the sum, and rows overlap in the pipeline. A plain loop
// over the offsets reaches half of the memory bandwidth on 7-entry rows.
template <int L, class T, class Out>
void rows_of_length(CsrRows<T> const& a, LengthRun run, T const* x, Out const& out) {
  auto p = a.offsets[run.first];
  for (std::int32_t i = run.first; i < run.end; ++i, p += L) {
    T s(0);
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) s += a.values[p + l] * x[a.columns[p + l]];
    out(i, s);
  }
}

// Four sums keep the adds from waiting for each other. Vectors along a row are slower than scalar loads: this file is
// compiled without automatic vectorisation. Across rows they gain: sell_with.
template <class T>
inline T long_row(i64 begin, i64 end, T const* ASTERISM_RESTRICT values, std::int32_t const* ASTERISM_RESTRICT columns,
                  T const* ASTERISM_RESTRICT x) {
  T s0(0), s1(0), s2(0), s3(0);
  i64 p = begin;
  for (; p + 3 < end; p += 4) {
    s0 += values[p] * x[columns[p]];
    s1 += values[p + 1] * x[columns[p + 1]];
    s2 += values[p + 2] * x[columns[p + 2]];
    s3 += values[p + 3] * x[columns[p + 3]];
  }
  for (; p < end; ++p) s0 += values[p] * x[columns[p]];
  return (s0 + s1) + (s2 + s3);
}

template <class T, class Out>
void rows_any(CsrRows<T> const& a, LengthRun run, T const* x, Out const& out) {
  for (std::int32_t i = run.first; i < run.end; ++i) {
    auto const begin = a.offsets[i], end = a.offsets[i + 1];
    T s(0);
    if (end - begin >= 12) {
      s = long_row(begin, end, a.values, a.columns, x);
    } else {
      for (auto p = begin; p < end; ++p) s += a.values[p] * x[a.columns[p]];
    }
    out(i, s);
  }
}

/// The sums of rows [first, last), which begin in run r, go to out(row, sum). Returns the run of row last.
template <class T, class Out>
[[gnu::noinline]] std::int32_t row_sums(CsrRows<T> const& a, std::int32_t r, std::int32_t first, std::int32_t last, T const* x, Out out) {
  for (;; ++r) {
    LengthRun run = a.runs[r];
    if (run.first < first) run.first = first;
    if (run.end > last) run.end = last;
    switch (run.length) {
      case 1: rows_of_length<1>(a, run, x, out); break;
      case 2: rows_of_length<2>(a, run, x, out); break;
      case 3: rows_of_length<3>(a, run, x, out); break;
      case 4: rows_of_length<4>(a, run, x, out); break;
      case 5: rows_of_length<5>(a, run, x, out); break;
      case 6: rows_of_length<6>(a, run, x, out); break;
      case 7: rows_of_length<7>(a, run, x, out); break;
      case 8: rows_of_length<8>(a, run, x, out); break;
      case 9: rows_of_length<9>(a, run, x, out); break;
      default: rows_any(a, run, x, out);
    }
    if (run.end == last) return a.runs[r].end == last ? r + 1 : r;
  }
}

// What becomes of the sums of rows. For y = A x they are written at once. For the other epilogues a few are kept, in the first cache,
// so that the loops over entries, unrolled for each length, are not there six times.
template <class T>
struct AssignRow {
  T* y;
  std::int32_t const* id;
  void operator()(std::int32_t i, T s) const { y[id ? id[i] : i] = s; }
};
template <class T>
struct KeepRow {
  T* sums;
  std::int32_t first;
  void operator()(std::int32_t i, T s) const { sums[i - first] = s; }
};

template <Epilogue E, class T>
void rows_columns(CsrRows<T> const& a, std::int32_t first, std::int32_t last, i64 k, T const* x, T* y, T const* b, T const* w) {
  T sums[16];
  for (std::int32_t i = first; i < last; ++i) {
    i64 const row = a.row_ids ? a.row_ids[i] : i;
    for (i64 j0 = 0; j0 < k; j0 += 16) {
      i64 const m = k - j0 < 16 ? k - j0 : 16;
      for (i64 j = 0; j < m; ++j) sums[j] = T(0);
      for (auto p = a.offsets[i]; p < a.offsets[i + 1]; ++p) {
        T const v = a.values[p];
        T const* xr = x + i64(a.columns[p]) * k + j0;
#pragma omp simd
        for (i64 j = 0; j < m; ++j) sums[j] += v * xr[j];
      }
      for (i64 j = 0; j < m; ++j) finish<E>(sums[j], row, k, j0 + j, x, y, b, w);
    }
  }
}

template <Epilogue E, class T>
void csr_with(Executor& executor, CsrRows<T> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (a.run_count == 0) return;
  auto const rows = a.runs[a.run_count - 1].end;
  auto const total = a.offsets[rows] + rows;
  // shares of equal work, cut inside runs
  device::parallel_ranges(
      executor, total,
      [=](i64 begin, i64 end) {
        auto const row_at = [&](i64 work) {
          std::int32_t lo = 0, hi = rows;
          while (lo < hi) {
            auto const mid = lo + (hi - lo) / 2;
            if (a.offsets[mid] + mid < work) lo = mid + 1;
            else hi = mid;
          }
          return lo;
        };
        auto const first = row_at(begin), last = end == total ? rows : row_at(end);
        if (k != 1) return rows_columns<E>(a, first, last, k, x, y, b, w);
        std::int32_t lo = 0, hi = a.run_count;
        while (lo < hi) {
          auto const mid = (lo + hi) / 2;
          if (a.runs[mid].end <= first) lo = mid + 1;
          else hi = mid;
        }
        if constexpr (E == Epilogue::assign) {
          if (first < last) row_sums(a, lo, first, last, x, AssignRow<T>{y, a.row_ids});
        } else {
          constexpr std::int32_t kept = 32;
          T sums[kept];
          for (std::int32_t i = first, run = lo; i < last; i += kept) {
            auto const stop = last - i < kept ? last : i + kept;
            run = row_sums(a, run, i, stop, x, KeepRow<T>{sums, i});
            for (std::int32_t l = i; l < stop; ++l) finish<E>(sums[l - i], a.row_ids ? a.row_ids[l] : l, 1, 0, x, y, b, w);
          }
        }
      },
      16384);
}

#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

/// Two groups' vectors as one of twice the width.
template <class G>
struct Halves {
  typename G::type low, high;
  friend Halves operator+(Halves a, Halves b) { return {a.low + b.low, a.high + b.high}; }
  friend Halves operator-(Halves a, Halves b) { return {a.low - b.low, a.high - b.high}; }
  friend Halves operator*(Halves a, Halves b) { return {a.low * b.low, a.high * b.high}; }
  template <class T>
  friend Halves operator*(T a, Halves b) {
    return {a * b.low, a * b.high};
  }
  void operator+=(Halves b) { low += b.low, high += b.high; }
};

/// The sums of a group: a vector of 64 bytes, made of registers. Left to itself g++ 12 takes one that is wider than a register through
/// memory, at a seventh of the speed.
template <class T, std::size_t Bytes = 64, bool Fits = (Bytes <= register_bytes)>
struct Group {
  typedef T type __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  static type load(T const* p) { return *reinterpret_cast<type const*>(p); }
  static void store(type s, T* p) { *reinterpret_cast<type*>(p) = s; }
};
template <class T, std::size_t Bytes>
struct Group<T, Bytes, false> {
  using Half = Group<T, Bytes / 2>;
  using type = Halves<Half>;
  static constexpr std::size_t half = Bytes / 2 / sizeof(T);
  static type load(T const* p) { return {Half::load(p), Half::load(p + half)}; }
  static void store(type s, T* p) { Half::store(s.low, p), Half::store(s.high, p + half); }
};

/// finish() for the rows from `row` on.
template <Epilogue E, class T>
inline void finish_group(typename Group<T>::type s, i64 row, T const* x, T* y, T const* b, T const* w) {
  auto const at = [row](T const* v) { return Group<T>::load(v + row); };
  auto const put = [&](typename Group<T>::type v) { Group<T>::store(v, y + row); };
  if constexpr (E == Epilogue::assign) put(s);
  else if constexpr (E == Epilogue::residual) put(at(b) - s);
  else if constexpr (E == Epilogue::smooth) put(at(x) + at(w) * (at(b) - s));
  else if constexpr (E == Epilogue::add) put(at(y) + s);
  else if constexpr (E == Epilogue::subtract) put(at(y) - s);
  else put(at(y) - at(w) * s);
}

/// Lanes of an index of two or four in one load: the loads of x are what the loop is bound by.
template <class G, class I, std::size_t... L, class T>
inline typename G::type gather_register(std::index_sequence<L...>, T const* x, I const* c) {
  constexpr std::size_t per_word = 8 / sizeof(I) < sizeof...(L) ? 8 / sizeof(I) : sizeof...(L);
  std::conditional_t<per_word * sizeof(I) == 8, std::uint64_t, std::uint32_t> words[sizeof...(L) / per_word];
  __builtin_memcpy(words, c, sizeof words);
  return typename G::type{x[I(words[L / per_word] >> (8 * sizeof(I) * (L % per_word)))]...};
}

// Scalar loads put together: the processor's own gathers are up to twice as slow, since the microcode of 2023 on Intel's.
template <class G, class I, class T>
inline typename G::type gather_group(T const* x, I const* c) {
  if constexpr (requires { typename G::Half; })
    return {gather_group<typename G::Half>(x, c), gather_group<typename G::Half>(x, c + G::half)};
  else return gather_register<G>(std::make_index_sequence<sizeof(typename G::type) / sizeof(T)>(), x, c);
}
template <class I, class T>
inline typename Group<T>::type gather(T const* x, I const* c) {
  return gather_group<Group<T>>(x, c);
}

// What becomes of the sums of a group: as with rows, above (6 % slower where they are kept).
constexpr std::int32_t kept_groups = 32;
template <class T>
struct Keep {
  typename Group<T>::type* sums;
  void operator()(std::int32_t g, typename Group<T>::type s) const { sums[g] = s; }
};
template <class T>
struct Assign {
  T* y;
  std::int32_t const* id;
  bool consecutive;
  void operator()(std::int32_t g, typename Group<T>::type s) const {
    auto const* const rows = id + g * group_rows<T>;
    if (consecutive) {
      Group<T>::store(s, y + *rows);
    } else {
      T lanes[group_rows<T>];
      Group<T>::store(s, lanes);
#pragma GCC unroll 16
      for (std::int32_t l = 0; l < group_rows<T>; ++l) y[rows[l]] = lanes[l];
    }
  }
};

/// Sums of some groups' rows; x from the run's base on. L: entries of a row, known to the compiler (the end of a loop over few
/// entries is mispredicted with each change of length); 0: any.
template <int L, bool Scattered, class I, class T, class Out>
void sell_sums(std::int32_t groups, std::int32_t length, I const* c, T const* v, T const* xb, Out out) {
  using V = typename Group<T>::type;
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t g = 0; g < groups; ++g) {
    V s = {};
    if constexpr (L > 0) {
#pragma GCC unroll 16
      for (int p = 0; p < L; ++p) s += Group<T>::load(v + p * W) * gather(xb, c + p * W);
      c += L * W;
      v += L * W;
    } else {
      for (std::int32_t p = 0; p < length; ++p, c += W, v += W) {
        if constexpr (Scattered)
          for (std::int32_t l = 0; l < W; ++l) __builtin_prefetch(xb + c[ahead - W + l]);
        __builtin_prefetch(v + 32 * W);  // two streams from the third cache: a tenth faster than left to the hardware
        __builtin_prefetch(c + 32 * W);
        s += Group<T>::load(v) * gather(xb, c);
      }
    }
    out(g, s);
  }
}

template <class I, class T, class Out>
auto sell_sums_of(std::int32_t length, bool scattered) {
  if constexpr (sizeof(I) == 4)
    if (scattered) return &sell_sums<0, true, I, T, Out>;
  switch (length) {
    case 1: return &sell_sums<1, false, I, T, Out>;
    case 2: return &sell_sums<2, false, I, T, Out>;
    case 3: return &sell_sums<3, false, I, T, Out>;
    case 4: return &sell_sums<4, false, I, T, Out>;
    default: break;
  }
  if constexpr (sizeof(T) == 8)  // 16 lanes of so many entries are long by themselves
    switch (length) {
      case 5: return &sell_sums<5, false, I, T, Out>;
      case 6: return &sell_sums<6, false, I, T, Out>;
      case 7: return &sell_sums<7, false, I, T, Out>;
      case 8: return &sell_sums<8, false, I, T, Out>;
      default: break;
    }
  return &sell_sums<0, false, I, T, Out>;
}

template <Epilogue E, class I, class T>
void sell_run(SliceRun const& run, bool scattered, std::int32_t const* id, I const* c, T const* v, i64 k, T const* x, T* y, T const* b,
              T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  i64 const base = run.base == SliceRun::wide ? 0 : run.base;
  if (k != 1) {
    for (std::int32_t g = 0; g < run.groups; ++g, id += W, c += i64(W) * run.length, v += i64(W) * run.length) {
      auto const row = [=](std::int32_t l) { return id[l]; };
      auto const source = [=](std::int32_t p, std::int32_t l) { return base + i64(c[p * W + l]); };
      group_columns<E>(run.length, v, row, source, k, x, y, b, w);
    }
    return;
  }
  if constexpr (E == Epilogue::assign) {
    auto const sum = sell_sums_of<I, T, Assign<T>>(run.length, scattered);
    return sum(run.groups, run.length, c, v, x + base, {y, id, run.consecutive != 0});
  }
  typename Group<T>::type sums[kept_groups];
  auto const sum = sell_sums_of<I, T, Keep<T>>(run.length, scattered);
  for (std::int32_t g = 0; g < run.groups; g += kept_groups) {
    auto const groups = run.groups - g < kept_groups ? run.groups - g : kept_groups;
    auto const at = i64(g) * W * run.length;
    sum(groups, run.length, c + at, v + at, x + base, {sums});
    for (std::int32_t i = 0; i < groups; ++i, id += W) {
      if (run.consecutive) {
        finish_group<E, T>(sums[i], *id, x, y, b, w);
      } else {
        T lanes[W];
        Group<T>::store(sums[i], lanes);
#pragma GCC unroll 16
        for (std::int32_t l = 0; l < W; ++l) finish<E>(lanes[l], id[l], 1, 0, x, y, b, w);
      }
    }
  }
}

template <Epilogue E, class T>
void sell_with(Executor& executor, SellRows<T> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  device::parallel_ranges(
      executor, a.run_count,
      [=](i64 begin, i64 end) {
        for (i64 r = begin; r < end; ++r) {
          auto const& run = a.runs[r];
          auto const* const id = a.row_ids + run.first;
          auto const* const c = a.columns + run.column_at;
          auto const* const v = a.values + run.entry_at;
          if (run.base == SliceRun::wide) sell_run<E>(run, a.scattered, id, reinterpret_cast<std::uint32_t const*>(c), v, k, x, y, b, w);
          else sell_run<E>(run, false, id, reinterpret_cast<std::uint16_t const*>(c), v, k, x, y, b, w);
        }
      },
      32);
}

template <Epilogue E, class T>
void pattern_run(PatternRun const& run, std::int32_t const* off, T const* v, i64 k, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t at = run.first; at < run.end; at += W, v += i64(W) * run.length) {
    // the last group ends with the run: its first rows are computed twice, with equal results
    std::int32_t const i0 = at + W <= run.end ? at : run.end - W;
    if (k == 1) {
      using V = typename Group<T>::type;
      V s0 = {}, s1 = {};
      std::int32_t p = 0;
      for (; p + 1 < run.length; p += 2) {
        s0 += Group<T>::load(v + p * W) * Group<T>::load(x + i0 + off[p]);
        s1 += Group<T>::load(v + (p + 1) * W) * Group<T>::load(x + i0 + off[p + 1]);
      }
      if (p < run.length) s0 += Group<T>::load(v + p * W) * Group<T>::load(x + i0 + off[p]);
      finish_group<E, T>(s0 + s1, i0, x, y, b, w);
    } else {
      auto const row = [=](std::int32_t l) { return i0 + l; };
      auto const source = [=](std::int32_t p, std::int32_t l) { return i0 + l + off[p]; };
      group_columns<E, false>(run.length, v, row, source, k, x, y, b, w);
    }
  }
}

/// The sums of N groups from row i0 on with the same values: in the order of pattern_run, so the bits are the same.
/// L: entries of a row, known to the compiler; 0: any.
template <Epilogue E, int L, int N, class T>
inline void uniform_groups(std::int32_t length, i64 i0, std::int32_t const* off, T const* v, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  using V = typename Group<T>::type;
  V even[N] = {}, odd[N] = {};
  std::int32_t const n = L > 0 ? L : length;
  auto const add = [&](V(&s)[N], std::int32_t p) {
    auto const* const xp = x + i0 + off[p];
    for (int g = 0; g < N; ++g) s[g] += v[p] * Group<T>::load(xp + g * W);
  };
  std::int32_t p = 0;
#pragma GCC unroll 16
  for (; p + 1 < n; p += 2) {
    add(even, p);
    add(odd, p + 1);
  }
  if (p < n) add(even, p);
  for (int g = 0; g < N; ++g) finish_group<E, T>(even[g] + odd[g], i0 + g * W, x, y, b, w);
}

template <Epilogue E, int L, class T>
void uniform_rows(PatternRun const& run, std::int32_t const* off, T const* v, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  std::int32_t at = run.first;
  if constexpr (register_bytes >= 32)  // else there are too few registers
    for (; at + 2 * W <= run.end; at += 2 * W) uniform_groups<E, L, 2>(run.length, at, off, v, x, y, b, w);
  for (; at + W <= run.end; at += W) uniform_groups<E, L, 1>(run.length, at, off, v, x, y, b, w);
  if (at < run.end) uniform_groups<E, L, 1>(run.length, run.end - W, off, v, x, y, b, w);
}

template <Epilogue E, class T>
void uniform_run(PatternRun const& run, std::int32_t const* off, T const* v, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (k == 1) {
    switch (run.length) {
      case 3: return uniform_rows<E, 3>(run, off, v, x, y, b, w);
      case 5: return uniform_rows<E, 5>(run, off, v, x, y, b, w);
      case 7: return uniform_rows<E, 7>(run, off, v, x, y, b, w);
      case 9: return uniform_rows<E, 9>(run, off, v, x, y, b, w);
      default: return uniform_rows<E, 0>(run, off, v, x, y, b, w);
    }
  }
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t at = run.first; at < run.end; at += W) {
    std::int32_t const i0 = at + W <= run.end ? at : run.end - W;
    auto const row = [=](std::int32_t l) { return i0 + l; };
    auto const source = [=](std::int32_t p, std::int32_t l) { return i0 + l + off[p]; };
    group_columns<E, true>(run.length, v, row, source, k, x, y, b, w);
  }
}

template <Epilogue E, class T>
void pattern_with(Executor& executor, PatternRows<T> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  device::parallel_ranges(
      executor, a.run_count,
      [=](i64 begin, i64 end) {
        for (i64 r = begin; r < end; ++r) {
          auto const& run = a.runs[r];
          auto const* const off = a.offsets + run.offset_at;
          auto const* const v = a.values + run.value_at;
          if (run.uniform) uniform_run<E>(run, off, v, k, x, y, b, w);
          else pattern_run<E>(run, off, v, k, x, y, b, w);
        }
      },
      32);
}

template <Epilogue E, class T>
void product_with(Executor& executor, ProductRows<T> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  if constexpr (!is_complex_v<T>) {
    if constexpr (E == Epilogue::assign || E == Epilogue::residual || E == Epilogue::smooth)
      if (a.pattern.run_count > 0) pattern_with<E>(executor, a.pattern, k, x, y, b, w);
    if (a.sell.run_count > 0) sell_with<E>(executor, a.sell, k, x, y, b, w);
  }
  csr_with<E>(executor, a.csr, k, x, y, b, w);
}

}  // namespace

template <class T>
void product(Executor& executor, ProductRows<T> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) { product_with<decltype(known)::value>(executor, a, k, x, y, b, w); });
}

#define INSTANTIATE(T) template void product(Executor&, ProductRows<T>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
