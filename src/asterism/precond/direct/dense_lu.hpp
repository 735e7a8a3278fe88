#pragma once
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

/// Dense factors on rank 0, of at most so many bytes (0: what the machine has) and floating-point operations (0: any number). Collective.
PreconditionerPtr dense_lu(Matrix const& A, std::size_t memory_limit, double flop_limit);

}  // namespace asterism::precond
