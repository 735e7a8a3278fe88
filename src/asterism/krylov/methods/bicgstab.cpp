// BiCGStab with right preconditioning: van der Vorst (1992); Saad (2003), alg. 7.7.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class BiCGStab final : public Method {
 public:
  std::string name() const override { return "bicgstab"; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }
  Stagnation stagnation(std::int64_t) const override { return short_recurrences; }

  // Per iteration: 2 A, 2 M, 4 messages, and about 22 n values moved besides A and M.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like(), r0 = b.like(), p = b.like(), v = b.like(), s_hat = b.like(), p_hat = b.like(), t = b.like();
    monitor.initial_residual(A, b, x, r);
    Scalar rr = real_part(dot(r, r));
    if (monitor.stop(0, sqrt(rr))) return;
    copy(r, p);
    Scalar rho = choose_shadow(monitor, r, r0);  // rho = (r0, r)
    Scalar r0_norm2 = rr;                        // of its own values too
    for (std::int64_t k = 1;; ++k) {
      M.apply(p, p_hat);
      A.apply(p_hat, v);  // v = A M p
      Scalar const sigma = dot(r0, v);
      if (monitor.break_down_if(abs(sigma), Bad::zero, Reason::start_again, "(r0, A M p) is zero")) return;
      Scalar const alpha = select(monitor.active(), rho / sigma, 0.0);
      axpy(-alpha, v, r);  // r becomes s = r - alpha v
      M.apply(r, s_hat);
      A.apply(s_hat, t);  // t = A M s
      std::pair<Vector const*, Vector const*> const pairs[] = {{&t, &t}, {&t, &r}};
      auto const ts = dots(pairs);
      // s = 0 gives t = 0: the half step was exact, omega plays no part
      Scalar const omega = select(monitor.active(), select(abs(ts[0]), ts[1] / ts[0], 0.0), 0.0);
      axpy(alpha, p_hat, x);
      axpy(omega, s_hat, x);  // x += alpha M p + omega M s
      axpy(-omega, t, r);     // r = s - omega t
      std::pair<Vector const*, Vector const*> const next[] = {{&r, &r}, {&r0, &r}};
      auto const d = dots(next);
      rr = real_part(d[0]);
      if (monitor.stop(k, sqrt(rr))) return;
      if (monitor.break_down_if(abs(omega), Bad::zero, Reason::start_again, "(A M r, r) is zero")) return;
      // (r0, r) nearly zero: the shadow residual has become orthogonal; start again from here
      Scalar const restart = any(less_equal(abs(d[1]), 1e-24 * sqrt(rr * r0_norm2))).stored(queue);
      if (Condition const restarts(queue, restart); restarts) {
        copy(r, r0);
        copy(r, p);
      }
      if (Condition const goes_on(queue, restart, false); goes_on) {
        Scalar const beta = select(monitor.active(), (d[1] / rho) * (alpha / omega), 0.0);
        axpy(-omega, v, p);
        aypx(beta, r, p);  // p = r + beta (p - omega v)
      }
      rho = select(restart, rr, d[1]).stored(queue);
      r0_norm2 = select(restart, rr, r0_norm2).stored(queue);
    }
  }
};

}  // namespace

MethodEntry bicgstab_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<BiCGStab>(); }, &none,
          "stabilised biconjugate gradients; any matrix, short recurrences"};
}

}  // namespace asterism::krylov
