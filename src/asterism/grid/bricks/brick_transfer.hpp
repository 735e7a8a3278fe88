// Between a domain of bricks and one with half as many points in each direction that has several.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "asterism/grid/bricks/brick_domain.hpp"
#include "asterism/grid/bricks/brick_transfer.kernels.hpp"
#include "asterism/grid/bricks/point_transfer.kernels.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::grid {

/// Where the points lie.
enum class Centring : std::uint8_t {
  nodes,   ///< coarse point c is fine point 2 c + 1; along a periodic axis 2 c
  cells,   ///< coarse cell c is made of the fine ones 2 c and 2 c + 1
  blocks,  ///< the same cells, but constant interpolation: averages back
};
/// How far behind the last points of the axes values are zero, in spacings of the fine points: 1 of nodes, 1/2 of cells; 0 where they go on
/// as they are. Of periodic axes it does not matter.
using Ends = std::array<std::array<double, 2>, 3>;
/// Zero behind nodes, and flat behind cells.
Ends usual_ends(Centring centring);

/// Which coarser domains will do.
struct Coarsening {
  bool any_size = false;        ///< the last point of an axis may be over, so that its border is nearer to the last coarse point or further
  std::vector<int> least = {};  ///< points of bricks along the axes
  std::int64_t points_per_rank = 0;  ///< with fewer, on average, it is given to fewer ranks
};

/// Multilinear interpolation y = P x from coarse points. Its transpose, over 2^d, is the restriction: full weighting, whose weights have
/// the sum 1 in the interior.
class BrickTransfer final : public la::Operator {
 public:
  /// The domain of the coarse points, cut into as many boxes. Where those of a periodic direction are no multiple of the brick, it gets
  /// another length that divides them. One point along a direction stays one. Nothing where a direction has other than 2 m + 1 nodes, or
  /// 2 m if it is periodic, or 2 m cells, unless any number will do; where there is one point alone; where no brick is large enough.
  /// Collective.
  static std::optional<BrickDomain> coarsened(BrickDomain const& fine, Centring centring, Coarsening const& how = {});
  /// Where values are zero behind the ends of the coarse points, if it is there behind the fine ones; in coarse spacings.
  static Ends coarse_ends(BrickDomain const& fine, Centring centring, Ends const& ends);
  /// coarse: as coarsened() makes it. Collective. Memory: 16 bytes for each coarse point, twice where ranks share the grid.
  /// cubic: interpolation by cubics instead, at borders through points inside (of nodes the border itself too); linear along axes of
  /// fewer coarse points than that takes. It has no transpose. For the solution of a coarse grid, whose error is of higher order then than
  /// that of the discretisation.
  BrickTransfer(BrickDomain const& fine, BrickDomain const& coarse, Centring centring, Dtype dtype, Ends const& ends, bool cubic = false);
  la::Space const& range() const override { return s_->fine.space(); }
  la::Space const& domain() const override { return s_->coarse.space(); }
  Dtype dtype() const override { return dtype_; }
  void apply(la::Vector const& x, la::Vector& y) const override { interpolate(x, y, false); }
  void apply_add(la::Vector const& x, la::Vector& y) const override { interpolate(x, y, true); }
  void apply_transpose(la::Vector const& x, la::Vector& y, bool /* P is real */) const override { restrict_to(x, y, 1); }
  /// y = P^T x / 2^d
  void restrict_to(la::Vector const& x, la::Vector& y) const { restrict_to(x, y, s_->share); }
  /// 1 / 2^d
  double share() const { return s_->share; }
  std::string describe() const override;
  /// The same by cubics. Collective.
  std::shared_ptr<BrickTransfer const> by_cubics() const;

 private:
  struct State {
    BrickDomain fine, coarse;
    double share = 1;
    kernel::BrickStencils host;
    comm::QueuedForest around;  // coarse vectors to the points around bricks and copies, in lexicographic order; not for GPUs
    comm::QueuedForest others;  // coarse vectors to the points at own fine ones that other ranks own
    bool has_others = false;
    bool gathers = true;  // restriction reads no further than one brick
    // point by point (point_transfer.kernels.hpp): of own points
    std::array<kernel::Axis, 3> axes;
    std::array<std::int64_t, 3> bricks{};
    std::vector<std::int64_t> places;  // of each own brick in lexicographic order: its first point in vectors
    comm::QueuedForest forest;         // coarse vectors to the points around the own fine ones
    /// Made when a GPU first asks.
    struct Lists {
      device::Array fine[3], coarse[3], places;
    };
    std::once_flag listed;
    Lists lists;
    Lists const& on_device();
    kernel::PointCounts counts() const;
  };
  void interpolate(la::Vector const& x, la::Vector& y, bool adds) const;
  void restrict_to(la::Vector const& x, la::Vector& y, double factor) const;
  template <class T>
  void gather(la::Vector const& x, la::Vector& y, double factor) const;
  std::shared_ptr<State> s_;  // queued work holds it
  Dtype dtype_;
  Centring centring_;
  Ends ends_;
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
  void apply_transpose(la::Vector const& x, la::Vector& y, bool /* P is real */) const override;
  std::string describe() const override { return "full weighting, the reverse of " + of_->describe(); }

 private:
  std::shared_ptr<BrickTransfer const> of_;
};

}  // namespace asterism::grid
