#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/device/parallel.hpp"

namespace asterism::precond {

/// Where levels begin in the list of rows, and its end; on the host, which launches a level at a time.
using LevelStarts = std::shared_ptr<std::vector<std::int64_t> const>;

// For GPUs. On the host RowsByLevel::sweep() and sor's own sweep do the same without fused multiply-adds, which kernels are compiled with:
// with the bits of the rows' natural order.
namespace kernel {

using device::Executor;

/// Rows of a triangular matrix level by level (levels.hpp), k columns: z_i = b_i - (the row's entries times z); pivot_first: the first
/// entry is the inverse pivot, which multiplies that. b may be z.
template <class T>
void level_sweep(Executor&, LevelStarts const& starts, bool pivot_first, std::int64_t k, std::int32_t const* rows,
                 std::int64_t const* offsets, std::int32_t const* columns, T const* values, T const* b, T* z);

/// Rows of a matrix level by level, the last level first if from_last, k columns: z_i += omega (b_i - (A z)_i) / a_ii.
template <class T>
void level_relax(Executor&, LevelStarts const& starts, bool from_last, T omega, std::int64_t k, std::int32_t const* rows,
                 std::int64_t const* offsets, std::int32_t const* columns, T const* values, T const* b, T* z);

}  // namespace kernel
}  // namespace asterism::precond
