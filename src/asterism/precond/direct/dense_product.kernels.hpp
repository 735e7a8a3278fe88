#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::precond::kernel {

using device::Executor;

/// z = A b with m rows of a dense row-major A with n columns; k columns of b and z. Sums are in A's precision, which may be the wider one.
template <class T, class S>
void dense_product(Executor&, std::int64_t m, std::int64_t n, std::int64_t k, T const* a, S const* b, S* z);

/// Of A, and of b and z.
#define ASTERISM_FOR_DENSE_PRODUCTS(INSTANTIATE) \
  INSTANTIATE(float, float)                      \
  INSTANTIATE(double, double)                    \
  INSTANTIATE(double, float)                     \
  INSTANTIATE(Complex<float>, Complex<float>)    \
  INSTANTIATE(Complex<double>, Complex<double>)  \
  INSTANTIATE(Complex<double>, Complex<float>)

}  // namespace asterism::precond::kernel
