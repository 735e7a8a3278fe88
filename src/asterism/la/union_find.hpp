// Disjoint sets of the numbers 0 ... n - 1.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace asterism::la {

/// Each set is known by its least member. Paths are halved on the way (Tarjan and van Leeuwen 1984): about linear in the joins.
class UnionFind {
 public:
  explicit UnionFind(std::int32_t n) : parent_(std::size_t(n)) { std::iota(parent_.begin(), parent_.end(), 0); }
  /// The least member of i's set.
  std::int32_t find(std::int32_t i) {
    while (parent(i) != i) i = parent(i) = parent(parent(i));
    return i;
  }
  /// The sets of both become one; returns its least member.
  std::int32_t join(std::int32_t i, std::int32_t j) {
    if (parent(j) == i && parent(i) == i) return i;  // most joins of a search row by row
    auto const a = find(i), b = find(j);
    return parent(std::max(a, b)) = std::min(a, b);
  }

 private:
  std::int32_t& parent(std::int32_t i) { return parent_[std::size_t(i)]; }
  std::vector<std::int32_t> parent_;
};

}  // namespace asterism::la
