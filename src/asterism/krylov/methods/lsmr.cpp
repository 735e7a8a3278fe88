// LSMR: Fong and Saunders (2011).
#include <algorithm>
#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/krylov/golub_kahan.hpp"

namespace asterism::krylov {

LeastSquaresInfo lsmr(la::Operator const& A, la::Vector const& b, la::Vector& x, LeastSquaresRule const& rule,
                      std::function<void(std::int64_t, double, double)> const& watch) {
  static int const event = profile::event("LeastSquares");
  profile::Scope const scope(event);
  GolubKahan g(A, b, x, rule, watch, "lsmr");
  auto& info = g.info;
  auto const& v = g.v;
  double const &alpha = g.alpha, &beta = g.beta;  // of the step that was last
  double const damp = rule.damp;
  auto h = x.like(), hbar = x.like();
  copy(v, h);
  fill(hbar, 0.0);
  double zetabar = alpha * beta, alphabar = alpha, rho = 1, rhobar = 1, cbar = 1, sbar = 0;
  // of the estimate of the residual's norm
  double betadd = beta, betad = 0, rhodold = 1, tautildeold = 0, thetatilde = 0, zeta = 0, d = 0;
  double norm_A2 = alpha * alpha, largest = 0, smallest = 1e300;
  while (!g.ended(x)) {
    g.step();
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
  }
  return info;
}

}  // namespace asterism::krylov
