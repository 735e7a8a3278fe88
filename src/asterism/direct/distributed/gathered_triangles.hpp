// The factors that ranks share, as whole sparse matrices.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/distributed/block_cyclic_factors.hpp"
#include "asterism/direct/distributed/distribution.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/direct/serial_factors.hpp"
#include "asterism/direct/symbolic/analysis.hpp"

namespace asterism::direct {

/// Of each pivot its row and column of B. Pivots are where B's columns are: those of a subtree, or of a block, in another order.
struct PivotOrder {
  std::vector<std::int32_t> rows, columns;
};

/// After the factorisation, with the factors of the top in the form of solves.
struct SharedFactors {
  Analysis const& analysis;
  Distribution const& parts;
  NumericFactors const& numeric;  ///< of this rank's subtrees
  BlockCyclicMatrix const& top;
};

/// The same on all ranks. Collective.
PivotOrder pivot_order(comm::Communicator const& comm, SharedFactors const& factors);

/// On every rank the whole of L and U: each needs memory for all of their entries, some times over. An error of kind memory where that is
/// not there. Collective.
std::shared_ptr<ExplicitFactors> gathered_triangles(comm::Communicator const& comm, SharedFactors const& factors, std::int64_t entries);

}  // namespace asterism::direct
