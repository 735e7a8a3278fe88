// Sparse factors of a distributed matrix, on all of its ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/direct/distributed/distribution.hpp"
#include "asterism/direct/multifrontal/factors.hpp"
#include "asterism/direct/triangular/gpu/gpu_factors.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::direct {

/// L U, L L^H or L D L^H. Each rank has whole subtrees of the elimination tree, and factors them by the multifrontal method (factors.hpp).
/// What is above them is in blocks that are dealt cyclically to a grid of ranks; there pivots come from within the diagonal blocks, and
/// those at rounding level are replaced (static pivoting, Li and Demmel 2003): solutions are to be refined. For L D L^H rows that need
/// each other for a pivot of two stay together (pairs.hpp). Solves are driven by messages (Ding et al. 2021). The bits do not depend on
/// when messages come.
///
/// The matrix is gathered on the first rank for scalings, matching, order and symbolic phase: that one needs the memory of all entries
/// for a while. Each rank keeps the rows of all supernodes.
class DistributedFactors {
 public:
  /// Collective. Errors as of Factors.
  DistributedFactors(la::Matrix const& A, FactorOptions const& options, DistributionOptions const& distribution);
  ~DistributedFactors();

  /// New numbers for the same pattern, as Factors::update(); the scalings of LU are kept too where they suit. Collective.
  bool update(la::Matrix const& A);
  /// y = A^-1 b, A^-T b ('T') or A^-H b ('C'), with this rank's rows of both: rows of k numbers. Collective; one at a time.
  void solve(char trans, std::int64_t k, void const* b, void* y) const;

  Dtype dtype() const;
  /// Of all ranks together.
  FactorInfo const& info() const;
  /// Of this rank.
  std::size_t memory_bytes() const;
  /// "2 x 1 ranks, 85 % of the work in subtrees".
  std::string layout() const;
  /// Bytes that the first rank had for the whole matrix, and those that each rank keeps of the symbolic phase.
  std::pair<std::size_t, std::size_t> symbolic_bytes() const;
  /// As of Factors. Collective.
  double condition() const;
  double condition_beyond(double limit) const;
  /// How many of the `count` eigenvalues of D that are nearest to zero are negative; of 64 on each rank at most. Collective.
  std::int64_t negative_among_least(std::int64_t count) const;
  Determinant determinant() const;
  /// The whole of L and U on every rank, which needs memory for that. Collective.
  std::shared_ptr<ExplicitFactors> explicit_factors() const;

  /// A copy on the GPUs, whose vectors are a rank's numbers: leaves of these forests, whose roots are the rows of the right-hand side and
  /// those of the answer. Collective; errors as of GpuFactors.
  std::shared_ptr<GpuFactors> on_gpus() const;
  comm::StarForest const& row_forest() const;
  comm::StarForest const& column_forest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::direct
