// The factorisation of a matrix in blocks that are dealt cyclically to a grid of ranks.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/array.hpp"
#include "asterism/direct/factor_options.hpp"
#include "asterism/direct/multifrontal/front.kernels.hpp"
#include "asterism/direct/triangular/local_triangle.hpp"

namespace asterism::direct {

/// This rank's blocks of L and, of LU, of U's transposed: block (I, J) of both is on the same rank. Before the factorisation they hold the
/// matrix: lower its diagonal blocks whole and what is below them, upper the transposed of what is right of them.
struct BlockCyclicMatrix {
  FactorKind kind = FactorKind::lu;
  std::shared_ptr<LocalTriangle> lower, upper;  ///< upper: of LU
  device::Array pivots;                         ///< of L D L^H, which factor() makes: D's diagonal and what is below it, by diagonal blocks
};

struct BlockCyclicResult {
  std::int64_t replaced = 0, two_by_two = 0, negative = 0;
  std::int32_t not_positive = -1;  ///< of Cholesky: a column, in the order of the blocks; then there are no factors
  double largest = 0;              ///< entry of U, or of D
};

/// L U or L D L^H with pivots from within each diagonal block, or L L^H; right-looking. It is driven by messages: a rank does what it can
/// with what has arrived, the leftmost column first, so that panels go out while others still update (look-ahead). A block's updates come
/// in one order, so the bits do not depend on when messages come. A panel goes from its owner straight to each rank that needs it, without
/// a tree. told: now and then, with the share of this rank's work that is done. Collective. Sums over all ranks are not made here.
BlockCyclicResult factor(comm::Communicator const& comm, BlockCyclicMatrix& matrix, kernel::Pivoting const& pivoting,
                         std::function<void(double)> const& told);

}  // namespace asterism::direct
