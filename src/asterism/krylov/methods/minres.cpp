// MINRES, preconditioned: Paige and Saunders (1975); Elman, Silvester and Wathen (2014), alg. 4.1.
#include <cmath>

#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class Minres final : public Method {
 public:
  std::string name() const override { return "minres"; }
  bool needs_symmetric_matrix() const override { return true; }

  // Per iteration: 1 A, 1 M, 3 messages, and about 21 n values moved besides A and M.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto v_old = b.like(), v = b.like(), v_new = b.like(), z = b.like(), z_new = b.like();
    auto w_old = b.like(), w = b.like(), w_new = b.like(), r = b.like();
    for (auto* u : {&v_old, &w_old, &w}) fill(*u, 0.0);
    monitor.initial_residual(A, b, x, v);
    copy(v, r);  // the true residual, by its own recurrence
    if (monitor.stop(0, norm(r))) return;
    M.apply(v, z);
    Scalar gamma2 = real_part(dot(z, v));
    if (monitor.break_down_if(gamma2, Bad::not_positive, Reason::diverged_indefinite_pc,
                              "the preconditioner is not positive definite: r^H M r is not positive"))
      return;
    double gamma = std::sqrt(gamma2.real()), gamma_old = 1;
    double eta = gamma, s_old = 0, s = 0, c_old = 1, c = 1;
    for (std::int64_t k = 1;; ++k) {
      scale(1.0 / gamma, z);
      A.apply(z, v_new);
      double const delta = real_part(dot(v_new, z)).real();
      axpy(-delta / gamma, v, v_new);
      axpy(k == 1 ? 0.0 : -gamma / gamma_old, v_old, v_new);  // Lanczos: v_new = A z - (delta/gamma) v - (gamma/gamma_old) v_old
      M.apply(v_new, z_new);
      double const g2 = real_part(dot(z_new, v_new)).real();
      double const gamma_new = g2 > 0 ? std::sqrt(g2) : 0;  // zero: the Krylov space is exhausted
      double const a0 = c * delta - c_old * s * gamma;      // QR of the tridiagonal matrix, one column
      double const a1 = std::hypot(a0, gamma_new);
      double const a2 = s * delta + c_old * c * gamma;
      double const a3 = s_old * gamma;
      if (a1 == 0) {
        monitor.break_down(Reason::diverged_breakdown, "the Lanczos process ended without a solution: the system is singular");
        return;
      }
      double const c_new = a0 / a1, s_new = gamma_new / a1;
      copy(z, w_new);
      axpy(-a3, w_old, w_new);
      axpy(-a2, w, w_new);
      scale(1.0 / a1, w_new);  // w_new = (z - a3 w_old - a2 w) / a1
      axpy(c_new * eta, w_new, x);
      // r = s^2 r - c eta s v_new / gamma_new (Paige and Saunders): one pass instead of a product
      axpby(gamma_new > 0 ? -c_new * eta * s_new / gamma_new : 0.0, v_new, s_new * s_new, r);
      eta = -s_new * eta;
      if (monitor.stop(k, norm(r))) return;
      if (g2 < 0) {
        monitor.break_down_if(g2, Bad::not_positive, Reason::diverged_indefinite_pc,
                              "the preconditioner is not positive definite: v^H M v is not positive");
        return;
      }
      if (gamma_new == 0) {
        monitor.break_down(Reason::diverged_breakdown, "the Krylov space is exhausted before convergence: the system is singular");
        return;
      }
      std::swap(v_old, v);
      std::swap(v, v_new);
      std::swap(z, z_new);
      std::swap(w_old, w);
      std::swap(w, w_new);
      gamma_old = gamma;
      gamma = gamma_new;
      c_old = c, c = c_new;
      s_old = s, s = s_new;
    }
  }
};

}  // namespace

MethodEntry minres_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<Minres>(); }, &none,
          "minimal residuals; A Hermitian, may be indefinite; the preconditioner positive definite"};
}

}  // namespace asterism::krylov
