// Chebyshev iteration for a Hermitian positive definite M A: Golub and Varga (1961); Saad (2003), alg. 12.1.
#include <cmath>

#include "asterism/base/lazy.hpp"
#include "asterism/krylov/method.hpp"
#include "asterism/la/largest_eigenvalue.hpp"

namespace asterism::krylov {
namespace {

OptionTable const& chebyshev_table() {
  static OptionTable const t = {
      real_option("ksp_chebyshev_max", 0, "upper end of the spectrum of M A; 0: estimated", 0),
      real_option("ksp_chebyshev_min", 0, "lower end of the spectrum of M A; 0: max / 30", 0),
  };
  return t;
}

class Chebyshev final : public Method {
 public:
  Chebyshev(double lo, double hi) : lo_(lo), hi_(hi) {}
  std::string name() const override { return "chebyshev"; }
  Stagnation stagnation(std::int64_t) const override { return {.window = 1000, .steady = true}; }
  bool needs_symmetric_matrix() const override { return true; }
  bool blocks_columns() const override { return true; }
  bool asynchronous() const override { return hi_ > 0; }  // an estimate has values on the host
  bool linear() const override { return true; }

  // Per iteration: 1 A, 1 M, 1 message (the norm that the monitor wants), and 9 n values moved.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto r = b.like(), z = b.like(), d = b.like();
    monitor.initial_residual(A, b, x, r);
    if (monitor.stop(0, norm(r))) return;
    double const hi = hi_ > 0 ? hi_ : estimate_.made_by([&] { return 1.1 * la::largest_eigenvalue(A, M, b); });
    double const lo = lo_ > 0 ? lo_ : hi / 30;
    if (!(hi > lo) || !std::isfinite(hi)) {
      monitor.break_down(Reason::diverged_breakdown, format("the interval [{}, {}] for the spectrum of M A is empty", lo, hi));
      return;
    }
    double const theta = (hi + lo) / 2, delta = (hi - lo) / 2, sigma = theta / delta;
    double rho = 1 / sigma;
    M.apply(r, z);
    axpby(1 / theta, z, 0.0, d);
    for (std::int64_t k = 1;; ++k) {
      axpy(select(monitor.active(), 1.0, 0.0), d, x);
      A.residual(b, x, r);
      if (monitor.stop(k, norm(r))) return;
      M.apply(r, z);
      double const rho_new = 1 / (2 * sigma - rho);
      axpby(2 * rho_new / delta, z, rho_new * rho, d);
      rho = rho_new;
    }
  }

 private:
  double lo_, hi_;
  mutable Lazy<double> estimate_;  // of hi, for the A and M of the first solve: a set-up makes its methods anew
};

}  // namespace

MethodEntry chebyshev_entry() {
  return {[](Configuration const& c) {
            auto r = c.reader(chebyshev_table());
            double const hi = r.real("ksp_chebyshev_max"), lo = r.real("ksp_chebyshev_min");
            return std::make_shared<Chebyshev>(lo, hi);
          },
          &chebyshev_table(), "Chebyshev iteration; Hermitian positive definite, no inner products but the norm"};
}

}  // namespace asterism::krylov
