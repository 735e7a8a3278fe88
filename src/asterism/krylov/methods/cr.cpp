// Conjugate residuals: Stiefel (1955); Saad (2003), alg. 6.20, for M A, which is self-adjoint in the inner product of M^-1.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class ConjugateResiduals final : public Method {
 public:
  std::string name() const override { return "cr"; }
  bool needs_symmetric_matrix() const override { return true; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }

  // Per iteration: 1 A, 2 M, 3 messages, and 16 n values moved besides A and M. One M would do if M r were carried on by a
  // recurrence, but that stalls where M is less precise than A (a float32 cycle).
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like(), z = b.like(), p = b.like(), Az = b.like(), Ap = b.like(), MAp = b.like();
    monitor.initial_residual(A, b, x, r);
    if (monitor.stop(0, norm(r))) return;
    M.apply(r, z);
    A.apply(z, Az);
    copy(z, p);
    copy(Az, Ap);
    Scalar rho = real_part(dot(z, Az));
    for (std::int64_t k = 1;; ++k) {
      if (monitor.break_down_if(abs(rho), Bad::zero, Reason::diverged_breakdown, "(M r, A M r) is zero: A is indefinite; try minres"))
        return;
      M.apply(Ap, MAp);
      Scalar const sigma = real_part(dot(Ap, MAp));
      if (monitor.break_down_if(sigma, Bad::not_positive, Reason::diverged_indefinite_pc,
                                "the preconditioner is not positive definite: (A p)^H M A p is not positive"))
        return;
      Scalar const active = monitor.active();
      Scalar const alpha = select(active, rho / sigma, 0.0).stored(queue);
      Scalar const rr = update_and_norm2(alpha, p, Ap, x, r);  // x += alpha p, r -= alpha A p
      if (monitor.stop(k, sqrt(rr))) return;
      M.apply(r, z);
      A.apply(z, Az);
      Scalar const next = real_part(dot(z, Az));
      Scalar const beta = select(active, next / rho, 0.0).stored(queue);
      aypx(beta, z, p);    // p = z + beta p
      aypx(beta, Az, Ap);  // A p without a product
      rho = next;
    }
  }
};

}  // namespace

MethodEntry cr_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<ConjugateResiduals>(); }, &none,
          "conjugate residuals; as cg, but the residual, measured by the preconditioner, falls in every step"};
}

}  // namespace asterism::krylov
