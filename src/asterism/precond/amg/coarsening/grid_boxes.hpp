// Aggregates of regular grids.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/precond/amg/coarsening/aggregation.hpp"

namespace asterism::precond::amg {

/// The lengths of a grid of n nodes in lexicographic order, the fastest dimension first, whose couplings reach one or two nodes far and are
/// mostly these: positive differences of indices, ascending. Empty: there is no such grid.
std::vector<std::int64_t> lengths_of_grid(std::span<std::int64_t const> differences, std::int64_t n);

/// Those of the grid that the graph's nodes are on: one to three dimensions in lexicographic order. Empty: they are on none. Collective.
std::vector<std::int64_t> lengths_of_grid(NodeGraph const& graph);

/// Whether the couplings of neighbours in each dimension of the grid are about as strong, for half of a sample of nodes: an aggregate that
/// is as long in all of them needs that. Collective.
template <class T>
bool couplings_are_even(Rows<T> const& A, NodeGraph const& graph, std::vector<std::int64_t> const& lengths, std::int64_t block_size);

enum class GridBoxes : std::uint8_t {
  none,   ///< it is no such grid, or the parts are small
  parts,  ///< of_node: the first node of each one's part; -1 for nodes without couplings, and for parts of one or two nodes
  whole,  ///< no box is divided: they are the aggregates
};

/// Where most couplings of neighbours in a grid are strong: boxes of three nodes in each dimension, which suit smoothed aggregation best
/// (Vanek, Mandel, Brezina 1996). Weak couplings divide a box into its connected parts. out.of_node has room for the map's nodes, and stays
/// as it is where there are no boxes. Time: that of one product with the matrix, or two where boxes are divided; the same on any number of
/// ranks. Collective.
GridBoxes boxes_of_grid(NodeGraph const& graph, std::vector<std::int64_t> const& lengths, Aggregates& out, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
