#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/complex.hpp"
#include "asterism/base/dtype.hpp"

namespace asterism::direct::kernel {
namespace {

/// one(k) and two(k) for each block, k its first column.
template <class T, class One, class Two>
void each_pivot(BlockDiagonal<T> const& d, One const& one, Two const& two) {
  for (std::int64_t k = 0; k < d.size;) {
    if (d.lower[k] == T(0)) {
      one(k);
      k += 1;
    } else {
      two(k);
      k += 2;
    }
  }
}

/// A block [a conj(b); b e] of two, all divided by |b|, so that nothing overflows.
template <class T>
struct ScaledPair {
  using R = real_t<T>;
  R size, a, e, det;
  T b;
  ScaledPair(BlockDiagonal<T> const& d, std::int64_t k)
      : size(magnitude(d.lower[k])),
        a(real(d.diagonal[k]) / size),
        e(real(d.diagonal[k + 1]) / size),
        det(a * e - R(1)),
        b(d.lower[k] / T(size)) {}
};

}  // namespace

template <class T>
void multiply_columns(BlockDiagonal<T> const& d, std::int64_t m, T const* X, std::int64_t ldx, T* Y, std::int64_t ldy) {
  each_pivot(
      d,
      [&](std::int64_t k) {
        for (std::int64_t i = 0; i < m; ++i) Y[k * ldy + i] = X[k * ldx + i] * d.diagonal[k];
      },
      [&](std::int64_t k) {
        T const *const x = X + k * ldx, *const y = x + ldx;
        T *const u = Y + k * ldy, *const v = u + ldy;
        for (std::int64_t i = 0; i < m; ++i) {
          T const xi = x[i], yi = y[i];
          u[i] = xi * d.diagonal[k] + yi * d.lower[k];
          v[i] = xi * conj(d.lower[k]) + yi * d.diagonal[k + 1];
        }
      });
}

template <class T>
void divide_columns(BlockDiagonal<T> const& d, std::int64_t m, T* X, std::int64_t ldx) {
  each_pivot(
      d,
      [&](std::int64_t k) {
        for (std::int64_t i = 0; i < m; ++i) X[k * ldx + i] = X[k * ldx + i] / d.diagonal[k];
      },
      [&](std::int64_t k) {
        ScaledPair<T> const p(d, k);
        T *const x = X + k * ldx, *const y = x + ldx;
        for (std::int64_t i = 0; i < m; ++i) {
          T const u = x[i] / T(p.size), v = y[i] / T(p.size);
          x[i] = (u * T(p.e) - v * p.b) / T(p.det);
          y[i] = (v * T(p.a) - u * conj(p.b)) / T(p.det);
        }
      });
}

template <class T>
void divide_rows(BlockDiagonal<T> const& d, std::int64_t k, T* x) {
  each_pivot(
      d,
      [&](std::int64_t i) {
        for (std::int64_t c = 0; c < k; ++c) x[i * k + c] = x[i * k + c] / d.diagonal[i];
      },
      [&](std::int64_t i) {
        ScaledPair<T> const p(d, i);
        T *const first = x + i * k, *const second = first + k;
        for (std::int64_t c = 0; c < k; ++c) {
          T const u = first[c] / T(p.size), v = second[c] / T(p.size);
          first[c] = (T(p.e) * u - conj(p.b) * v) / T(p.det);
          second[c] = (T(p.a) * v - p.b * u) / T(p.det);
        }
      });
}

template <class T>
Determinant determinant_of(BlockDiagonal<T> const& d) {
  Determinant out;
  auto const times = [&](double v) {
    out.re *= v > 0 ? 1 : v < 0 ? -1 : 0;
    out.log += std::log(std::abs(v));
  };
  each_pivot(
      d, [&](std::int64_t k) { times(double(real(d.diagonal[k]))); },
      [&](std::int64_t k) {
        double const b = std::abs(to_complex(d.lower[k]));
        out.log += 2 * std::log(b);
        times(double(real(d.diagonal[k])) / b * (double(real(d.diagonal[k + 1])) / b) - 1);
      });
  return out;
}

template <class T>
std::vector<double> eigenvalues_of(BlockDiagonal<T> const& d) {
  std::vector<double> out;
  out.reserve(std::size_t(d.size));
  each_pivot(
      d, [&](std::int64_t k) { out.push_back(double(real(d.diagonal[k]))); },
      [&](std::int64_t k) {
        double const a = double(real(d.diagonal[k])), c = double(real(d.diagonal[k + 1])), b = std::abs(to_complex(d.lower[k]));
        double const middle = (a + c) / 2, away = std::hypot((a - c) / 2, b);
        out.push_back(middle + away);
        out.push_back(middle - away);
      });
  return out;
}

void keep_least(std::vector<double>& values, std::size_t count) {
  if (count >= values.size()) return;
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(count), values.end(),
                   [](double a, double b) { return std::abs(a) < std::abs(b); });
  values.resize(count);
}

#define ASTERISM_INSTANTIATE(T)                                                                                    \
  template std::vector<double> eigenvalues_of(BlockDiagonal<T> const&);                                            \
  template void multiply_columns(BlockDiagonal<T> const&, std::int64_t, T const*, std::int64_t, T*, std::int64_t); \
  template void divide_columns(BlockDiagonal<T> const&, std::int64_t, T*, std::int64_t);                           \
  template void divide_rows(BlockDiagonal<T> const&, std::int64_t, T*);                                            \
  template Determinant determinant_of(BlockDiagonal<T> const&);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
