#include "asterism/grid/bricks/galerkin_stencil.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/cancellation.hpp"
#include "asterism/grid/bricks/axis_colours.hpp"

namespace asterism::grid {

using i64 = std::int64_t;
using la::Vector;

std::vector<std::pair<Triple, Vector>> galerkin_coefficients(la::Operator const& A, la::Operator const& P, la::Operator const& R,
                                                             BrickDomain const& coarse, Triple const& reach) {
  auto const& space = coarse.space();
  auto const box = coarse.owned();
  std::array<AxisColours, 3> const axes = [&] {
    auto const axis = [&](std::size_t d) {
      return AxisColours(coarse.shape()[d], coarse.periodic()[d], reach[d], box.low[d], box.high[d]);
    };
    return std::array{axis(0), axis(1), axis(2)};
  }();
  std::vector<std::pair<Triple, Vector>> all;
  for (auto const i : axes[0].offsets)
    for (auto const j : axes[1].offsets)
      for (auto const k : axes[2].offsets) {
        all.emplace_back(Triple{i, j, k}, Vector(space, A.dtype()));
        fill(all.back().second, 0.0);
      }
  std::vector<double> sizes(all.size(), 0.0);
  i64 const products = axes[0].count * axes[1].count * axes[2].count;
  Progress progress(format("Galerkin's product of {}, {} products", A.describe(), products), double(products));
  comm::Cancellation cancel(space.comm(), progress);
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T*> values;
    for (auto& [offset, v] : all) values.push_back(v.template host<T>().data());
    Vector x(space, A.dtype()), y(space, A.dtype()), fine(A.domain(), A.dtype()), product(A.range(), A.dtype());
    i64 done = 0;
    Triple c{};
    for (c[0] = 0; c[0] < axes[0].count; ++c[0])
      for (c[1] = 0; c[1] < axes[1].count; ++c[1])
        for (c[2] = 0; c[2] < axes[2].count; ++c[2]) {
          auto const is = [&](std::size_t d, i64 p) { return axes[d].of[std::size_t(p)] == c[d]; };
          fill(x, 0.0);
          auto* const ones = x.host<T>().data();
          coarse.each_row([&](Triple const& first, i64 place, i64 count) {
            if (count == 0 || !is(0, first[0]) || !is(1, first[1])) return;
            for (i64 n = 0; n < count; ++n)
              if (is(2, first[2] + n)) ones[place + n] = T(1);
          });
          P.apply(x, fine);
          A.apply(fine, product);
          R.apply(product, y);
          auto const* const entries = y.host<T>().data();
          auto const read = [&](std::size_t d, i64 p) { return axes[d].read[std::size_t(p * axes[d].count + c[d])]; };
          auto const along = [&](std::size_t d) { return i64(axes[d].offsets.size()); };
          coarse.each_row([&](Triple const& first, i64 place, i64 count) {
            if (count == 0) return;
            i64 const i = read(0, first[0]), j = read(1, first[1]);
            if (i < 0 || j < 0) return;
            auto* const* const row = values.data() + (i * along(1) + j) * along(2);
            for (i64 n = 0; n < count; ++n)
              if (auto const k = read(2, first[2] + n); k >= 0) row[k][place + n] = entries[place + n];
          });
          cancel.at(double(++done));
        }
    auto const n = std::size_t(space.local_size());
    for (std::size_t at = 0; at < all.size(); ++at)
      for (std::size_t p = 0; p < n; ++p) sizes[at] = std::max(sizes[at], double(magnitude(values[at][p])));
  });
  space.comm().max(std::span(sizes));
  double const least = 8 * epsilon_of(A.dtype()) * *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::pair<Triple, Vector>> out;
  for (std::size_t at = 0; at < all.size(); ++at)
    if (sizes[at] > least || all[at].first == Triple{}) out.push_back(std::move(all[at]));
  std::sort(out.begin(), out.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
  return out;
}

}  // namespace asterism::grid
