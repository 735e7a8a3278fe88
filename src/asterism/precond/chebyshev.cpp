#include "asterism/precond/chebyshev.hpp"

#include "asterism/precond/amg/prolongation.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

void chebyshev(Matrix const& A, ChebyshevPolynomial const& p, Vector const& b, Vector& x, Vector& r, Vector& d, bool fresh) {
  double const theta = (p.hi + p.lo) / 2, delta = (p.hi - p.lo) / 2, sigma = theta / delta;
  double rho = 1 / sigma;
  if (fresh) {
    fill(x, 0.0);
    chebyshev_step(0, 1 / theta, p.weights, b, d, x);
  } else {
    A.residual(b, x, r);
    chebyshev_step(0, 1 / theta, p.weights, r, d, x);
  }
  for (std::int64_t k = 1; k < p.degree; ++k) {
    A.residual(b, x, r);
    double const next = 1 / (2 * sigma - rho);
    chebyshev_step(next * rho, 2 * next / delta, p.weights, r, d, x);
    rho = next;
  }
}

namespace {

OptionTable const& table() {
  static OptionTable const t = {
      integer_option("pc_chebyshev_degree", 4, "products with A an application, less one", 1),
      real_option("pc_chebyshev_ratio", 30, "largest over smallest eigenvalue that is damped; the largest is estimated", 1.0001, 1e300),
  };
  return t;
}

// Hermitian positive definite when A is: the residual polynomial is below 1 on (0, hi].
class Chebyshev final : public Preconditioner {
 public:
  Chebyshev(Matrix const& A, std::int64_t degree, double ratio) : Preconditioner(A), A_(A) {
    p_.weights = A.diagonal();
    invert_entries(A, p_.weights, "chebyshev");
    auto const wide = [&](auto tag) {  // the estimate works in double precision
      using T = typename decltype(tag)::type;
      return amg::spectral_radius(amg::rows_of<T>(A.converted(dtype_v<T>)), A.range());
    };
    double const radius = is_complex(dtype_) ? wide(Tag<Complex<double>>{}) : wide(Tag<double>{});
    p_.hi = radius > 0 ? radius : 1;
    p_.lo = p_.hi / ratio;
    p_.degree = degree;
  }
  void apply(Vector const& b, Vector& x) const override {
    auto& w = work(b);
    chebyshev(A_, p_, b, x, w.r, w.d, true);
  }
  std::string describe() const override { return format("chebyshev (degree {} on [{}, {}] of D^-1 A)", p_.degree, p_.lo, p_.hi); }
  std::size_t memory_bytes() const override { return p_.weights.data().bytes(); }

 private:
  struct Work {
    Vector r, d;
  };
  Work& work(Vector const& like) const {
    for (auto& w : work_)
      if (w->r.context() == like.context() && w->r.columns() == like.columns()) return *w;
    work_.push_back(std::make_unique<Work>(Work{like.like(), like.like()}));
    return *work_.back();
  }
  Matrix A_;
  ChebyshevPolynomial p_;
  mutable std::vector<std::unique_ptr<Work>> work_;
};

}  // namespace

PreconditionerEntry chebyshev_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(table());
            return std::make_shared<Chebyshev>(A, r.integer("pc_chebyshev_degree"), r.real("pc_chebyshev_ratio"));
          },
          &table(), "a polynomial in D^-1 A: only products, no sums over ranks"};
}

}  // namespace asterism::precond
