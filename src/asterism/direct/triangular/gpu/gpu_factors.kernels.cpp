#include "asterism/direct/triangular/gpu/gpu_factors.kernels.hpp"

#include "asterism/base/complex.hpp"
#include "asterism/base/dtype.hpp"

namespace asterism::direct::kernel {
namespace {

/// In double: the factor may be beyond the range of T.
template <class T>
ASTERISM_KERNEL T scaled_in_double(T v, double by) {
  if constexpr (is_complex_v<T>) return {real_t<T>(double(v.re) * by), real_t<T>(double(v.im) * by)};
  else return T(double(v) * by);
}

}  // namespace

template <class T>
void gather_scaled(Executor& executor, std::int64_t n, std::int64_t k, bool conjugated, std::int32_t const* order, double const* scale,
                   T const* from, T* to) {
  device::parallel_for(executor, n * k, [=] ASTERISM_KERNEL(std::int64_t e) {
    auto const row = std::int64_t(order[e / k]);
    T const v = scaled_in_double(from[row * k + e % k], scale[row]);
    to[e] = conjugated ? conj(v) : v;
  });
}

template <class T>
void scatter_scaled(Executor& executor, std::int64_t n, std::int64_t k, bool conjugated, std::int32_t const* order, double const* scale,
                    T const* from, T* to) {
  device::parallel_for(executor, n * k, [=] ASTERISM_KERNEL(std::int64_t e) {
    auto const row = std::int64_t(order[e / k]);
    T const v = scaled_in_double(from[e], scale[row]);
    to[row * k + e % k] = conjugated ? conj(v) : v;
  });
}

template <class T>
void conjugate(Executor& executor, std::int64_t n, T* x) {
  device::parallel_for(executor, n, [=] ASTERISM_KERNEL(std::int64_t i) { x[i] = conj(x[i]); });
}

template <class T>
void divide_and_conjugate(Executor& executor, std::int64_t n, std::int64_t k, T const* diagonal, T const* lower, T* x) {
  using R = real_t<T>;
  device::parallel_for(executor, n, [=] ASTERISM_KERNEL(std::int64_t i) {
    if (i > 0 && lower[i - 1] != T(0)) return;  // with the row before
    T const below = lower[i];
    if (below == T(0)) {
      for (std::int64_t c = 0; c < k; ++c) x[i * k + c] = conj(x[i * k + c] / diagonal[i]);
      return;
    }
    // all divided by |b|, so that nothing overflows
    R const size = magnitude(below), a = real(diagonal[i]) / size, e = real(diagonal[i + 1]) / size, det = a * e - R(1);
    T const b = below / T(size);
    for (std::int64_t c = 0; c < k; ++c) {
      T& first = x[i * k + c];
      T& second = x[(i + 1) * k + c];
      T const u = first / T(size), v = second / T(size);
      first = conj((T(e) * u - conj(b) * v) / T(det));
      second = conj((T(a) * v - b * u) / T(det));
    }
  });
}

#define INSTANTIATE(T)                                                                                                         \
  template void gather_scaled(Executor&, std::int64_t, std::int64_t, bool, std::int32_t const*, double const*, T const*, T*);  \
  template void scatter_scaled(Executor&, std::int64_t, std::int64_t, bool, std::int32_t const*, double const*, T const*, T*); \
  template void conjugate(Executor&, std::int64_t, T*);                                                                        \
  template void divide_and_conjugate(Executor&, std::int64_t, std::int64_t, T const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::direct::kernel
