// Colours of the points along an axis, of which a row of a stencil's matrix reads no two of one colour: a product with one vector for each
// colour tells all entries (Curtis, Powell and Reid 1974).
#pragma once
#include <cstdint>
#include <vector>

namespace asterism::grid {

/// Of this rank's points [low, high), whose rows read up to `reach` points either way. There are 2 reach + 1 colours, or as many as points;
/// along a periodic axis up to twice as many, since its last points have colours of their own where no divisor of the points will do.
struct AxisColours {
  AxisColours(std::int64_t points, bool periodic, std::int64_t reach, std::int64_t low, std::int64_t high);

  std::int64_t count = 0;             ///< of colours
  std::vector<std::int64_t> of;       ///< of each of those points
  std::vector<std::int64_t> offsets;  ///< that rows read, the nearest first; of those to the same point around the axis the nearest
  std::vector<int> read;              ///< [point][colour]: the number of the offset to the point that the row reads; -1: it reads none
};

}  // namespace asterism::grid
