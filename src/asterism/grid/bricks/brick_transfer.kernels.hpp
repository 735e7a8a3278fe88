// The kernels of transfers between domains of bricks (brick_transfer.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/executor.hpp"

namespace asterism::grid::kernel {

using device::Executor;

/// Weights are real: a complex number is two real ones.
template <class T>
constexpr std::int64_t numbers_of = std::int64_t(sizeof(T) / sizeof(real_t<T>));

/// Of one axis: which coarse points a fine one is made of, and the other way round.
struct Axis {
  struct Few {
    std::int64_t at[4];
    double weight[4];
  };
  struct Several {
    int count = 0;
    std::int64_t at[4];
    double weight[4];
  };
  struct Range {
    std::int64_t first = 0, last = 0;
  };
  int most = 2;                 ///< 2 or 4 of those few count
  std::vector<Few> fine;        ///< of each point: places around
  std::vector<Several> coarse;  ///< of each place around: points; only if most is 2
  std::int64_t low = 0;         ///< the first coarse point around
  std::int64_t around = 0;      ///< how many
};

/// Coarse points of one axis that lie in the own fine bricks, at one fine point each; what they are made of.
struct Held {
  std::int64_t first = 0;          ///< the first of them
  std::vector<Axis::Several> of;   ///< own fine points, from below 0 to those of copies; in ascending order
  std::vector<std::int64_t> from;  ///< of each own fine point, and behind the last one: the first that lies there or behind it
  struct Segment {
    std::int64_t begin, end;
  };
  std::vector<Segment> segments;      ///< that follow each other in a brick of the coarse vector
  std::vector<std::int64_t> segment;  ///< of each
  Axis::Range alike;                  ///< those whose fine points follow each other and are two further than those of the one before
  struct OfBrick {
    Axis::Range of;  ///< those that lie in it
    int kind;        ///< the same of bricks whose coarse points are made of the same points, counted from the brick's first one
  };
  std::vector<OfBrick> bricks;  ///< of each own brick
  /// Coarse points that are made of fine points 2 c + start to 2 c + start + count - 1 alone, c from 0 on.
  struct Folds {
    int start = 0, count = 0;     ///< no points if they are not
    std::vector<double> weights;  ///< [c][count]; zeros where no coarse point is held
  } folds;
  void find_alike();
  /// brick: its points.
  void find_folds(std::int64_t brick);
  /// brick: its points.
  void find_kinds(std::int64_t brick);
};

/// A rank's fine bricks and their copies of other ranks' ones, and the coarse points around them in lexicographic order.
struct BrickStencils {
  struct Fine : Axis {
    std::int64_t end = 0;               ///< behind the last point of the grid; what follows is padding
    std::vector<Axis::Range> of_brick;  ///< places around
    Axis::Range alike;                  ///< points that are made as those two before them, of the next coarse points
    /// Points 2 t and 2 t + 1 that are made of coarse points first + t - 1, first + t and first + t + 1 alone.
    struct Pairs {
      bool found = false;
      std::int64_t first = 0;
      std::vector<double> at, beside;  ///< of each point: the weight of first + t, and of the one before it or behind it
    } pairs;
    void find_alike();
    /// begin: the place of the first point along the whole axis. brick: its points.
    void find_pairs(std::int64_t begin, std::int64_t brick);
  };
  int dimensions = 3;
  std::array<Fine, 3> axes;                       ///< of the points of bricks and copies
  std::array<Held, 3> held;                       ///< only if most is 2
  std::array<std::int64_t, 3> brick{}, before{};  ///< points of a brick; of copies before the own ones
  std::vector<std::array<int, 3>> at;             ///< of each brick and copy: its place among all of them
  std::vector<std::int64_t> targets;  ///< [held along x][y][segment of z]: places in the coarse vector, or -1 - one among what others own
  std::int64_t around() const { return axes[0].around * axes[1].around * axes[2].around; }
};

/// Where the bricks of a vector are.
template <class T>
struct BrickPlaces {
  T *own, *ghosts;
  T* zeros;  ///< a brick of them, for those that are not there
  std::int64_t bricks, copies, points;
  int const* neighbours;
  T* operator()(std::int64_t id) const {
    if (id < bricks) return own + id * points;
    return ghosts && id < bricks + copies ? ghosts + (id - bricks) * points : zeros;
  }
};

/// Of these bricks: fine = P around, or fine += P around; zeros in the padding.
template <class T>
void interpolate_bricks(BrickStencils const& s, std::span<int const> numbers, bool adds, T const* around, BrickPlaces<T> const& fine);
/// Factor P^T fine at the coarse points that lie in these bricks: those that this rank owns to `coarse`, and others to `others`.
template <class T>
void restrict_bricks(BrickStencils const& s, std::span<int const> numbers, double factor, BrickPlaces<T> const& fine, T* coarse, T* others);

}  // namespace asterism::grid::kernel
