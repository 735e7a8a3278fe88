#include "asterism/direct/triangular/sweep.kernels.hpp"

#include <algorithm>

#include "asterism/base/dtype.hpp"

namespace asterism::direct::kernel {
namespace {

constexpr std::int32_t rows_at_once = 256;  // of a block, in a buffer on the stack

/// y[r] += B[r, 0:w] x for m rows; four columns at a time, so that y is read once for four.
template <class T>
void add_columns(std::int32_t m, std::int32_t w, std::int32_t leading, T const* __restrict b, T const* __restrict x, T* __restrict y) {
  std::int32_t j = 0;
  for (; j + 4 <= w; j += 4) {
    T const *b0 = b + std::int64_t(j) * leading, *b1 = b0 + leading, *b2 = b1 + leading, *b3 = b2 + leading;
    T const x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
#pragma omp simd
    for (std::int32_t r = 0; r < m; ++r) y[r] += b0[r] * x0 + b1[r] * x1 + b2[r] * x2 + b3[r] * x3;
  }
  for (; j < w; ++j) {
    T const* b0 = b + std::int64_t(j) * leading;
    T const x0 = x[j];
#pragma omp simd
    for (std::int32_t r = 0; r < m; ++r) y[r] += b0[r] * x0;
  }
}

/// y[j] += B[0:m, j] . x, in eight partial sums.
template <class T>
void add_dots(std::int32_t m, std::int32_t w, std::int32_t leading, T const* __restrict b, T const* __restrict x, T* __restrict y) {
  constexpr std::int32_t lanes = 8;
  for (std::int32_t j = 0; j < w; ++j) {
    T const* c = b + std::int64_t(j) * leading;
    T partial[lanes] = {};
    std::int32_t r = 0;
    for (; r + lanes <= m; r += lanes) {
#pragma omp simd
      for (std::int32_t l = 0; l < lanes; ++l) partial[l] += c[r + l] * x[r + l];
    }
    for (; r < m; ++r) partial[0] += c[r] * x[r];
    y[j] += ((partial[0] + partial[1]) + (partial[2] + partial[3])) + ((partial[4] + partial[5]) + (partial[6] + partial[7]));
  }
}

}  // namespace

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
void solve_diagonal(std::int32_t w, std::int32_t k, T const* d, T const* sum, T* x, bool transposed) {
  for (std::int64_t i = 0; i < std::int64_t(w) * k; ++i) x[i] -= sum[i];
  if (!transposed) {
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
}

template <class T>
void multiply(std::int32_t m, std::int32_t w, std::int32_t k, T const* b, std::int32_t const* rows, T const* x, T* y) {
  if (k == 1) {
    T some[rows_at_once];
    for (std::int32_t first = 0; first < m; first += rows_at_once) {
      auto const count = std::min(rows_at_once, m - first);
      std::fill_n(some, count, T(0));
      add_columns(count, w, m, b + first, x, some);
      for (std::int32_t r = 0; r < count; ++r) y[rows[first + r]] += some[r];
    }
    return;
  }
  for (std::int32_t r = 0; r < m; ++r) {
    T* yr = y + std::int64_t(rows[r]) * k;
    for (std::int32_t j = 0; j < w; ++j) {
      T const brj = b[std::int64_t(j) * m + r];
      for (std::int32_t c = 0; c < k; ++c) yr[c] += brj * x[std::int64_t(j) * k + c];
    }
  }
}

template <class T>
void multiply_transposed(std::int32_t m, std::int32_t w, std::int32_t k, T const* b, std::int32_t const* rows, T const* x, T* y) {
  if (k == 1) {
    T some[rows_at_once];
    for (std::int32_t first = 0; first < m; first += rows_at_once) {
      auto const count = std::min(rows_at_once, m - first);
      for (std::int32_t r = 0; r < count; ++r) some[r] = x[rows[first + r]];
      add_dots(count, w, m, b + first, some, y);
    }
    return;
  }
  for (std::int32_t j = 0; j < w; ++j) {
    T* yj = y + std::int64_t(j) * k;
    for (std::int32_t r = 0; r < m; ++r) {
      T const brj = b[std::int64_t(j) * m + r];
      for (std::int32_t c = 0; c < k; ++c) yj[c] += brj * x[std::int64_t(rows[r]) * k + c];
    }
  }
}

template <class T>
void add(std::int64_t n, T const* a, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += a[i];
}

#define ASTERISM_INSTANTIATE(T)                                                                                             \
  template std::int32_t invert_diagonal(std::int32_t, T*, bool);                                                            \
  template void solve_diagonal(std::int32_t, std::int32_t, T const*, T const*, T*, bool);                                   \
  template void multiply(std::int32_t, std::int32_t, std::int32_t, T const*, std::int32_t const*, T const*, T*);            \
  template void multiply_transposed(std::int32_t, std::int32_t, std::int32_t, T const*, std::int32_t const*, T const*, T*); \
  template void add(std::int64_t, T const*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
