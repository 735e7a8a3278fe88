#include "asterism/solve/refinement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/base/complex.hpp"

namespace asterism::solve {
namespace {

using la::Matrix;
using la::Vector;

Vector magnitudes(Vector const& v) {
  auto out = v.like();
  with_dtype(v.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const from = v.host<T>();
    auto const to = out.template host<T>();
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = T(magnitude(from[i]));
  });
  return out;
}

/// scale[i] /= sqrt(scale[i] sums[i]), within the range of numbers. Returns how far a scaled sum was from 1, as a factor.
double towards_one(Vector const& sums, Vector& scale) {
  double farthest = 1;
  with_dtype(sums.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    double const most = sizeof(real_t<T>) == 4 ? 1e15 : 1e120;
    auto const sum = sums.host<T>();
    auto const to = scale.template host<T>();
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double const before = magnitude(to[i]), scaled = before * double(magnitude(sum[i]));
      if (scaled == 0) continue;
      farthest = std::max({farthest, scaled, 1 / scaled});
      to[i] = T(real_t<T>(std::clamp(before / std::sqrt(scaled), 1 / most, most)));
    }
  });
  return sums.comm().max(farthest);
}

double largest(std::vector<double> const& all) { return all.empty() ? 0 : *std::max_element(all.begin(), all.end()); }

}  // namespace

Magnitudes magnitudes_of(Matrix const& A) {
  auto const whole = A.half() ? A.general() : A;
  Magnitudes out;
  auto const rows = whole.to_rows();
  std::int64_t longest = 0;
  for (std::size_t i = 0; i + 1 < rows.offsets.size(); ++i) longest = std::max(longest, rows.offsets[i + 1] - rows.offsets[i]);
  auto const count = rows.offsets.back();
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values(static_cast<std::size_t>(count));
    for (std::size_t p = 0; p < values.size(); ++p) values[p] = T(magnitude(rows.values.as<T>()[p]));
    out.entries = whole.with_values(A.dtype(), count, values.data());
  });
  out.column_scale = Vector(A.domain(), A.dtype());
  fill(out.column_scale, 1.0);
  out.row_sums = out.column_scale.like(), out.column_sums = out.column_scale.like();
  out.row_scale = out.column_scale.like();
  fill(out.row_scale, 1.0);
  for (int pass = 0; pass < 12; ++pass) {  // Ruiz (2001), with sums of rows and columns
    out.entries.apply(out.column_scale, out.row_sums);
    out.entries.apply_transpose(out.row_scale, out.column_sums, false);
    double const of_rows = towards_one(out.row_sums, out.row_scale), of_columns = towards_one(out.column_sums, out.column_scale);
    if (std::max(of_rows, of_columns) < 10) break;
  }
  out.entries.apply_transpose(out.row_scale, out.column_sums, false);
  out.entries.apply(out.column_scale, out.row_sums);
  out.rounding_level = epsilon_of(A.dtype()) * double(100 + A.comm().max(longest));
  return out;
}

std::vector<double> Refinement::backward_error(Vector const& b, Vector const& x, Vector& r) const {
  A_.residual(b, x, r);
  auto const size_of_x = magnitudes(x);
  auto product = x.like();
  if (adjoint_) size_.entries.apply_transpose(size_of_x, product, false);
  else size_.entries.apply(size_of_x, product);
  auto const k = std::size_t(b.columns());
  std::vector<double> largest_x(k, 0);  // beside the scale of each unknown
  with_dtype(b.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const xv = x.host<T>(), scale = (adjoint_ ? size_.row_scale : size_.column_scale).template host<T>();
    for (std::size_t e = 0; e < xv.size(); ++e)
      largest_x[e % k] = std::max(largest_x[e % k], double(magnitude(xv[e])) / double(magnitude(scale[e / k])));
  });
  for (auto& l : largest_x) l = b.comm().max(l);
  std::vector<double> mine(2 * k, 0);  // of rows of each kind
  with_dtype(b.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const at = [](auto const& v, std::size_t e) { return double(magnitude(v[e])); };
    auto const bv = b.host<T>(), rv = r.template host<T>(), av = product.template host<T>();
    auto const sums = (adjoint_ ? size_.column_sums : size_.row_sums).template host<T>();
    double const small = 1000 * double(b.global_size()) * epsilon_of(b.dtype());
    for (std::size_t e = 0; e < bv.size(); ++e) {
      auto const j = e % k;
      double const residual = at(rv, e), norms = at(sums, e / k) * largest_x[j], plain = at(av, e) + at(bv, e);
      bool const usual = plain > small * (norms + at(bv, e));
      double const beside = usual ? plain : at(av, e) + norms;
      double const error = residual == 0 ? 0 : residual / beside;  // infinity, of zero
      auto& worst = mine[usual ? j : k + j];
      if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
  });
  std::vector<double> out(k);
  for (auto& m : mine) m = b.comm().max(m);
  for (std::size_t j = 0; j < k; ++j) out[j] = mine[j] + mine[k + j];
  return out;
}

Refined Refinement::refine(la::Operator const& M, Vector const& b, Vector& x, int max_steps) const {
  auto r = b.like(), step = b.like();
  Refined out{backward_error(b, x, r), 0};
  auto& error = out.backward_error;
  double const eps = epsilon_of(b.dtype());
  while (out.steps < max_steps && largest(error) > eps) {
    M.apply(r, step);
    auto next = x.like();
    copy(x, next);
    axpy(1.0, step, next);
    auto const now = backward_error(b, next, r);
    std::vector<la::Scalar::Value> better;
    bool halved = false, any = false;
    for (std::size_t j = 0; j < error.size(); ++j) {
      bool const is_better = now[j] < error[j];
      better.push_back(is_better ? 1.0 : 0.0);
      any = any || is_better;
      halved = halved || (is_better && error[j] > eps && now[j] <= 0.5 * error[j]);  // two infinite ones are no progress
      if (is_better) error[j] = now[j];
    }
    if (any) {
      copy_where(la::Scalar(std::move(better)), next, x);
      ++out.steps;
    }
    if (!halved) break;
    A_.residual(b, x, r);
  }
  return out;
}

}  // namespace asterism::solve
