#include "asterism/solve/inner_solver.hpp"

#include <limits>

#include "asterism/la/adjoint.hpp"

namespace asterism::solve {

/// What is submitted in vain costs some microseconds an iteration.
constexpr std::int64_t most_unobserved = 100;

InnerSolver::InnerSolver(precond::OperatorPtr A, precond::PreconditionerPtr M, std::shared_ptr<krylov::Method const> method,
                         krylov::StopRule const& rule)
    : Preconditioner(*A), A_(std::move(A)), M_(std::move(M)), method_(std::move(method)), rule_(rule) {
  rule_.divtol = std::numeric_limits<double>::infinity();  // the outer method sees what becomes of it
}

void InnerSolver::apply(Vector const& x, Vector& y) const { solve(*A_, *M_, x, y); }

void InnerSolver::apply_adjoint(Vector const& x, Vector& y) const {
  if (hermitian_ && M_->symmetric()) return apply(x, y);
  solve(la::Adjoint(A_), la::Adjoint(M_), x, y);
}

void InnerSolver::solve(Operator const& A, Operator const& M, Vector const& b, Vector& x) const {
  if (b.columns() > 1 && !method_->blocks_columns()) {
    for (std::int64_t j = 0; j < b.columns(); ++j) {
      auto const bj = column_of(b, j);
      auto xj = bj.like();
      solve(A, M, bj, xj);
      set_column(xj, j, x);
    }
    return;
  }
  fill(x, 0.0);
  std::vector<krylov::Target> const targets(std::size_t(b.columns()), krylov::Target{.norm_b = 0, .tolerance = rule_.atol});
  bool const asynchronous = method_->asynchronous();
  krylov::Monitor monitor(rule_, targets, x,
                          {.queue = x.queue(),
                           .check_every = asynchronous ? 20 : 0,
                           .zero_guess = true,
                           .nested = true,
                           .unobserved = asynchronous && rule_.max_it <= most_unobserved});
  method_->solve(A, M, b, x, monitor);
  if (auto const r = monitor.reason(); krylov::interrupted(r))
    fail(r == krylov::Reason::diverged_interrupted ? ErrorKind::interrupted : ErrorKind::time_limit, "{}.", monitor.why());
}

bool InnerSolver::update(Matrix const& A) {
  if (!A_->matrix() || !M_->update(A)) return false;
  A_ = std::make_shared<Matrix>(A);
  return true;
}

std::string InnerSolver::describe() const { return format("solver ({} + {})", method_->name(), M_->describe()); }

std::string InnerSolver::report() const {
  auto const stops = rule_.rtol > 0 ? format("to a relative residual of {}, at most {} iterations", rule_.rtol, rule_.max_it)
                                    : format("{} iteration(s)", rule_.max_it);
  return format("solver: {}, {}\n  its preconditioner: {}", method_->name(), stops, M_->report());
}

}  // namespace asterism::solve
