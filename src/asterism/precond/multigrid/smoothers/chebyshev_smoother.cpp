// A polynomial in diag(w) A, of either kind: Adams, Brezina, Hu and Tuminaro (2003); Lottes (2023).
#include "asterism/precond/multigrid/smoother.hpp"

namespace asterism::precond {
namespace {

class ChebyshevSmoother final : public Smoother {
 public:
  ChebyshevSmoother(ChebyshevPolynomial p, Steps degrees, std::string name) : p_(std::move(p)), degrees_(degrees), name_(std::move(name)) {}
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*&, Work& w, Side side, bool fresh) const override {
    auto p = p_;
    p.degree = degrees_.on(side);
    if (p.degree > 0) chebyshev(A, p, b, *x, w.r, w.t, w.d, fresh);
    else if (fresh) fill(*x, 0.0);
  }
  SmootherPtr adjoint() const override { return std::make_shared<ChebyshevSmoother>(p_.adjoint(), degrees_.swapped(), name_); }
  SmootherPtr with(Steps steps) const override { return std::make_shared<ChebyshevSmoother>(p_, steps, name_); }
  bool symmetric() const override { return degrees_.before == degrees_.after; }
  bool needs_d() const override { return true; }
  std::size_t memory_bytes() const override { return p_.weights.data().bytes(); }
  std::string describe() const override { return format("chebyshev ({}) {} with {}", name_of(p_.kind), text_of(degrees_), name_); }

 private:
  ChebyshevPolynomial p_;
  Steps degrees_;
  std::string name_;
};

}  // namespace

SmootherPtr chebyshev_smoother(ChebyshevPolynomial p, Steps degrees, std::string name) {
  return std::make_shared<ChebyshevSmoother>(std::move(p), degrees, std::move(name));
}

}  // namespace asterism::precond
