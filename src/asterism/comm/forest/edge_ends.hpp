// A star forest's edges in one row, as what packs them for messages has them.
#pragma once
#include <cstdint>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/comm/gpu/messenger.hpp"

namespace asterism::comm {

/// The edges of this rank at their roots, or at their leaves: by rank, those of two ranks in the same order on both.
struct EdgeEnds {
  device::Array at;         ///< their positions (int32)
  std::int64_t first = -1;  ///< of the positions, if they follow one another
  std::int64_t count = 0;
  GpuMessenger::Parts parts;  ///< with other ranks, counted in edges
  std::int64_t own_first = 0, own_end = 0;
  // the edges of each position that has some, in the order in which they are taken in: place[p] has sources[offsets[p]...offsets[p + 1])
  std::int64_t places = 0;
  device::Array place, offsets, sources;

  /// Whether what replaces can be received where it belongs.
  bool in_place() const { return first >= 0 && own_first == own_end; }

  /// An error if this rank has more than 2^31 - 1.
  static EdgeEnds at_roots(StarForest const& forest);
  static EdgeEnds at_leaves(StarForest const& forest);
};

/// The forest with a root for each edge at its root and a leaf for each at its leaf, but for one's own: all messages are contiguous on both
/// sides, so nothing but the transport touches them. Collective.
StarForest forest_of_edges(StarForest const& forest, EdgeEnds const& at_roots, EdgeEnds const& at_leaves, TransportChoice transport);

}  // namespace asterism::comm
