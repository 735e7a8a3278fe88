// Gauss-Seidel for operators without entries: a weighted step for each colour. Yavneh (1996) has the relaxation factors of two colours.
#include <algorithm>

#include "asterism/precond/multigrid/smoother.hpp"

namespace asterism::precond {
namespace {

class ColouredSteps final : public Smoother {
 public:
  ColouredSteps(std::vector<Vector> weights, Steps steps, bool reversed, bool symmetric, std::string name)
      : weights_(std::move(weights)), steps_(steps), reversed_(reversed), symmetric_(symmetric), name_(std::move(name)) {}
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work&, Side side, bool fresh) const override {
    auto const steps = steps_.on(side);
    if (fresh && steps == 0) fill(*x, 0.0);
    auto const count = std::int64_t(weights_.size());
    for (std::int64_t s = 0; s < steps * count; ++s) {
      auto const c = backward(side) ? count - 1 - s % count : s % count;
      auto const& w = weights_[std::size_t(c)];
      if (fresh && s == 0) {
        multiply(w, b, *x);
      } else {
        A.smooth(b, *x, w, *other);
        std::swap(x, other);
      }
    }
  }
  SmootherPtr adjoint() const override {
    auto conjugated = weights_;
    for (auto& w : conjugated) {
      auto const of = w;
      w = of.like();
      conjugate(of, w);
    }
    // what is done last is done first
    return std::make_shared<ColouredSteps>(std::move(conjugated), steps_.swapped(), symmetric_ ? reversed_ : !reversed_, symmetric_, name_);
  }
  SmootherPtr with(Steps steps) const override { return std::make_shared<ColouredSteps>(weights_, steps, reversed_, symmetric_, name_); }
  bool symmetric() const override { return symmetric_ && steps_.before == steps_.after; }
  bool swaps() const override {
    auto const all = std::int64_t(weights_.size()) * (steps_.before + steps_.after);
    return (all - (steps_.before > 0)) % 2 == 1;
  }
  std::size_t memory_bytes() const override {
    std::size_t bytes = 0;
    for (auto const& w : weights_) bytes += w.data().bytes();
    return bytes;
  }
  std::string describe() const override {
    return format("gauss-seidel {} in {} colours{}{}", text_of(steps_), weights_.size(), symmetric_ ? ", backward after" : "", name_);
  }

 private:
  bool backward(Side side) const { return reversed_ != (symmetric_ && side == Side::after); }
  std::vector<Vector> weights_;
  Steps steps_;
  bool reversed_, symmetric_;
  std::string name_;
};

}  // namespace

SmootherPtr coloured_steps(std::vector<Vector> weights, Steps steps, bool symmetric, std::string about) {
  return std::make_shared<ColouredSteps>(std::move(weights), steps, false, symmetric, std::move(about));
}

}  // namespace asterism::precond
