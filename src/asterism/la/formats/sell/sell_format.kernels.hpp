#pragma once
#include "asterism/la/formats/csr/csr_format.kernels.hpp"

namespace asterism::la::kernel {

/// Groups of group_rows<T> rows with `length` entries each, the entries of a group by place in the row: SELL-C-sigma
/// (Kreutzer et al. 2014) without padding.
struct SliceRun {
  std::int32_t first;  ///< in the list of rows
  std::int32_t groups, length;
  std::int32_t consecutive;  ///< whether the rows of each group follow each other
  std::int32_t base;         ///< columns are stored in 16 bits from here on; wide: in 32 bits from 0 on
  std::int64_t entry_at;
  std::int64_t column_at;  ///< byte of its first column

  static constexpr std::int32_t wide = -1;
};
/// Columns are read this far ahead where x is scattered (all runs are wide then); so many more than the entries are there.
inline constexpr std::int32_t ahead = 64;

template <class T, class V = T>
struct SellRows {
  SliceRun const* runs;
  std::int32_t run_count;
  std::int32_t const* row_ids;
  std::byte const* columns;
  V const* values;
  bool scattered;
  std::int32_t row_count;
  std::int32_t const* run_at;  ///< on a GPU: the run of every tile_rows-th place in row_ids
};

template <class T, class V = T>
struct SellBlock {
  SellRows<T, V> grouped;
  CsrRows<T, V> rest;
};

template <class T, class V>
void sell_product(Executor&, SellBlock<T, V> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);

}  // namespace asterism::la::kernel
