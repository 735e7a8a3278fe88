// Unsmoothed aggregation by matchings of pairs: Notay (2010), meant for K-cycles.
#pragma once
#include "asterism/precond/amg/prolongation.hpp"

namespace asterism::precond::amg {

/// Couplings of the nodes of `graph`, the symmetric part of -Re(a_ij conj(a_ii)) / |a_ii|; of nodes with several unknowns the Frobenius
/// norm of the block. Nodes are matched with their strongest neighbour, where that is at least `threshold` times the strongest of either;
/// the pairs are matched again by the sums of their couplings. Pairs are those of the greedy matching, the strongest first, and equal ones
/// by hashes of their global indices, so they do not depend on the ranks. Nodes that outweigh their couplings five times stay out, as
/// Notay's do: smoothing is all they need. Collective.
template <class T>
Aggregates pairwise_aggregates(Rows<T> const& A, NodeGraph const& graph, std::int64_t block_size, double threshold,
                               comm::Cancellation& cancel);

/// P0 as it is: rows of my fine unknowns, columns the coarse unknowns (coarse node x columns).
template <class T>
Rows<T> unsmoothed_prolongation(NodeGraph const& graph, Aggregates const& aggregates, Tentative<T> const& P0, std::int64_t block_size,
                                Layout const& coarse, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
