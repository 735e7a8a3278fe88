// The entries of a stencil's operator as a matrix, by products with one vector for each colour.
#include <cmath>
#include <vector>

#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/cancellation.hpp"
#include "asterism/grid/bricks/axis_colours.hpp"
#include "asterism/grid/bricks/stencil_operator.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using la::Vector;

/// Where a point around this rank's box is in own entries and the copies behind them; -1 where the rank knows no copy.
class Places {
 public:
  explicit Places(BrickDomain const& domain) : domain_(domain) {}
  i64 operator()(Triple const& point) const {
    auto const &b = domain_.brick(), &low = domain_.known().low, &high = domain_.known().high;
    Triple brick{}, in{};
    for (std::size_t d = 0; d < 3; ++d) {
      brick[d] = (point[d] - (point[d] < 0 ? b[d] - 1 : 0)) / b[d];
      in[d] = point[d] - brick[d] * b[d];
      if (brick[d] < low[d] || brick[d] >= high[d]) return -1;
    }
    auto const number = domain_.number(brick);
    return number < 0 ? -1 : number * domain_.points_of_brick() + (in[0] * b[1] + in[1]) * b[2] + in[2];
  }

 private:
  BrickDomain const& domain_;
};

/// The number of each own entry, and of the copies behind them. Collective.
std::vector<i64> with_copies(BrickDomain const& domain, std::vector<i64> const& mine) {
  auto const& space = domain.space();
  Vector v(space, Dtype::float64);  // numbers of entries are far below 2^53
  auto const values = v.host<double>();
  std::copy(mine.begin(), mine.end(), values.begin());
  auto out = mine;
  if (!space.has_local_form()) return out;
  auto const ghosts = la::room_for_ghosts(v, space, v.queue());
  space.ghost_forest().bcast_begin(v.queue(), Dtype::float64, 1, v.data(), ghosts).end();
  ghosts.settle(device::Access::read, "numbers of copies");
  auto const* const copies = ghosts.as<double>();
  for (i64 n = 0; n < domain.ghost_bricks() * domain.points_of_brick(); ++n) out.push_back(i64(copies[n]));
  return out;
}

}  // namespace

la::Matrix StencilOperator::matrix_in(EntryOrder order) const {
  auto const& domain = s_->domain;
  auto const& space = domain.space();
  ASTERISM_REQUIRE(make_kernels_ != nullptr, internal, "how far {} reads is not known", describe());
  auto const box = domain.owned();
  auto const size = box.sizes();
  auto const cut = domain.cut();
  bool const bricks = order == EntryOrder::bricks;
  std::array<AxisColours, 3> const axes = [&] {
    auto const axis = [&](std::size_t d) {
      return AxisColours(domain.shape()[d], domain.periodic()[d], s_->reach[d], box.low[d], box.high[d]);
    };
    return std::array{axis(0), axis(1), axis(2)};
  }();
  std::vector<i64> mine(std::size_t(space.local_size()), 0), rows, columns;
  comm::Layout const layout = bricks ? comm::Layout(space) : comm::Layout(space.comm(), box.points());
  auto const each_point = [&](auto const& f) {
    if (box.points() == 0) return;
    for (i64 i = 0; i < size[0]; ++i)
      for (i64 j = 0; j < size[1]; ++j)
        for (i64 k = 0; k < size[2]; ++k) f(Triple{i, j, k});
  };
  i64 next = layout.begin();
  each_point([&](Triple const& p) { mine[std::size_t(domain.place(p))] = next++; });
  if (bricks)
    for (std::size_t n = 0; n < mine.size(); ++n) mine[n] = space.begin() + i64(n);
  auto const numbers = with_copies(domain, mine);
  Places const place(domain);
  i64 const products = axes[0].count * axes[1].count * axes[2].count;
  Progress progress(format("the matrix of {}, {} products", describe(), products), double(products));
  comm::Cancellation cancel(space.comm(), progress);
  la::Matrix out;
  with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values;
    if (bricks)
      for (auto const& [first, count] : space.padding())
        for (auto i = first; i < first + count; ++i)
          rows.push_back(space.begin() + i), columns.push_back(space.begin() + i), values.push_back(T(1));
    Vector x(space, dtype()), y(space, dtype());
    i64 done = 0, lost = 0;
    Triple c{};
    for (c[0] = 0; c[0] < axes[0].count; ++c[0])
      for (c[1] = 0; c[1] < axes[1].count; ++c[1])
        for (c[2] = 0; c[2] < axes[2].count; ++c[2]) {
          fill(x, 0.0);
          auto* const to = x.host<T>().data();
          auto const of = [&](std::size_t d, i64 p) { return axes[d].of[std::size_t(p)]; };
          each_point([&](Triple const& p) {
            if (of(0, p[0]) == c[0] && of(1, p[1]) == c[1] && of(2, p[2]) == c[2]) to[domain.place(p)] = T(1);
          });
          apply(x, y);
          auto const* const products_here = y.host<T>().data();
          each_point([&](Triple const& p) {
            auto const at = domain.place(p);
            if (products_here[at] == T(0)) return;
            Triple q{};  // counted from this rank's first point
            bool known = true;
            for (std::size_t d = 0; d < 3; ++d) {
              auto const n = axes[d].read[std::size_t(p[d] * axes[d].count + c[d])];
              known = known && n >= 0;
              q[d] = p[d] + (n < 0 ? 0 : axes[d].offsets[std::size_t(n)]);
              if (domain.periodic()[d] && !cut[d]) q[d] = (q[d] + size[d]) % size[d];  // else copies stand around the box
            }
            auto const from = known ? place(q) : -1;
            if (from < 0) {
              lost += std::isfinite(double(magnitude(products_here[at])));  // else infinity times zero
              return;
            }
            rows.push_back(mine[std::size_t(at)]), columns.push_back(numbers[std::size_t(from)]), values.push_back(products_here[at]);
          });
          cancel.at(double(++done));
        }
    lost = space.comm().sum(lost);
    ASTERISM_REQUIRE_ALIKE(lost == 0, internal, "{} entries of {} are further away than it reads", lost, describe());
    if (bricks) out = la::Matrix::from_coo<i64>(space, space, dtype(), rows, columns, values.data());
    else out = la::Matrix::from_coo<i64>(layout, layout, dtype(), rows, columns, values.data());
  });
  return out;
}

std::shared_ptr<la::Matrix const> StencilOperator::assembled() const {
  return make_kernels_ ? std::make_shared<la::Matrix>(matrix_in(EntryOrder::bricks)) : nullptr;
}

}  // namespace asterism::grid
