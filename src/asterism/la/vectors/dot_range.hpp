// Sums of products over ranges of rows, for kernels (*.kernels.cpp).
#pragma once
#include "asterism/la/vectors/columns.hpp"

namespace asterism::la::kernel {
namespace {  // each file's own, so that its instruction set is the file's

using i64 = std::int64_t;

// conj(x) y summed over [begin, end); real and complex parts apart so that both vectorise. The compiler makes vectors
// only of a loop whose step it knows: Known is the step, or 0 where it is `any`.
template <int Known, class T, class S>
ASTERISM_FN Sum dot_with(i64 begin, i64 end, i64 any, T const* ASTERISM_RESTRICT x, S const* ASTERISM_RESTRICT y) {
  i64 const step = Known > 0 ? Known : any;
  double re = 0, im = 0;
  if constexpr (is_complex_v<T>) {
#pragma omp simd reduction(+ : re, im)
    for (i64 i = begin; i < end; i += step) {
      re += double(x[i].re) * double(y[i].re) + double(x[i].im) * double(y[i].im);
      im += double(x[i].re) * double(y[i].im) - double(x[i].im) * double(y[i].re);
    }
  } else {
#pragma omp simd reduction(+ : re)
    for (i64 i = begin; i < end; i += step) re += double(x[i]) * double(y[i]);
  }
  return {re, im};
}
template <class T, class S>
ASTERISM_FN Sum dot_range(i64 begin, i64 end, i64 step, T const* x, S const* y) {
  return step == 1 ? dot_with<1>(begin, end, step, x, y) : dot_with<0>(begin, end, step, x, y);
}

template <class T>
ASTERISM_FN double square(T x) {
  if constexpr (is_complex_v<T>) return double(x.re) * double(x.re) + double(x.im) * double(x.im);
  else return double(x) * double(x);
}
/// Sum of f(i), which may write what is i's.
template <int Known, class F>
ASTERISM_FN double sum_with(i64 begin, i64 end, i64 any, F const& f) {
  i64 const step = Known > 0 ? Known : any;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (i64 i = begin; i < end; i += step) sum += f(i);
  return sum;
}
template <class F>
ASTERISM_FN double sum_range(i64 begin, i64 end, i64 step, F const& f) {
  return step == 1 ? sum_with<1>(begin, end, step, f) : sum_with<0>(begin, end, step, f);
}

/// conj(x) y in double precision: products of float32 values that are small or large are none in float32
template <class T, class S>
ASTERISM_FN void add_product(T x, S y, Sum& acc) {
  if constexpr (is_complex_v<T>) {
    acc.re += double(x.re) * double(y.re) + double(x.im) * double(y.im);
    acc.im += double(x.re) * double(y.im) - double(x.im) * double(y.re);
  } else {
    acc.re += double(x) * double(y);
  }
}

/// Of `count` columns, 8 at most, of rows of k: acc[0..count).
template <class T, class S>
ASTERISM_FN void dot_few_columns(i64 begin, i64 end, i64 step, i64 k, i64 count, T const* x, S const* y, Sum* acc) {
  if (count < 8) {
    for (i64 row = begin; row < end; row += step)
      for (i64 j = 0; j < count; ++j) add_product(x[row * k + j], y[row * k + j], acc[j]);
    return;
  }
  double re[8] = {}, im[8] = {};  // in registers
  for (i64 row = begin; row < end; row += step) {
    auto const* const xr = x + row * k;
    auto const* const yr = y + row * k;
    if constexpr (is_complex_v<T>) {
      for (int l = 0; l < 8; ++l) {
        re[l] += double(xr[l].re) * double(yr[l].re) + double(xr[l].im) * double(yr[l].im);
        im[l] += double(xr[l].re) * double(yr[l].im) - double(xr[l].im) * double(yr[l].re);
      }
    } else {
#pragma omp simd
      for (int l = 0; l < 8; ++l) re[l] += double(xr[l]) * double(yr[l]);
    }
  }
  for (int l = 0; l < 8; ++l) acc[l] += Sum(re[l], im[l]);
}

#if defined(ASTERISM_ON_GPU)
constexpr i64 most_dots_at_once = 8;
#else
constexpr i64 most_dots_at_once = 32;
#endif
/// Of how many of k columns the sums are best formed together.
ASTERISM_FN i64 dots_at_once(i64 k) { return k < most_dots_at_once ? k : 8; }

/// Of `count` columns of rows of k, the first ones of which x and y begin with: acc[0..count).
template <class T, class S>
ASTERISM_FN void dot_columns(i64 begin, i64 end, i64 step, i64 k, i64 count, T const* x, S const* y, Sum* acc) {
#if !defined(ASTERISM_ON_GPU)
  if (count == k && Period::suits(k)) {
    Period const period(k);
    double re[Period::most] = {}, im[is_complex_v<T> ? Period::most : 1] = {};
    auto const *const xs = x + begin * k, *const ys = y + begin * k;
    period.each(end - begin, [&](i64 i, i64 q) {
      if constexpr (is_complex_v<T>) {
        re[q] += double(xs[i].re) * double(ys[i].re) + double(xs[i].im) * double(ys[i].im);
        im[q] += double(xs[i].re) * double(ys[i].im) - double(xs[i].im) * double(ys[i].re);
      } else {
        re[q] += double(xs[i]) * double(ys[i]);
      }
    });
    for (i64 q = 0; q < period.entries();)
      for (i64 j = 0; j < k; ++j, ++q) acc[j] += Sum(re[q], is_complex_v<T> ? im[q] : 0.0);
    return;
  }
#endif
  for (i64 j = 0; j < count; j += 8) dot_few_columns(begin, end, step, k, count - j < 8 ? count - j : 8, x + j, y + j, acc + j);
}

}  // namespace
}  // namespace asterism::la::kernel
