// Rows of a product, each a sum of multiples of sparse rows.
#pragma once
#include <algorithm>
#include <cstdint>

#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// A row as a sum of multiples of sparse rows (Gustavson 1978): sums stand at their columns, so no address waits for a load of
/// another table, and a list has the columns that occur.
template <class T>
class SparseSum {
 public:
  explicit SparseSum(std::int32_t columns) : sums_(columns, T(0)), rows_(columns, std::int32_t(0)), columns_(columns + 1) {}

  /// a times the row c, v of n entries. Without branches: whether a column is new is a coin toss for the predictor.
  void add(T a, std::int32_t const* ASTERISM_RESTRICT c, T const* ASTERISM_RESTRICT v, std::int64_t n) {
    T* const ASTERISM_RESTRICT sums = sums_.data();
    std::int32_t* const ASTERISM_RESTRICT rows = rows_.data();
    std::int32_t* const ASTERISM_RESTRICT columns = columns_.data();
    std::int32_t const row = row_;
    std::int32_t end = size_;
    for (std::int64_t r = 0; r < n; ++r) {
      std::int32_t const column = c[r];
      columns[end] = column;
      end += rows[column] != row;
      rows[column] = row;
      sums[column] += a * v[r];
    }
    size_ = end;
  }

  std::int32_t size() const { return size_; }
  /// Of a new row; ascending if asked for. Forgets them.
  void take(std::int32_t* columns, T* values, bool ascending) {
    if (ascending) sort_to(columns);
    else std::copy_n(columns_.data(), size_, columns);
    T* const sums = sums_.data();
    for (std::int32_t l = 0; l < size_; ++l) {
      values[l] = sums[columns[l]];
      sums[columns[l]] = T(0);
    }
    size_ = 0;
    ++row_;  // a rank has fewer than 2^31 rows
  }

 private:
  /// Up to some hundred by counting the smaller ones, which has no branch to mispredict.
  void sort_to(std::int32_t* columns) const {
    auto const* const c = columns_.data();
    if (size_ > 200) {
      std::copy_n(c, size_, columns);
      std::sort(columns, columns + size_);
      return;
    }
    for (std::int32_t l = 0; l < size_; ++l) {
      std::int32_t const column = c[l];
      std::int32_t smaller = 0;
#pragma omp simd reduction(+ : smaller)
      for (std::int32_t m = 0; m < size_; ++m) smaller += c[m] < column;
      columns[smaller] = column;
    }
  }
  Buffer<T> sums_;
  Buffer<std::int32_t> rows_;     // that a column occurred in last
  Buffer<std::int32_t> columns_;  // one more is written to than there are
  std::int32_t size_ = 0, row_ = 1;
};

template <class T>
void add_row(SparseSum<T>& sum, Rows<T> const& A, std::int32_t i, Rows<T> const& B) {
  auto const* const bp = B.ptr.data();
  for (auto p = A.ptr[i], last = A.ptr[i + 1]; p < last; ++p) {
    auto const k = A.col[p];
    sum.add(A.val[p], B.col.data() + bp[k], B.val.data() + bp[k], bp[k + 1] - bp[k]);
  }
}

template <class T>
void append_row(Piece<T>& piece, SparseSum<T>& sum, std::int64_t& length, bool ascending) {
  length = sum.size();
  piece.make_room(length);
  sum.take(piece.col.data() + piece.size, piece.val.data() + piece.size, ascending);
  piece.size += length;
}

}  // namespace asterism::la
