// The operator of the next coarser level.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// R A P, columns ascending, for P = with_ghost_rows(..., A.map) and R the transpose of P. Every entry of A P and of R (A P) is summed
/// in ascending inner index, so bits do not depend on the partition. Rows of A P are computed when R asks for them
/// and kept until none of its later rows does, which saves the largest array of the set-up; A P is formed where several threads share an
/// unordered one. Collective.
template <class T>
Rows<T> galerkin_product(Rows<T> const& R, Rows<T> const& A, Rows<T> P, Layout const& fine, Layout const& coarse,
                         comm::Cancellation& cancel);

/// The same for Hermitian A and R = P^H: X + X^H, where X = R (L + D / 2) P, and L and D are A below and on its diagonal. Half of the
/// multiplications, and the product is Hermitian to the last bit. Collective.
template <class T>
Rows<T> hermitian_galerkin_product(Rows<T> const& R, Rows<T> const& A, Rows<T> P, Layout const& fine, Layout const& coarse,
                                   comm::Cancellation& cancel);

}  // namespace asterism::la
