#include "asterism/krylov/lsmr.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/error.hpp"
#include "asterism/base/interrupt.hpp"
#include "asterism/base/profile.hpp"

namespace asterism::krylov {
namespace {

using la::Vector;

struct Rotation {  // (c s; s -c) (a; b) = (r; 0)
  double c, s, r;
  Rotation(double a, double b) : c(1), s(0), r(std::hypot(a, b)) {
    if (r > 0) c = a / r, s = b / r;
  }
};

/// Scales to length 1; returns the length that it had.
double normalise(Vector& v) {
  double const length = norm(v).real();
  if (length > 0) scale(1 / length, v);
  return length;
}

}  // namespace

LeastSquaresInfo lsmr(la::Operator const& A, Vector const& b, Vector& x, LeastSquaresRule const& rule,
                      std::function<void(std::int64_t, double, double)> const& watch) {
  static int const event = profile::event("LeastSquares");
  profile::Scope const scope(event);
  la::require_layout(b, A.range(), A.dtype(), "lsmr: b");
  la::require_layout(x, A.domain(), A.dtype(), "lsmr: x");
  ASTERISM_REQUIRE(b.columns() == 1 && x.columns() == 1, unsupported, "lsmr: one column at a time; b has {}, x has {}.", b.columns(),
                   x.columns());
  auto const bad = la::look_at_entries(b), guess = la::look_at_entries(x);
  ASTERISM_REQUIRE(bad.not_finite == 0, value, "lsmr: b has {} entries that are NaN or infinite; the first is in row {}.", bad.not_finite,
                   bad.first_not_finite);
  ASTERISM_REQUIRE(guess.not_finite == 0, value, "lsmr: the initial guess has {} entries that are NaN or infinite; the first is in row {}.",
                   guess.not_finite, guess.first_not_finite);
  LeastSquaresInfo info;
  auto const max_it = rule.max_it > 0 ? rule.max_it : std::min(A.range().global_size(), A.domain().global_size());
  double const norm_b = norm(b).real(), damp = rule.damp;
  auto u = b.like(), Av = b.like();
  auto v = x.like(), Au = x.like(), h = x.like(), hbar = x.like();
  if (guess.all_zero) copy(b, u);
  else A.residual(b, x, u);
  double beta = normalise(u), alpha = 0;
  if (beta > 0) {
    A.apply_transpose(u, v, true);
    alpha = normalise(v);
  } else {
    fill(v, 0.0);
  }
  copy(v, h);
  fill(hbar, 0.0);
  double zetabar = alpha * beta, alphabar = alpha, rho = 1, rhobar = 1, cbar = 1, sbar = 0;
  // of the estimate of the residual's norm
  double betadd = beta, betad = 0, rhodold = 1, tautildeold = 0, thetatilde = 0, zeta = 0, d = 0;
  double norm_A2 = alpha * alpha, largest = 0, smallest = 1e300;
  info.residual_norm = beta;
  info.normal_norm = alpha * beta;
  info.norm_A = alpha;
  info.norm_x = norm(x).real();
  if (watch) watch(0, info.residual_norm, info.normal_norm);
  if (info.normal_norm == 0) return info;  // x is a solution
  if (norm_b == 0) {
    fill(x, 0.0);
    info.residual_norm = info.normal_norm = info.norm_x = 0;
    return info;
  }
  while (info.iterations < max_it) {
    ++info.iterations;
    // bidiagonalisation of Golub and Kahan
    A.apply(v, Av);
    axpby(1.0, Av, -alpha, u);
    beta = normalise(u);
    if (beta > 0) {
      A.apply_transpose(u, Au, true);
      axpby(1.0, Au, -beta, v);
      alpha = normalise(v);
    }
    Rotation const hat(alphabar, damp);
    double const rho_old = rho;
    Rotation const q(hat.r, beta);
    rho = q.r;
    double const theta_new = q.s * alpha;
    alphabar = q.c * alpha;
    double const rhobar_old = rhobar, zeta_old = zeta, thetabar = sbar * rho, rho_temp = cbar * rho;
    Rotation const bar(cbar * rho, theta_new);
    cbar = bar.c, sbar = bar.s, rhobar = bar.r;
    zeta = cbar * zetabar;
    zetabar = -sbar * zetabar;
    axpby(1.0, h, -thetabar * rho / (rho_old * rhobar_old), hbar);
    axpy(zeta / (rho * rhobar), hbar, x);
    axpby(1.0, v, -theta_new / rho, h);

    double const beta_acute = hat.c * betadd, beta_check = -hat.s * betadd, beta_hat = q.c * beta_acute;
    betadd = -q.s * beta_acute;
    double const thetatilde_old = thetatilde;
    Rotation const tilde(rhodold, thetabar);
    thetatilde = tilde.s * rhobar;
    rhodold = tilde.c * rhobar;
    betad = -tilde.s * betad + tilde.c * beta_hat;
    tautildeold = (zeta_old - thetatilde_old * tautildeold) / tilde.r;
    double const taud = (zeta - thetatilde * tautildeold) / rhodold;
    d += beta_check * beta_check;
    info.residual_norm = std::sqrt(d + (betad - taud) * (betad - taud) + betadd * betadd);
    norm_A2 += beta * beta;
    info.norm_A = std::sqrt(norm_A2);
    norm_A2 += alpha * alpha;
    largest = std::max(largest, rhobar_old);
    if (info.iterations > 1) smallest = std::min(smallest, rhobar_old);
    info.cond_A = std::max(largest, rho_temp) / std::min(smallest, rho_temp);
    info.normal_norm = std::abs(zetabar);
    info.norm_x = norm(x).real();
    if (watch) watch(info.iterations, info.residual_norm, info.normal_norm);
    if (info.iterations % 16 == 0 && b.comm().max(std::int64_t(interrupt_requested())) > 0)
      fail(ErrorKind::interrupted, "interrupted at iteration {}", info.iterations);

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
    if (!std::isfinite(info.residual_norm + info.normal_norm))
      fail(ErrorKind::value, "lsmr: the norms became {} and {} at iteration {}: the matrix has entries that are not finite.",
           info.residual_norm, info.normal_norm, info.iterations);
    if (stop > 0) {
      info.stop = stop;
      return info;
    }
  }
  info.stop = 7;
  return info;
}

}  // namespace asterism::krylov
