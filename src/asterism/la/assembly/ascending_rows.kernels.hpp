// Rows in any order, put in order.
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::la::kernel {

/// Row r of n is (columns, values)[offsets[r], offsets[r + 1]). Its columns stand at offsets[r] of out_columns then, ascending and each
/// once, lengths[r] in all, with the sums of their values in the order in which these were given. On the host.
template <class I, class T>
void ascending_rows(device::Executor&, std::int64_t n, I const* offsets, I const* columns, T const* values, I* lengths, I* out_columns,
                    T* out_values);

}  // namespace asterism::la::kernel
