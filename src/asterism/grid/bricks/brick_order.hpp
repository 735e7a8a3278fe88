// In which order the bricks of a rank's box stand in memory.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "asterism/grid/partition.hpp"

namespace asterism::grid {

/// Inner bricks first, in lexicographic order. Then the 26 parts of the surface (corners, edges, faces), each in lexicographic order. The
/// parts follow each other so that what the neighbours need are the fewest runs of numbers: 42 for the 26 neighbours in three dimensions,
/// 9 for 8 in two, 2 for 2 in one. A closed form: nothing is kept for each brick.
class BrickOrder {
 public:
  BrickOrder() = default;
  /// sizes: bricks of the box in each direction. cut: whether it has neighbours on other ranks there; else there is no surface.
  BrickOrder(Triple const& sizes, std::array<bool, 3> const& cut);
  std::int64_t bricks() const { return sizes_[0] * sizes_[1] * sizes_[2]; }
  /// Those that are not on the surface; their numbers are the first.
  std::int64_t inner() const { return first_[1]; }
  std::int64_t number(Triple const& at) const;
  /// The numbers of the bricks of a part of the box, ascending, as runs (first, count).
  std::vector<std::pair<std::int64_t, std::int64_t>> runs(Box const& part) const;

 private:
  /// Below, within or above: the bricks of that class along a direction.
  std::array<std::int64_t, 2> along(std::size_t d, int side) const;
  Triple sizes_{};
  std::array<bool, 3> cut_{};
  std::array<std::int64_t, 28> first_{};  // of each part, in the order of memory; the last is the number of bricks
};

}  // namespace asterism::grid
