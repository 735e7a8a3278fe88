#pragma once
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
  std::int32_t first, end, length, unused;
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
  bool scattered;  ///< ask for x ahead: `columns` has `ahead` entries more than the rows
};
inline constexpr std::int32_t ahead = 80;

template <class T>
void csr_product(Queue&, CsrRows<T> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);
template <class T>
void pattern_product(Queue&, PatternRun const* runs, std::int32_t run_count, std::int32_t const* offsets, T const* values, Epilogue e,
                     std::int64_t k, T const* x, T* y, T const* b, T const* w);

}  // namespace asterism::la::kernel
