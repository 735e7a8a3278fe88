// Loops over the entries of rows of several columns, row-major as vectors are; for kernels (*.kernels.cpp).
#pragma once
#include <cstdint>
#include <numeric>
#include <type_traits>

#include "asterism/device/coefficient.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"

namespace asterism::la::kernel {
namespace {  // each file's own, so that its instruction set is the file's

using i64 = std::int64_t;

/// Where entries have no number of their row, or of their column.
struct NoNumbers {
  ASTERISM_FN float operator[](i64) const { return 0; }
};
template <class T, class A>
ASTERISM_FN T number_of_column(A const& a) {
  return device::coefficient<T>(a);
}
template <class T>
ASTERISM_FN T number_of_column(NoNumbers const&) {
  return T(0);
}

#if !defined(ASTERISM_ON_GPU)
/// Rows of k columns as one loop over their entries, 16 at a time. What belongs to the columns repeats after a period: so many whole
/// rows that this leaves no rest, and several sums are under way.
class Period {
 public:
  static constexpr i64 most = 512;  ///< entries
  /// Else rows are taken one by one.
  static bool suits(i64 k) { return k < 32; }
  explicit Period(i64 k) : columns_(k), rows_(16 / std::gcd(k, i64(16))) {
    while (rows_ * k < 64) rows_ *= 2;
  }
  i64 entries() const { return rows_ * columns_; }
  /// Rows of as many whole periods as `most` entries are.
  i64 rows_together() const { return most / entries() * rows_; }
  /// at[place] = a[column], for a period.
  template <class T, class A>
  void repeat(A const& a, T* at) const {
    for (i64 row = 0; row < rows_; ++row)
      for (i64 j = 0; j < columns_; ++j) *at++ = T(a[j]);
  }
  /// at[entry] = d[row], for so many rows, and up to 7 entries more.
  template <class T>
  void spread(T const* d, i64 rows, T* at) const {
    for (i64 row = 0; row < rows; ++row, at += columns_)
      for (i64 j = 0; j < columns_; j += 8) {
#pragma omp simd
        for (int l = 0; l < 8; ++l) at[j + l] = d[row];
      }
  }
  /// f(entry, its place in the period) for the entries of so many rows.
  template <class F>
  void each(i64 rows, F const& f) const {
    i64 const last = rows * columns_, period = entries();
    i64 q = 0, i = 0;
    for (; i + 16 <= last; i += 16) {
#pragma omp simd
      for (int l = 0; l < 16; ++l) f(i + l, q + l);
      if ((q += 16) == period) q = 0;
    }
    for (; i < last; ++i, ++q) f(i, q);
  }

 private:
  i64 columns_, rows_;
};
#endif

/// f(entry, d of its row, a and b of its column) for the entries of k > 1 columns of rows [begin, end).
template <class T, class D, class A, class B, class F>
ASTERISM_FN void each_of_columns(i64 begin, i64 end, i64 step, i64 k, D const& d, A const& a, B const& b, F const& f) {
#if !defined(ASTERISM_ON_GPU)
  if (Period::suits(k)) {
    Period const period(k);
    T as[Period::most], bs[Period::most];
    period.repeat(a, as), period.repeat(b, bs);
    if constexpr (std::is_same_v<D, NoNumbers>) {
      period.each(end - begin, [&, first = begin * k](i64 i, i64 q) { f(first + i, T(0), as[q], bs[q]); });
    } else {
      T ds[Period::most + 8];
      for (i64 row = begin, together = period.rows_together(); row < end; row += together) {
        i64 const rows = end - row < together ? end - row : together;
        period.spread(d + row, rows, ds);
        period.each(rows, [&, first = row * k](i64 i, i64 q) { f(first + i, ds[i], as[q], bs[q]); });
      }
    }
    return;
  }
#endif
  for (i64 row = begin; row < end; row += step) {
    T const d0 = T(d[row]);
    i64 j0 = 0;
    for (; j0 + 8 <= k; j0 += 8) {
#pragma omp simd
      for (int l = 0; l < 8; ++l) f(row * k + j0 + l, d0, T(a[j0 + l]), T(b[j0 + l]));
    }
    for (i64 j = j0; j < k; ++j) f(row * k + j, d0, T(a[j]), T(b[j]));
  }
}

/// The same for all rows, by all threads; also of one column, whose numbers are in registers. Operands are the same vector or do not
/// overlap.
template <class T, class D, class A, class B, class F>
void each_entry(device::Executor& executor, i64 n, i64 k, D const& d, A const& a, B const& b, F const& f) {
  if (k == 1)
    device::parallel_strides(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) {
      T const a0 = number_of_column<T>(a), b0 = number_of_column<T>(b);
#pragma omp simd
      for (i64 i = begin; i < end; i += step) f(i, T(d[i]), a0, b0);
    });
  else
    device::parallel_strides(executor, n,
                             [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) { each_of_columns<T>(begin, end, step, k, d, a, b, f); });
}

}  // namespace
}  // namespace asterism::la::kernel
