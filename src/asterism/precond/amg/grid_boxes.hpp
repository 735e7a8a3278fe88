// Aggregates of regular grids.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/precond/amg/aggregation.hpp"

namespace asterism::precond::amg {

/// The lengths of a grid of n nodes in lexicographic order, the fastest dimension first, whose couplings reach one or two nodes far and are
/// mostly these: positive differences of indices, ascending. Empty: there is no such grid.
std::vector<std::int64_t> lengths_of_grid(std::span<std::int64_t const> differences, std::int64_t n);

enum class GridBoxes : std::uint8_t {
  none,   ///< it is no such grid, or the parts are small
  parts,  ///< of_node: the first node of each one's part; -1 for nodes without couplings, and for parts of one or two nodes
  whole,  ///< no box is divided: they are the aggregates
};

/// Where the nodes are those of a regular grid of one to three dimensions in lexicographic order, and most of their neighbours' couplings
/// are strong: boxes of three nodes in each dimension, which suit smoothed aggregation best (Vanek, Mandel, Brezina 1996). Weak couplings
/// divide a box into its connected parts. out.of_node has room for the map's nodes, and stays as it is where there are no boxes. Time: that
/// of one product with the matrix, or two where boxes are divided; the same on any number of ranks. Collective.
GridBoxes boxes_of_grid(NodeGraph const& graph, Aggregates& out, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
