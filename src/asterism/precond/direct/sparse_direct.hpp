#pragma once
#include <optional>
#include <string>
#include <utility>

#include "asterism/direct/foreign/peer.hpp"
#include "asterism/direct/multifrontal/factors.hpp"
#include "asterism/precond/direct/gpu_solve.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

struct SparseRule {
  std::string name;  ///< of the preconditioner, for messages
  direct::FactorOptions factors;
  std::optional<direct::foreign::PeerOptions> foreign;  ///< another library makes the factors
  bool may_be_indefinite = false;                       ///< where Cholesky breaks down L D L^H follows
  GpuSolves gpu_solves = GpuSolves::automatic;
  bool projects = false;  ///< the solver projects a null space out: singular factors are good enough
};

/// Whether the entries of all rows sum to zero up to rounding, and those of all columns. Memory: three numbers for each column. Collective.
std::pair<bool, bool> sums_vanish(Matrix const& A);

/// A note for people.
std::string nearly_singular(std::string const& name, double condition);

/// Sparse factors on rank 0. Collective.
PreconditionerPtr sparse_direct(Matrix const& A, SparseRule const& rule);

}  // namespace asterism::precond
