// LSQR: Paige and Saunders (1982).
#include <algorithm>
#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/krylov/golub_kahan.hpp"

namespace asterism::krylov {

LeastSquaresInfo lsqr(la::Operator const& A, la::Vector const& b, la::Vector& x, LeastSquaresRule const& rule,
                      std::function<void(std::int64_t, double, double)> const& watch) {
  static int const event = profile::event("LeastSquares");
  profile::Scope const scope(event);
  GolubKahan g(A, b, x, rule, watch, "lsqr");
  auto& info = g.info;
  double const damp = rule.damp;
  auto w = x.like();
  copy(g.v, w);
  double rhobar = g.alpha, phibar = g.beta;
  double norm_A2 = 0, norm_D2 = 0;  // Frobenius norms of (A; damp I) and of the matrix of the directions w / rho
  double damped2 = 0;               // what damping adds to the square of the residual's norm
  while (!g.ended(x)) {
    norm_A2 += g.alpha * g.alpha + damp * damp;
    g.step();
    norm_A2 += g.beta * g.beta;
    Rotation const hat(rhobar, damp);  // of damp, then of the subdiagonal
    double const psi = hat.s * phibar;
    phibar *= hat.c;
    Rotation const q(hat.r, g.beta);
    double const theta = q.s * g.alpha, phi = q.c * phibar;
    rhobar = -q.c * g.alpha;
    phibar *= q.s;
    double const norm_w = norm(w).real() / q.r;
    norm_D2 += norm_w * norm_w;
    axpy(phi / q.r, w, x);
    axpby(1.0, g.v, -theta / q.r, w);

    damped2 += psi * psi;
    info.residual_norm = std::sqrt(phibar * phibar + damped2);
    info.normal_norm = g.alpha * std::abs(q.s * phi);
    info.norm_A = std::sqrt(norm_A2);
    info.cond_A = info.norm_A * std::sqrt(norm_D2);
  }
  return info;
}

}  // namespace asterism::krylov
