// Colours of the points of a grid, such that a stencil couples no two points of one colour.
#pragma once
#include <array>
#include <vector>

#include "asterism/grid/partition.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::grid {

/// What the stencil reads.
enum class Colouring : std::uint8_t {
  none,       ///< further points: colours are not known
  red_black,  ///< points at an odd number of steps along the axes
  boxes,      ///< the points around: a colour for each corner of a box of 2^d points
};

/// The number of each point's colour, of a box in lexicographic order.
std::vector<int> colour_numbers(Box const& box, Colouring kind);
/// How many colours; none where a periodic direction has an odd number of points, so that colours do not fit around its end.
int colour_count(Triple const& shape, std::array<bool, 3> const& periodic, Colouring kind);
/// One vector for each colour. numbers: of the own entries, -1 where there is no point.
std::vector<la::Vector> colour_vectors(la::Space const& space, Dtype dtype, std::vector<int> const& numbers, int count);

}  // namespace asterism::grid
