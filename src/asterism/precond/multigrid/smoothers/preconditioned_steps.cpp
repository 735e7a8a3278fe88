// x += M (b - A x), by any preconditioner: incomplete factors, say.
#include <cmath>

#include "asterism/la/adjoint.hpp"
#include "asterism/precond/multigrid/smoother.hpp"

namespace asterism::precond {
namespace {

class PreconditionedSteps final : public Smoother {
 public:
  PreconditionedSteps(OperatorPtr M, Steps steps, double damping, bool symmetric, bool by_ranks, std::string name, std::size_t memory)
      : M_(std::move(M)),
        steps_(steps),
        damping_(damping),
        symmetric_(symmetric),
        by_ranks_(by_ranks),
        name_(std::move(name)),
        memory_(memory) {}
  void run(Operator const& A, Vector const& b, Vector*& x, Vector*&, Work& w, Side side, bool fresh) const override {
    auto rest = steps_.on(side);
    if (fresh && rest == 0) fill(*x, 0.0);
    if (fresh && rest > 0) {
      M_->apply(b, *x);
      if (damping_ != 1) scale(damping_, *x);
      --rest;
    }
    for (; rest > 0; --rest) {
      A.residual(b, *x, w.r);
      M_->apply(w.r, w.t);
      axpy(damping_, w.t, *x);
    }
  }
  SmootherPtr adjoint() const override {
    return std::make_shared<PreconditionedSteps>(std::make_shared<la::Adjoint>(M_), steps_.swapped(), damping_, symmetric_, by_ranks_,
                                                 name_, memory_);
  }
  SmootherPtr with(Steps steps) const override {
    return std::make_shared<PreconditionedSteps>(M_, steps, damping_, symmetric_, by_ranks_, name_, memory_);
  }
  bool symmetric() const override { return symmetric_ && steps_.before == steps_.after; }
  bool by_ranks() const override { return by_ranks_; }
  std::size_t memory_bytes() const override { return memory_; }
  std::string describe() const override {
    return format("richardson {} with {}{}", text_of(steps_),
                  damping_ == 1 ? std::string() : format("{} times ", std::round(100 * damping_) / 100), name_);
  }

 private:
  OperatorPtr M_;
  Steps steps_;
  double damping_;
  bool symmetric_, by_ranks_;
  std::string name_;
  std::size_t memory_;
};

}  // namespace

SmootherPtr preconditioned_steps(PreconditionerPtr M, Steps steps, double damping, bool by_ranks) {
  bool const symmetric = M->symmetric();
  auto name = M->describe();
  auto const memory = M->memory_bytes();
  return std::make_shared<PreconditionedSteps>(std::move(M), steps, damping, symmetric, by_ranks, std::move(name), memory);
}

}  // namespace asterism::precond
