// Between a grid and one with half as many points in each direction.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "asterism/grid/grid.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::grid {

/// Multilinear interpolation from coarse points: y = P x on the fine grid. Along a direction with a border coarse point c is fine point
/// 2 c + 1, of 2 m + 1 points, and values beyond the border are zero; along a periodic one it is fine point 2 c, of 2 m. Directions of one
/// point are not coarsened. The transpose is full weighting (times 2 for each direction).
class Interpolation final : public la::Operator {
 public:
  /// The grid of the coarse points, cut into as many boxes; nothing where a direction has no coarse points of that kind. Collective.
  /// points_per_rank: with fewer, on average, it is given to fewer ranks; 0: it is not.
  static std::optional<Grid> coarsened(Grid const& fine, std::int64_t points_per_rank = 0);
  /// coarse: as coarsened() makes it. Collective.
  Interpolation(Grid const& fine, Grid const& coarse, Dtype dtype);
  la::Space const& range() const override { return fine_.space(); }
  la::Space const& domain() const override { return coarse_.space(); }
  Dtype dtype() const override { return dtype_; }
  void apply(la::Vector const& x, la::Vector& y) const override { interpolate(x, y, false); }
  void apply_add(la::Vector const& x, la::Vector& y) const override { interpolate(x, y, true); }
  void apply_transpose(la::Vector const& x, la::Vector& y, bool conjugate) const override;
  std::string describe() const override;

 private:
  void interpolate(la::Vector const& x, la::Vector& y, bool adds) const;
  Grid fine_, coarse_;
  Dtype dtype_;
  Box around_;                      // the coarse points that own fine points need
  comm::QueuedForest from_coarse_;  // to an array of them
};

}  // namespace asterism::grid
