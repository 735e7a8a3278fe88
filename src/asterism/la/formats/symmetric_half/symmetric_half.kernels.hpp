#pragma once
#include <cstddef>
#include <cstdint>

#include "asterism/la/formats/format.kernels.hpp"

namespace asterism::la::kernel {

/// Consecutive rows of a symmetric block, and of their entries those right of the diagonal. Columns count the block's rows first, then its
/// halo: the rows of later blocks in which it has entries.
struct HalfBlock {
  std::int32_t first, rows, halo;
  std::int32_t wide;                       ///< columns in 32 bits, not in 16
  std::int64_t entry_at, column_at;        ///< its first entry, and the byte of its column
  std::int64_t halo_at;                    ///< its first place in the list of halos
  std::int64_t received_at, received_end;  ///< what earlier blocks have for its rows
};
/// The sum at a place of an earlier block's halo is for this row.
struct HalfReceived {
  std::int32_t row, halo;
};

template <class T>
struct HalfRows {
  HalfBlock const* blocks;
  std::int32_t block_count;
  bool conjugates;  ///< A^H = A, not A^T = A
  T const* diagonal;
  std::uint32_t const* ends;  ///< of each row's entries, counted from its block's first
  std::byte const* columns;
  T const* values;
  std::int32_t const* halo;
  HalfReceived const* received;
};

/// What each block's entries give to its own rows (sums, k wide) and to those of its halo (spilled).
template <class T>
void half_sums(Executor&, HalfRows<T> a, std::int64_t k, T const* x, T* sums, T* spilled);
/// Adds up, always in the same order, and does with each row's sum what the epilogue says. With `assign`, y is sums.
template <class T>
void half_finish(Executor&, HalfRows<T> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w, T* sums, T const* spilled);

}  // namespace asterism::la::kernel
