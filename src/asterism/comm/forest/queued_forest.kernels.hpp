// Values of a star forest's edges: packed from where they lie, and taken in.
#pragma once
#include <cstdint>

#include "asterism/comm/layout/items.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::comm::kernel {

using device::Executor;

/// out[i] = x[rows[i]], for n rows of k.
template <class T>
void gather(Executor&, std::int64_t n, std::int64_t k, std::int32_t const* rows, T const* x, T* out);
/// out[at[p]] = op(out[at[p]], value of edge sources[s]) for s in [offsets[p], offsets[p + 1]), in this order, for each of so many places,
/// k values each. Edges [own_first, own_end) are mine at both ends: their values are packed[edge + own_shift], the others' received[edge].
/// before, if there is one: before[edge] is what it found. One thread for each place's value: no atomic operations, the same bits every
/// time.
template <class T>
void take_in(Executor&, std::int64_t places, std::int64_t k, ReduceOp op, std::int32_t const* at, std::int32_t const* offsets,
             std::int32_t const* sources, std::int64_t own_first, std::int64_t own_end, std::int64_t own_shift, T const* packed,
             T const* received, T* out, T* before);

}  // namespace asterism::comm::kernel
