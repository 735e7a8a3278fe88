#include "asterism/precond/multigrid/smoothers/gauss_seidel.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::precond::kernel {

template <class T>
void gauss_seidel(Executor& executor, LevelStarts const& starts, std::int64_t first, std::int64_t last, bool backward, std::int64_t own,
                  std::int64_t k, std::int32_t const* rows, std::int64_t const* offsets, std::int32_t const* columns, T const* values,
                  T const* inverse, T const* b, T const* ghosts, T* x) {
  for (std::int64_t n = first; n < last; ++n) {
    auto const stage = std::size_t(backward ? last - 1 - (n - first) : n);
    auto const begin = (*starts)[stage];
    device::parallel_ranges(
        executor, (*starts)[stage + 1] - begin,
        [=] ASTERISM_KERNEL(std::int64_t from, std::int64_t to) {
          for (auto at = begin + from; at < begin + to; ++at) {
            auto const row = std::int64_t(rows[at]);
            if (k == 1) {
              T s = b[row];
              for (auto p = offsets[at]; p < offsets[at + 1]; ++p) {
                auto const c = std::int64_t(columns[p]);
                s -= values[p] * (c < own ? x[c] : ghosts[c - own]);
              }
              x[row] += inverse[row] * s;
              continue;
            }
            constexpr std::int64_t width = 8;  // columns whose sums are in registers
            for (std::int64_t j0 = 0; j0 < k; j0 += width) {
              auto const m = k - j0 < width ? k - j0 : width;
              T s[width];
              for (std::int64_t j = 0; j < m; ++j) s[j] = b[row * k + j0 + j];
              for (auto p = offsets[at]; p < offsets[at + 1]; ++p) {
                auto const c = std::int64_t(columns[p]);
                T const* const xc = (c < own ? x + c * k : ghosts + (c - own) * k) + j0;
                T const v = values[p];
                for (std::int64_t j = 0; j < m; ++j) s[j] -= v * xc[j];
              }
              for (std::int64_t j = 0; j < m; ++j) x[row * k + j0 + j] += inverse[row] * s[j];
            }
          }
        },
        256);
  }
}

#define INSTANTIATE(T)                                                                                                    \
  template void gauss_seidel(Executor&, LevelStarts const&, std::int64_t, std::int64_t, bool, std::int64_t, std::int64_t, \
                             std::int32_t const*, std::int64_t const*, std::int32_t const*, T const*, T const*, T const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::precond::kernel
