#include "asterism/precond/direct/dense_product.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::precond::kernel {

template <class T, class S>
void dense_product(Executor& executor, std::int64_t m, std::int64_t n, std::int64_t k, T const* a, S const* b, S* z) {
  device::parallel_ranges(
      executor, m,
      [=] ASTERISM_KERNEL(std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) {
          constexpr int width = 8;  // columns whose sums stay in registers
          std::int64_t j = 0;
          for (; j + width <= k; j += width) {
            T s[width] = {};
            for (std::int64_t c = 0; c < n; ++c) {
              T const v = a[i * n + c];
              S const* const row = b + c * k + j;
#pragma omp simd
              for (int l = 0; l < width; ++l) s[l] += v * T(row[l]);
            }
            for (int l = 0; l < width; ++l) z[i * k + j + l] = S(s[l]);
          }
          for (; j < k; ++j) {
            T s0(0), s1(0), s2(0), s3(0);  // adds that do not wait for each other
            std::int64_t c = 0;
            for (; c + 3 < n; c += 4) {
              s0 += a[i * n + c] * T(b[c * k + j]);
              s1 += a[i * n + c + 1] * T(b[(c + 1) * k + j]);
              s2 += a[i * n + c + 2] * T(b[(c + 2) * k + j]);
              s3 += a[i * n + c + 3] * T(b[(c + 3) * k + j]);
            }
            for (; c < n; ++c) s0 += a[i * n + c] * T(b[c * k + j]);
            z[i * k + j] = S((s0 + s1) + (s2 + s3));
          }
        }
      },
      64);
}

#define INSTANTIATE(T, S) template void dense_product(Executor&, std::int64_t, std::int64_t, std::int64_t, T const*, S const*, S*);
ASTERISM_FOR_DENSE_PRODUCTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::precond::kernel
