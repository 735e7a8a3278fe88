// Transpose-free quasi-minimal residuals with right preconditioning: Freund (1993), alg. 5.1; Saad (2003), alg. 7.8.
#include <cmath>

#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class TFQMR final : public Method {
 public:
  std::string name() const override { return "tfqmr"; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }
  bool keeps_iterate() const override { return false; }
  Stagnation stagnation(std::int64_t) const override { return short_recurrences; }

  // Per iteration: 2 A, 2 M, 3 messages, and about 42 n values moved besides A and M. The monitor is given the bound
  // ||r|| <= tau sqrt(2 k + 1); the caller verifies.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r0 = b.like(), w = b.like(), u = b.like(), q = b.like(), v = b.like(), Au = b.like(), Aq = b.like(), d = b.like();
    auto y = b.like(), z = b.like();  // x = x_0 + M y
    monitor.initial_residual(A, b, x, w);
    Scalar const rr = real_part(dot(w, w));
    if (monitor.stop(0, sqrt(rr))) return;
    copy(w, u);
    for (auto* c : {&d, &y}) fill(*c, 0.0);
    auto const apply = [&](Vector const& from, Vector& to) {  // to = A M from
      M.apply(from, z);
      A.apply(z, to);
    };
    apply(u, Au);
    copy(Au, v);
    Scalar rho = choose_shadow(monitor, w, r0), tau = sqrt(rr).stored(queue), theta = 0.0, eta = 0.0, largest = tau;
    double const rounding = 256 * epsilon_of(b.dtype());
    for (std::int64_t k = 1;; ++k) {
      Scalar const sigma = dot(r0, v);
      if (monitor.break_down_if(abs(sigma), Bad::zero, Reason::start_again, "(r0, A M u) is zero")) break;
      Scalar const active = monitor.active();
      Scalar const alpha = select(active, rho / sigma, 0.0).stored(queue);
      // one half step along u or q; norm2 is ||w||^2 of the new w
      auto const half = [&](Vector const& from, auto const& norm2) {
        Scalar const old = select(active, theta * theta * eta / alpha, 0.0);
        aypx(old, from, d);  // d = u or q + (theta^2 eta / alpha) d
        Scalar const norm = sqrt(real_part(norm2));
        largest = max(largest, norm).stored(queue);
        theta = select(tau, norm / tau, 0.0).stored(queue);
        Scalar const c2 = 1.0 / (1.0 + theta * theta);
        tau = (tau * theta * sqrt(c2)).stored(queue);
        eta = select(active, c2 * alpha, 0.0).stored(queue);
        axpy(eta, d, y);
      };
      copy(u, q);
      axpy(-alpha, v, q);  // q = u - alpha v
      axpy(-alpha, Au, w);
      half(u, dot(w, w));
      apply(q, Aq);
      axpy(-alpha, Aq, w);
      std::pair<Vector const*, Vector const*> const pairs[] = {{&w, &w}, {&r0, &w}};
      auto const s = dots(pairs);
      half(q, s[0]);
      if (monitor.needs_iterate()) {
        M.apply(y, z);
        axpy(1.0, z, x);
        fill(y, 0.0);
      }
      if (monitor.stop(k, tau * std::sqrt(2.0 * double(k) + 1))) break;
      // w holds the rounding errors of its largest values: tau says nothing below. What x has reached is verified, and gone on from
      if (monitor.break_down_if(less(rounding * largest, tau), Bad::zero, Reason::start_again,
                                "the residual is lost in the rounding errors of larger ones before it"))
        break;
      if (monitor.break_down_if(abs(rho), Bad::zero, Reason::start_again, "(r0, r) is zero")) break;
      Scalar const beta = select(monitor.active(), s[1] / rho, 0.0).stored(queue);
      rho = s[1];
      copy(w, u);
      axpy(beta, q, u);   // u = w + beta q
      axpy(beta, v, Aq);  // v = A M u + beta (A M q + beta v)
      apply(u, Au);
      copy(Au, v);
      axpy(beta, Aq, v);
    }
    M.apply(y, z);
    axpy(1.0, z, x);
  }
};

}  // namespace

MethodEntry tfqmr_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<TFQMR>(); }, &none,
          "transpose-free quasi-minimal residuals; any matrix, smooth convergence"};
}

}  // namespace asterism::krylov
