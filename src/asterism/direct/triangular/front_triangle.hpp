// L, or U transposed, of fronts in the blocks that message-driven solves take.
#pragma once
#include <cstdint>
#include <span>

#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/direct/symbolic/supernodes.hpp"
#include "asterism/direct/triangular/local_triangle.hpp"

namespace asterism::direct {

/// Which of the two triangles: L, or U^T.
enum class FrontPart : std::uint8_t { lower, upper };

/// The supernodes of the fronts' pivots, at most `widest` columns each; those of one front follow each other. place_beyond: of the numbers
/// beyond the pivots, where their rows are; they ascend from the number of pivots on. Cost: of the order of the rows of all supernodes.
Supernodes front_supernodes(NumericFactors const& factors, FrontPart part, std::int32_t widest,
                            std::span<std::int32_t const> place_beyond = {});

/// Copies their numbers into a triangle whose first supernodes those are.
void take_fronts(NumericFactors const& factors, FrontPart part, std::int32_t widest, std::span<std::int32_t const> place_beyond,
                 LocalTriangle& to);

}  // namespace asterism::direct
