// Which ranks eliminate which parts of an elimination tree.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/direct/symbolic/supernodes.hpp"

namespace asterism::direct {

/// Of each supernode: the rank that eliminates it alone, with the whole subtree below it; -1: it is at the top, which all ranks share.
///
/// The heaviest subtree is divided, its root goes to the top, and subtrees are dealt to ranks, heaviest first (Geist and Ng 1989). Of all
/// these divisions the one with the least expected time is taken: the top's work, of which ranks are busy for a part only, and the most
/// that a rank has below it. The same on all ranks. Cost: a few hundred steps.
std::vector<int> map_tree(Supernodes const& nodes, std::span<double const> work, int ranks);

}  // namespace asterism::direct
