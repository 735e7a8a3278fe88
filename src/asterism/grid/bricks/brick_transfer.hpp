// Between a domain of bricks and one with half as many points in each direction.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "asterism/grid/bricks/brick_domain.hpp"
#include "asterism/grid/bricks/brick_transfer.kernels.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::grid {

/// Where the points lie.
enum class Centring : std::uint8_t {
  nodes,   ///< coarse point c is fine point 2 c + 1, of 2 m + 1; along a periodic axis 2 c, of 2 m. Zero beyond the ends
  cells,   ///< coarse cell c is made of the fine ones 2 c and 2 c + 1; beyond the ends as at the last cell, or its negative
  blocks,  ///< the same cells, but constant interpolation: averages back
};
/// Of cells: at which ends of the axes values change their sign, those with a border where they are zero.
using Ends = std::array<std::array<bool, 2>, 3>;

/// Multilinear interpolation y = P x from coarse points. Its transpose, over 2^d, is the restriction: full weighting, whose weights have
/// the sum 1 where nothing changes its sign.
class BrickTransfer final : public la::Operator {
 public:
  /// The domain of the coarse points, cut into as many boxes. Where those of a periodic direction are no multiple of the brick, it is
  /// halved. Nothing where a direction has no coarse points of that kind, or no brick of at least so many points fits. Collective.
  static std::optional<BrickDomain> coarsened(BrickDomain const& fine, Centring centring, std::vector<int> const& least = {});
  /// coarse: as coarsened() makes it. Collective. Memory: 16 bytes for each coarse point.
  /// cubic: interpolation by cubics instead, at borders through points inside (of nodes the border itself too); linear along axes of
  /// fewer coarse points than that takes. It has no transpose. For the solution of a coarse grid, whose error is of higher order then than
  /// that of the discretisation.
  BrickTransfer(BrickDomain const& fine, BrickDomain const& coarse, Centring centring, Dtype dtype, Ends const& odd = {},
                bool cubic = false);
  la::Space const& range() const override { return s_->fine.space(); }
  la::Space const& domain() const override { return s_->coarse.space(); }
  Dtype dtype() const override { return dtype_; }
  void apply(la::Vector const& x, la::Vector& y) const override { interpolate(x, y, false); }
  void apply_add(la::Vector const& x, la::Vector& y) const override { interpolate(x, y, true); }
  void apply_transpose(la::Vector const& x, la::Vector& y, bool /* P is real */) const override { restrict_to(x, y, 1); }
  /// y = P^T x / 2^d
  void restrict_to(la::Vector const& x, la::Vector& y) const { restrict_to(x, y, s_->share); }
  std::string describe() const override;
  /// The same by cubics. Collective.
  std::shared_ptr<BrickTransfer const> by_cubics() const;

 private:
  struct State {
    BrickDomain fine, coarse;
    kernel::BrickStencils points;
    comm::QueuedForest forest;  // coarse vectors to the points around the own fine ones, in lexicographic order
    double share = 1;
  };
  void interpolate(la::Vector const& x, la::Vector& y, bool adds) const;
  void restrict_to(la::Vector const& x, la::Vector& y, double factor) const;
  std::shared_ptr<State const> s_;  // queued work holds it
  Dtype dtype_;
  Centring centring_;
  Ends odd_;
  bool cubic_;
};

/// R = P^T / 2^d of a transfer P, as an operator.
class BrickRestriction final : public la::Operator {
 public:
  explicit BrickRestriction(std::shared_ptr<BrickTransfer const> of) : of_(std::move(of)) {}
  la::Space const& range() const override { return of_->domain(); }
  la::Space const& domain() const override { return of_->range(); }
  Dtype dtype() const override { return of_->dtype(); }
  void apply(la::Vector const& x, la::Vector& y) const override { of_->restrict_to(x, y); }
  std::string describe() const override { return "full weighting, the reverse of " + of_->describe(); }

 private:
  std::shared_ptr<BrickTransfer const> of_;
};

}  // namespace asterism::grid
