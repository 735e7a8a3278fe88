// The Chebyshev polynomial in D^-1 A: a preconditioner of its own, and a smoother of multigrid.
#pragma once
#include "asterism/la/operator.hpp"

namespace asterism::precond {

struct ChebyshevPolynomial {
  la::Vector weights;     ///< the inverse diagonal
  double lo = 0, hi = 0;  ///< the part of the spectrum of diag(weights) A that is damped
  std::int64_t degree = 1;
  /// Of the adjoint: W p(A W) = p(W A) W, so that the same steps with A^H and conj(W) make the adjoint of what these make.
  ChebyshevPolynomial adjoint() const;
};

/// `degree` steps on x for A x = b; from x = 0, whatever x holds, if `fresh`. r and d are scratch. Costs a product with A a step (the
/// first one is saved if fresh) and 6 n values moved besides; no sums, so nothing travels but the ghosts. Saad (2003), algorithm 12.1.
void chebyshev(la::Operator const& A, ChebyshevPolynomial const& p, la::Vector const& b, la::Vector& x, la::Vector& r, la::Vector& d,
               bool fresh);

}  // namespace asterism::precond
