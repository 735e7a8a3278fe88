// The kernels of transfers between domains of bricks (brick_transfer.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "asterism/device/executor.hpp"

namespace asterism::grid::kernel {

using device::Executor;

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
  int most = 2;                 ///< 2 or 4 of those few count
  std::vector<Few> fine;        ///< of each own point: places around
  std::vector<Several> coarse;  ///< of each place around: own points; only if most is 2
  std::int64_t low = 0;         ///< the first coarse point around
  struct Range {
    std::int64_t first = 0, last = 0;
  };
  Range alike;         ///< fine points that are made as those two before them, of the next coarse points
  Range coarse_alike;  ///< coarse points whose fine ones follow each other and are two further than those of the point before
  /// Finds these two.
  void find_alike();
};

/// A rank's own fine points in bricks, and the coarse points around them in lexicographic order.
struct BrickStencils {
  std::array<Axis, 3> axes;
  std::vector<std::int64_t> places;  ///< of each own brick in lexicographic order: its first point in vectors
  std::array<std::int64_t, 3> bricks{}, brick{};
  std::int64_t rows = 1;  ///< of bricks that are visited at a time
  std::int64_t around() const {
    return std::int64_t(axes[0].coarse.size()) * std::int64_t(axes[1].coarse.size()) * std::int64_t(axes[2].coarse.size());
  }
};

/// fine = P around, or fine += P around; zeros in the padding.
template <class T>
void interpolate_bricks(Executor& executor, BrickStencils const& s, bool adds, T const* around, T* fine);
/// around = factor P^T fine
template <class T>
void restrict_bricks(Executor& executor, BrickStencils const& s, double factor, T const* fine, T* around);

}  // namespace asterism::grid::kernel
