#include "asterism/la/formats/row_pattern/row_pattern_format.kernels.hpp"

#include <vector>

#include "asterism/la/formats/simd_group.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

template <Epilogue E, class T, class V>
void pattern_run(PatternRun const& run, std::int32_t const* off, V const* v, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t at = run.first; at < run.end; at += W, v += i64(W) * run.length) {
    // the last group ends with the run: its first rows are computed twice, with equal results
    std::int32_t const i0 = at + W <= run.end ? at : run.end - W;
    typename Group<T>::type s0 = {}, s1 = {};
    std::int32_t p = 0;
    for (; p + 1 < run.length; p += 2) {
      s0 += Group<T>::load(v + p * W) * Group<T>::load(x + i0 + off[p]);
      s1 += Group<T>::load(v + (p + 1) * W) * Group<T>::load(x + i0 + off[p + 1]);
    }
    if (p < run.length) s0 += Group<T>::load(v + p * W) * Group<T>::load(x + i0 + off[p]);
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
  if constexpr (register_bytes >= 32)  // else there are too few registers
    for (; at + 2 * W <= run.end; at += 2 * W) uniform_groups<E, L, 2>(run.length, at, off, v, x, y, b, w);
  for (; at + W <= run.end; at += W) uniform_groups<E, L, 1>(run.length, at, off, v, x, y, b, w);
  if (at < run.end) uniform_groups<E, L, 1>(run.length, run.end - W, off, v, x, y, b, w);
}

/// Rows with the same values and k columns: row-major, they are k times as many rows of one column. off: times k.
template <Epilogue E, class T, class V>
void uniform_columns(PatternRun const& run, i64 const* off, V const* v, i64 k, T const* x, T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  using G = Group<T>;
  i64 const end = run.end * k;
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
      i64 row = i / k, j = i % k;
      for (std::int32_t l = 0; l < W; ++l) {
        weights[l] = w[row];
        if (++j == k) j = 0, ++row;
      }
      G::store(G::load(x + i) + G::load(weights) * (G::load(b + i) - (even + odd)), y + i);
    } else {
      finish_group<E, T>(even + odd, i, x, y, b, w);
    }
  }
}

/// Columns [j, j + C) of k, row by row. off: times k. L: entries of a row, known to the compiler; 0: any.
template <Epilogue E, int L, int C, class T, class V>
void run_of_columns(PatternRun const& run, i64 const* off, V const* v, i64 j, i64 k, T const* x, T* y, T const* b, T const* w) {
  std::int32_t const n = L > 0 ? L : run.length;
  auto const row_of = [=](i64 i, V const* values, i64 step) {
    auto const* const xi = x + i * k + j;
    auto const term = [=](std::int32_t p) { return T(values[p * step]) * Columns<T, C>::load(xi + off[p]); };
    typename Columns<T, C>::type even = {}, odd = {};
    std::int32_t p = 0;
#pragma GCC unroll 8
    for (; p + 1 < n; p += 2) {
      even += term(p);
      odd += term(p + 1);
    }
    if (p < n) even += term(p);
    finish_columns<E, C>(even + odd, i, k, j, x, y, b, w);
  };
  if (run.uniform) {
    for (auto i = run.first; i < run.end; ++i) row_of(i, v, 1);
    return;
  }
  constexpr std::int32_t W = group_rows<T>;
  for (auto at = run.first; at < run.end; at += W, v += i64(W) * n) {
    auto const first = at + W <= run.end ? at : run.end - W;
    for (auto i = at; i < first + W; ++i) row_of(i, v + (i - first), W);
  }
}

/// Runs [begin, end) for k columns.
template <Epilogue E, class T, class V>
void runs_of_columns(PatternRows<T, V> const& a, i64 begin, i64 end, i64 k, T const* x, T* y, T const* b, T const* w) {
  std::vector<i64> scaled;
  for (auto r = begin; r < end; ++r) {
    auto const& run = a.runs[r];
    auto const* const v = a.values + run.value_at;
    scaled.clear();
    for (std::int32_t p = 0; p < run.length; ++p) scaled.push_back(a.offsets[run.offset_at + p] * k);
    if (run.uniform && k % 4 != 0) {  // row by row some of the columns would be taken one at a time
      uniform_columns<E>(run, scaled.data(), v, k, x, y, b, w);
    } else {
      for_columns<T>(k, [&](auto together, i64 j) {
        constexpr int C = decltype(together)::value;
        if (run.length == 7) run_of_columns<E, 7, C>(run, scaled.data(), v, j, k, x, y, b, w);
        else run_of_columns<E, 0, C>(run, scaled.data(), v, j, k, x, y, b, w);
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

template <Epilogue E, class T, class V>
void pattern_with(Executor& executor, PatternRows<T, V> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  device::parallel_ranges(
      executor, a.run_count,
      [=](i64 begin, i64 end) {
        if (k != 1) return runs_of_columns<E>(a, begin, end, k, x, y, b, w);
        for (i64 r = begin; r < end; ++r) {
          auto const& run = a.runs[r];
          auto const* const off = a.offsets + run.offset_at;
          auto const* const v = a.values + run.value_at;
          if (run.uniform) uniform_run<E>(run, off, v, x, y, b, w);
          else pattern_run<E>(run, off, v, x, y, b, w);
        }
      },
      32);
}

}  // namespace

template <class T, class V>
void row_pattern_product(Executor& executor, PatternBlock<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue_of_all_rows(e, [&](auto known) { pattern_with<decltype(known)::value>(executor, a.runs, k, x, y, b, w); });
  csr_product(executor, a.rest, e, k, x, y, b, w);
}

#define INSTANTIATE(T, V) template void row_pattern_product(Executor&, PatternBlock<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
INSTANTIATE(float, float)
INSTANTIATE(float, Bfloat16)
INSTANTIATE(double, double)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
