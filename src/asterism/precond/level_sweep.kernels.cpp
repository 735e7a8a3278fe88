#include "asterism/precond/level_sweep.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::precond::kernel {

template <class T>
void level_sweep(Executor& executor, LevelStarts const& starts, bool pivot_first, std::int64_t k, std::int32_t const* rows,
                 std::int64_t const* offsets, std::int32_t const* columns, T const* values, T const* b, T* z) {
  for (std::size_t l = 0; l + 1 < starts->size(); ++l) {
    auto const first = (*starts)[l];
    device::parallel_for(executor, (*starts)[l + 1] - first, [=] ASTERISM_KERNEL(std::int64_t place) {
      auto const at = first + place;
      auto const row = std::int64_t(rows[at]);
      for (std::int64_t j = 0; j < k; ++j) {
        T s = b[row * k + j];
        for (auto p = offsets[at] + (pivot_first ? 1 : 0); p < offsets[at + 1]; ++p) s -= values[p] * z[std::int64_t(columns[p]) * k + j];
        z[row * k + j] = pivot_first ? s * values[offsets[at]] : s;
      }
    });
  }
}

template <class T>
void level_relax(Executor& executor, LevelStarts const& starts, bool from_last, T omega, std::int64_t k, std::int32_t const* rows,
                 std::int64_t const* offsets, std::int32_t const* columns, T const* values, T const* b, T* z) {
  auto const count = starts->size() - 1;
  for (std::size_t n = 0; n < count; ++n) {
    auto const l = from_last ? count - 1 - n : n;
    auto const first = (*starts)[l];
    device::parallel_for(executor, (*starts)[l + 1] - first, [=] ASTERISM_KERNEL(std::int64_t place) {
      auto const at = first + place;
      auto const row = std::int64_t(rows[at]);
      for (std::int64_t j = 0; j < k; ++j) {
        T s = b[row * k + j], d(1);
        for (auto p = offsets[at]; p < offsets[at + 1]; ++p) {
          if (columns[p] == row) d = values[p];
          else s -= values[p] * z[std::int64_t(columns[p]) * k + j];
        }
        T& zi = z[row * k + j];
        zi = (T(1) - omega) * zi + omega * s / d;
      }
    });
  }
}

#define INSTANTIATE(T)                                                                                                      \
  template void level_sweep(Executor&, LevelStarts const&, bool, std::int64_t, std::int32_t const*, std::int64_t const*,    \
                            std::int32_t const*, T const*, T const*, T*);                                                   \
  template void level_relax(Executor&, LevelStarts const&, bool, T, std::int64_t, std::int32_t const*, std::int64_t const*, \
                            std::int32_t const*, T const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::precond::kernel
