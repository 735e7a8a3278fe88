// The Chebyshev polynomial in D^-1 A.
#include "asterism/precond/amg/prolongation.hpp"
#include "asterism/precond/multigrid/chebyshev_polynomial.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

namespace {

OptionTable const& table() {
  static OptionTable const t = {
      integer_option("pc_chebyshev_degree", 4, "steps an application, a product with A each but the first", 1),
      real_option("pc_chebyshev_ratio", 30, "largest over smallest eigenvalue that is damped; the largest is estimated", 1.0001, 1e300),
  };
  return t;
}

// Hermitian positive definite when A is, as far as the estimate holds (1.1 times a Lanczos value, or the largest sum of a row where that
// is sharp): the residual polynomial is below 1 on (0, hi].
class Chebyshev final : public Preconditioner {
 public:
  Chebyshev(Matrix const& A, std::int64_t degree, double ratio) : Preconditioner(A), A_(A) {
    p_.weights = A.diagonal();
    invert_entries(A, p_.weights, "chebyshev");
    auto const wide = [&](auto tag) {  // the estimate works in double precision
      using T = typename decltype(tag)::type;
      // of a matrix that holds half of itself, rows are there for this moment only
      return amg::spectral_radius(amg::rows_of<T>(A.general().converted(dtype_v<T>)), A.range());
    };
    double const radius = is_complex(dtype_) ? wide(Tag<Complex<double>>{}) : wide(Tag<double>{});
    p_.hi = radius > 0 ? radius : 1;
    p_.lo = p_.hi / ratio;
    p_.degree = degree;
  }
  void apply(Vector const& b, Vector& x) const override {
    auto const w = work_.lease(b, [&] { return Work{b.like(), b.like()}; });
    chebyshev(A_, p_, b, x, w->r, w->d, true);
  }
  std::string describe() const override { return format("chebyshev (degree {} on [{}, {}] of D^-1 A)", p_.degree, p_.lo, p_.hi); }
  std::size_t memory_bytes() const override { return p_.weights.data().bytes(); }

 private:
  struct Work {
    Vector r, d;
  };
  Matrix A_;
  ChebyshevPolynomial p_;
  mutable Scratch<Work> work_;
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
