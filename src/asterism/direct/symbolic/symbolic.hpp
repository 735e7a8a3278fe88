// The symbolic phase of a sparse factorisation: which columns form supernodes, and which rows they have.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/direct/symbolic/supernodes.hpp"
#include "asterism/la/formats/csr.hpp"
#include "asterism/la/ordering/graph.hpp"

namespace asterism::direct {

struct Symbolic {
  std::vector<std::int32_t> order;  ///< order[k]: the row and column of the matrix that become the k-th
  Supernodes nodes;
  std::int64_t entries = 0;  ///< of one triangle with its diagonal, zeros within supernodes counted
  double flops = 0;          ///< of a factorisation of a symmetric matrix; one that is not takes twice as many
  std::int64_t peak = 0;     ///< numbers of one triangle's fronts and updates that are there at a time, at most
  std::vector<double> work;  ///< flops of each supernode
  std::vector<char> joined;  ///< of each column: it stays in one block with the column before; empty: none does
};

/// Of the pattern of A + A^T with a fill-reducing order. Elimination tree (Liu 1990), column counts (Gilbert, Ng and Peyton 1994),
/// supernodes, and children merged with their parents where few zeros come in (Ashcraft and Grimes 1989). The order is changed to another
/// postorder of the tree, with the same fill. symmetry: the share of the graph's entries that A has itself; where it is small, fewer
/// children are merged. Time and memory of the order of the pattern and of the supernodes' rows.
Symbolic analyse(la::Graph const& graph, std::span<std::int32_t const> order, double symmetry = 1);

/// Flops of a factorisation of a symmetric matrix in that order, without merged supernodes.
double flops_of_order(la::Graph const& graph, std::span<std::int32_t const> order);

}  // namespace asterism::direct
