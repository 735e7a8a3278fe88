// Products and sums of sparse matrices, as rows in one piece.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

class ProductPlaces;

/// A B, columns ascending; B has a row for each of A.map's indices (with_ghost_rows). Every entry is summed in ascending inner index, so
/// bits depend neither on the partition nor on the threads. Gustavson (1978); rows of a shape that was there before have its columns.
/// Time: the multiplications; memory: the product, 8 bytes for each row of B, and a row of its columns for each thread. `places`: filled,
/// if there are any.
template <class T>
Rows<T> sparse_product(Rows<T> const& A, Rows<T> const& B, comm::Cancellation& cancel, ProductPlaces* places = nullptr);
/// Where each multiplication of A B goes in its row of C, once for all rows of a shape (row_shapes.hpp). Memory: 8 bytes a row, and for
/// each multiplication of the shapes 1 byte where the row has at most 256 entries, 2 up to 65536, else 4; fewer where rows of B with the
/// same columns follow each other, which are added together.
class ProductPlaces {
 public:
  /// The values of A B into C. Reads and writes streams alone, but for the rows of B. Bits as those of sparse_product().
  template <class T>
  void multiply(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) const;

 private:
  template <class T>
  friend Rows<T> sparse_product(Rows<T> const& A, Rows<T> const& B, comm::Cancellation& cancel, ProductPlaces* places);
  struct Part {  ///< what a thread found: places of rows [first, last)
    std::int32_t first = 0, last = 0;
    std::vector<std::uint8_t> places;
  };
  std::vector<Part> parts_;     ///< ascending
  Buffer<std::int64_t> begin_;  ///< of each row, in its part
};
/// alpha A + beta B: the places of both.
template <class T>
Rows<T> sparse_sum(T alpha, Rows<T> const& A, T beta, Rows<T> const& B, Layout const& columns, comm::Cancellation& cancel);

}  // namespace asterism::la
