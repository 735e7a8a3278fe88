// Structured grids of one to three dimensions dealt to the ranks in boxes, and their ghost points.
//
// Indices run (first, second, third) with the last the fastest, as NumPy has them; a grid of fewer dimensions has leading
// dimensions of 1. A global vector holds each rank's own box, rank after rank. A local array covers the own box and its ghost
// points, `width` deep: those of the whole box around it, or with a star only those straight across a face.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/comm/layout/layout.hpp"

namespace asterism::grid {

enum class Stencil : std::uint8_t { star, box };

/// Points [low, high) in each direction.
struct Box {
  std::array<std::int64_t, 3> low{}, high{};
  std::array<std::int64_t, 3> sizes() const { return {high[0] - low[0], high[1] - low[1], high[2] - low[2]}; }
  std::int64_t points() const {
    auto const s = sizes();
    return s[0] * s[1] * s[2];
  }
};

class Grid {
 public:
  /// shape: points in each direction. periodic: for each direction. ranks: into how many boxes each direction is cut, or empty:
  /// chosen so that the fewest points are exchanged. Collective; bad input is an error on all ranks. Cost: O(own points).
  Grid(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, std::int64_t width, Stencil stencil,
       std::vector<bool> const& periodic, std::vector<int> const& ranks, comm::TransportChoice transport = comm::default_transport());

  int dimensions() const { return dimensions_; }
  std::array<std::int64_t, 3> shape() const { return n_; }
  std::int64_t width() const { return width_; }
  Stencil stencil() const { return stencil_; }
  /// Boxes in each direction; the last varies fastest with the rank.
  std::array<int, 3> ranks() const { return p_; }
  Box owned(int rank) const;
  Box owned() const { return owned(comm_.rank()); }
  /// With ghost points. Begins below 0 or ends beyond the shape in periodic directions.
  Box ghosted(int rank) const;
  Box ghosted() const { return ghosted(comm_.rank()); }
  /// Of global vectors.
  comm::Layout const& layout() const { return layout_; }
  /// Own points of local arrays to ghost points of local arrays: a bcast with both in one array fills the ghost points.
  comm::StarForest const& ghosts() const { return ghosts_; }
  /// Global vectors to local arrays, own points included.
  comm::StarForest const& global_to_local() const { return global_to_local_; }
  /// For each point of a local array the index in global vectors (rows of matrices on this grid). Points that only a box
  /// stencil has are among them.
  std::vector<std::int64_t> numbers() const;

 private:
  /// A run of neighbouring indices of one direction that one box owns.
  struct Run {
    int box;
    std::int64_t at, theirs, length;  ///< from the local array's begin, from the owner's begin
    bool own;
  };
  void choose_ranks();
  std::array<std::int64_t, 2> cut(int d, int box) const;
  std::array<std::int64_t, 2> cut_with_ghosts(int d, int box) const;
  using Cut = std::array<std::int64_t, 2> (Grid::*)(int d, int box) const;
  Box box(int rank, Cut const& cut_of) const;
  std::array<int, 3> box_of(int rank) const { return {rank / (p_[1] * p_[2]), rank / p_[2] % p_[1], rank % p_[2]}; }
  std::vector<Run> runs(int d) const;
  template <class F>
  void each_part(Stencil stencil, F const& f) const;

  comm::Communicator comm_;
  int dimensions_ = 0;
  std::array<std::int64_t, 3> n_{1, 1, 1};
  std::array<int, 3> p_{1, 1, 1};
  std::array<bool, 3> periodic_{};
  std::int64_t width_ = 1;
  Stencil stencil_ = Stencil::star;
  comm::Layout layout_;
  comm::StarForest ghosts_, global_to_local_;
};

}  // namespace asterism::grid
