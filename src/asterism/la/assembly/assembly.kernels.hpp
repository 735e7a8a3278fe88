// Entries of a matrix as sums of given values.
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::la::kernel {

using device::Executor;

/// So many more sources than there are must be readable.
inline constexpr int sources_ahead = 256;

/// out[e] = base[e] + sum of values[sources[p]] for p in [offsets[e], offsets[e + 1]), in that order, for e < n. base may be null: 0.
template <class I, class T>
void sum_entries(Executor&, std::int64_t n, I const* offsets, I const* sources, T const* values, T const* base, T* out);
/// The same for the entries places[0..n), where sources from `own` on are those of `received`.
template <class I, class T>
void sum_received_entries(Executor&, std::int64_t n, I const* places, I const* offsets, I const* sources, std::int64_t own, T const* values,
                          T const* received, T const* base, T* out);

}  // namespace asterism::la::kernel
