// What smoothers of weighted steps have in common: the steps of each side, by smooth(), or as the operator has prepared them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/precond/multigrid/smoother.hpp"

namespace asterism::precond {

class StepSmoother : public Smoother {
 public:
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const final {
    if (auto const* const prepared = of(A, side)) return prepared->run(b, x, other, fresh, nullptr, w.of_b);
    auto const& weights = weights_on(side);
    if (fresh && weights.empty()) fill(*x, 0.0);
    for (auto const* const step : weights) {
      if (fresh) {
        multiply(*step, b, *x);
        fresh = false;
      } else {
        A.smooth(b, *x, *step, *other);
        std::swap(x, other);
      }
    }
  }
  void run_and_residual(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const final {
    if (auto const* const prepared = of(A, side)) return prepared->run(b, x, other, fresh, &w.r, w.of_b);
    Smoother::run_and_residual(A, b, x, other, w, side, fresh);
  }
  bool gives_residual() const final { return before_ != nullptr; }
  bool swaps() const final {
    auto const before = weights_on(Side::before).size();
    return (before + weights_on(Side::after).size() - (before > 0 ? 1 : 0)) % 2 == 1;
  }

 protected:
  /// Of each step.
  virtual std::vector<Vector const*> weights_on(Side side) const = 0;
  /// Collective.
  void prepare(AtOnce const& at_once) {
    if (!at_once.A) return;
    auto const of = [&](Side side) {
      std::vector<Vector> weights;
      for (auto const* const w : weights_on(side)) weights.push_back(*w);
      return at_once.A->steps(weights, at_once.most);
    };
    A_ = at_once.A;
    before_ = of(Side::before), after_ = of(Side::after);
  }
  std::string about_steps() const { return before_ ? before_->describe() : ""; }

 private:
  la::StepSequence const* of(Operator const& A, Side side) const {
    return &A == A_.get() ? (side == Side::before ? before_ : after_).get() : nullptr;
  }
  OperatorPtr A_;
  std::shared_ptr<la::StepSequence const> before_, after_;
};

}  // namespace asterism::precond
