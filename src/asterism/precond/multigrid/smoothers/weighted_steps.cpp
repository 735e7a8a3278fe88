// x += w .* (b - A x): what is multiplied with is the smoother.
#include "asterism/precond/multigrid/smoothers/step_smoother.hpp"

namespace asterism::precond {
namespace {

class WeightedSteps final : public StepSmoother {
 public:
  WeightedSteps(Vector weights, Steps steps, std::string name, AtOnce const& at_once)
      : weights_(std::move(weights)), steps_(steps), name_(std::move(name)) {
    prepare(at_once);
  }
  SmootherPtr adjoint() const override {
    auto conjugated = weights_.like();
    conjugate(weights_, conjugated);
    return std::make_shared<WeightedSteps>(conjugated, steps_.swapped(), name_, AtOnce{});
  }
  SmootherPtr with(Steps steps) const override { return std::make_shared<WeightedSteps>(weights_, steps, name_, AtOnce{}); }
  bool symmetric() const override { return steps_.before == steps_.after; }
  std::size_t memory_bytes() const override { return weights_.data().bytes(); }
  std::string describe() const override { return format("richardson {} with {}{}", text_of(steps_), name_, about_steps()); }

 private:
  std::vector<Vector const*> weights_on(Side side) const override { return {std::size_t(steps_.on(side)), &weights_}; }
  Vector weights_;
  Steps steps_;
  std::string name_;
};

}  // namespace

std::string text_of(Steps const& s) {
  return s.before == s.after ? format("x {}", s.before) : format("x {} before, {} after", s.before, s.after);
}

SmootherPtr weighted_steps(Vector weights, Steps steps, std::string name, AtOnce const& at_once) {
  return std::make_shared<WeightedSteps>(std::move(weights), steps, std::move(name), at_once);
}

}  // namespace asterism::precond
