// Galerkin's product R A P of an operator on bricks, as the coefficients of a stencil.
#pragma once
#include <utility>
#include <vector>

#include "asterism/grid/bricks/brick_domain.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::grid {

/// Of each offset whose coefficients are not zero everywhere, and of no offset: a vector on the coarse bricks. R A P reads up to `reach`
/// coarse points either way along the axes. A, P and R are applied once for each colour of AxisColours. Collective.
std::vector<std::pair<Triple, la::Vector>> galerkin_coefficients(la::Operator const& A, la::Operator const& P, la::Operator const& R,
                                                                 BrickDomain const& coarse, Triple const& reach);

}  // namespace asterism::grid
