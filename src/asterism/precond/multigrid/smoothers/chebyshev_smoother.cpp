// A polynomial in diag(w) A, of either kind: Adams, Brezina, Hu and Tuminaro (2003); Lottes (2023). Where the operator takes several steps
// in one pass it is a weighted step for each root, else the recurrence.
#include "asterism/precond/multigrid/smoothers/step_smoother.hpp"

namespace asterism::precond {
namespace {

/// Above this degree rounding between the steps would be seen.
constexpr std::int64_t most_roots = 16;

class ChebyshevSmoother final : public Smoother {
 public:
  ChebyshevSmoother(ChebyshevPolynomial p, Steps degrees, std::string name, AtOnce const& at_once)
      : p_(std::move(p)), degrees_(degrees), name_(std::move(name)) {
    if (std::max(degrees_.before, degrees_.after) > most_roots) return;
    auto const steps = [&](Side side) {
      std::vector<la::Step> out;
      for (double const root : roots_of(on(side))) out.push_back({p_.weights, 1 / root});
      return out;
    };
    if (at_once.A) prepared_.prepare(at_once, steps(Side::before), steps(Side::after));
  }
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const override {
    if (auto const* const prepared = prepared_.of(A, side)) return prepared->run(b, x, other, fresh, nullptr, w.of_b);
    ASTERISM_REQUIRE(!prepared_, internal, "{} is asked for another operator than it was made for", describe());
    auto const p = on(side);
    if (p.degree > 0) chebyshev(A, p, b, *x, w.r, w.t, w.d, fresh);
    else if (fresh) fill(*x, 0.0);
  }
  void run_and_residual(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const override {
    if (auto const* const prepared = prepared_.of(A, side)) return prepared->run(b, x, other, fresh, &w.r, w.of_b);
    Smoother::run_and_residual(A, b, x, other, w, side, fresh);
  }
  bool gives_residual() const override { return bool(prepared_); }
  bool swaps(bool residual_after, bool on_gpu) const override { return prepared_ && prepared_.swaps(residual_after, on_gpu); }
  SmootherPtr adjoint() const override { return std::make_shared<ChebyshevSmoother>(p_.adjoint(), degrees_.swapped(), name_, AtOnce{}); }
  SmootherPtr with(Steps steps) const override { return std::make_shared<ChebyshevSmoother>(p_, steps, name_, AtOnce{}); }
  bool symmetric() const override { return degrees_.before == degrees_.after; }
  bool needs_d() const override { return !prepared_; }
  std::size_t memory_bytes() const override { return p_.weights.data().bytes(); }
  std::string describe() const override {
    return format("chebyshev ({}) {} with {}{}", name_of(p_.kind), text_of(degrees_), name_, prepared_.describe());
  }

 private:
  ChebyshevPolynomial on(Side side) const {
    auto p = p_;
    p.degree = degrees_.on(side);
    return p;
  }
  ChebyshevPolynomial p_;
  Steps degrees_;
  std::string name_;
  PreparedSteps prepared_;
};

}  // namespace

SmootherPtr chebyshev_smoother(ChebyshevPolynomial p, Steps degrees, std::string name, AtOnce const& at_once) {
  return std::make_shared<ChebyshevSmoother>(std::move(p), degrees, std::move(name), at_once);
}

}  // namespace asterism::precond
