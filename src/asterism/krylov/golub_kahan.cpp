#include "asterism/krylov/golub_kahan.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"
#include "asterism/base/interrupt.hpp"

namespace asterism::krylov {
namespace {

/// Scales to length 1; returns the length that it had.
double normalise(la::Vector& v) {
  double const length = norm(v).real();
  if (length > 0) scale(1 / length, v);
  return length;
}

}  // namespace

GolubKahan::GolubKahan(la::Operator const& A, la::Vector const& b, la::Vector const& x, LeastSquaresRule const& rule, Watch const& watch,
                       char const* method)
    : u(b.like()), v(x.like()), A_(A), rule_(rule), watch_(watch), method_(method), Av_(b.like()), Au_(x.like()) {
  la::require_layout(b, A.range(), A.dtype(), "least squares: b");
  la::require_layout(x, A.domain(), A.dtype(), "least squares: x");
  ASTERISM_REQUIRE(b.columns() == 1 && x.columns() == 1, unsupported, "{}: one column at a time; b has {}, x has {}.", method, b.columns(),
                   x.columns());
  auto const bad = la::look_at_entries(b), guess = la::look_at_entries(x);
  ASTERISM_REQUIRE(bad.not_finite == 0, value, "{}: b has {} entries that are NaN or infinite; the first is in {}.", method, bad.not_finite,
                   b.space().entry_name(bad.first_not_finite));
  ASTERISM_REQUIRE(guess.not_finite == 0, value, "{}: the initial guess has {} entries that are NaN or infinite; the first is in {}.",
                   method, guess.not_finite, x.space().entry_name(guess.first_not_finite));
  if (guess.all_zero()) copy(b, u);
  else A.residual(b, x, u);
  beta = normalise(u);
  if (beta > 0) {
    A.apply_transpose(u, v, true);
    alpha = normalise(v);
  } else {
    fill(v, 0.0);
  }
  max_it_ = rule.max_it > 0 ? rule.max_it : std::min(A.range().global_size(), A.domain().global_size());
  norm_b_ = norm(b).real();
  info.residual_norm = beta;
  info.normal_norm = alpha * beta;
  info.norm_A = alpha;
}

void GolubKahan::step() {
  ++info.iterations;
  A_.apply(v, Av_);
  axpby(1.0, Av_, -alpha, u);
  beta = normalise(u);
  if (beta == 0) return;
  A_.apply_transpose(u, Au_, true);
  axpby(1.0, Au_, -beta, v);
  alpha = normalise(v);
}

bool GolubKahan::ended(la::Vector& x) {
  info.norm_x = norm(x).real();
  if (watch_) watch_(info.iterations, info.residual_norm, info.normal_norm);
  if (info.iterations == 0) {
    if (info.normal_norm == 0) return true;  // x is a solution
    if (norm_b_ > 0) return false;
    fill(x, 0.0);
    info.residual_norm = info.normal_norm = info.norm_x = 0;
    return true;
  }
  if (info.iterations % 16 == 0) {
    auto const all = Interrupt(x.comm().max(std::int64_t(interrupt_requested())));
    if (all == Interrupt::user) fail(ErrorKind::interrupted, "interrupted at iteration {}", info.iterations);
    if (all == Interrupt::time_limit) fail(ErrorKind::time_limit, "the time was over at iteration {}", info.iterations);
  }
  if (!std::isfinite(info.residual_norm + info.normal_norm))
    fail(ErrorKind::value, "{}: the norms became {} and {} at iteration {}: the matrix has entries that are not finite.", method_,
         info.residual_norm, info.normal_norm, info.iterations);
  info.stop = rule_that_holds();
  return info.stop > 0;
}

int GolubKahan::rule_that_holds() const {
  // the rules of Paige and Saunders; those with 1 + are those of the last bit
  double const scaled = info.norm_A * info.norm_x / norm_b_;
  double const test1 = info.residual_norm / norm_b_;
  double const test2 = info.residual_norm > 0 ? info.normal_norm / (info.norm_A * info.residual_norm) : 0;
  double const test3 = 1 / info.cond_A, t1 = test1 / (1 + scaled);
  double const eps = epsilon_of(u.dtype()) / 2;
  int stop = 0;
  if (info.iterations >= max_it_) stop = 7;
  if (test3 <= eps) stop = 6;
  if (test2 <= eps) stop = 5;
  if (t1 <= eps) stop = 4;
  if (rule_.conlim > 0 && test3 <= 1 / rule_.conlim) stop = 3;
  if (test2 <= rule_.atol) stop = 2;
  if (test1 <= rule_.btol + rule_.atol * scaled) stop = 1;
  return stop;
}

}  // namespace asterism::krylov
