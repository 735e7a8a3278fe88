#pragma once
#include "asterism/la/operator.hpp"

namespace asterism::krylov {

/// An estimate from below of the largest eigenvalue of M A (both Hermitian positive definite) by a few
/// Lanczos steps from a start vector that does not depend on the ranks. Cost: `steps` A and M.
double largest_eigenvalue(la::Operator const& A, la::Operator const& M, la::Vector const& like, int steps = 10);

}  // namespace asterism::krylov
