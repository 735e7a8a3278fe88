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

/// The number of a point's colour.
inline int colour_of(Triple const& at, Colouring kind) {
  return int(kind == Colouring::boxes ? at[0] % 2 * 4 + at[1] % 2 * 2 + at[2] % 2 : (at[0] + at[1] + at[2]) % 2);
}
/// How many colours; none where a periodic direction has an odd number of points, so that colours do not fit around its end.
int colour_count(Triple const& shape, std::array<bool, 3> const& periodic, Colouring kind);

/// One vector for each colour: one at its points, zero elsewhere. each: calls a function with the place in vectors of each of the rank's
/// points, and the point.
template <class Each>
std::vector<la::Vector> colour_vectors(la::Space const& space, Dtype dtype, int count, Colouring kind, Each const& each) {
  std::vector<la::Vector> out;
  for (int c = 0; c < count; ++c) {
    out.emplace_back(space, dtype);
    fill(out.back(), 0.0);
  }
  if (count == 0) return out;
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T*> to;
    for (auto& v : out) to.push_back(v.template host<T>().data());
    each([&](std::int64_t place, Triple const& at) { to[std::size_t(colour_of(at, kind))][place] = T(1); });
  });
  return out;
}

}  // namespace asterism::grid
