#include "asterism/grid/interpolation.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/grid/interpolation.kernels.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Array;
using la::Vector;

bool is_coarsened(Grid const& fine, std::size_t d) { return fine.shape()[d] > 1; }
i64 shift(Grid const& fine, std::size_t d) { return fine.partition().periodic()[d] ? 0 : 1; }

/// The coarse points of which some own fine point needs the value.
Box coarse_around(Grid const& fine, Grid const& coarse) {
  auto const own = fine.owned();
  Box out = own;
  if (own.points() == 0) return {};
  for (std::size_t d = 0; d < 3; ++d) {
    if (!is_coarsened(fine, d)) continue;
    i64 const first = own.low[d] - shift(fine, d), last = own.high[d] - 1 - shift(fine, d);
    out.low[d] = first >> 1, out.high[d] = ((last + 1) >> 1) + 1;  // rounded down, below 0 too
    if (!fine.partition().periodic()[d]) {
      out.low[d] = std::max<i64>(out.low[d], 0);
      out.high[d] = std::min(out.high[d], coarse.shape()[d]);
    }
  }
  return out;
}

kernel::Refinement refinement(Grid const& fine, Box const& around) {
  kernel::Refinement r{};
  auto const own = fine.owned();
  for (std::size_t d = 0; d < 3; ++d) {
    r.low[d] = own.low[d], r.n[d] = own.sizes()[d];
    r.coarse_low[d] = around.low[d], r.m[d] = around.sizes()[d];
    r.coarsened[d] = is_coarsened(fine, d), r.shift[d] = shift(fine, d);
  }
  return r;
}

}  // namespace

std::optional<Grid> Interpolation::coarsened(Grid const& fine, i64 points_per_rank) {
  auto const first = std::size_t(3 - fine.dimensions());
  std::vector<i64> shape;
  std::vector<bool> periodic;
  std::vector<int> boxes;
  bool smaller = false;
  auto placement = fine.placement();
  for (auto d = first; d < 3; ++d) {
    auto const n = fine.shape()[d];
    bool const around = fine.partition().periodic()[d];
    if (is_coarsened(fine, d)) {
      if (around ? n % 2 != 0 : n % 2 == 0) return std::nullopt;
      smaller = true;
      shape.push_back(n / 2);
      placement.origin[d - first] += double(shift(fine, d)) * placement.spacing[d - first];
      placement.spacing[d - first] *= 2;
    } else {
      shape.push_back(n);
    }
    periodic.push_back(around);
    boxes.push_back(fine.ranks()[d]);
  }
  if (!smaller) return std::nullopt;
  i64 points = 1;
  for (auto const n : shape) points *= n;
  auto const& used = fine.partition().used();
  i64 const most = points_per_rank > 0 ? points / points_per_rank : std::numeric_limits<i64>::max();
  return Grid(fine.layout().comm(), shape, fine.width(), fine.stencil(), periodic, boxes, fine.ghosts().transport(), placement,
              std::min(most, i64(used[0]) * used[1] * used[2]));
}

Interpolation::Interpolation(Grid const& fine, Grid const& coarse, Dtype dtype)
    : fine_(fine), coarse_(coarse), dtype_(dtype), around_(coarse_around(fine, coarse)) {
  auto forest = comm::StarForest::from_index_sets(fine.layout().comm(), coarse.owned().points(), coarse.partition().to_box(around_),
                                                  around_.points(), coarse.ghosts().transport());
  forest.set_name("coarse points of a grid");
  from_coarse_ = comm::QueuedForest(std::move(forest));
}

void Interpolation::interpolate(Vector const& x, Vector& y, bool adds) const {
  static int const event = profile::event("Interpolate");
  auto const& queue = y.queue();
  auto const k = x.columns();
  double const bytes = double(size_of(dtype_)) * double(k);
  profile::Scope const scope(event, bytes * double(y.local_size() + x.local_size()), 0);
  comm::collective(range().comm(), "interpolation", [&] {
    require_layout(x, domain(), dtype_, "interpolation");
    require_layout(y, range(), dtype_, "interpolation");
    ASTERISM_REQUIRE(x.columns() == y.columns(), shape, "interpolation: x has {} columns, y has {}.", x.columns(), y.columns());
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const values = Array::fresh(queue, std::size_t(around_.points() * k) * sizeof(T));
      from_coarse_.bcast_begin(queue, dtype_, k, x.data(), values).end();
      auto const run = [&](auto const& result) {
        device::submit(queue, kernel::interpolate<T>, refinement(fine_, around_), adds, k, device::read<T>(values), result);
      };
      if (adds) run(device::update<T>(y.data()));
      else run(device::write<T>(y.data()));
    });
  });
}

void Interpolation::apply_transpose(Vector const& x, Vector& y, bool) const {
  static int const event = profile::event("Restrict");
  auto const& queue = y.queue();
  auto const k = x.columns();
  double const bytes = double(size_of(dtype_)) * double(k);
  profile::Scope const scope(event, bytes * double(y.local_size() + x.local_size()), 0);
  comm::collective(range().comm(), "restriction", [&] {
    require_layout(x, range(), dtype_, "restriction");
    require_layout(y, domain(), dtype_, "restriction");
    ASTERISM_REQUIRE(x.columns() == y.columns(), shape, "restriction: x has {} columns, y has {}.", x.columns(), y.columns());
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const values = Array::fresh(queue, std::size_t(around_.points() * k) * sizeof(T));
      device::submit(queue, kernel::restrict_to<T>, refinement(fine_, around_), k, device::read<T>(x.data()), device::write<T>(values));
      fill(y, 0.0);
      from_coarse_.reduce(queue, dtype_, k, values, y.data());
    });
  });
}

std::string Interpolation::describe() const {
  auto const n = coarse_.shape(), m = fine_.shape();
  return format("interpolation from {} x {} x {} to {} x {} x {} points", n[0], n[1], n[2], m[0], m[1], m[2]);
}

}  // namespace asterism::grid
