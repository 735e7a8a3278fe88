// Biconjugate gradients: Fletcher (1976); Saad (2003), alg. 7.3, with a preconditioner.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class BiconjugateGradients final : public Method {
 public:
  std::string name() const override { return "bicg"; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }
  Stagnation stagnation(std::int64_t) const override { return short_recurrences; }

  // Per iteration: A, A^H, M, M^H, 3 messages, and 19 n values moved besides A and M.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like(), z = b.like(), p = b.like(), q = b.like();
    auto rs = b.like(), zs = b.like(), ps = b.like(), qs = b.like();  // of the shadow system A^H
    monitor.initial_residual(A, b, x, r);
    if (monitor.stop(0, norm(r))) return;
    choose_shadow(monitor, r, rs);
    for (auto* v : {&p, &ps}) fill(*v, 0.0);
    Scalar rho = 1.0;
    for (std::int64_t k = 1;; ++k) {
      M.apply(r, z);
      M.apply_transpose(rs, zs, true);
      Scalar const next = dot(rs, z);
      if (monitor.break_down_if(abs(next), Bad::zero, Reason::start_again, "(r*, M r) is zero")) return;
      Scalar const beta = k == 1 ? Scalar(0.0) : select(monitor.active(), next / rho, 0.0).stored(queue);
      aypx(beta, z, p);
      aypx(conj(beta), zs, ps);
      A.apply(p, q);
      A.apply_transpose(ps, qs, true);
      Scalar const sigma = dot(ps, q);
      if (monitor.break_down_if(abs(sigma), Bad::zero, Reason::start_again, "(p*, A p) is zero")) return;
      Scalar const alpha = select(monitor.active(), next / sigma, 0.0).stored(queue);
      Scalar const rr = update_and_norm2(alpha, p, q, x, r);  // x += alpha p, r -= alpha A p
      if (monitor.stop(k, sqrt(rr))) return;
      axpy(-conj(alpha), qs, rs);
      rho = next;
    }
  }
};

}  // namespace

MethodEntry bicg_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<BiconjugateGradients>(); }, &none,
          "biconjugate gradients; any matrix with its transpose, short recurrences"};
}

}  // namespace asterism::krylov
