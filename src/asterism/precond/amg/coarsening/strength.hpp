// Which couplings count for aggregation: measures other than the symmetric one of aggregation.hpp.
#pragma once
#include "asterism/precond/amg/coarsening/aggregation.hpp"

namespace asterism::precond::amg {

/// My rows, 1 for each strong coupling, none on the diagonal and none between components of a node.
using Couplings = Rows<float>;

/// |a_ij| >= threshold max_k |a_ik| (Ruge and Stueben 1987), k other than i, within the component.
template <class T>
Couplings classical_couplings(Rows<T> const& A, std::int64_t block_size, double threshold, comm::Cancellation& cancel);

/// Olson, Schroder, Tuminaro (2010), for constants in two steps: z = (I - D^-1 A / radius)^2 delta_i at the neighbours j of i. Where
/// Re(conj(z_i) z_j) < 0 or |z_i| < 1e-4 |z_j| the coupling is weak. The others are measured by |1 - z_i / z_j|, and are strong below
/// 1 / threshold times the least of the row. radius: of the spectrum of D^-1 A. A few dense rows do not make the work quadratic.
/// Collective.
template <class T>
Couplings evolution_couplings(Rows<T> const& A, Layout const& layout, std::int64_t block_size, double threshold, double radius,
                              comm::Cancellation& cancel);

/// The largest sum_j |a_ij| / |a_ii| of a row, j other than i: damped Jacobi alone converges where it is well below 1. Collective.
template <class T>
double coupling_ratio(Rows<T> const& A, Layout const& layout);

/// Nodes i and j are coupled if any of their unknowns depends on one of the other's, within the pattern of A. Collective.
template <class T>
NodeGraph node_graph(Rows<T> const& A, Couplings const& strong, Layout const& layout, std::int64_t block_size, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
