// What is measured of smoothers and cycles at set-up: for the choice of a degree, and for people.
#pragma once
#include <vector>

#include "asterism/precond/multigrid/cycle.hpp"

namespace asterism::precond::amg {

/// What a degree of the polynomial is expected to take.
struct DegreeEstimate {
  std::int64_t degree;
  double iterations;  ///< of cg to 1e-8
  double cost;        ///< in passes over the entries of the finest level
};
struct DegreeChoice {
  std::size_t level = 0;  ///< where the trial was made
  double condition = 0;   ///< of that level, preconditioned by the cycle from there, in the trial; 0: it was not positive definite
  std::vector<DegreeEstimate> estimates;
  std::int64_t degree = 0;
  double cost() const;  ///< of the degree that is taken; infinite where the trial failed
};

/// The degree of the levels' Chebyshev smoothers of the optimal fourth kind: a few steps of cg, with the smoothers as they are and from a
/// vector that does not depend on the ranks, estimate the condition number. The bound of a V-cycle (Lottes 2023) says how it depends on
/// the degree. The trial is made on the first level if that is small, else on the next one; with `exact`, the first level's matrix before
/// it was rounded, on the first level and with its products. entries: of each level. Collective.
DegreeChoice choose_degree(std::vector<GridLevel>& levels, std::vector<double> const& entries, CycleType type, Matrix const* exact);

/// The factor by which the residual of a random error falls in a step of the cycle from that level on, after a few; measured for people.
/// Collective.
double convergence_factor(std::vector<GridLevel> const& levels, std::size_t first, CycleType type, bool hermitian);
/// The same of the level's smoother, of what oscillates most: after few steps.
double smoothing_factor(GridLevel const& level);

}  // namespace asterism::precond::amg
