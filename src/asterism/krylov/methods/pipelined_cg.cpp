// Pipelined conjugate gradients: Ghysels and Vanroose (2014), alg. 4. One message per iteration, under way while M and A are applied.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class PipelinedCG final : public Method {
 public:
  std::string name() const override { return "pipecg"; }
  bool needs_symmetric_matrix() const override { return true; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }

  // Per iteration: 1 A, 1 M, 1 message overlapped with both, and 29 n values moved besides A and M. The recurrences lose accuracy: where
  // that stops the residual, all are computed afresh and the directions kept (residual replacement: Cools, Cornelis and Vanroose 2019);
  // where it ends the method, or the true residual misses the target, the caller goes on from x.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like(), u = b.like(), w = b.like(), m = b.like(), n = b.like();
    auto z = b.like(), q = b.like(), s = b.like(), p = b.like();
    monitor.initial_residual(A, b, x, r);
    M.apply(r, u);
    A.apply(u, w);
    for (auto* v : {&z, &q, &s, &p}) fill(*v, 0.0);
    Scalar gamma_old = 1.0, alpha_old = 1.0;
    constexpr auto lost = "r^H M r or p^H A p is not positive";
    for (std::int64_t k = 0;; ++k) {
      std::pair<Vector const*, Vector const*> const pairs[] = {{&r, &u}, {&u, &w}, {&r, &r}};
      auto flight = dots_begin(pairs);
      M.apply(w, m);
      A.apply(m, n);
      auto const sums = flight.end();
      Scalar const gamma = real_part(sums[0]), delta = real_part(sums[1]);
      if (monitor.stop(k, sqrt(real_part(sums[2])))) return;
      if (monitor.break_down_if(gamma, Bad::not_positive, Reason::start_again, lost)) return;
      Scalar const beta = k == 0 ? Scalar(0.0) : select(monitor.active(), gamma / gamma_old, 0.0).stored(queue);
      Scalar const curvature = k == 0 ? delta : delta - beta * gamma / alpha_old;  // p^H A p
      if (monitor.break_down_if(select(monitor.active(), curvature, 1.0), Bad::not_positive, Reason::start_again, lost)) return;
      Scalar const alpha = select(monitor.active(), gamma / curvature, 0.0).stored(queue);
      aypx(beta, n, z);  // z = A q
      aypx(beta, m, q);  // q = M s
      aypx(beta, w, s);  // s = A p
      aypx(beta, u, p);
      axpy(alpha, p, x);
      axpy(-alpha, s, r);
      axpy(-alpha, q, u);
      axpy(-alpha, z, w);
      if (Condition const replaced(queue, monitor.stalling()); replaced) {
        A.residual(b, x, r);
        M.apply(r, u);
        A.apply(u, w);
        A.apply(p, s);
        M.apply(s, q);
        A.apply(q, z);
      }
      gamma_old = gamma;
      alpha_old = select(monitor.active(), alpha, 1.0);
    }
  }
};

}  // namespace

MethodEntry pipecg_entry() {
  static OptionTable const none;
  return {[](Configuration const&) { return std::make_shared<PipelinedCG>(); }, &none,
          "pipelined conjugate gradients: one message per iteration, hidden behind A and M; A and the preconditioner Hermitian positive "
          "definite"};
}

}  // namespace asterism::krylov
