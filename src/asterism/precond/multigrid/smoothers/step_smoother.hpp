// What smoothers of weighted steps have in common: the steps of each side, by smooth(), or as the operator has prepared them.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "asterism/precond/multigrid/smoother.hpp"

namespace asterism::precond {

/// Steps of both sides, if the operator can prepare them.
class PreparedSteps {
 public:
  /// Collective.
  void prepare(AtOnce const& at_once, std::vector<la::Step> const& before, std::vector<la::Step> const& after) {
    if (!at_once.A) return;
    A_ = at_once.A;
    before_ = A_->steps(before, at_once.most), after_ = A_->steps(after, at_once.most);
  }
  explicit operator bool() const { return before_ != nullptr; }
  la::StepSequence const* of(Operator const& A, Side side) const {
    return &A == A_.get() ? (side == Side::before ? before_ : after_).get() : nullptr;
  }
  /// Of a cycle.
  bool swaps(bool residual_after, bool on_gpu) const {
    return before_->swaps(true, true, on_gpu) != after_->swaps(false, residual_after, on_gpu);
  }
  std::string describe() const { return before_ ? before_->describe() : ""; }

 private:
  OperatorPtr A_;
  std::shared_ptr<la::StepSequence const> before_, after_;
};

/// Whether so many steps swap an odd number of times: all but the first one from zero.
inline bool odd_swaps(std::size_t before, std::size_t after) { return (before + after - (before > 0 ? 1 : 0)) % 2 == 1; }

class StepSmoother : public Smoother {
 public:
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const final {
    if (auto const* const prepared = prepared_.of(A, side)) return prepared->run(b, x, other, fresh, nullptr, w.of_b);
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
    if (auto const* const prepared = prepared_.of(A, side)) return prepared->run(b, x, other, fresh, &w.r, w.of_b);
    Smoother::run_and_residual(A, b, x, other, w, side, fresh);
  }
  Scalar run_and_dot(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w) const final {
    auto const& weights = weights_on(Side::after);
    if (prepared_.of(A, Side::after) || weights.empty()) return Smoother::run_and_dot(A, b, x, other, w);
    for (auto const* const step : std::span(weights).first(weights.size() - 1)) {
      A.smooth(b, *x, *step, *other);
      std::swap(x, other);
    }
    auto const sum = A.smooth_and_dot(b, *x, *weights.back(), *other);
    std::swap(x, other);
    return sum;
  }
  bool gives_residual() const final { return bool(prepared_); }
  bool swaps(bool residual_after, bool on_gpu) const final {
    return prepared_ ? prepared_.swaps(residual_after, on_gpu) : odd_swaps(weights_on(Side::before).size(), weights_on(Side::after).size());
  }

 protected:
  /// The weights of each step, where smooth() does them.
  virtual std::vector<Vector const*> weights_on(Side side) const = 0;
  /// The same, as an operator prepares them.
  virtual std::vector<la::Step> steps_on(Side side) const {
    std::vector<la::Step> steps;
    for (auto const* const w : weights_on(side)) steps.push_back({*w, 1});
    return steps;
  }
  /// Collective.
  void prepare(AtOnce const& at_once) { prepared_.prepare(at_once, steps_on(Side::before), steps_on(Side::after)); }
  bool is_prepared() const { return bool(prepared_); }
  std::string about_steps() const { return prepared_.describe(); }

 private:
  PreparedSteps prepared_;
};

}  // namespace asterism::precond
