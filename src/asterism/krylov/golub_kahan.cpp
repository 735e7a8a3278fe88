#include "asterism/krylov/golub_kahan.hpp"

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

GolubKahan::GolubKahan(la::Operator const& A, la::Vector const& b, la::Vector const& x, char const* method)
    : u(b.like()), v(x.like()), A_(A), Av_(b.like()), Au_(x.like()) {
  la::require_layout(b, A.range(), A.dtype(), "least squares: b");
  la::require_layout(x, A.domain(), A.dtype(), "least squares: x");
  ASTERISM_REQUIRE(b.columns() == 1 && x.columns() == 1, unsupported, "{}: one column at a time; b has {}, x has {}.", method, b.columns(),
                   x.columns());
  auto const bad = la::look_at_entries(b), guess = la::look_at_entries(x);
  ASTERISM_REQUIRE(bad.not_finite == 0, value, "{}: b has {} entries that are NaN or infinite; the first is in row {}.", method,
                   bad.not_finite, bad.first_not_finite);
  ASTERISM_REQUIRE(guess.not_finite == 0, value, "{}: the initial guess has {} entries that are NaN or infinite; the first is in row {}.",
                   method, guess.not_finite, guess.first_not_finite);
  if (guess.all_zero) copy(b, u);
  else A.residual(b, x, u);
  beta = normalise(u);
  if (beta > 0) {
    A.apply_transpose(u, v, true);
    alpha = normalise(v);
  } else {
    fill(v, 0.0);
  }
}

void GolubKahan::step() {
  A_.apply(v, Av_);
  axpby(1.0, Av_, -alpha, u);
  beta = normalise(u);
  if (beta == 0) return;
  A_.apply_transpose(u, Au_, true);
  axpby(1.0, Au_, -beta, v);
  alpha = normalise(v);
}

int stop_now(LeastSquaresInfo const& info, LeastSquaresRule const& rule, std::int64_t max_it, double norm_b, la::Vector const& b,
             char const* method) {
  if (info.iterations % 16 == 0 && b.comm().max(std::int64_t(interrupt_requested())) > 0)
    fail(ErrorKind::interrupted, "interrupted at iteration {}", info.iterations);
  if (!std::isfinite(info.residual_norm + info.normal_norm))
    fail(ErrorKind::value, "{}: the norms became {} and {} at iteration {}: the matrix has entries that are not finite.", method,
         info.residual_norm, info.normal_norm, info.iterations);
  // the rules of Paige and Saunders; those with 1 + are those of the last bit
  double const scaled = info.norm_A * info.norm_x / norm_b;
  double const test1 = info.residual_norm / norm_b;
  double const test2 = info.residual_norm > 0 ? info.normal_norm / (info.norm_A * info.residual_norm) : 0;
  double const test3 = 1 / info.cond_A, t1 = test1 / (1 + scaled);
  double const eps = epsilon_of(b.dtype()) / 2;
  int stop = 0;
  if (info.iterations >= max_it) stop = 7;
  if (test3 <= eps) stop = 6;
  if (test2 <= eps) stop = 5;
  if (t1 <= eps) stop = 4;
  if (rule.conlim > 0 && test3 <= 1 / rule.conlim) stop = 3;
  if (test2 <= rule.atol) stop = 2;
  if (test1 <= rule.btol + rule.atol * scaled) stop = 1;
  return stop;
}

}  // namespace asterism::krylov
