#include "asterism/la/formats/row_pattern/row_pattern_format.kernels.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "asterism/la/formats/simd_group.hpp"
#include "asterism/la/vectors/dot_range.hpp"

namespace asterism::la::kernel {
namespace {

// p[0], p[3], ... of a register, or of a group: from three registers
#if defined(__AVX512F__)
inline auto every_third(float const* p) {
  __m512 const a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + 16), c = _mm512_loadu_ps(p + 32);
  __m512 const ab = _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0), b);
  __m512 const all = _mm512_permutex2var_ps(ab, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29), c);
  return (typename Group<float>::type)all;
}
inline auto every_third(double const* p) {
  __m512d const a = _mm512_loadu_pd(p), b = _mm512_loadu_pd(p + 8), c = _mm512_loadu_pd(p + 16);
  __m512d const ab = _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 3, 6, 9, 12, 15, 0, 0), b);
  return (typename Group<double>::type)_mm512_permutex2var_pd(ab, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 10, 13), c);
}

/// y[3 l] += s[l] for the lanes from `first` on. No other entry of y is written: it may be another thread's.
inline void add_to_every_third(Group<float>::type s, std::int32_t first, float* y) {
  auto const add = [=](__m512i lanes, __mmask16 thirds, float* to) {
    auto const mask = _mm512_mask_cmp_epi32_mask(thirds, lanes, _mm512_set1_epi32(first), _MM_CMPINT_NLT);
    _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), _mm512_permutexvar_ps(lanes, (__m512)s)));
  };
  add(_mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5), 0x9249, y);
  add(_mm512_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10), 0x4924, y + 16);
  add(_mm512_setr_epi32(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15), 0x2492, y + 32);
}
inline void add_to_every_third(Group<double>::type s, std::int32_t first, double* y) {
  auto const add = [=](__m512i lanes, __mmask8 thirds, double* to) {
    auto const mask = _mm512_mask_cmp_epi64_mask(thirds, lanes, _mm512_set1_epi64(first), _MM_CMPINT_NLT);
    _mm512_mask_storeu_pd(to, mask, _mm512_add_pd(_mm512_maskz_loadu_pd(mask, to), _mm512_permutexvar_pd(lanes, (__m512d)s)));
  };
  add(_mm512_setr_epi64(0, 0, 0, 1, 1, 1, 2, 2), 0x49, y);
  add(_mm512_setr_epi64(2, 3, 3, 3, 4, 4, 4, 5), 0x92, y + 8);
  add(_mm512_setr_epi64(5, 5, 6, 6, 6, 7, 7, 7), 0x24, y + 16);
}
#elif defined(__AVX2__)
inline auto third_of(float const* p) {
  __m256 const a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(p + 8), c = _mm256_loadu_ps(p + 16);
  __m256 const all = _mm256_blend_ps(_mm256_blend_ps(a, b, 0b10010010), c, 0b00100100);
  return (typename Group<float>::Half::type)_mm256_permutevar8x32_ps(all, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
}
inline auto third_of(double const* p) {
  __m256d const a = _mm256_loadu_pd(p), b = _mm256_loadu_pd(p + 4), c = _mm256_loadu_pd(p + 8);
  __m256d const all = _mm256_blend_pd(_mm256_blend_pd(a, c, 0b0010), b, 0b0100);
  return (typename Group<double>::Half::type)_mm256_permute4x64_pd(all, 0b01101100);
}
template <class T>
inline typename Group<T>::type every_third(T const* p) {
  return {third_of(p), third_of(p + 3 * group_rows<T> / 2)};
}
#endif

/// p[0], p[step], ... of a group. N: the step, known to the compiler; 0: any.
template <int N, class T>
inline typename Group<T>::type every_nth(T const* p, std::int32_t step, [[maybe_unused]] T const* end) {
  constexpr std::int32_t W = group_rows<T>;
  if constexpr (N == 1) return Group<T>::load(p);
#if defined(__AVX2__)
  if constexpr (N == 3)
    if (p + 3 * W <= end) return every_third(p);
#endif
  T out[W];
  for (std::int32_t l = 0; l < W; ++l) out[l] = p[l * i64(step)];
  return Group<T>::load(out);
}

/// A run, and where its columns and values are.
template <class V>
struct RunView {
  PatternRun const& run;
  std::int32_t const* off;
  V const* values;     ///< its own; those of all runs where it has streams
  i64 const* streams;  ///< where each entry's begin

  template <class T>
  RunView(PatternRows<T, V> const& a, PatternRun const& r)
      : run(r),
        off(a.offsets + r.offset_at),
        values(a.values + (r.held > 0 ? 0 : r.value_at)),
        streams(a.streams + (r.held > 0 ? r.value_at : 0)) {}
};

// The processor's own prefetching does not follow where so many lines of a grid are read at once: products of large grids take up to 1.6
// times as long without this.
constexpr i64 ahead = 4096;  // bytes

/// What a group of rows some lines further on will be the first to read.
template <Epilogue E, class T>
inline void prefetch_group(i64 row, PatternRun const& run, std::int32_t const* off, T const* x, T const* b, T const* w) {
  constexpr i64 D = ahead / i64(sizeof(T));
  __builtin_prefetch(x + row + off[run.length - 1] + D);
  if constexpr (E == Epilogue::residual || E == Epilogue::smooth) __builtin_prefetch(b + row + D);
  if constexpr (E == Epilogue::smooth) __builtin_prefetch(w + row + D);
}

template <Epilogue E, bool Streams, class T, class V>
void pattern_run(RunView<V> const& r, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  auto const& run = r.run;
  // as the processor does for one stream, but not for many: what comes some lines later, of the next run where this one is short
  i64 const later = run.count * i64(sizeof(V)) >= 2 * ahead ? ahead / i64(sizeof(V)) : i64(run.held) * run.count;
  for (std::int32_t at = 0; at < run.count; at += W) {
    // the last group ends with the run: its first rows are computed twice, with equal results
    std::int32_t const l0 = std::min(at, run.count - W), i0 = run.first + l0;
    auto const* const v = r.values + (Streams ? i64(l0) : i64(at) * run.length);
    auto const term = [=, off = r.off, streams = r.streams](std::int32_t p) {
      return Group<T>::load(v + (Streams ? streams[p] : p * i64(W))) * Group<T>::load(x + i0 + off[p]);
    };
    if constexpr (Streams)
      for (auto p = run.length - run.held; p < run.length; ++p) __builtin_prefetch(v + r.streams[p] + later);
    typename Group<T>::type s0 = {}, s1 = {};
    std::int32_t p = 0;
    for (; p + 1 < run.length; p += 2) {
      s0 += term(p);
      s1 += term(p + 1);
    }
    if (p < run.length) s0 += term(p);
    finish_group<E, T>(s0 + s1, i0, x, y, b, w);
  }
}

/// The sums of N groups from row i0 on with the same values: in the order of pattern_run, so the bits are the same.
/// L: entries of a row, known to the compiler; 0: any.
template <Epilogue E, int L, int N, class T, class V>
inline void uniform_groups(std::int32_t length, i64 i0, std::int32_t const* off, V const* v, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  using Sums = typename Group<T>::type;
  Sums even[N] = {}, odd[N] = {};
  std::int32_t const n = L > 0 ? L : length;
  auto const add = [&](Sums(&s)[N], std::int32_t p) {
    auto const* const xp = x + i0 + off[p];
    for (int g = 0; g < N; ++g) s[g] += T(v[p]) * Group<T>::load(xp + g * W);
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

template <Epilogue E, int L, class T, class V>
void uniform_rows(PatternRun const& run, std::int32_t const* off, V const* v, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  std::int32_t at = run.first;
  std::int32_t const end = run.first + run.count;
  if constexpr (register_bytes >= 32)  // else there are too few registers
    for (; at + 2 * W <= end; at += 2 * W) {
      prefetch_group<E>(at, run, off, x, b, w);
      prefetch_group<E>(at + W, run, off, x, b, w);
      uniform_groups<E, L, 2>(run.length, at, off, v, x, y, b, w);
    }
  for (; at + W <= end; at += W) uniform_groups<E, L, 1>(run.length, at, off, v, x, y, b, w);
  if (at < end) uniform_groups<E, L, 1>(run.length, end - W, off, v, x, y, b, w);
}

/// Rows with the same values and k columns: row-major, they are k times as many rows of one column. off: times k.
template <Epilogue E, class T, class V>
void uniform_columns(PatternRun const& run, i64 const* off, V const* v, i64 k, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  using G = Group<T>;
  i64 const end = i64(run.first + run.count) * k;
  i64 row = run.first, column = 0;  // of the entry at `at`
  for (i64 at = run.first * k; at < end; at += W) {
    i64 const i = at + W <= end ? at : end - W;
    typename G::type even = {}, odd = {};
    std::int32_t p = 0;
    for (; p + 1 < run.length; p += 2) {
      even += T(v[p]) * G::load(x + i + off[p]);
      odd += T(v[p + 1]) * G::load(x + i + off[p + 1]);
    }
    if (p < run.length) even += T(v[p]) * G::load(x + i + off[p]);
    if constexpr (E == Epilogue::smooth) {
      T weights[W];  // of the entries' rows
      if (i != at) row = i / k, column = i % k;
      for (std::int32_t l = 0; l < W; ++l) {
        weights[l] = w[row];
        if (++column == k) column = 0, ++row;
      }
      G::store(G::load(x + i) + G::load(weights) * (G::load(b + i) - (even + odd)), y + i);
    } else {
      finish_group<E, T>(even + odd, i, x, y, b, w);
    }
  }
}

/// The sums of a group of rows, from `at` on where that many are left: columns are `step` apart. N: the step, known to the compiler; 0:
/// any. Nothing is loaded from `end` on.
template <int N, class T, class V>
inline typename Group<T>::type strided_group(RunView<V> const& r, std::int32_t at, T const* x, T const* end) {
  using Sums = typename Group<T>::type;
  auto const l0 = std::min(at, r.run.count - group_rows<T>);
  auto const step = r.run.column_step, length = r.run.length;
  auto const* const from = x + r.run.first + l0 * i64(step);
  auto const term = [=, off = r.off, v = r.values + (r.run.uniform ? 0 : i64(at) * length), uniform = r.run.uniform](std::int32_t p) {
    Sums const columns = every_nth<N, T>(from + off[p], step, end);
    return uniform ? T(v[p]) * columns : Group<T>::load(v + p * group_rows<T>) * columns;
  };
  Sums even = {}, odd = {};
  std::int32_t p = 0;
  for (; p + 1 < length; p += 2) {
    even += term(p);
    odd += term(p + 1);
  }
  if (p < length) even += term(p);
  return even + odd;
}

/// Any steps, and any epilogue.
template <Epilogue E, class T, class V>
void strided_run(RunView<V> const& r, std::int32_t columns, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  auto const& run = r.run;
  auto const* const end = x + columns;
  for (std::int32_t at = 0; at < run.count; at += W) {
    // the last group ends with the run: its first rows are those of the one before, and have been taken
    std::int32_t const l0 = std::min(at, run.count - W);
    typename Group<T>::type const s = run.column_step == 1   ? strided_group<1>(r, at, x, end)
                                      : run.column_step == 3 ? strided_group<3>(r, at, x, end)
                                                             : strided_group<0>(r, at, x, end);
    if (run.row_step == 1 && l0 == at) {
      finish_group<E, T>(s, run.first + l0, x, y, b, w);
      continue;
    }
#if defined(__AVX512F__)
    if constexpr (E == Epilogue::add)
      if (run.row_step == 3) {
        add_to_every_third(s, at - l0, y + run.first + 3 * i64(l0));
        continue;
      }
#endif
    T sums[W];
    Group<T>::store(s, sums);
    for (auto l = at; l < l0 + W; ++l) finish<E>(sums[l - l0], run.first + i64(l) * run.row_step, 1, 0, x, y, b, w);
  }
}

/// y[3 l + j] += s_j[l] for the lanes l from `first` on, in whole vectors: the other entries of y are written as they are.
template <class T, class S, int... Lane>
inline void add_in_turn(S s0, S s1, S s2, std::int32_t first, T* y, std::integer_sequence<int, Lane...>) {
  constexpr int N = sizeof...(Lane);
  using Number = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Numbers = typename VectorOf<Number, sizeof(S)>::type;
  auto const part = [&]<int K>(std::integral_constant<int, K>) {
    auto const two = __builtin_shufflevector(s0, s1, ((K * N + Lane) % 3 == 2 ? 0 : (K * N + Lane) % 3 * N + (K * N + Lane) / 3)...);
    S const sum = __builtin_shufflevector(two, s2, ((K * N + Lane) % 3 == 2 ? N + (K * N + Lane) / 3 : Lane)...);
    auto* const at = reinterpret_cast<S*>(y + K * N);
    S const old = *at;
    *at = first <= 0 ? old + sum : (Numbers{(K * N + Lane) / 3 ...} >= Number(first)) ? S(old + sum) : old;
  };
  part(std::integral_constant<int, 0>());
  part(std::integral_constant<int, 1>());
  part(std::integral_constant<int, 2>());
}
template <class T, class S>
inline void add_in_turn(S s0, S s1, S s2, std::int32_t first, T* y) {
  add_in_turn(s0, s1, s2, first, y, std::make_integer_sequence<int, int(sizeof(S) / sizeof(T))>());
}
template <class T, class G>
inline void add_in_turn(Halves<G> const& s0, Halves<G> const& s1, Halves<G> const& s2, std::int32_t first, T* y) {
  constexpr std::int32_t half = std::int32_t(sizeof(typename G::type) / sizeof(T));
  add_in_turn(s0.low, s1.low, s2.low, first, y);
  add_in_turn(s0.high, s1.high, s2.high, first - half, y + 3 * half);
}

/// Whether run[0..3) have every third row each, in turn, as interpolation to a line of a grid has them where three points make one.
inline bool in_turn(PatternRun const* run) {
  for (int j = 0; j < 3; ++j)
    if (!run[j].uniform || run[j].row_step != 3 || run[j].column_step != 1 || run[j].first != run[0].first + j) return false;
  return true;
}

/// y += A x for three such runs: what strided_run() gives, with each entry of y read and written once.
template <class T, class V>
void add_three_runs(PatternRows<T, V> const& a, PatternRun const* run, T const* x, T* y) {
  constexpr std::int32_t W = group_rows<T>;
  RunView<V> const views[] = {{a, run[0]}, {a, run[1]}, {a, run[2]}};
  auto const count = std::min({run[0].count, run[1].count, run[2].count});
  for (std::int32_t at = 0; at < count; at += W) {
    auto const l0 = at + W <= count ? at : count - W;
    for (std::int32_t j = 0; j < 3; ++j) __builtin_prefetch(y + run[0].first + 3 * i64(l0) + j * W + ahead / i64(sizeof(T)));
    auto const sums = [&](int j) { return strided_group<1>(views[j], l0, x, x); };
    add_in_turn<T>(sums(0), sums(1), sums(2), at - l0, y + run[0].first + 3 * i64(l0));
  }
  for (int j = 0; j < 3; ++j) {
    auto const* const off = views[j].off;
    auto const* const v = views[j].values;
    for (auto l = count; l < run[j].count; ++l) {
      T even(0), odd(0);
      for (std::int32_t p = 0; p < run[j].length; ++p) (p % 2 == 0 ? even : odd) += T(v[p]) * x[run[j].first + l + off[p]];
      y[run[j].first + 3 * i64(l)] += even + odd;
    }
  }
}

/// Columns [j, j + C) of k, row by row. off: times k. L: entries of a row, known to the compiler; 0: any.
template <Epilogue E, int L, int C, class T, class V>
void run_of_columns(RunView<V> const& r, i64 const* off, i64 j, i64 k, T const* x, T* y, T const* b, T const* w) {
  auto const& run = r.run;
  std::int32_t const n = L > 0 ? L : run.length;
  auto const all_rows = [&](auto const& value) {
    for (std::int32_t l = 0; l < run.count; ++l) {
      auto const* const xi = x + (run.first + i64(l) * run.column_step) * k + j;
      auto const term = [=](std::int32_t p) { return T(value(p, l)) * Columns<T, C>::load(xi + off[p]); };
      typename Columns<T, C>::type even = {}, odd = {};
      std::int32_t p = 0;
#pragma GCC unroll 8
      for (; p + 1 < n; p += 2) {
        even += term(p);
        odd += term(p + 1);
      }
      if (p < n) even += term(p);
      finish_columns<E, C>(even + odd, run.first + i64(l) * run.row_step, k, j, x, y, b, w);
    }
  };
  if (run.uniform) all_rows([v = r.values](std::int32_t p, std::int32_t) { return v[p]; });
  else if (run.held > 0) all_rows([v = r.values, streams = r.streams](std::int32_t p, std::int32_t l) { return v[streams[p] + l]; });
  else
    all_rows([v = r.values, n, count = run.count](std::int32_t p, std::int32_t l) {
      constexpr std::int32_t W = group_rows<T>;
      auto const at = l / W * W;
      return v[i64(at) * n + p * W + l - std::min(at, count - W)];
    });
}

/// Runs [begin, end) for k columns.
template <Epilogue E, class T, class V>
void runs_of_columns(PatternRows<T, V> const& a, i64 begin, i64 end, i64 k, T const* x, T* y, T const* b, T const* w) {
  std::vector<i64> scaled;
  for (auto r = begin; r < end; ++r) {
    auto const& run = a.runs[r];
    RunView<V> const view(a, run);
    bool const together = written_by(E) == Writes::all_rows && run.row_step == 1 && run.column_step == 1;
    scaled.clear();
    for (std::int32_t p = 0; p < run.length; ++p) scaled.push_back(view.off[p] * k);
    if (run.uniform && k % 4 != 0 && together) {  // row by row some of the columns would be taken one at a time
      if constexpr (written_by(E) == Writes::all_rows) uniform_columns<E>(run, scaled.data(), view.values, k, x, y, b, w);
    } else {
      for_columns<T>(k, [&](auto together, i64 j) {
        constexpr int C = decltype(together)::value;
        if (run.length == 7) run_of_columns<E, 7, C>(view, scaled.data(), j, k, x, y, b, w);
        else run_of_columns<E, 0, C>(view, scaled.data(), j, k, x, y, b, w);
      });
    }
  }
}

template <Epilogue E, class T, class V>
void uniform_run(PatternRun const& run, std::int32_t const* off, V const* v, T const* x, T* y, T const* b, T const* w) {
  switch (run.length) {
    case 3: return uniform_rows<E, 3>(run, off, v, x, y, b, w);
    case 5: return uniform_rows<E, 5>(run, off, v, x, y, b, w);
    case 7: return uniform_rows<E, 7>(run, off, v, x, y, b, w);
    case 9: return uniform_rows<E, 9>(run, off, v, x, y, b, w);
    default: return uniform_rows<E, 0>(run, off, v, x, y, b, w);
  }
}

/// Runs [begin, end).
template <Epilogue E, class T, class V>
void runs_of_rows(PatternRows<T, V> const& a, i64 begin, i64 end, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (k != 1) return runs_of_columns<E>(a, begin, end, k, x, y, b, w);
  for (i64 r = begin; r < end; ++r) {
    auto const& run = a.runs[r];
    RunView<V> const view(a, run);
    if constexpr (written_by(E) == Writes::all_rows)
      if (run.row_step == 1 && run.column_step == 1) {
        if (run.uniform) uniform_run<E>(run, view.off, view.values, x, y, b, w);
        else if (run.held > 0) pattern_run<E, true>(view, x, y, b, w);
        else pattern_run<E, false>(view, x, y, b, w);
        continue;
      }
    if constexpr (E == Epilogue::add)
      if (r + 3 <= end && in_turn(&run)) {
        add_three_runs(a, &run, x, y);
        r += 2;
        continue;
      }
    strided_run<E>(view, a.columns, x, y, b, w);
  }
}

constexpr i64 serial_batches = 4;  // of 1024 rows or more

template <Epilogue E, class T, class V>
void batch_of_rows(PatternBlock<T, V> const& a, i64 i, i64 k, T const* x, T* y, T const* b, T const* w) {
  auto const here = a.batches[i], next = a.batches[i + 1];
  runs_of_rows<E>(a.runs, here.run, next.run, k, x, y, b, w);
  csr_rows(a.rest, E, here.rest, next.rest, k, x, y, b, w);
}

}  // namespace

template <class T, class V>
void row_pattern_product(Executor& executor, PatternBlock<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) {
    device::parallel_ranges(
        executor, a.batch_count,
        [=](i64 begin, i64 end) {
          for (auto i = begin; i < end; ++i) batch_of_rows<decltype(known)::value>(a, i, k, x, y, b, w);
        },
        serial_batches);
  });
  // rows that are no batch's
  if (a.rest.row_count > a.batches[a.batch_count].rest) csr_product(executor, a.rest, e, k, x, y, b, w);
}

template <class T, class V>
void row_pattern_product_and_dot(Executor& executor, PatternBlock<T, V> a, Epilogue e, T const* x, T* y, T const* b, T const* w, Sum* out) {
  std::vector<Sum> sums(std::size_t(a.batch_count), Sum(0));  // the same for any number of threads
  device::parallel_ranges(
      executor, a.batch_count,
      [=, sums = sums.data()](i64 begin, i64 end) {
        for (auto i = begin; i < end; ++i) {
          if (e == Epilogue::smooth) batch_of_rows<Epilogue::smooth>(a, i, 1, x, y, b, w);
          else batch_of_rows<Epilogue::assign>(a, i, 1, x, y, b, w);
          i64 const first = i == 0 ? 0 : a.runs.runs[a.batches[i].run].first;
          i64 const last = i + 1 == a.batch_count ? a.runs.columns : a.runs.runs[a.batches[i + 1].run].first;
          sums[i] = dot_range(first, last, 1, e == Epilogue::smooth ? b : x, y);
        }
      },
      serial_batches);
  out[0] = Sum(0);
  for (auto const& s : sums) out[0] += s;
}

#define INSTANTIATE(T, V)                                                                                            \
  template void row_pattern_product(Executor&, PatternBlock<T, V>, Epilogue, i64, T const*, T*, T const*, T const*); \
  template void row_pattern_product_and_dot(Executor&, PatternBlock<T, V>, Epilogue, T const*, T*, T const*, T const*, Sum*);
INSTANTIATE(float, float)
INSTANTIATE(float, Bfloat16)
INSTANTIATE(double, double)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
