// Gauss-Seidel for operators without entries: a weighted step for each colour. Yavneh (1996) has the relaxation factors of two colours.
#include <algorithm>

#include "asterism/precond/multigrid/smoothers/step_smoother.hpp"

namespace asterism::precond {
namespace {

class ColouredSteps final : public StepSmoother {
 public:
  ColouredSteps(std::vector<Vector> weights, Steps steps, bool reversed, bool symmetric, std::string name, AtOnce const& at_once)
      : weights_(std::move(weights)), steps_(steps), reversed_(reversed), symmetric_(symmetric), name_(std::move(name)) {
    prepare(at_once);
  }
  SmootherPtr adjoint() const override {
    auto conjugated = weights_;
    for (auto& w : conjugated) {
      auto const of = w;
      w = of.like();
      conjugate(of, w);
    }
    // what is done last is done first
    return std::make_shared<ColouredSteps>(std::move(conjugated), steps_.swapped(), symmetric_ ? reversed_ : !reversed_, symmetric_, name_,
                                           AtOnce{});
  }
  SmootherPtr with(Steps steps) const override {
    return std::make_shared<ColouredSteps>(weights_, steps, reversed_, symmetric_, name_, AtOnce{});
  }
  bool symmetric() const override { return symmetric_ && steps_.before == steps_.after; }
  std::size_t memory_bytes() const override {
    std::size_t bytes = 0;
    for (auto const& w : weights_) bytes += w.data().bytes();
    return bytes;
  }
  std::string describe() const override {
    return format("gauss-seidel {} in {} colours{}{}{}", text_of(steps_), weights_.size(), symmetric_ ? ", backward after" : "", name_,
                  about_steps());
  }

 private:
  std::vector<Vector const*> weights_on(Side side) const override {
    bool const backward = reversed_ != (symmetric_ && side == Side::after);
    auto const count = weights_.size();
    std::vector<Vector const*> out;
    for (std::size_t s = 0; s < std::size_t(steps_.on(side)) * count; ++s)
      out.push_back(&weights_[backward ? count - 1 - s % count : s % count]);
    return out;
  }
  std::vector<Vector> weights_;
  Steps steps_;
  bool reversed_, symmetric_;
  std::string name_;
};

}  // namespace

SmootherPtr coloured_steps(std::vector<Vector> weights, Steps steps, bool symmetric, std::string about, AtOnce const& at_once) {
  return std::make_shared<ColouredSteps>(std::move(weights), steps, false, symmetric, std::move(about), at_once);
}

}  // namespace asterism::precond
