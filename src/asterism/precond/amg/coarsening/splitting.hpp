// Which unknowns become those of the coarse level in classical multigrid: the same on any number of ranks.
#pragma once
#include "asterism/precond/amg/coarsening/aggregation.hpp"

namespace asterism::precond::amg {

enum class CoarseningType : std::uint8_t { pmis, hmis };

/// My rows of a graph, without the diagonal: 1 where i depends on j, 2 where j depends on i, 3 where both do.
using Dependences = Rows<float>;

/// From my rows of 1 where i depends on j. Collective.
Dependences both_ways(Rows<float> const& depends, Layout const& layout, comm::Cancellation& cancel);

/// 1 for the coarse ones of my points, 0 for the others.
/// pmis: rounds of independent sets by the number of points that depend on one, and hashes of the global index; what depends on a coarse
/// point is fine, and so is a point on which none depends (De Sterck, Yang, Heys 2006). No two coarse points depend on each other.
/// hmis: first the first pass of Ruge and Stueben (1987) within each block of `hmis_block` consecutive points, of which the coarse points
/// are kept that have all their neighbours in the block; then pmis. The paper's blocks are the ranks; these do not depend on them.
/// Collective.
Buffer<std::uint8_t> coarse_points(Dependences const& graph, Layout const& layout, CoarseningType type, comm::Cancellation& cancel);
inline constexpr std::int64_t hmis_block = 65536;

}  // namespace asterism::precond::amg
