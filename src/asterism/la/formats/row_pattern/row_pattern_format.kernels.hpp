#pragma once
#include "asterism/la/formats/csr/csr_format.kernels.hpp"

namespace asterism::la::kernel {

/// Rows [first, end) whose columns are row + offset for the same `length` offsets.
struct PatternRun {
  std::int32_t first, end, length;
  std::int32_t uniform;  ///< whether the rows have the same values too, which are there once then
  std::int64_t offset_at, value_at;
};

template <class T, class V = T>
struct PatternRows {
  PatternRun const* runs;
  std::int32_t run_count;
  std::int32_t const* offsets;
  V const* values;
  std::int32_t row_count;      ///< of the whole block: rows that are in no run are left out
  std::int32_t const* run_at;  ///< on a GPU: the first run that ends after every tile_rows-th row
};

template <class T, class V = T>
struct PatternBlock {
  PatternRows<T, V> runs;
  CsrRows<T, V> rest;
};

/// For the epilogues that write all rows, of real blocks.
template <class T, class V>
void row_pattern_product(Executor&, PatternBlock<T, V> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);

}  // namespace asterism::la::kernel
