// Least squares of systems of any scale.
#pragma once
#include "asterism/krylov/least_squares.hpp"

namespace asterism::solve {

/// krylov::lsmr, or lsqr if `by_lsqr`, of a system whose numbers may be near the ends of their dtype's range (scaling.hpp). Collective.
krylov::LeastSquaresInfo least_squares(bool by_lsqr, std::shared_ptr<la::Operator const> const& A, la::Vector const& b, la::Vector& x,
                                       krylov::LeastSquaresRule const& rule,
                                       std::function<void(std::int64_t, double, double)> const& watch = {});

}  // namespace asterism::solve
