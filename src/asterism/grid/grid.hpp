// Structured grids of one to three dimensions dealt to the ranks in boxes, and their ghost points.
//
// A global vector holds each rank's own box, rank after rank. A local array covers the own box and its ghost points, `width` deep: those
// of the whole box around it, or with a star only those straight across a face. Vectors of space() have the ghost points behind the own
// ones instead (partition.hpp), so that kernels read a vector as methods have it.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "asterism/grid/partition.hpp"
#include "asterism/la/vectors/space.hpp"

namespace asterism::grid {

/// Where points are: those with the indices p at origin + p * spacing, for each direction. Empty: the points fill the unit box, and a
/// periodic direction ends where it begins.
struct Placement {
  std::vector<double> origin, spacing;
};

class Grid {
 public:
  /// shape: points in each direction. periodic: for each direction. ranks: into how many boxes each direction is cut, or empty:
  /// chosen so that the fewest points are exchanged. most_ranks: with points. Collective; bad input is an error on all ranks. Memory:
  /// O(neighbours). Time too, and O(ranks) if the boxes are to be chosen.
  Grid(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, std::int64_t width, Stencil stencil,
       std::vector<bool> const& periodic, std::vector<int> const& ranks, comm::TransportChoice transport = comm::default_transport(),
       Placement placement = {}, std::int64_t most_ranks = std::numeric_limits<std::int64_t>::max());

  int dimensions() const { return dimensions_; }
  Partition const& partition() const { return partition_; }
  Triple shape() const { return partition_.shape(); }
  std::int64_t width() const { return partition_.width(); }
  Stencil stencil() const { return partition_.stencil(); }
  /// Boxes in each direction; the last varies fastest with the rank.
  std::array<int, 3> ranks() const { return partition_.boxes(); }
  Box owned(int rank) const { return partition_.owned(rank); }
  Box owned() const { return owned(comm_.rank()); }
  /// With ghost points. Begins below 0 or ends beyond the shape in periodic directions.
  Box ghosted(int rank) const { return partition_.ghosted(rank); }
  Box ghosted() const { return ghosted(comm_.rank()); }
  Placement const& placement() const { return placement_; }
  /// Of global vectors, with the ghost points as their local form, and coordinates that are made when they are asked for.
  la::Space const& space() const { return space_; }
  comm::Layout const& layout() const { return space_; }
  /// Own points of local arrays to ghost points of local arrays: a bcast with both in one array fills the ghost points.
  comm::StarForest const& ghosts() const { return ghosts_; }
  /// Global vectors to local arrays, own points included.
  comm::StarForest const& global_to_local() const { return global_to_local_; }
  /// For each point of a local array the index in global vectors (rows of matrices on this grid). Points that only a box
  /// stencil has are among them.
  std::vector<std::int64_t> numbers() const;

 private:
  comm::Communicator comm_;
  int dimensions_ = 0;
  Placement placement_;
  Partition partition_;
  la::Space space_;
  comm::StarForest ghosts_, global_to_local_;
};

}  // namespace asterism::grid
