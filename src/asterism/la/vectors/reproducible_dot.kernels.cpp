#include "asterism/la/vectors/reproducible_dot.kernels.hpp"

#include <algorithm>
#include <atomic>

#include "asterism/base/dtype.hpp"
#include "asterism/base/reproducible_sum.hpp"

namespace asterism::la::kernel {

template <class T>
void reproducible_dot(Executor& executor, std::int64_t n, std::int64_t k, T const* x, T const* y, std::int64_t* out) {
  constexpr std::int64_t words = ReproducibleSum::words;
  device::parallel_ranges(executor, n, [=](std::int64_t begin, std::int64_t end) {
    constexpr int parts = is_complex_v<T> ? 2 : 1, block = ReproducibleSum::most / parts;
    double terms[parts][ReproducibleSum::most];
    std::int64_t sums[parts * words];
    for (std::int64_t j = 0; j < k; ++j) {
      std::fill_n(sums, parts * words, 0);
      for (auto row = begin; row < end; row += block) {
        int const n_terms = int(end - row < block ? end - row : block);
        for (int t = 0; t < n_terms; ++t) {
          auto const i = (row + t) * k + j;
          if constexpr (is_complex_v<T>) {
            double const a = x[i].re, b = x[i].im, c = y[i].re, d = y[i].im;
            terms[0][2 * t] = a * c;
            terms[0][2 * t + 1] = b * d;
            terms[1][2 * t] = a * d;
            terms[1][2 * t + 1] = -b * c;
          } else {
            terms[0][t] = double(x[i]) * double(y[i]);
          }
        }
        for (int p = 0; p < parts; ++p) ReproducibleSum::add(terms[p], parts * n_terms, sums + p * words);
      }
      for (std::int64_t w = 0; w < parts * words; ++w)  // other threads add theirs
        if (sums[w]) std::atomic_ref(out[j * 2 * words + w]).fetch_add(sums[w], std::memory_order_relaxed);
    }
  });
}

#define INSTANTIATE(T) template void reproducible_dot(Executor&, std::int64_t, std::int64_t, T const*, T const*, std::int64_t*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
