// The domain of bricks with half as many points in each direction.
#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/grid/bricks/brick_transfer.hpp"

namespace asterism::grid {

using i64 = std::int64_t;

namespace {
/// The divisor of the points of a periodic axis that is nearest to the usual brick of 8, and as wide as a stencil reads; 0 if there is
/// none. It is hardly longer than that, or than the brick before: kernels get long with bricks, and with the reach of their stencil.
i64 brick_of_period(i64 points, i64 reach, i64 before) {
  constexpr i64 usual = 8;
  auto const most = std::max(before, reach > 1 ? usual : usual + usual / 2);
  i64 best = 0;
  for (auto b = std::max<i64>(reach, 1); b <= std::min(points, most); ++b)
    if (points % b == 0 && (best == 0 || std::abs(b - usual) < std::abs(best - usual))) best = b;
  return best;
}
}  // namespace

std::optional<BrickDomain> BrickTransfer::coarsened(BrickDomain const& fine, Centring centring, Coarsening const& how) {
  auto const& least = how.least;
  i64 points = 1, fine_points = 1;
  std::vector<i64> shape, brick, boxes;
  std::vector<bool> periodic;
  for (auto d = std::size_t(3 - fine.dimensions()); d < 3; ++d) {
    auto const n = fine.shape()[d];
    auto b = fine.brick()[d];
    bool const around = fine.periodic()[d], halves = centring != Centring::nodes || around;
    i64 const m = n == 1 ? 1 : around ? (n + 1) / 2 : n / 2;
    auto const reach = least.empty() ? 1 : i64(least[shape.size()]);
    if (around && m % b != 0) b = brick_of_period(m, reach, b);
    bool const wide = b >= reach, fits = n == 1 || how.any_size || (halves ? n % 2 == 0 : n % 2 != 0);
    if (n == 0 || !fits || !wide) return std::nullopt;
    points *= m, fine_points *= n;
    shape.push_back(m);
    brick.push_back(b);
    periodic.push_back(around);
    boxes.push_back(fine.partition().boxes()[d]);
  }
  if (points == fine_points) return std::nullopt;
  auto const& used = fine.partition().used();
  auto const most = how.points_per_rank > 0 ? points / how.points_per_rank : std::numeric_limits<i64>::max();
  return BrickDomain(fine.space().comm(), shape, brick, periodic, boxes, fine.transport(),
                     std::min(most, i64(used[0]) * used[1] * used[2]));
}

}  // namespace asterism::grid
