// A thread's part of a row of a product.
#pragma once
#include <cstdint>

#include "asterism/base/complex.hpp"
#include "asterism/device/gpu/parallel_gpu.hpp"

namespace asterism::la::kernel {

/// The sum of factors(p, a, b) = a b for p = first, first + step, ... below end, in that order. Several loads are under way at a time: what
/// limits a thread is how long one takes.
template <class T, class F>
__device__ T row_sum(std::int64_t first, std::int64_t end, std::int64_t step, F const& factors) {
  constexpr int at_once = is_complex_v<T> ? 4 : 8;
  T sum(0);
  for (; first < end; first += at_once * step) {
    T a[at_once], b[at_once];
#pragma unroll
    for (int q = 0; q < at_once; ++q)
      if (first + q * step < end) factors(first + q * step, a[q], b[q]);
#pragma unroll
    for (int q = 0; q < at_once; ++q)
      if (first + q * step < end) sum += a[q] * b[q];
  }
  return sum;
}

}  // namespace asterism::la::kernel
