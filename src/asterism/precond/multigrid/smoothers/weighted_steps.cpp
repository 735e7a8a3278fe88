// x += w .* (b - A x): what is multiplied with is the smoother.
#include "asterism/precond/multigrid/smoother.hpp"

namespace asterism::precond {
namespace {

class WeightedSteps final : public Smoother {
 public:
  WeightedSteps(Vector weights, Steps steps, std::string name) : weights_(std::move(weights)), steps_(steps), name_(std::move(name)) {}
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work&, Side side, bool fresh) const override {
    auto rest = steps_.on(side);
    if (fresh && rest == 0) fill(*x, 0.0);
    if (fresh && rest > 0) {
      multiply(weights_, b, *x);
      --rest;
    }
    for (; rest > 0; --rest) {
      A.smooth(b, *x, weights_, *other);
      std::swap(x, other);
    }
  }
  SmootherPtr adjoint() const override {
    auto conjugated = weights_.like();
    conjugate(weights_, conjugated);
    return std::make_shared<WeightedSteps>(conjugated, steps_.swapped(), name_);
  }
  SmootherPtr with(Steps steps) const override { return std::make_shared<WeightedSteps>(weights_, steps, name_); }
  bool symmetric() const override { return steps_.before == steps_.after; }
  bool swaps() const override { return (steps_.before + steps_.after - (steps_.before > 0)) % 2 == 1; }
  std::size_t memory_bytes() const override { return weights_.data().bytes(); }
  std::string describe() const override { return format("richardson {} with {}", text_of(steps_), name_); }

 private:
  Vector weights_;
  Steps steps_;
  std::string name_;
};

}  // namespace

std::string text_of(Steps const& s) {
  return s.before == s.after ? format("x {}", s.before) : format("x {} before, {} after", s.before, s.after);
}

SmootherPtr weighted_steps(Vector weights, Steps steps, std::string name) {
  return std::make_shared<WeightedSteps>(std::move(weights), steps, std::move(name));
}

}  // namespace asterism::precond
