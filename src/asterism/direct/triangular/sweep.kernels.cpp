#include "asterism/direct/triangular/sweep.kernels.hpp"

#include <algorithm>
#include <vector>

#include "asterism/base/dtype.hpp"

namespace asterism::direct::kernel {
template <class T>
std::int32_t invert_diagonal(std::int32_t w, T* block, bool unit) {
  for (std::int32_t j = 0; j < w; ++j) {
    auto& d = block[std::int64_t(j) * w + j];
    if (!unit && d == T(0)) return j;
    d = unit ? T(1) : T(1) / d;
  }
  return -1;
}

template <class T>
void solve_diagonal(std::int32_t w, std::int32_t k, T const* d, std::int32_t const* order, T const* sum, T* x, bool transposed) {
  for (std::int64_t i = 0; i < std::int64_t(w) * k; ++i) x[i] -= sum[i];
  std::vector<T> before;
  if (!transposed) {
    if (order) {
      before.assign(x, x + std::int64_t(w) * k);
      for (std::int32_t i = 0; i < w; ++i) std::copy_n(before.data() + std::int64_t(order[i]) * k, k, x + std::int64_t(i) * k);
    }
    for (std::int32_t j = 0; j < w; ++j) {
      T const* column = d + std::int64_t(j) * w;
      T* xj = x + std::int64_t(j) * k;
      for (std::int32_t c = 0; c < k; ++c) xj[c] *= column[j];
      for (std::int32_t r = j + 1; r < w; ++r)
        for (std::int32_t c = 0; c < k; ++c) x[std::int64_t(r) * k + c] -= column[r] * xj[c];
    }
    return;
  }
  for (std::int32_t j = w - 1; j >= 0; --j) {
    T const* column = d + std::int64_t(j) * w;
    T* xj = x + std::int64_t(j) * k;
    for (std::int32_t r = j + 1; r < w; ++r)
      for (std::int32_t c = 0; c < k; ++c) xj[c] -= column[r] * x[std::int64_t(r) * k + c];
    for (std::int32_t c = 0; c < k; ++c) xj[c] *= column[j];
  }
  if (!order) return;
  before.assign(x, x + std::int64_t(w) * k);
  for (std::int32_t i = 0; i < w; ++i) std::copy_n(before.data() + std::int64_t(i) * k, k, x + std::int64_t(order[i]) * k);
}

template <class T>
void add(std::int64_t n, T const* a, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += a[i];
}

#define ASTERISM_INSTANTIATE(T)                                                           \
  template std::int32_t invert_diagonal(std::int32_t, T*, bool);                          \
  template void solve_diagonal(std::int32_t, std::int32_t, T const*, std::int32_t const*, T const*, T*, bool); \
  template void add(std::int64_t, T const*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
