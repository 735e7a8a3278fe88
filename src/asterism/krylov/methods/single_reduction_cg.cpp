// Conjugate gradients with one message per iteration: Chronopoulos and Gear (1989).
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class SingleReductionCG final : public Method {
 public:
  std::string name() const override { return "cg, single reduction"; }
  bool needs_symmetric_matrix() const override { return true; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return true; }

  // Per iteration: 1 A, 1 M, 1 message, and 17 n values moved besides A and M.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like(), u = b.like(), w = b.like(), p = b.like(), s = b.like();
    monitor.initial_residual(A, b, x, r);
    for (auto* v : {&p, &s}) fill(*v, 0.0);
    Scalar gamma_old = 1.0, alpha_old = 1.0;
    for (std::int64_t k = 0;; ++k) {
      M.apply(r, u);
      A.apply(u, w);
      std::pair<Vector const*, Vector const*> const pairs[] = {{&r, &u}, {&u, &w}, {&r, &r}};
      auto const sums = dots(pairs);
      Scalar const gamma = real_part(sums[0]), delta = real_part(sums[1]);
      if (monitor.stop(k, sqrt(real_part(sums[2])))) return;
      if (monitor.break_down_if(gamma, Bad::not_positive, Reason::diverged_indefinite_pc,
                                "the preconditioner is not positive definite: r^H M r is not positive"))
        return;
      Scalar const beta = k == 0 ? Scalar(0.0) : select(monitor.active(), gamma / gamma_old, 0.0).stored(queue);
      Scalar const curvature = k == 0 ? delta : delta - beta * gamma / alpha_old;  // p^H A p
      if (monitor.break_down_if(select(monitor.active(), curvature, 1.0), Bad::not_positive, Reason::diverged_indefinite_mat,
                                "the matrix is not positive definite: p^H A p is not positive"))
        return;
      Scalar const alpha = select(monitor.active(), gamma / curvature, 0.0).stored(queue);
      aypx(beta, u, p);  // p = u + beta p
      aypx(beta, w, s);  // s = A p = w + beta s
      axpy(alpha, p, x);
      axpy(-alpha, s, r);
      gamma_old = gamma;
      alpha_old = select(monitor.active(), alpha, 1.0);
    }
  }
};

}  // namespace

std::shared_ptr<Method> single_reduction_cg() { return std::make_shared<SingleReductionCG>(); }

}  // namespace asterism::krylov
