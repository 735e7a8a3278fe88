#include "asterism/grid/star_operator.hpp"

#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/grid/colouring.hpp"
#include "asterism/grid/interpolation.hpp"
#include "asterism/grid/star_operator.kernels.hpp"
#include "asterism/la/adjoint.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Array;
using la::Epilogue;
using la::Vector;

/// Where the ghosts across each face stand in vectors of the grid's space.
kernel::StarBox box_of(Grid const& grid) {
  auto const& p = grid.partition();
  int const me = grid.layout().comm().rank();
  auto const own = grid.owned().sizes();
  kernel::StarBox box{{own[0], own[1], own[2]}, {}};
  for (std::size_t d = 0; d < 3; ++d)
    for (int up = 0; up < 2; ++up) {
      std::array<int, 3> side{};
      side[d] = up ? 1 : -1;
      auto const slab = p.slab(me, side);
      auto& face = box.faces[d][up];
      face = {-1, 0, 0};
      if (slab.points() == 0) continue;
      i64 const layer = up ? 0 : slab.size[d] - 1;  // the one beside the box
      std::array<i64, 3> const stride{slab.size[1] * slab.size[2], slab.size[2], 1};
      face = {slab.first + layer * stride[d], stride[d == 0 ? 1 : 0], stride[d == 2 ? 1 : 2]};
    }
  return box;
}

}  // namespace

StarOperator::StarOperator(Grid const& grid, double centre, std::array<double, 3> const& sides, Dtype dtype)
    : grid_(grid), centre_(centre), sides_(sides), dtype_(dtype) {
  auto const& comm = grid.layout().comm();
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(grid.width() >= 1, value, "a star operator needs ghost points at least 1 deep; those of the grid are {} deep.",
                     grid.width());
    ASTERISM_REQUIRE(std::isfinite(centre) && std::isfinite(sides[0]) && std::isfinite(sides[1]) && std::isfinite(sides[2]), value,
                     "the coefficients of a star operator must be finite: {}; {}, {}, {}.", centre, sides[0], sides[1], sides[2]);
  });
  comm::Fact const facts[] = {{"centre", format("{}", centre)}, {"sides", format("{}, {}, {}", sides[0], sides[1], sides[2])}};
  comm::require_same(comm, "star operator", facts);
  // a direction of one point has no other points: its neighbours are the point itself, or zero
  for (std::size_t d = 0; d < 3; ++d) {
    if (grid.shape()[d] > 1) continue;
    if (grid.partition().periodic()[d]) centre_ += 2 * sides_[d];
    sides_[d] = 0;
  }
}

void StarOperator::run(Epilogue e, Vector const& x, Vector& y, Vector const* b, Vector const* w) const {
  static int const event = profile::event("StarMult");
  auto const& queue = y.queue();
  auto const k = x.columns();
  auto const scalar = size_of(dtype_);
  bool const reads_y = e == Epilogue::add;
  profile::Scope const scope(event, double(scalar) * double(y.local_size() * k) * (2.0 + reads_y + (b != nullptr)),
                             double(2 * (2 * grid_.dimensions() + 1)) * double(y.local_size() * k) * (is_complex(dtype_) ? 2 : 1));
  comm::collective(range().comm(), "product of a star operator", [&] {
    check(x, y, b, w);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel::StarCoefficients<T> a{T(real_t<T>(centre_)), {}};
      for (std::size_t d = 0; d < 3; ++d) a.sides[d] = T(real_t<T>(sides_[d]));
      auto const box = box_of(grid_);
      auto const ghosts = la::room_for_ghosts(x, range(), queue);
      auto flight = range().ghost_forest().bcast_begin(queue, dtype_, k, x.data(), ghosts);
      auto const points = [&](kernel::Points which, Array const& ghosts_read, auto const& result) {
        device::submit(queue, kernel::star<T>, box, which, a, e, k, device::read<T>(x.data()), device::read<T>(ghosts_read), result,
                       device::read<T>(b ? b->data() : Array()), device::read<T>(w ? w->data() : Array()));
      };
      // every entry of y is set by one of the two
      if (reads_y) points(kernel::Points::without_ghosts, Array(), device::update<T>(y.data()));
      else points(kernel::Points::without_ghosts, Array(), device::write<T>(y.data()));
      flight.end();
      if (range().ghosts() > 0) points(kernel::Points::with_ghosts, ghosts, device::update<T>(y.data()));
    });
  });
}

void StarOperator::check(Vector const& x, Vector const& y, Vector const* b, Vector const* w) const {
  constexpr char const* what = "product of a star operator";
  for (auto const* const v : {&x, &y, b})
    if (v) {
      require_layout(*v, range(), dtype_, what);
      ASTERISM_REQUIRE(v->columns() == x.columns(), shape, "{}: x has {} columns, y or b has {}.", what, x.columns(), v->columns());
    }
  if (w) {
    require_layout(*w, range(), dtype_, what);
    ASTERISM_REQUIRE(w->columns() == 1, shape, "{}: weights have one column, not {}.", what, w->columns());
  }
  la::require_distinct(what, "x", x, "y", y);
  if (b) la::require_distinct(what, "b", *b, "the result", y);
  if (w) la::require_distinct(what, "w", *w, "the result", y);
}

void StarOperator::apply(Vector const& x, Vector& y) const { run(Epilogue::assign, x, y, nullptr, nullptr); }
void StarOperator::apply_transpose(Vector const& x, Vector& y, bool) const { apply(x, y); }
void StarOperator::apply_add(Vector const& x, Vector& y) const { run(Epilogue::add, x, y, nullptr, nullptr); }
void StarOperator::residual(Vector const& b, Vector const& x, Vector& r) const { run(Epilogue::residual, x, r, &b, nullptr); }
void StarOperator::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const { run(Epilogue::smooth, x, y, &b, &w); }

Vector StarOperator::diagonal() const {
  Vector d(range(), dtype_);
  fill(d, centre_);
  return d;
}

std::optional<double> StarOperator::eigenvalue_bound() const {
  if (centre_ == 0) return std::nullopt;
  return 1 + 2 * (std::abs(sides_[0]) + std::abs(sides_[1]) + std::abs(sides_[2])) / std::abs(centre_);
}

/// Galerkin's product is near to it: of a second difference 2^d / 4 in d directions, of a mass 2^d.
std::optional<la::Operator::Coarse> StarOperator::coarse(la::CoarseRule const& rule) const {
  ASTERISM_REQUIRE_ALIKE(rule.by != la::CoarseRule::By::galerkin, unsupported,
                         "{} is discretised again on coarser grids; a stencil of am.stencil.operator knows Galerkin's product.",
                         describe());
  auto const grid = Interpolation::coarsened(grid_, rule.rows_per_rank);
  if (!grid) return std::nullopt;
  auto const mass = centre_ + 2 * (sides_[0] + sides_[1] + sides_[2]);
  double points = 1;  // fine ones for a coarse one
  for (auto const n : grid_.shape()) points *= n > 1 ? 2 : 1;
  auto sides = sides_;
  for (auto& s : sides) s *= points / 4;
  auto const P = std::make_shared<Interpolation const>(grid_, *grid, dtype_);
  double const centre = points * mass - 2 * (sides[0] + sides[1] + sides[2]);
  return Coarse{std::make_shared<StarOperator const>(*grid, centre, sides, dtype_), P, std::make_shared<la::Adjoint const>(P)};
}

std::vector<Vector> StarOperator::colours() const {
  int const count = colour_count(grid_.shape(), grid_.partition().periodic(), Colouring::red_black);
  return colour_vectors(range(), dtype_, count, Colouring::red_black, [box = grid_.owned()](auto const& f) {
    std::int64_t place = 0;
    for (auto i = box.low[0]; i < box.high[0]; ++i)
      for (auto j = box.low[1]; j < box.high[1]; ++j)
        for (auto k = box.low[2]; k < box.high[2]; ++k) f(place++, Triple{i, j, k});
  });
}

std::string StarOperator::describe() const {
  auto const n = grid_.shape();
  return format("star of {} points on a grid of {} x {} x {}, {}", 2 * grid_.dimensions() + 1, n[0], n[1], n[2], name_of(dtype_));
}

}  // namespace asterism::grid
