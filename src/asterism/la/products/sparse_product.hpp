// Products and sums of sparse matrices, as rows in one piece.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// A B, columns ascending; B has a row for each of A.map's indices (with_ghost_rows). Every entry is summed in ascending inner index, so
/// bits depend neither on the partition nor on the threads. Gustavson (1978). Time: the multiplications; memory: the product, and a row of
/// B's columns for each thread.
template <class T>
Rows<T> sparse_product(Rows<T> const& A, Rows<T> const& B, comm::Cancellation& cancel);
/// Where each multiplication of A B goes in its row of C, in the order of the multiplications. Memory: 1 byte for each of them where rows
/// of C have at most 256 entries, 2 up to 65536, else 4.
class ProductPlaces {
 public:
  ProductPlaces() = default;
  /// C has the product's columns.
  template <class T>
  ProductPlaces(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel);
  /// The values of A B into C. Reads and writes streams alone, but for the rows of B. Bits as those of sparse_product().
  template <class T>
  void multiply(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) const;

 private:
  Buffer<std::uint8_t> places_;
  std::vector<std::int64_t> begin_of_chunk_;  ///< multiplications before each chunk of rows
  int width_ = 1;
};
/// alpha A + beta B: the places of both.
template <class T>
Rows<T> sparse_sum(T alpha, Rows<T> const& A, T beta, Rows<T> const& B, Layout const& columns, comm::Cancellation& cancel);

}  // namespace asterism::la
