// Products and sums of sparse matrices, as rows in one piece.
#pragma once
#include "asterism/la/products/row_shapes.hpp"
#include "asterism/la/products/wide_rows.hpp"

namespace asterism::la {

/// What of the left factor is multiplied.
enum class Part : std::uint8_t { all, lower_and_half_diagonal };

class ProductPlaces;

/// A B, or that part of A times B; columns ascending. B has a row for each of A.map's indices. Every entry is summed in ascending inner
/// index, so bits depend neither on the partition nor on the threads. Gustavson (1978); rows of a shape that was there before have its
/// columns, and rows of A with the same columns are multiplied together. Time: the multiplications; memory: the product, 8 bytes for each
/// row of B, and up to 28 for each of its columns and thread. `places`: filled, if there are any.
template <class T>
Rows<T> sparse_product(Rows<T> const& A, Part part, WideRows<T> const& B, comm::Cancellation& cancel, ProductPlaces* places = nullptr);

/// Where each multiplication of A B goes in its row of C, once for all rows of a shape (row_shapes.hpp). Memory: 8 bytes a row, and for
/// each multiplication of the shapes 1 byte where the row has at most 255 entries, 2 up to 65535, else 4; fewer where rows with the same
/// columns follow each other, or rows are summed as vectors (expanded_rows.hpp).
class ProductPlaces {
 public:
  /// The values of A B into C. Reads and writes streams alone, but for the rows of B. Bits as those of sparse_product().
  template <class T>
  void multiply(Rows<T> const& A, WideRows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) const;

 private:
  template <class T>
  friend Rows<T> sparse_product(Rows<T> const&, Part, WideRows<T> const&, comm::Cancellation&, ProductPlaces*);
  struct Group {  ///< rows that are multiplied together
    std::int32_t row, shape;
  };
  struct Share {                ///< what a thread found
    std::vector<Group> groups;  ///< and one behind the last
    ProductShapes shapes;
    std::vector<std::uint8_t> places;
  };
  std::vector<Share> shares_;  ///< ascending
};
/// alpha A + beta B: the places of both.
template <class T>
Rows<T> sparse_sum(T alpha, Rows<T> const& A, T beta, Rows<T> const& B, Layout const& columns, comm::Cancellation& cancel);

}  // namespace asterism::la
