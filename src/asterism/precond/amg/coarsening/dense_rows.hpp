// Rows with so many entries that aggregates must not be made of their couplings.
#pragma once
#include "asterism/precond/amg/coarsening/aggregation.hpp"

namespace asterism::precond::amg {

/// More entries in one row of so many make it dense: in nodes, as the orderings of Amestoy, Davis and Duff (1996) have it.
std::int64_t longest_sparse_row(std::int64_t rows, std::int64_t block_size);

/// A node with a dense row would couple all its neighbours in P, and fill the coarse level. Here it loses its couplings and becomes an
/// aggregate of its own, which no smoothing widens: the coarse level has a dense row again. Collective.
template <class T>
void set_dense_rows_apart(NodeGraph& graph, Rows<T> const& A, Layout const& layout, std::int64_t block_size, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
