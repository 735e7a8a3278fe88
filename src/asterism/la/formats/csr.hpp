// A local sparse block in compressed rows: 64-bit row offsets, 32-bit columns, any dtype.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"

namespace asterism::la {

using device::Array;

struct Csr {
  Dtype dtype = Dtype::float64;
  std::int32_t rows = 0, cols = 0;
  Array offsets;  ///< int64, rows + 1
  Array columns;  ///< int32, ascending within a row
  Array values;
  /// Of float32 blocks: each value is a Bfloat16, and formats that have a copy hold it as one.
  bool bfloat16 = false;

  Csr() = default;
  Csr(Dtype dtype, std::int32_t rows, std::int32_t cols, std::int64_t nnz);
  std::int64_t nnz() const { return offsets ? offsets.as<std::int64_t>()[rows] : 0; }
  std::span<std::int64_t> row_offsets() const { return {offsets.as<std::int64_t>(), std::size_t(rows) + 1}; }
  std::span<std::int32_t> column_indices() const { return {columns.as<std::int32_t>(), std::size_t(nnz())}; }
  template <class T>
  std::span<T> entries() const {
    return {values.as<T>(), std::size_t(nnz())};
  }
};

/// Finds an entry of one row after the other: in most it stands at the place of the row before.
class EntryPlace {
 public:
  /// Where col[first, last), ascending, has that column; -1: nowhere.
  std::int64_t operator()(std::int32_t const* col, std::int64_t first, std::int64_t last, std::int32_t column) {
    if (first + place_ < last && col[first + place_] == column) return first + place_;
    auto const* const at = std::lower_bound(col + first, col + last, column);
    if (at == col + last || *at != column) return -1;
    place_ = at - (col + first);
    return first + place_;
  }

 private:
  std::int64_t place_ = 0;
};

/// Rows become columns; columns stay ascending. conjugate: the Hermitian transpose.
Csr transpose(Csr const& a, bool conjugate = false);
/// The same pattern (shared) with values in another precision.
Csr converted(Csr const& a, Dtype dtype);
/// The same pattern (shared); values of a float32 block rounded to Bfloat16.
Csr rounded_to_bfloat16(Csr const& a);

}  // namespace asterism::la
