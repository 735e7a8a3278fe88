#include "asterism/apps/plain_loops.kernels.hpp"

namespace asterism::apps::kernel {

void plain_axpy(std::int64_t n, double a, double const* x, double* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

double plain_dot(std::int64_t n, double const* x, double const* y) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace asterism::apps::kernel
