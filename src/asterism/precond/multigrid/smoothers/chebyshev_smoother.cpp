// A polynomial in diag(w) A, of either kind: Adams, Brezina, Hu and Tuminaro (2003); Lottes (2023). A weighted step for each of its roots,
// where they are few, else the recurrence.
#include <algorithm>

#include "asterism/precond/multigrid/smoothers/step_smoother.hpp"

namespace asterism::precond {
namespace {

/// Above this degree rounding between the steps would be seen.
constexpr std::int64_t most_roots = 16;

std::string description(ChebyshevPolynomial const& p, Steps const& degrees, std::string const& name) {
  return format("chebyshev ({}) {} with {}", name_of(p.kind), text_of(degrees), name);
}

ChebyshevPolynomial of_degree(ChebyshevPolynomial p, std::int64_t degree) {
  p.degree = degree;
  return p;
}

class RootSteps final : public StepSmoother {
 public:
  RootSteps(ChebyshevPolynomial p, Steps degrees, std::string name, AtOnce const& at_once)
      : p_(std::move(p)), degrees_(degrees), name_(std::move(name)) {
    prepare(at_once);
    if (is_prepared()) return;
    before_ = scaled_weights(degrees_.before);
    after_ = degrees_.after == degrees_.before ? before_ : scaled_weights(degrees_.after);
  }
  SmootherPtr adjoint() const override { return chebyshev_smoother(p_.adjoint(), degrees_.swapped(), name_); }
  SmootherPtr with(Steps steps) const override { return chebyshev_smoother(p_, steps, name_); }
  bool symmetric() const override { return degrees_.before == degrees_.after; }
  std::size_t memory_bytes() const override {
    auto const vectors = 1 + before_.size() + (symmetric() ? 0 : after_.size());
    return vectors * p_.weights.data().bytes();
  }
  std::string describe() const override { return description(p_, degrees_, name_) + about_steps(); }

 private:
  std::vector<Vector> scaled_weights(std::int64_t degree) const {
    std::vector<Vector> out;
    for (double const root : roots_of(of_degree(p_, degree))) axpby(1 / root, p_.weights, 0.0, out.emplace_back(p_.weights.like()));
    return out;
  }
  std::vector<Vector const*> weights_on(Side side) const override {
    ASTERISM_REQUIRE(!is_prepared(), internal, "{} is asked for another operator than it was made for", describe());
    std::vector<Vector const*> out;
    for (auto const& w : side == Side::before ? before_ : after_) out.push_back(&w);
    return out;
  }
  std::vector<la::Step> steps_on(Side side) const override {
    std::vector<la::Step> out;
    for (double const root : roots_of(of_degree(p_, degrees_.on(side)))) out.push_back({p_.weights, 1 / root});
    return out;
  }

  ChebyshevPolynomial p_;
  Steps degrees_;
  std::string name_;
  std::vector<Vector> before_, after_;  // weights over roots
};

class Recurrence final : public Smoother {
 public:
  Recurrence(ChebyshevPolynomial p, Steps degrees, std::string name) : p_(std::move(p)), degrees_(degrees), name_(std::move(name)) {}
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*&, Work& w, Side side, bool fresh) const override {
    auto const p = of_degree(p_, degrees_.on(side));
    if (p.degree > 0) chebyshev(A, p, b, *x, w.r, w.t, w.d, fresh);
    else if (fresh) fill(*x, 0.0);
  }
  SmootherPtr adjoint() const override { return std::make_shared<Recurrence>(p_.adjoint(), degrees_.swapped(), name_); }
  SmootherPtr with(Steps steps) const override { return chebyshev_smoother(p_, steps, name_); }
  bool symmetric() const override { return degrees_.before == degrees_.after; }
  bool needs_d() const override { return true; }
  std::size_t memory_bytes() const override { return p_.weights.data().bytes(); }
  std::string describe() const override { return description(p_, degrees_, name_); }

 private:
  ChebyshevPolynomial p_;
  Steps degrees_;
  std::string name_;
};

}  // namespace

SmootherPtr chebyshev_smoother(ChebyshevPolynomial p, Steps degrees, std::string name, AtOnce const& at_once) {
  if (std::max(degrees.before, degrees.after) > most_roots) return std::make_shared<Recurrence>(std::move(p), degrees, std::move(name));
  return std::make_shared<RootSteps>(std::move(p), degrees, std::move(name), at_once);
}

}  // namespace asterism::precond
