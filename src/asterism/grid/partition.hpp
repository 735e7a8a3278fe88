// A structured grid dealt to ranks in boxes: who owns which points, and whose points are ghosts of whom. Numbers alone: no
// communicator, and nothing that grows with the points or the ranks.
//
// Indices run (first, second, third) with the last the fastest, as NumPy has them; a grid of fewer dimensions has leading dimensions of 1.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/comm/layout/layout.hpp"

namespace asterism::grid {

/// Which ghost points there are: those straight across a face, or all around.
enum class Stencil : std::uint8_t { star, box };

using Triple = std::array<std::int64_t, 3>;

/// Points [low, high) in each direction.
struct Box {
  Triple low{}, high{};
  Triple sizes() const { return {high[0] - low[0], high[1] - low[1], high[2] - low[2]}; }
  std::int64_t points() const {
    auto const s = sizes();
    return s[0] * s[1] * s[2];
  }
};

class Partition {
 public:
  Partition() = default;
  /// shape: points in each direction, all at least 1. boxes: into how many each direction is cut; the last varies fastest with the rank.
  Partition(Triple const& shape, std::array<int, 3> const& boxes, std::array<bool, 3> const& periodic, std::int64_t width, Stencil stencil)
      : n_(shape), p_(boxes), used_(boxes), periodic_(periodic), width_(width), stencil_(stencil) {}
  /// The boxes through which the fewest points are exchanged, directions before the last `dimensions` uncut. Time: O(ranks), a few times.
  static std::array<int, 3> choose_boxes(Triple const& shape, int dimensions, std::array<bool, 3> const& periodic, int ranks);
  /// The same points in at most that many boxes of equal size: the directions cut most are cut less, and the other boxes are empty.
  Partition on_fewer(std::int64_t ranks) const;

  Triple const& shape() const { return n_; }
  std::array<int, 3> const& boxes() const { return p_; }
  /// Of these, how many have points, if there are enough: all but in on_fewer().
  std::array<int, 3> const& used() const { return used_; }
  std::array<bool, 3> const& periodic() const { return periodic_; }
  std::int64_t width() const { return width_; }
  Stencil stencil() const { return stencil_; }
  int ranks() const { return p_[0] * p_[1] * p_[2]; }
  Box owned(int rank) const;
  /// With ghost points. Begins below 0 or ends beyond the shape in periodic directions.
  Box ghosted(int rank) const;
  /// Of vectors with each rank's own box, rank after rank.
  comm::Layout layout(comm::Communicator const& comm) const;
  /// Index of a point of the grid in such vectors.
  std::int64_t number(Triple const& point) const;

  /// The ghost points on one side of a rank's box: side[d] is -1, 0 or 1. In vectors with ghosts behind the own entries these follow each
  /// other by sides, each an array of size[0] x size[1] x size[2]. Without points where the stencil or the border has none.
  struct Slab {
    std::int64_t first = 0;
    Triple size{};
    std::int64_t points() const { return size[0] * size[1] * size[2]; }
  };
  Slab slab(int rank, std::array<int, 3> const& side) const;
  /// Of all its slabs.
  std::int64_t ghosts(int rank) const;

  // edges of star forests that fill ghost points, of one rank; cost and memory: O(its neighbours)

  /// Own points to ghosts that stand behind them, slab after slab; roots are places in own boxes, leaves count from 0.
  std::vector<comm::StarForest::EdgeSets> to_ghosts(int rank) const;
  /// Local arrays to themselves: own points to ghost points, both by their place in arrays of ghosted().
  std::vector<comm::StarForest::EdgeSets> within_local(int rank) const;
  /// Own boxes to an array of that box of points, which may reach beyond the grid in periodic directions.
  std::vector<comm::StarForest::EdgeSets> to_box(Box const& box) const;
  /// Own boxes to local arrays, own points included.
  std::vector<comm::StarForest::EdgeSets> to_local(int rank) const;

  /// A run of neighbouring indices of one direction that one box owns.
  struct Run {
    int box, side;                ///< side: below (-1), within (0) or above (1) the own points
    std::int64_t at, in_side;     ///< where it begins, from the local array's begin and from its side's
    std::int64_t theirs, length;  ///< where it begins in the owner's box
  };
  /// f(runs, owner, whether these are own points) for every part of a rank's local array that the stencil needs.
  template <class F>
  void each_part(int rank, Stencil stencil, F const& f) const {
    each_of({runs(rank, 0), runs(rank, 1), runs(rank, 2)}, stencil, f);
  }

 private:
  std::array<int, 3> box_of(int rank) const { return {rank / (p_[1] * p_[2]), rank / p_[2] % p_[1], rank % p_[2]}; }
  template <class F>
  void each_of(std::array<std::vector<Run>, 3> const& along, Stencil stencil, F const& f) const {
    for (auto const& a : along[0])
      for (auto const& b : along[1])
        for (auto const& c : along[2]) {
          int const outside = (a.side != 0) + (b.side != 0) + (c.side != 0);
          if (outside > 1 && stencil == Stencil::star) continue;
          f(std::array<Run, 3>{a, b, c}, rank_of({a.box, b.box, c.box}), outside == 0);
        }
  }
  int rank_of(std::array<int, 3> const& box) const { return (box[0] * p_[1] + box[1]) * p_[2] + box[2]; }
  /// The box of point i, 0 <= i < shape, along a direction.
  int box_at(std::size_t d, std::int64_t i) const;
  using Cut = std::array<std::int64_t, 2> (Partition::*)(std::size_t d, int box) const;
  Box box(int rank, Cut cut_of) const;
  std::array<std::int64_t, 2> cut(std::size_t d, int box) const;
  std::array<std::int64_t, 2> cut_with_ghosts(std::size_t d, int box) const;
  std::vector<Run> runs(int rank, std::size_t d) const;
  /// Of points [first, last), cut at the border of [low, high) too.
  std::vector<Run> runs(std::size_t d, std::array<std::int64_t, 2> of, std::array<std::int64_t, 2> own) const;
  std::vector<std::int64_t> numbers() const;
  Triple n_{1, 1, 1};
  std::array<int, 3> p_{1, 1, 1}, used_{1, 1, 1};
  std::array<bool, 3> periodic_{};
  std::int64_t width_ = 1;
  Stencil stencil_ = Stencil::star;
};

}  // namespace asterism::grid
