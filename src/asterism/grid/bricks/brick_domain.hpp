// A structured grid in bricks, dealt to the ranks: small boxes of points that stand in memory one after the other, without ghost points.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "asterism/device/parallel.hpp"
#include "asterism/grid/bricks/brick_order.hpp"
#include "asterism/la/vectors/space.hpp"

namespace asterism::grid {

/// Work below this many points is not worth a second thread.
inline constexpr std::int64_t serial_points = 16384;

/// So many rows of bricks, each of so many bytes of a vector, that a core's cache holds them, or 1.5 MB of it, what is read beside them,
/// and more of the next plane: neighbours across planes are read from memory once then.
std::int64_t rows_at_once(std::int64_t bytes_of_row);

/// The ranks have boxes of whole bricks (partition.hpp, of bricks instead of points). A vector of space() holds the rank's bricks in the
/// order of BrickOrder, each with its points in lexicographic order. Bricks that reach beyond the grid are padded; the padding is zero. The
/// local form of the space are copies of the bricks around the box, one deep, and one brick of zeros for what is beyond a border.
class BrickDomain {
 public:
  BrickDomain() = default;
  /// shape, brick: points in each direction. A periodic direction is a multiple of the brick. boxes: into how many each direction is cut,
  /// or empty: chosen. most_ranks: with bricks. Collective; bad input is an error on all ranks. Memory: that of 3^d + 1 numbers for each
  /// brick.
  BrickDomain(comm::Communicator const& comm, std::vector<std::int64_t> const& shape, std::vector<std::int64_t> const& brick,
              std::vector<bool> const& periodic, std::vector<std::int64_t> const& boxes = {},
              comm::TransportChoice transport = comm::default_transport(),
              std::int64_t most_ranks = std::numeric_limits<std::int64_t>::max());

  int dimensions() const { return s_->dimensions; }
  /// Of the grid and of a brick; leading directions that are not there have one point.
  Triple const& shape() const { return s_->shape; }
  Triple const& brick() const { return s_->brick; }
  std::array<bool, 3> const& periodic() const { return s_->partition.periodic(); }
  /// Which directions more than one rank has bricks along.
  std::array<bool, 3> cut() const {
    auto const& n = s_->partition.used();
    return {n[0] > 1, n[1] > 1, n[2] > 1};
  }
  /// Of bricks, not of points.
  Partition const& partition() const { return s_->partition; }
  BrickOrder const& order() const { return s_->order; }
  /// The points of a rank's box, without the padding.
  Box owned(int rank) const;
  Box owned() const { return owned(s_->space.comm().rank()); }
  la::Space const& space() const { return s_->space; }
  comm::TransportChoice transport() const { return s_->transport; }
  std::int64_t bricks() const { return s_->order.bricks(); }
  /// The first ones need no copies of other ranks' bricks.
  std::int64_t inner_bricks() const { return s_->order.inner(); }
  /// Copies of other ranks' bricks behind the own ones; the brick of zeros comes after them.
  std::int64_t ghost_bricks() const { return s_->ghosts; }
  std::int64_t points_of_brick() const { return s_->brick[0] * s_->brick[1] * s_->brick[2]; }
  /// Place of a point of this rank's box, counted from its first one, in vectors.
  std::int64_t place(Triple const& point) const;

  /// The box of the own bricks and the copies around it: from -1 to n in directions that are cut.
  Box const& known() const { return s_->known; }
  /// The number of a brick of that box; -1 beyond the ends of the grid.
  int number(Triple const& at) const;

  // as generated kernels take them (stencil/table.hpp); copies of other ranks' bricks have zeros around them where they know no other
  device::Array const& neighbours() const { return s_->neighbours; }  ///< int [brick, copy, or the zeros][3^d]
  device::Array const& origins() const { return s_->origins; }        ///< int [brick, or copy][d]
  /// int: the own bricks in the order in which kernels visit them, those first that need no copies. Some rows at a time (rows_at_once)
  /// along the first direction.
  device::Array const& visits() const { return s_->visits; }
  std::vector<int> const& extent() const { return s_->extent; }  ///< [d]

  /// Items of `bytes` each: from the rank's points in lexicographic order to bricks, with zeros in the padding, and back.
  void to_bricks(void const* points, void* bricks, std::size_t bytes) const;
  void from_bricks(void const* bricks, void* points, std::size_t bytes) const;
  /// To bricks from a smaller grid in lexicographic order: the item for the point (i, j, k) of the rank's box is the one at (places[0][i],
  /// places[1][j], places[2][k]) of `sizes` items.
  void spread(void const* items, Triple const& sizes, std::array<std::vector<std::int64_t>, 3> const& places, void* bricks,
              std::size_t bytes) const;
  /// Lines of bricks along the last direction.
  std::int64_t lines() const;
  /// f(first point, counted from the box's first one, its place in vectors, how many points of it are there) for each row of the bricks of
  /// lines [begin, end), by one thread. Rows of the padding have none.
  template <class F>
  void each_row(std::int64_t begin, std::int64_t end, F const& f) const {
    auto const size = owned().sizes();
    auto const& b = brick();
    std::int64_t const across = (size[1] + b[1] - 1) / b[1];
    for (auto at = begin; at < end; ++at)
      for (std::int64_t k = 0; k < size[2]; k += b[2]) {
        Triple const first{at / across * b[0], at % across * b[1], k};
        auto const brick = place(first);
        for (std::int64_t i = 0; i < b[0]; ++i)
          for (std::int64_t j = 0; j < b[1]; ++j) {
            Triple const point{first[0] + i, first[1] + j, k};
            bool const there = point[0] < size[0] && point[1] < size[1];
            f(point, brick + (i * b[1] + j) * b[2], there ? std::min(b[2], size[2] - k) : 0);
          }
      }
  }
  /// The same of all lines, by all threads.
  template <class F>
  void each_row(F const& f) const {
    device::Executor executor;
    device::parallel_ranges(executor, lines(), [&](std::int64_t begin, std::int64_t end) { each_row(begin, end, f); }, serial_lines());
  }
  /// So few lines are not worth a second thread.
  std::int64_t serial_lines() const;

 private:
  struct State {
    int dimensions = 0;
    Triple shape{}, brick{};
    Partition partition;
    BrickOrder order;
    la::Space space;
    comm::TransportChoice transport;
    std::int64_t ghosts = 0;
    Box known;
    std::vector<int> numbers;  // of the bricks of that box
    std::vector<int> extent;
    device::Array neighbours, origins, visits;
  };
  std::vector<comm::StarForest::EdgeSets> find_ghosts(State& s, std::vector<int>& ids) const;
  std::shared_ptr<State const> s_;
};

}  // namespace asterism::grid
