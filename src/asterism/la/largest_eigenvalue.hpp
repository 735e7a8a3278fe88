// The largest eigenvalue of a preconditioned operator, for Chebyshev polynomials.
#pragma once
#include "asterism/la/operator.hpp"

namespace asterism::la {

/// An estimate from below of the largest eigenvalue of M A (both Hermitian positive definite) by a few
/// Lanczos steps from a start vector that does not depend on the ranks. Cost: `steps` A and M. Collective.
double largest_eigenvalue(Operator const& A, Operator const& M, Vector const& like, int steps = 10);

}  // namespace asterism::la
