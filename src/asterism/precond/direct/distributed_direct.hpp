#pragma once
#include "asterism/direct/distributed/distribution.hpp"
#include "asterism/precond/direct/sparse_direct.hpp"

namespace asterism::precond {

/// Sparse factors on all ranks; where they do not suit (singular matrices, answers that static pivoting leaves wrong) those of
/// sparse_direct(). Collective.
PreconditionerPtr distributed_direct(Matrix const& A, SparseRule const& rule, direct::DistributionOptions const& distribution);

}  // namespace asterism::precond
