#include "asterism/direct/panel.kernels.hpp"

#include <algorithm>

#include "asterism/base/dtype.hpp"

namespace asterism::direct::kernel {
namespace {

constexpr std::int32_t rows_at_once = 256;  // of a panel, in a buffer on the stack
constexpr std::int32_t triangle_at_once = 32;

/// y[r] += B[r, 0:w] x for m rows; four columns at a time, so that y is read once for four.
template <class T>
void add_columns(std::int32_t m, std::int32_t w, std::int64_t leading, T const* __restrict b, T const* __restrict x, T* __restrict y) {
  std::int32_t j = 0;
  for (; j + 4 <= w; j += 4) {
    T const *b0 = b + j * leading, *b1 = b0 + leading, *b2 = b1 + leading, *b3 = b2 + leading;
    T const x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
#pragma omp simd
    for (std::int32_t r = 0; r < m; ++r) y[r] += b0[r] * x0 + b1[r] * x1 + b2[r] * x2 + b3[r] * x3;
  }
  for (; j < w; ++j) {
    T const* b0 = b + j * leading;
    T const x0 = x[j];
#pragma omp simd
    for (std::int32_t r = 0; r < m; ++r) y[r] += b0[r] * x0;
  }
}

/// y[j] += B[0:m, j] . x, in eight partial sums.
template <class T>
void add_dots(std::int32_t m, std::int32_t w, std::int64_t leading, T const* __restrict b, T const* __restrict x, T* __restrict y) {
  constexpr std::int32_t lanes = 8;
  for (std::int32_t j = 0; j < w; ++j) {
    T const* c = b + j * leading;
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

/// K columns of several, from rows of k numbers.
template <int K, class T>
void multiply_some(std::int32_t m, std::int32_t w, std::int64_t k, T const* __restrict b, std::int64_t leading, std::int32_t const* rows,
                   T const* __restrict x, T* __restrict y) {
  constexpr std::int32_t at_once = 4;
  std::int32_t r = 0;
  for (; r + at_once <= m; r += at_once) {
    T sum[at_once][K] = {};
    for (std::int32_t j = 0; j < w; ++j) {
      T const* const xj = x + j * k;
      T const* const bj = b + j * leading + r;
      for (std::int32_t i = 0; i < at_once; ++i)
        for (int c = 0; c < K; ++c) sum[i][c] += bj[i] * xj[c];
    }
    for (std::int32_t i = 0; i < at_once; ++i) {
      T* const yr = y + std::int64_t(rows ? rows[r + i] : r + i) * k;
      for (int c = 0; c < K; ++c) yr[c] += sum[i][c];
    }
  }
  for (; r < m; ++r) {
    T* const yr = y + std::int64_t(rows ? rows[r] : r) * k;
    T sum[K] = {};
    for (std::int32_t j = 0; j < w; ++j)
      for (int c = 0; c < K; ++c) sum[c] += b[j * leading + r] * x[j * k + c];
    for (int c = 0; c < K; ++c) yr[c] += sum[c];
  }
}

template <int K, class T>
void multiply_transposed_some(std::int32_t m, std::int32_t w, std::int64_t k, T const* __restrict b, std::int64_t leading,
                              std::int32_t const* rows, T const* __restrict x, T* __restrict y) {
  constexpr std::int32_t at_once = 4;
  T some[rows_at_once * K];
  for (std::int32_t first = 0; first < m; first += rows_at_once) {
    auto const count = std::min(rows_at_once, m - first);
    for (std::int32_t r = 0; r < count; ++r) {
      T const* const xr = x + std::int64_t(rows ? rows[first + r] : first + r) * k;
      for (int c = 0; c < K; ++c) some[r * K + c] = xr[c];
    }
    std::int32_t j = 0;
    for (; j + at_once <= w; j += at_once) {
      T sum[at_once][K] = {};
      T const* const bj = b + j * leading + first;
      for (std::int32_t r = 0; r < count; ++r)
        for (std::int32_t i = 0; i < at_once; ++i)
          for (int c = 0; c < K; ++c) sum[i][c] += bj[i * leading + r] * some[r * K + c];
      for (std::int32_t i = 0; i < at_once; ++i)
        for (int c = 0; c < K; ++c) y[(j + i) * k + c] += sum[i][c];
    }
    for (; j < w; ++j) {
      T sum[K] = {};
      for (std::int32_t r = 0; r < count; ++r)
        for (int c = 0; c < K; ++c) sum[c] += b[j * leading + first + r] * some[r * K + c];
      for (int c = 0; c < K; ++c) y[j * k + c] += sum[c];
    }
  }
}

/// f<K>(first column) for all columns, as many at a time as there are forms for.
template <class F>
void each_columns(std::int64_t k, F const& f) {
  std::int64_t c = 0;
  for (; c + 8 <= k; c += 8) f.template operator()<8>(c);
  if (c + 4 <= k) f.template operator()<4>(c), c += 4;
  if (c + 2 <= k) f.template operator()<2>(c), c += 2;
  if (c < k) f.template operator()<1>(c);
}

}  // namespace

template <class T>
void multiply(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, std::int32_t const* rows, T const* x,
              T* y) {
  if (k == 1) {
    if (!rows) return add_columns(m, w, leading, b, x, y);
    T some[rows_at_once];
    for (std::int32_t first = 0; first < m; first += rows_at_once) {
      auto const count = std::min(rows_at_once, m - first);
      std::fill_n(some, count, T(0));
      add_columns(count, w, leading, b + first, x, some);
      for (std::int32_t r = 0; r < count; ++r) y[rows[first + r]] += some[r];
    }
    return;
  }
  each_columns(k, [&]<int K>(std::int64_t c) { multiply_some<K>(m, w, k, b, leading, rows, x + c, y + c); });
}

template <class T>
void multiply_transposed(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, std::int32_t const* rows,
                         T const* x, T* y) {
  if (k == 1) {
    if (!rows) return add_dots(m, w, leading, b, x, y);
    T some[rows_at_once];
    for (std::int32_t first = 0; first < m; first += rows_at_once) {
      auto const count = std::min(rows_at_once, m - first);
      for (std::int32_t r = 0; r < count; ++r) some[r] = x[rows[first + r]];
      add_dots(count, w, leading, b + first, some, y);
    }
    return;
  }
  each_columns(k, [&]<int K>(std::int64_t c) { multiply_transposed_some<K>(m, w, k, b, leading, rows, x + c, y + c); });
}

template <class T>
void solve_triangle(Triangle triangle, bool transposed, bool unit, std::int32_t w, std::int64_t k, T const* t, std::int64_t leading, T* x,
                    T* work) {
  auto const at = [=](std::int32_t i, std::int32_t j) { return t + j * leading + i; };
  bool const forward = (triangle == Triangle::lower) != transposed;
  auto const negated = [&](std::int32_t first, std::int32_t count) {  // rows of x
    for (std::int64_t i = 0; i < count * k; ++i) work[i] = T(0) - x[first * k + i];
    return work;
  };
  auto const divide = [&](std::int32_t i) {
    if (unit) return;
    T const by = T(1) / *at(i, i);
    for (std::int64_t c = 0; c < k; ++c) x[i * k + c] *= by;
  };
  auto const subtract = [&](std::int32_t i, std::int32_t j, T by) {  // row i less `by` times row j
    for (std::int64_t c = 0; c < k; ++c) x[i * k + c] -= by * x[j * k + c];
  };
  auto const blocks = (w + triangle_at_once - 1) / triangle_at_once;
  for (std::int32_t step = 0; step < blocks; ++step) {
    auto const b = forward ? step : blocks - 1 - step;
    auto const first = b * triangle_at_once, end = std::min(w, first + triangle_at_once), size = end - first;
    // what is solved already, of transposed triangles; their rows are the columns here
    if (transposed) {
      auto const from = forward ? 0 : end, count = forward ? first : w - end;
      if (count > 0) {
        std::fill_n(work, size * k, T(0));
        multiply_transposed(count, size, k, at(from, first), leading, static_cast<std::int32_t const*>(nullptr), x + from * k, work);
        for (std::int64_t i = 0; i < size * k; ++i) x[first * k + i] -= work[i];
      }
    }
    for (std::int32_t s = 0; s < size; ++s) {
      auto const j = forward ? first + s : end - 1 - s;
      if (transposed) {
        for (std::int32_t r = 0; r < s; ++r) {
          auto const i = forward ? first + r : end - 1 - r;
          subtract(j, i, *at(i, j));
        }
        divide(j);
      } else {
        divide(j);
        if (forward)
          for (auto i = j + 1; i < end; ++i) subtract(i, j, *at(i, j));
        else
          for (auto i = first; i < j; ++i) subtract(i, j, *at(i, j));
      }
    }
    if (!transposed) {
      auto const to = forward ? end : 0, count = forward ? w - end : first;
      if (count > 0)
        multiply(count, size, k, at(to, first), leading, static_cast<std::int32_t const*>(nullptr), negated(first, size), x + to * k);
    }
  }
}

#define ASTERISM_INSTANTIATE(T)                                                                                                           \
  template void multiply(std::int32_t, std::int32_t, std::int64_t, T const*, std::int64_t, std::int32_t const*, T const*, T*);            \
  template void multiply_transposed(std::int32_t, std::int32_t, std::int64_t, T const*, std::int64_t, std::int32_t const*, T const*, T*); \
  template void solve_triangle(Triangle, bool, bool, std::int32_t, std::int64_t, T const*, std::int64_t, T*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
