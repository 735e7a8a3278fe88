#include "asterism/solve/least_squares.hpp"

#include <cmath>

#include "asterism/solve/scaling.hpp"

namespace asterism::solve {
namespace {

/// The largest entry, or, where there are none to see, that of a product with a vector of entries in (-1, 1).
double size_of(la::Operator const& A) {
  if (auto const* const matrix = A.matrix()) return matrix->largest_entry();
  la::Vector x(A.domain(), A.dtype()), product(A.range(), A.dtype());
  fill_hashed(x, 1);
  A.apply(x, product);
  return look_at_entries(product).largest[0];
}

}  // namespace

krylov::LeastSquaresInfo least_squares(bool by_lsqr, std::shared_ptr<la::Operator const> const& A, la::Vector const& b, la::Vector& x,
                                       krylov::LeastSquaresRule const& rule,
                                       std::function<void(std::int64_t, double, double)> const& watch) {
  auto const solve = by_lsqr ? krylov::lsqr : krylov::lsmr;
  double const size = size_of(*A);
  MatrixScale const scale{scaling_exponent(size, A->dtype()), false};
  ScaledColumns const columns(scale, std::ldexp(size, scale.exponent), look_at_entries(b), look_at_entries(x), A->dtype());
  if (columns.nothing_to_do() || b.columns() != 1) return solve(*A, b, x, rule, watch);
  auto const scaled_A = scaled(A, scale);
  auto y = columns.scaled_guess(x);
  auto scaled_rule = rule;
  scaled_rule.damp = std::ldexp(rule.damp, scale.exponent);
  double const unit = columns.unit(0), of_normal = std::ldexp(unit, -scale.exponent);
  auto watch_scaled = watch;
  if (watch) watch_scaled = [&](std::int64_t it, double r, double n) { watch(it, r * unit, n * of_normal); };
  auto info = solve(*scaled_A, columns.scaled_b(b), y, scaled_rule, watch_scaled);
  columns.unscale(y, x);
  info.residual_norm *= unit;
  info.normal_norm *= of_normal;
  info.norm_A = std::ldexp(info.norm_A, -scale.exponent);
  info.norm_x = std::ldexp(info.norm_x * unit, scale.exponent);
  return info;
}

}  // namespace asterism::solve
