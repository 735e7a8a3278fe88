// A solver as an operator: one iterative method with its preconditioner, which others can apply.
#pragma once
#include <memory>

#include "asterism/krylov/method.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::solve {

using la::Matrix;
using la::Operator;
using la::Vector;

/// y = what a method makes of A y = x from y = 0. Nothing is verified, and no one is told how it ended: who applies it does that.
///
/// Where its method is asynchronous and max_it at most 100, the host waits for nothing: all iterations are submitted, and what comes
/// after convergence is skipped. Else it waits as such a method does.
class InnerSolver final : public precond::Preconditioner {
 public:
  /// rule: rtol is of ||x||.
  InnerSolver(precond::OperatorPtr A, precond::PreconditionerPtr M, std::shared_ptr<krylov::Method const> method,
              krylov::StopRule const& rule);
  void apply(Vector const& x, Vector& y) const override;
  /// Of a matrix of the same pattern, where the inner preconditioner can be updated too.
  bool update(Matrix const& A) override;
  bool updated_from_scratch() const override { return M_->updated_from_scratch(); }
  std::string describe() const override;
  std::string report() const override;
  std::size_t memory_bytes() const override { return M_->memory_bytes(); }
  bool symmetric() const override { return !varies() && M_->symmetric(); }
  bool varies() const override { return !method_->linear() || rule_.rtol > 0 || rule_.atol > 0 || M_->varies(); }
  void set_hermitian(bool yes) override {
    hermitian_ = yes;
    M_->set_hermitian(yes);
  }

 protected:
  /// The same method on A^H, with M^H.
  void apply_adjoint(Vector const& x, Vector& y) const override;

 private:
  void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x) const;

  precond::OperatorPtr A_;
  precond::PreconditionerPtr M_;
  std::shared_ptr<krylov::Method const> method_;
  krylov::StopRule rule_;
  bool hermitian_ = false;
};

}  // namespace asterism::solve
