#pragma once
#include <cstdint>

#include "asterism/precond/level_sweep.kernels.hpp"

namespace asterism::precond::kernel {

/// Stages [first, last) of a sweep, k columns, the last one first if backward: x_i += inverse_i (b_i - (A x)_i) for all rows of a stage,
/// which need none of each other. Columns from `own` on are those of ghosts.
template <class T>
void gauss_seidel(Executor&, LevelStarts const& starts, std::int64_t first, std::int64_t last, bool backward, std::int64_t own,
                  std::int64_t k, std::int32_t const* rows, std::int64_t const* offsets, std::int32_t const* columns, T const* values,
                  T const* inverse, T const* b, T const* ghosts, T* x);

}  // namespace asterism::precond::kernel
