// Generalised conjugate residuals: Eisenstat, Elman and Schultz (1983), with right preconditioning, restarted.
#include "asterism/krylov/method.hpp"

namespace asterism::krylov {
namespace {

class GCR final : public Method {
 public:
  explicit GCR(std::int64_t restart) : restart_(restart) {}
  std::string name() const override { return "gcr"; }
  bool asynchronous() const override { return true; }
  bool flexible() const override { return true; }
  Stagnation stagnation(std::int64_t) const override { return {.window = 10 * restart_, .steady = true}; }

  // Per iteration: 1 A, 1 M, 3 messages, and (3 j + 15) n values moved besides A and M in the j-th since a restart. 2 restart + 1 vectors
  // are stored. x and r are those of the iterate in every step; the residual is the smallest over the directions kept.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto const& queue = b.queue();
    auto r = b.like();
    la::Basis const P(b, restart_), AP(b, restart_);
    std::vector<Scalar> squares;  // (A p_j, A p_j)
    monitor.initial_residual(A, b, x, r);
    if (monitor.stop(0, norm(r))) return;
    for (std::int64_t k = 1;; ++k) {
      auto const j = std::int64_t(squares.size());
      auto p = P[j], Ap = AP[j];
      M.apply(r, p);
      A.apply(p, Ap);
      if (j > 0) {  // A p becomes orthogonal to those before
        auto h = AP.dots(j, Ap);
        for (std::size_t i = 0; i < h.size(); ++i) h[i] = select(monitor.active(), -h[i] / squares[i], 0.0).stored(queue);
        P.add(j, h, p);
        AP.add(j, h, Ap);
      }
      std::pair<Vector const*, Vector const*> const pairs[] = {{&Ap, &Ap}, {&Ap, &r}};
      auto const d = dots(pairs);
      if (monitor.break_down_if(real_part(d[0]), Bad::zero, Reason::diverged_breakdown,
                                "A M r is zero: A or the preconditioner is singular"))
        return;
      Scalar const alpha = select(monitor.active(), d[1] / d[0], 0.0).stored(queue);
      Scalar const rr = update_and_norm2(alpha, p, Ap, x, r);  // x += alpha p, r -= alpha A p
      if (monitor.stop(k, sqrt(rr))) return;
      squares.push_back(real_part(d[0]).stored(queue));
      if (j + 1 == restart_) squares.clear();
    }
  }

 private:
  std::int64_t restart_;
};

}  // namespace

MethodEntry gcr_entry() {
  static OptionTable const t = {integer_option("ksp_gcr_restart", 30, "directions kept", 1)};
  return {[](Configuration const& c) { return std::make_shared<GCR>(c.reader(t).integer("ksp_gcr_restart")); }, &t,
          "generalised conjugate residuals; any matrix, a preconditioner that may change, x in every step"};
}

}  // namespace asterism::krylov
