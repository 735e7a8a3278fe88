#include "asterism/direct/triangular/sweep.kernels.hpp"

#include <algorithm>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/direct/multifrontal/panel.kernels.hpp"

namespace asterism::direct::kernel {
template <class T>
void solve_diagonal(std::int32_t w, std::int32_t k, T const* d, std::int32_t const* order, T const* sum, T* x, bool transposed) {
  auto const all = std::int64_t(w) * k;
  for (std::int64_t i = 0; i < all; ++i) x[i] -= sum[i];
  std::vector<T> other(std::size_t(all + std::int64_t(w) * std::min<std::int64_t>(k, most_columns)));
  T *const copy = other.data(), *const work = copy + all;
  auto const row = [&](T* v, std::int32_t i) { return v + std::int64_t(i) * k; };
  FrontPanel<T> const panel{0, w, 0, d, w, nullptr, nullptr};
  if (order && !transposed) {
    std::copy_n(x, all, copy);
    for (std::int32_t i = 0; i < w; ++i) std::copy_n(row(copy, order[i]), k, row(x, i));
  }
  solve_front(panel, false, transposed, false, k, x, work);
  if (order && transposed) {
    std::copy_n(x, all, copy);
    for (std::int32_t i = 0; i < w; ++i) std::copy_n(row(copy, i), k, row(x, order[i]));
  }
}

template <class T>
void add(std::int64_t n, T const* a, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += a[i];
}

template <class T>
void add_rows(std::int32_t count, std::int32_t const* rows, std::int64_t k, T const* a, T* y) {
  if (k == 1) {
    for (std::int32_t r = 0; r < count; ++r) y[rows[r]] += a[r];
    return;
  }
  for (std::int32_t r = 0; r < count; ++r)
    for (std::int64_t c = 0; c < k; ++c) y[rows[r] * k + c] += a[r * k + c];
}

template <class T>
void gather_rows(std::int32_t count, std::int32_t const* rows, std::int64_t k, T const* x, T* y) {
  for (std::int32_t r = 0; r < count; ++r) std::copy_n(x + rows[r] * k, k, y + r * k);
}

#define ASTERISM_INSTANTIATE(T)                                                                                \
  template void solve_diagonal(std::int32_t, std::int32_t, T const*, std::int32_t const*, T const*, T*, bool); \
  template void add(std::int64_t, T const*, T*);                                                               \
  template void add_rows(std::int32_t, std::int32_t const*, std::int64_t, T const*, T*);                       \
  template void gather_rows(std::int32_t, std::int32_t const*, std::int64_t, T const*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
