#pragma once
#include <cstddef>
#include <cstdint>

#include "asterism/device/parallel.hpp"
#include "asterism/la/spmv.hpp"

namespace asterism::la::kernel {

using device::Queue;

struct LengthRun {
  std::int32_t first, end, length;
};

/// Rows [first, end) whose columns are row + offset for the same `length` offsets.
struct PatternRun {
  std::int32_t first, end, length;
  std::int32_t uniform;  ///< whether the rows have the same values too, which are there once then
  std::int64_t offset_at, value_at;
};

/// Rows in one SIMD group of the row_pattern storage.
template <class T>
inline constexpr std::int32_t group_rows = std::int32_t(64 / sizeof(T));

template <class T>
struct CsrRows {
  std::int64_t const* offsets;
  std::int32_t const* columns;
  T const* values;
  std::int32_t const* row_ids;  // nullptr: i
  LengthRun const* runs;
  std::int32_t run_count;
};

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

template <class T>
void csr_product(Queue&, CsrRows<T> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);
template <class T>
void sell_product(Queue&, SliceRun const* runs, std::int32_t run_count, std::int32_t const* row_ids, std::byte const* columns,
                  T const* values, bool scattered, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);
template <class T>
void pattern_product(Queue&, PatternRun const* runs, std::int32_t run_count, std::int32_t const* offsets, T const* values, Epilogue e,
                     std::int64_t k, T const* x, T* y, T const* b, T const* w);

}  // namespace asterism::la::kernel
