// Loops over the entries of rows of several columns, row-major as vectors are; for kernels (*.kernels.cpp).
#pragma once
#include <cstdint>

#include "asterism/device/coefficient.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"

namespace asterism::la::kernel {
namespace {  // each file's own, so that its instruction set is the file's

using i64 = std::int64_t;

/// Where entries have no number of their column.
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
/// Rows of k columns as one loop over their entries, eight at a time. What belongs to a column or a row repeats after a period: so many
/// whole rows that eights leave no rest, and several sums are under way.
class Period {
 public:
  static constexpr i64 most = 256;  ///< entries
  /// Else rows are taken one by one: eights leave little of them.
  static bool suits(i64 k) { return k % 8 != 0 && k < 32; }
  explicit Period(i64 k) : columns_(k), rows_(k % 4 == 0 ? 2 : k % 2 == 0 ? 4 : 8) {
    while (rows_ * k < 64) rows_ *= 2;
  }
  /// f(place in the period, row, column)
  template <class F>
  void each_place(F const& f) const {
    for (i64 row = 0, q = 0; row < rows_; ++row)
      for (i64 j = 0; j < columns_; ++j, ++q) f(q, row, j);
  }
  /// f(entry, its place in the period, the first row of the period) for the entries of rows [begin, end).
  template <class F>
  void each(i64 begin, i64 end, F const& f) const {
    i64 const last = end * columns_, period = rows_ * columns_;
    i64 q = 0, first = begin, i = begin * columns_;
    for (; i + 8 <= last; i += 8) {
#pragma omp simd
      for (int l = 0; l < 8; ++l) f(i + l, q + l, first);
      if ((q += 8) == period) q = 0, first += rows_;
    }
    for (; i < last; ++i, ++q) f(i, q, first);
  }

 private:
  i64 columns_, rows_;
};
#endif

/// f(entry, row, a and b of the column) for the entries of k > 1 columns of rows [begin, end).
template <class T, class A, class B, class F>
ASTERISM_FN void each_of_columns(i64 begin, i64 end, i64 step, i64 k, A const& a, B const& b, F const& f) {
#if !defined(ASTERISM_ON_GPU)
  if (Period::suits(k)) {
    Period const period(k);
    T as[Period::most], bs[Period::most];
    std::int32_t rows[Period::most];
    period.each_place([&](i64 q, i64 row, i64 j) { as[q] = T(a[j]), bs[q] = T(b[j]), rows[q] = std::int32_t(row); });
    period.each(begin, end, [&](i64 i, i64 q, i64 first) { f(i, first + rows[q], as[q], bs[q]); });
    return;
  }
#endif
  for (i64 row = begin; row < end; row += step) {
    i64 j0 = 0;
    for (; j0 + 8 <= k; j0 += 8) {
#pragma omp simd
      for (int l = 0; l < 8; ++l) f(row * k + j0 + l, row, T(a[j0 + l]), T(b[j0 + l]));
    }
    for (i64 j = j0; j < k; ++j) f(row * k + j, row, T(a[j]), T(b[j]));
  }
}

/// The same for all rows, by all threads; also of one column, whose numbers are in registers. Operands are the same vector or do not
/// overlap.
template <class T, class A, class B, class F>
void each_entry(device::Executor& executor, i64 n, i64 k, A const& a, B const& b, F const& f) {
  if (k == 1)
    device::parallel_strides(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) {
      T const a0 = number_of_column<T>(a), b0 = number_of_column<T>(b);
#pragma omp simd
      for (i64 i = begin; i < end; i += step) f(i, i, a0, b0);
    });
  else
    device::parallel_strides(
        executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) { each_of_columns<T>(begin, end, step, k, a, b, f); });
}

}  // namespace
}  // namespace asterism::la::kernel
