// Smoothed-aggregation prolongation: Vanek, Mandel, Brezina (1996).
#pragma once
#include "asterism/precond/amg/coarsening/aggregation.hpp"
#include "asterism/precond/amg/row_facts.hpp"

namespace asterism::precond::amg {

/// The near-null space restricted to the aggregates, orthonormalised: B = P0 B_coarse.
template <class T>
struct Tentative {
  Buffer<T> values;  ///< block_size x columns for each of the graph map's nodes (ghosts too), row-major
  Buffer<T> coarse;  ///< my coarse nodes' rows of B_coarse: columns x columns each
  std::int64_t columns = 0;
};
/// B: (rows, columns) row-major, my rows. Within an aggregate rows are taken in global order, so the
/// bits do not depend on the partition. Collective.
template <class T>
Tentative<T> tentative_prolongation(NodeGraph const& graph, Aggregates const& aggregates, std::int64_t block_size, std::int64_t columns,
                                    T const* B, comm::Cancellation& cancel);

/// P = (I - omega D^-1 A_F) P0, A_F = A with weak couplings added to the diagonal, so that A_F B = A B for a scalar B: a_ij b_j / b_i.
/// Of nodes with several unknowns each component has its own vector. B: my rows of the near-null space. The rows are those of my fine
/// unknowns, the columns the coarse unknowns (coarse node x columns). Collective.
template <class T>
Rows<T> smoothed_prolongation(Rows<T> const& A, NodeGraph const& graph, Aggregates const& aggregates, Tentative<T> const& P0, T const* B,
                              std::int64_t block_size, double omega, Layout const& coarse, comm::Cancellation& cancel);

/// An upper bound or a close estimate of the spectral radius of D^-1 A, the same bits on any number of ranks:
/// the largest row sum if that is sharp (at most 2.2), else a few Lanczos steps with exact sums.
template <class T>
double spectral_radius(Rows<T> const& A, Layout const& layout, RowFacts<T> const& facts, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
