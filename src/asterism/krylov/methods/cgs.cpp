// Conjugate gradients squared with right preconditioning: Sonneveld (1989); Saad (2003), alg. 7.6.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class ConjugateGradientsSquared final : public Method {
 public:
  std::string name() const override { return "cgs"; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }
  Stagnation stagnation(std::int64_t) const override { return short_recurrences; }

  // Per iteration: 2 A, 2 M, 2 messages, and 31 n values moved besides A and M.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like(), r0 = b.like(), p = b.like(), q = b.like(), u = b.like(), v = b.like(), hat = b.like();
    monitor.initial_residual(A, b, x, r);
    Scalar rr = real_part(dot(r, r));
    if (monitor.stop(0, sqrt(rr))) return;
    for (auto* y : {&p, &u}) copy(r, *y);
    Scalar rho = choose_shadow(monitor, r, r0);  // rho = (r0, r)
    for (std::int64_t k = 1;; ++k) {
      M.apply(p, hat);
      A.apply(hat, v);  // v = A M p
      Scalar const sigma = dot(r0, v);
      if (monitor.break_down_if(abs(sigma), Bad::zero, Reason::start_again, "(r0, A M p) is zero")) return;
      Scalar const alpha = select(monitor.active(), rho / sigma, 0.0).stored(queue);
      copy(u, q);
      axpy(-alpha, v, q);  // q = u - alpha v
      axpy(1.0, q, u);     // u + q
      M.apply(u, hat);
      A.apply(hat, v);
      axpy(alpha, hat, x);  // x += alpha M (u + q)
      axpy(-alpha, v, r);   // r -= alpha A M (u + q)
      std::pair<Vector const*, Vector const*> const pairs[] = {{&r, &r}, {&r0, &r}};
      auto const d = dots(pairs);
      rr = real_part(d[0]);
      if (monitor.stop(k, sqrt(rr))) return;
      if (monitor.break_down_if(abs(rho), Bad::zero, Reason::start_again, "(r0, r) is zero")) return;
      Scalar const beta = select(monitor.active(), d[1] / rho, 0.0).stored(queue);
      copy(r, u);
      axpy(beta, q, u);  // u = r + beta q
      aypx(beta, q, p);
      aypx(beta, u, p);  // p = u + beta (q + beta p)
      rho = d[1];
    }
  }
};

}  // namespace

MethodEntry cgs_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<ConjugateGradientsSquared>(); }, &none,
          "conjugate gradients squared; any matrix, short recurrences, a rough convergence"};
}

}  // namespace asterism::krylov
