// New star forests from old ones (Zhang et al. 2022, section 3). All calls are collective; a broken precondition is the same
// error on all ranks, with the root or leaf that breaks it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/comm/forest/star_forest.hpp"

namespace asterism::comm {

/// A's roots with B's leaves, through A's leaves meeting B's roots by index on each rank; what is not connected is
/// dropped. bcast(compose(A, B)) = bcast(B) after bcast(A). A's leaves must be listed once.
StarForest compose(StarForest const& A, StarForest const& B);

/// A's roots with B's roots as leaves, through A's and B's leaves of equal position. Leaves must be listed once in both
/// and B's roots have at most one leaf.
StarForest compose_inverse(StarForest const& A, StarForest const& B);

/// Leaves become roots: every root must have at most one leaf, and leaves must be listed once.
StarForest inverse(StarForest const& A);

/// The edges of the selected roots or leaves of each rank, without renumbering: the same arrays fit. Selections may be unsorted
/// and repeat.
StarForest embed_roots(StarForest const& A, std::span<std::int64_t const> selected);
StarForest embed_leaves(StarForest const& A, std::span<std::int64_t const> selected);

/// Whether the root or leaf spaces of concatenated forests are one or stand behind each other on every rank.
enum class Spaces : std::uint8_t { shared, stacked };
StarForest concatenate(std::span<StarForest const> forests, Spaces roots, Spaces leaves);

/// Every edge becomes k: root r has roots rk ... rk + k - 1.
StarForest strided(StarForest const& A, std::int64_t k);

/// Points with counts of unknowns to unknowns: root point r has dofs[r] of them, behind each other in the order of the points;
/// leaf points take over their root's count (a leaf point without a root has none).
struct Section {
  StarForest forest;                    ///< of the unknowns
  std::vector<std::int64_t> leaf_dofs;  ///< of each leaf point
};
Section section(StarForest const& points, std::span<std::int64_t const> root_dofs);

/// Leaf l hangs on the one root anywhere with the same number: roots[r] and leaves[l] are such numbers (ids), at least 0.
/// Numbers are found through a directory spread over the ranks. A number that two roots have, or that a leaf has and no
/// root, is an error.
StarForest matching(Communicator const& comm, std::span<std::int64_t const> roots, std::span<std::int64_t const> leaves);

/// Every rank's leaves are all roots of all ranks (n of them here), in rank order.
StarForest all_gather_pattern(Communicator const& comm, std::int64_t n);
/// n roots for each rank here; my leaves are those that each rank has for me: an all-to-all.
StarForest all_to_all_pattern(Communicator const& comm, std::int64_t n);

}  // namespace asterism::comm
