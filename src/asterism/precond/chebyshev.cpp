// The Chebyshev polynomial in D^-1 A.
#include "asterism/base/lazy.hpp"
#include "asterism/la/adjoint.hpp"
#include "asterism/la/largest_eigenvalue.hpp"
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

/// The largest eigenvalue of D^-1 A, or a bound of it: the operator's own; of one that has neither that nor entries 1.1 times a Lanczos
/// value.
double largest(OperatorPtr const& A) {
  if (auto const bound = A->eigenvalue_bound()) return *bound;
  auto const* const matrix = A->matrix();
  if (!matrix) return 1.1 * la::largest_eigenvalue(*A, *jacobi(*A), Vector(A->range(), A->dtype()));
  Progress progress(format("chebyshev: the largest eigenvalue for {} rows", matrix->global_rows()), 0);
  comm::Cancellation cancel(matrix->comm(), progress);
  auto const wide = [&](auto tag) {  // the estimate works in double precision
    using T = typename decltype(tag)::type;
    // of a matrix that holds half of itself, rows are there for this moment only
    auto const rows = amg::rows_of<T>(matrix->general().converted(dtype_v<T>));
    return amg::spectral_radius(rows, A->range(), amg::look_at_rows(rows, A->range(), cancel), cancel);
  };
  return is_complex(A->dtype()) ? wide(Tag<Complex<double>>{}) : wide(Tag<double>{});
}

// Hermitian positive definite when A is, as far as the estimate holds (1.1 times a Lanczos value, or the largest sum of a row where that
// is sharp): the residual polynomial is below 1 on (0, hi].
class Chebyshev final : public Preconditioner {
 public:
  /// prefix: for errors.
  Chebyshev(OperatorPtr const& A, std::int64_t degree, double ratio, std::string prefix)
      : Preconditioner(*A), ratio_(ratio), prefix_(std::move(prefix)) {
    p_.degree = degree;
    set_values(A);
  }
  bool update(Matrix const& A) override {
    set_values(std::make_shared<Matrix>(A));
    return true;
  }
  void apply(Vector const& b, Vector& x) const override { run(*A_, p_, b, x); }
  std::string describe() const override { return format("chebyshev (degree {} on [{}, {}] of D^-1 A)", p_.degree, p_.lo, p_.hi); }
  std::size_t memory_bytes() const override { return p_.weights.data().bytes(); }

 protected:
  void apply_adjoint(Vector const& b, Vector& x) const override {
    if (self_adjoint_) return apply(b, x);
    auto const& adjoint = adjoint_.made_by([&] { return OfAdjoint{la::Adjoint(A_), p_.adjoint()}; });
    run(adjoint.A, adjoint.polynomial, b, x);
  }

 private:
  void set_values(OperatorPtr A) {
    A_ = std::move(A);
    adjoint_ = {};
    p_.weights = A_->diagonal();
    invert_entries(p_.weights, "chebyshev", A_->matrix() != nullptr, prefix_);
    double const radius = largest(A_);
    p_.hi = radius > 0 ? radius : 1;
    p_.lo = p_.hi / ratio_;
  }
  struct Work {
    Vector r, d;
  };
  struct OfAdjoint {
    la::Adjoint A;
    ChebyshevPolynomial polynomial;
  };
  void run(Operator const& A, ChebyshevPolynomial const& p, Vector const& b, Vector& x) const {
    auto const w = work_.lease(b, [&] { return Work{b.like(), b.like()}; });
    chebyshev(A, p, b, x, w->r, w->r, w->d, true);
  }
  OperatorPtr A_;
  double ratio_;  // hi / lo
  std::string prefix_;
  ChebyshevPolynomial p_;
  mutable Lazy<OfAdjoint> adjoint_;  // made when asked for
  mutable Scratch<Work> work_;
};

}  // namespace

PreconditionerEntry chebyshev_entry() {
  auto const make = [](Nest const& nest, OperatorPtr const& A) -> PreconditionerPtr {
    auto r = nest.config.reader(table());
    return std::make_shared<Chebyshev>(A, r.integer("pc_chebyshev_degree"), r.real("pc_chebyshev_ratio"), nest.config.prefix);
  };
  return {[make](Nest const& nest, Matrix const& A) { return make(nest, std::make_shared<Matrix>(A)); }, &table(),
          "a polynomial in D^-1 A: only products, no sums over ranks", false, make};
}

}  // namespace asterism::precond
