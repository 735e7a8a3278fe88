// A star of constant coefficients on a grid, without a matrix: 3, 5 or 7 points.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "asterism/grid/grid.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::grid {

/// (A u)(p) = centre u(p) + sum over directions d of sides[d] (u(p - e_d) + u(p + e_d)). Points beyond a border that is not periodic are
/// zero. The coefficients are real, so A is its own transpose and adjoint.
///
/// Works on vectors with ghosts as they are: points that need no ghosts are done while the ghosts travel. Vectors without room for ghosts
/// get them in an array of their own; own entries are never copied. Cost of a product: x and y once, and one exchange with the neighbours.
class StarOperator final : public la::Operator {
 public:
  /// The ghost points must be at least 1 deep, and the coefficients the same on all ranks. Collective.
  StarOperator(Grid const& grid, double centre, std::array<double, 3> const& sides, Dtype dtype);
  la::Space const& range() const override { return grid_.space(); }
  la::Space const& domain() const override { return grid_.space(); }
  Dtype dtype() const override { return dtype_; }
  void apply(la::Vector const& x, la::Vector& y) const override;
  void apply_transpose(la::Vector const& x, la::Vector& y, bool conjugate) const override;
  void apply_add(la::Vector const& x, la::Vector& y) const override;
  void residual(la::Vector const& b, la::Vector const& x, la::Vector& r) const override;
  void smooth(la::Vector const& b, la::Vector const& x, la::Vector const& w, la::Vector& y) const override;
  la::Vector diagonal() const override;
  /// Gershgorin's: sharp for a Laplacian of many points.
  std::optional<double> eigenvalue_bound() const override;
  /// The same star on every second point, for a second derivative and what is added to its diagonal; multilinear interpolation. None where
  /// the grid has no such points (interpolation.hpp).
  std::optional<Coarse> coarse(la::CoarseRule const& rule) const override;
  bool coarsens() const override { return true; }
  std::vector<la::Vector> colours() const override;
  std::shared_ptr<la::Operator const> converted_to(Dtype dtype) const override {
    return std::make_shared<StarOperator const>(grid_, centre_, sides_, dtype);
  }
  std::string describe() const override;

 private:
  void run(la::Epilogue e, la::Vector const& x, la::Vector& y, la::Vector const* b, la::Vector const* w) const;
  void check(la::Vector const& x, la::Vector const& y, la::Vector const* b, la::Vector const* w) const;
  Grid grid_;
  double centre_;
  std::array<double, 3> sides_;  // 0 in a direction of one point
  Dtype dtype_;
};

}  // namespace asterism::grid
