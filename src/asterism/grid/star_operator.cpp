#include "asterism/grid/star_operator.hpp"

#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"
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
  ASTERISM_REQUIRE(grid.width() >= 1, value, "a star operator needs ghost points at least 1 deep; those of the grid are {} deep.",
                   grid.width());
  for (int d = 0; d < 3; ++d)
    if (d < 3 - grid.dimensions()) sides_[std::size_t(d)] = 0;  // a leading direction of one point
  ASTERISM_REQUIRE(std::isfinite(centre) && std::isfinite(sides_[0]) && std::isfinite(sides_[1]) && std::isfinite(sides_[2]), value,
                   "the coefficients of a star operator must be finite: {}; {}, {}, {}.", centre, sides_[0], sides_[1], sides_[2]);
}

void StarOperator::run(Epilogue e, Vector const& x, Vector& y, Array const& b, Array const& w) const {
  require_layout(x, range(), dtype_, "product of a star operator");
  require_layout(y, range(), dtype_, "product of a star operator");
  ASTERISM_REQUIRE(x.columns() == y.columns(), shape, "product of a star operator: x has {} columns, y has {}.", x.columns(), y.columns());
  ASTERISM_REQUIRE(x.data().raw() != y.data().raw() || y.local_size() == 0, value,
                   "product of a star operator: x and y are the same vector; they must differ.");
  static int const event = profile::event("StarMult");
  auto const& queue = y.queue();
  auto const k = x.columns();
  auto const scalar = size_of(dtype_);
  bool const reads_y = e == Epilogue::add;
  profile::Scope const scope(event, double(scalar) * double(y.local_size() * k) * (2.0 + reads_y + bool(b)),
                             double(2 * (2 * grid_.dimensions() + 1)) * double(y.local_size() * k) * (is_complex(dtype_) ? 2 : 1));
  auto const box = box_of(grid_);
  comm::collective(range().comm(), "product of a star operator", [&] {
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel::StarCoefficients<T> a{T(real_t<T>(centre_)), {}};
      for (std::size_t d = 0; d < 3; ++d) a.sides[d] = T(real_t<T>(sides_[d]));
      auto const ghosts = x.has_ghosts() ? x.ghosts() : Array::fresh(queue, std::size_t(range().ghosts() * k) * scalar);
      auto const flight = range().ghost_exchange().begin<T>(queue, k, x.data(), ghosts);
      auto const points = [&](kernel::Points which, Array const& ghosts_read, auto const& result) {
        device::submit(queue, kernel::star<T>, box, which, a, e, k, device::read<T>(x.data()), device::read<T>(ghosts_read), result,
                       device::read<T>(b), device::read<T>(w));
      };
      // every entry of y is set by one of the two
      if (reads_y) points(kernel::Points::without_ghosts, Array(), device::update<T>(y.data()));
      else points(kernel::Points::without_ghosts, Array(), device::write<T>(y.data()));
      flight.end();
      points(kernel::Points::with_ghosts, ghosts, device::update<T>(y.data()));
    });
  });
}

void StarOperator::apply(Vector const& x, Vector& y) const { run(Epilogue::assign, x, y, {}, {}); }
void StarOperator::apply_transpose(Vector const& x, Vector& y, bool) const { apply(x, y); }
void StarOperator::apply_add(Vector const& x, Vector& y) const { run(Epilogue::add, x, y, {}, {}); }
void StarOperator::residual(Vector const& b, Vector const& x, Vector& r) const { run(Epilogue::residual, x, r, b.data(), {}); }
void StarOperator::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  run(Epilogue::smooth, x, y, b.data(), w.data());
}

Vector StarOperator::diagonal() const {
  Vector d(range(), dtype_);
  fill(d, centre_);
  // a direction of one point that is periodic: its neighbours are itself
  double wrapped = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if (grid_.partition().periodic()[i] && grid_.shape()[i] == 1) wrapped += 2 * sides_[i];
  if (wrapped != 0) fill(d, centre_ + wrapped);
  return d;
}

std::optional<double> StarOperator::eigenvalue_bound() const {
  double const sum = std::abs(centre_) + 2 * (std::abs(sides_[0]) + std::abs(sides_[1]) + std::abs(sides_[2]));
  return sum / std::abs(centre_);
}

/// Galerkin's product is near to it: of a second difference 2^d / 4 in d directions, of a mass 2^d.
std::optional<la::Operator::Coarse> StarOperator::coarse() const {
  auto const grid = Interpolation::coarsened(grid_);
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

std::string StarOperator::describe() const {
  auto const n = grid_.shape();
  return format("star of {} points on a grid of {} x {} x {}, {}", 2 * grid_.dimensions() + 1, n[0], n[1], n[2], name_of(dtype_));
}

}  // namespace asterism::grid
