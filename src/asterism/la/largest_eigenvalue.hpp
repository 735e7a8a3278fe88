// The ends of the spectrum of a preconditioned operator, for Chebyshev polynomials and for the choice of smoothers.
#pragma once
#include "asterism/la/operator.hpp"

namespace asterism::la {

struct ExtremeEigenvalues {
  double least = 1, most = 1;
  bool definite = true;  ///< no step found that A or M is not positive definite
  int steps = 0;         ///< that were done
};
/// Estimates of the extreme eigenvalues of M A (both Hermitian positive definite), from within, by a few Lanczos steps from a start vector
/// that does not depend on the ranks. Cost: `steps` products with A and applications of M. Collective.
ExtremeEigenvalues extreme_eigenvalues(Operator const& A, Operator const& M, Vector const& like, int steps);
/// The largest one alone.
double largest_eigenvalue(Operator const& A, Operator const& M, Vector const& like, int steps = 10);

}  // namespace asterism::la
