// Transfers between domains of bricks, point by point: what GPUs run. The host goes along rows (brick_transfer.kernels.hpp).
#pragma once
#include "asterism/device/parallel.hpp"
#include "asterism/grid/bricks/brick_transfer.kernels.hpp"

namespace asterism::grid::kernel {

/// Numbers of BrickStencils, whose lists are arrays.
struct PointCounts {
  std::int64_t fine[3], around[3], bricks[3], brick[3];
  int most[3];
};

/// fine = P around, or fine += P around; zeros in the padding. x, y, z: of each own fine point along the axes.
template <class T>
void interpolate_points(Executor& executor, PointCounts n, bool adds, Axis::Few const* x, Axis::Few const* y, Axis::Few const* z,
                        std::int64_t const* places, T const* around, T* fine);
/// around = factor P^T fine. x, y, z: of each coarse point around.
template <class T>
void restrict_points(Executor& executor, PointCounts n, T factor, Axis::Several const* x, Axis::Several const* y, Axis::Several const* z,
                     std::int64_t const* places, T const* fine, T* around);

}  // namespace asterism::grid::kernel
