#pragma once
#include "asterism/direct/factors.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

struct SparseRule {
  std::string name;  ///< of the preconditioner, for messages
  direct::FactorOptions factors;
  bool may_be_indefinite = false;  ///< where Cholesky breaks down L D L^H follows
  bool projects = false;           ///< the solver projects a null space out: singular factors are good enough
};

/// A note for people.
std::string nearly_singular(std::string const& name, double condition);

/// Sparse factors on rank 0. Collective.
PreconditionerPtr sparse_direct(Matrix const& A, SparseRule const& rule);

}  // namespace asterism::precond
