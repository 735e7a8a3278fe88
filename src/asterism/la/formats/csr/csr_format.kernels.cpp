#include "asterism/la/formats/csr/csr_format.kernels.hpp"

#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/simd_group.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

// Rows of one length: the compiler unrolls the sum, and rows overlap in the pipeline. A plain loop
// over the offsets reaches half of the memory bandwidth on 7-entry rows.
template <int L, class T, class V, class Out>
void rows_of_length(CsrRows<T, V> const& a, LengthRun run, T const* x, Out const& out) {
  auto p = a.offsets[run.first];
  for (std::int32_t i = run.first; i < run.end; ++i, p += L) {
    T s(0);
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) s += T(a.values[p + l]) * x[a.columns[p + l]];
    out(i, s);
  }
}

// Four sums keep the adds from waiting for each other. Vectors along a row are slower than scalar loads: this file is
// compiled without automatic vectorisation. Across rows they gain: simd_group.hpp.
template <class T, class V>
inline T long_row(i64 begin, i64 end, V const* ASTERISM_RESTRICT values, std::int32_t const* ASTERISM_RESTRICT columns,
                  T const* ASTERISM_RESTRICT x) {
  T s0(0), s1(0), s2(0), s3(0);
  i64 p = begin;
  for (; p + 3 < end; p += 4) {
    s0 += T(values[p]) * x[columns[p]];
    s1 += T(values[p + 1]) * x[columns[p + 1]];
    s2 += T(values[p + 2]) * x[columns[p + 2]];
    s3 += T(values[p + 3]) * x[columns[p + 3]];
  }
  for (; p < end; ++p) s0 += T(values[p]) * x[columns[p]];
  return (s0 + s1) + (s2 + s3);
}

template <class T, class V, class Out>
void rows_any(CsrRows<T, V> const& a, LengthRun run, T const* x, Out const& out) {
  for (std::int32_t i = run.first; i < run.end; ++i) {
    auto const begin = a.offsets[i], end = a.offsets[i + 1];
    T s(0);
    if (end - begin >= 12) {
      s = long_row(begin, end, a.values, a.columns, x);
    } else {
      for (auto p = begin; p < end; ++p) s += T(a.values[p]) * x[a.columns[p]];
    }
    out(i, s);
  }
}

/// The sums of rows [first, last), which begin in run r, go to out(row, sum). Returns the run of row last.
template <class T, class V, class Out>
[[gnu::noinline]] std::int32_t row_sums(CsrRows<T, V> const& a, std::int32_t r, std::int32_t first, std::int32_t last, T const* x,
                                        Out out) {
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

template <Epilogue E, class T, class V>
void rows_columns(CsrRows<T, V> const& a, std::int32_t first, std::int32_t last, i64 k, T const* x, T* y, T const* b, T const* w) {
  for (std::int32_t i = first; i < last; ++i) {
    i64 const row = a.row_ids ? a.row_ids[i] : i, begin = a.offsets[i];
    row_of_columns<E>(
        a.offsets[i + 1] - begin, [=](i64 p) { return T(a.values[begin + p]); }, [=](i64 p) { return i64(a.columns[begin + p]); }, row, k,
        x, y, b, w);
  }
}

template <Epilogue E, class T, class V>
void some_rows(CsrRows<T, V> const& a, std::int32_t first, std::int32_t last, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (first >= last) return;
  if (k != 1) return rows_columns<E>(a, first, last, k, x, y, b, w);
  std::int32_t lo = 0, hi = a.run_count;
  while (lo < hi) {
    auto const mid = (lo + hi) / 2;
    if (a.runs[mid].end <= first) lo = mid + 1;
    else hi = mid;
  }
  if constexpr (E == Epilogue::assign) {
    row_sums(a, lo, first, last, x, AssignRow<T>{y, a.row_ids});
  } else {
    constexpr std::int32_t kept = 32;
    T sums[kept];
    for (std::int32_t i = first, run = lo; i < last; i += kept) {
      auto const stop = last - i < kept ? last : i + kept;
      run = row_sums(a, run, i, stop, x, KeepRow<T>{sums, i});
      for (std::int32_t l = i; l < stop; ++l) finish<E>(sums[l - i], a.row_ids ? a.row_ids[l] : l, 1, 0, x, y, b, w);
    }
  }
}

template <Epilogue E, class T, class V>
void csr_with(Executor& executor, CsrRows<T, V> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (a.run_count == 0) return;
  // shares cut inside runs
  in_equal_shares(executor, a.offsets, a.runs[a.run_count - 1].end, 16384,
                  [=](std::int32_t first, std::int32_t last) { some_rows<E>(a, first, last, k, x, y, b, w); });
}

}  // namespace

template <class T, class V>
void csr_product(Executor& executor, CsrRows<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) { csr_with<decltype(known)::value>(executor, a, k, x, y, b, w); });
}

template <class T, class V>
void csr_rows(CsrRows<T, V> const& a, Epilogue e, std::int32_t first, std::int32_t last, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) { some_rows<decltype(known)::value>(a, first, last, k, x, y, b, w); });
}

#define INSTANTIATE(T, V)                                                                               \
  template void csr_product(Executor&, CsrRows<T, V>, Epilogue, i64, T const*, T*, T const*, T const*); \
  template void csr_rows(CsrRows<T, V> const&, Epilogue, std::int32_t, std::int32_t, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_STORED(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
