// Chebyshev iteration for a Hermitian positive definite M A: Golub and Varga (1961); Saad (2003), alg. 12.1.
#include <cmath>

#include "asterism/krylov/chebyshev.hpp"
#include "asterism/krylov/method.hpp"

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

  // Per iteration: 1 A, 1 M, 1 message (the norm that the monitor wants), and 9 n values moved.
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const override {
    auto r = b.like(), z = b.like(), d = b.like();
    monitor.initial_residual(A, b, x, r);
    if (monitor.stop(0, norm(r))) return;
    double const hi = hi_ > 0 ? hi_ : 1.1 * largest_eigenvalue(A, M, b);
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
};

}  // namespace

double largest_eigenvalue(Operator const& A, Operator const& M, Vector const& like, int steps) {
  // Lanczos on M A in the M-inner product, through the coefficients of CG for a hashed right-hand side
  Vector r(like.layout(), like.dtype(), 1, like.queue());
  auto z = r.like(), p = r.like(), q = r.like();
  la::fill_hashed(r, 7);
  std::vector<double> diagonal, off;
  M.apply(r, z);
  copy(z, p);
  double rz = real_part(dot(r, z)).real(), alpha_old = 1, beta_old = 0;
  for (int k = 0; k < steps && rz > 0; ++k) {
    A.apply(p, q);
    double const pq = real_part(dot(p, q)).real();
    if (!(pq > 0)) break;
    double const alpha = rz / pq;
    diagonal.push_back(1 / alpha + (k ? beta_old / alpha_old : 0));
    if (k) off.push_back(std::sqrt(beta_old) / alpha_old);
    axpy(-alpha, q, r);
    M.apply(r, z);
    double const rz_new = real_part(dot(r, z)).real();
    beta_old = rz_new / rz;
    alpha_old = alpha;
    rz = rz_new;
    aypx(beta_old, z, p);
  }
  // largest root of the tridiagonal matrix by bisection on the Sturm count
  auto const n = diagonal.size();
  if (n == 0) return 1;
  double lo = 0, hi = 0;
  for (std::size_t i = 0; i < n; ++i) hi = std::max(hi, diagonal[i] + (i ? std::abs(off[i - 1]) : 0) + (i + 1 < n ? std::abs(off[i]) : 0));
  for (int it = 0; it < 60; ++it) {
    double const mid = (lo + hi) / 2;
    int above = 0;
    double d = 1;
    for (std::size_t i = 0; i < n; ++i) {
      d = diagonal[i] - mid - (i ? off[i - 1] * off[i - 1] / d : 0);
      if (d == 0) d = 1e-300;
      above += d > 0;
    }
    (above > 0 ? lo : hi) = mid;
  }
  return hi;
}

MethodEntry chebyshev_entry() {
  return {[](Configuration const& c) {
            auto r = c.reader(chebyshev_table());
            double const hi = r.real("ksp_chebyshev_max"), lo = r.real("ksp_chebyshev_min");
            return std::make_shared<Chebyshev>(lo, hi);
          },
          &chebyshev_table(), "Chebyshev iteration; Hermitian positive definite, no inner products but the norm"};
}

}  // namespace asterism::krylov
