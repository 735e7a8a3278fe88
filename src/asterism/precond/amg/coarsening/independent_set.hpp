// Nodes that no two steps connect: what aggregates are built around.
#pragma once
#include "asterism/precond/amg/coarsening/aggregation.hpp"

namespace asterism::precond::amg {

constexpr std::int64_t nodes_of_block = 32768;

/// A node's place in the order: the hash of its block of indices, and its index.
std::uint64_t place_in_order(std::int64_t node, std::int64_t block);

/// Whether no neighbour is one of one direction alone, as rounding makes them beside a threshold: by sums of hashes. Collective.
bool neighbours_are_mutual(NodeGraph const& graph);

/// A maximal set of active nodes of which no two are neighbours, or have an active neighbour in common. T: 1 for its nodes, 0 for all
/// others, ghosts too. Collective.
///
/// in_order, for neighbours that are mutual: nodes are taken in their order, each that may be. One beside the other they fill the mesh
/// better than at random, and cycles converge faster. Blocks of neighbouring indices take turns by a hash, so that ranks and threads do not
/// wait for each other in a row. The set is that of one process and one thread. Else rounds of hashed priorities (Bell, Dalton, Olson 2012;
/// Kelley and Rajamanickam 2022).
void independent_set(NodeGraph const& graph, bool in_order, Buffer<std::uint8_t> const& active, Buffer<std::int32_t>& T, std::uint64_t seed,
                     comm::Cancellation& cancel, std::int64_t block = nodes_of_block);

}  // namespace asterism::precond::amg
