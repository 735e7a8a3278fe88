#pragma once
#include "asterism/la/formats/csr/csr_format.kernels.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"

namespace asterism::la::kernel {

/// Rows first + l row_step for l < count, with the columns first + l column_step + offset for the same `length` offsets. One of the steps
/// is 1: both are where a matrix couples the points of a grid; one is larger between a grid and a coarser one.
struct PatternRun {
  std::int32_t first, count, length;
  std::int32_t uniform;  ///< whether the rows have the same values too, which are there once then
  std::int32_t row_step, column_step;
  std::int32_t place;  ///< rows in the runs before
  std::int32_t held;   ///< streams of values that are its own, the last ones in most cases; 0: it has no streams
  std::int64_t offset_at;
  std::int64_t value_at;  ///< where its values are, or its list of streams
};

template <class T, class V = T>
struct PatternRows {
  PatternRun const* runs;
  std::int32_t run_count;
  std::int32_t const* offsets;
  std::int64_t const* streams;  ///< where the values of an entry of a run begin, one for each row
  V const* values;
  std::int32_t columns;        ///< of the block
  std::int32_t row_count;      ///< in runs
  std::int32_t const* run_at;  ///< on a GPU: the first run that ends after every tile_rows-th of these rows
};

/// Where a batch of runs begins, and of rows of the rest that are taken after its runs: those that lie among them, whose neighbours are in
/// the cache then.
struct PatternBatch {
  std::int32_t run, rest;
};

template <class T, class V = T>
struct PatternBlock {
  PatternRows<T, V> runs;
  CsrRows<T, V> rest;
  PatternBatch const* batches;  ///< and one more, where the last one ends
  std::int32_t batch_count;
};

/// Of real blocks.
template <class T, class V>
void row_pattern_product(Executor&, PatternBlock<T, V> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);

/// assign or smooth; out[0] = x^T y, or b^T y after smooth. Of square blocks whose batches are consecutive rows. On the host.
template <class T, class V>
void row_pattern_product_and_dot(Executor&, PatternBlock<T, V> a, Epilogue e, T const* x, T* y, T const* b, T const* w, Sum* out);

}  // namespace asterism::la::kernel
