// Products and sums of sparse matrices, as rows in one piece.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// A B, columns ascending; B has a row for each of A.map's indices (with_ghost_rows). Every entry is summed in ascending inner index, so
/// bits depend neither on the partition nor on the threads. Gustavson (1978). Time: the multiplications; memory: the product, and a row of
/// B's columns for each thread.
template <class T>
Rows<T> sparse_product(Rows<T> const& A, Rows<T> const& B, comm::Cancellation& cancel);
/// The values of A B into C, which has the product's places. Same bits.
template <class T>
void sparse_product_values(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel);
/// alpha A + beta B: the places of both.
template <class T>
Rows<T> sparse_sum(T alpha, Rows<T> const& A, T beta, Rows<T> const& B, Layout const& columns, comm::Cancellation& cancel);

}  // namespace asterism::la
