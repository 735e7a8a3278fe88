// The binary tree in which a group of ranks sends one message to all (broadcast) or sums to one (reduction), after Liu et al. (2018).
#pragma once
#include <algorithm>
#include <array>
#include <span>

namespace asterism::direct {

/// What one rank knows of a tree: its neighbours, as ranks. -1: none.
struct TreePlace {
  int parent = -1;
  std::array<int, 2> children{-1, -1};
  int child_count() const { return int(children[0] >= 0) + int(children[1] >= 0); }
  /// Which of the children a rank is.
  int child(int rank) const { return rank == children[0] ? 0 : rank == children[1] ? 1 : -1; }
};

/// Of members[position]; the first member is the root. The tree of n members has floor(log2(n)) + 1 floors.
inline TreePlace place_in_tree(std::span<int const> members, std::size_t position) {
  TreePlace out;
  if (position > 0) out.parent = members[(position - 1) / 2];
  for (std::size_t c = 0; c < 2; ++c)
    if (auto const at = 2 * position + 1 + c; at < members.size()) out.children[c] = members[at];
  return out;
}

}  // namespace asterism::direct
