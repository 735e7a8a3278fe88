// The product of three matrices, such as the operator of the next coarser level.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// R (A P), columns ascending, with the sums of two products (sparse_product), but without A P in memory: its rows are made when R asks for
/// them, and kept until none of its later rows does. A P is formed where several threads share an unordered A. The layouts are those of A's
/// rows and columns, and of P's columns. Collective.
template <class T>
Rows<T> triple_product(Rows<T> const& R, Rows<T> const& A, Rows<T> const& P, Layout const& A_rows, Layout const& A_columns,
                       Layout const& P_columns, comm::Cancellation& cancel);

/// The same for Hermitian A and R = P^H: X + X^H, where X = R (L + D / 2) P, and L and D are A below and on its diagonal. Half of the
/// multiplications, and the product is Hermitian to the last bit. Collective.
template <class T>
Rows<T> hermitian_triple_product(Rows<T> const& R, Rows<T> const& A, Rows<T> const& P, Layout const& fine, Layout const& coarse,
                                 comm::Cancellation& cancel);

}  // namespace asterism::la
