#pragma once
#include "asterism/la/formats/format.kernels.hpp"

namespace asterism::la::kernel {

/// The sizes that blocks may have, in each direction.
inline constexpr std::int32_t block_sizes[] = {6, 4, 3, 2};
/// Values are read as vectors of up to so many more than the block has rows: so many more are there behind the last one.
inline constexpr std::int32_t read_beyond = 8;

/// Blocks of `height` rows and `width` columns; the entries of a block are column by column. Values are held as V.
template <class T, class V = T>
struct BcsrRows {
  std::int64_t const* offsets;  ///< of block rows, in blocks
  std::int32_t const* columns;  ///< a block's first one
  V const* values;
  std::int32_t block_rows, height, width;
  std::int64_t blocks;
};

template <class T, class V>
void bcsr_product(Executor&, BcsrRows<T, V> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);

}  // namespace asterism::la::kernel
