// The solver that users meet: a method and a preconditioner, chosen and nested by options.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/base/options.hpp"
#include "asterism/krylov/method.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::solve {

using la::Matrix;
using la::Operator;
using la::Vector;
using OperatorPtr = std::shared_ptr<Operator const>;

struct SolveInfo {
  bool converged = false;
  std::string reason;  ///< PETSc's name, e.g. CONVERGED_RTOL
  std::string why;     ///< in words, and what to try; empty when converged
  std::int64_t iterations = 0;
  std::vector<std::vector<double>> residual_norms;  ///< (iterations + 1, k)
  std::vector<double> true_residual;                ///< ||b - A x|| of each column, computed at the end
  std::vector<double> rhs_norm;
  std::int64_t resumes = 0;  ///< times the verified residual missed the target and the method went on
  double setup_seconds = 0, solve_seconds = 0;
  std::size_t memory_bytes = 0;  ///< matrix, preconditioner on this rank
  std::int64_t host_waits = 0;
  std::vector<std::string> notes;  ///< what was found and done about it
};

/// What a look at the matrix found.
struct Inspection {
  bool hermitian = false, positive_diagonal = false, constant_null_space = false;
  double asymmetry = 0;  ///< |x^H A y - (y^H A x)^*| / (||x|| ||A y||) for hashed x, y
  std::int64_t zero_diagonals = 0;
};
/// Of an operator without entries: only whether it is Hermitian. Collective.
Inspection inspect(Operator const& A);

class Solver {
 public:
  /// Checks the matrix and the options and sets up the preconditioner. Collective.
  Solver(Matrix A, Options options, std::string prefix = "") : Solver(std::make_shared<Matrix>(A), A, nullptr, options, prefix) {}
  /// A may be a user's operator. Preconditioners are set up on P; without P there is none, but for M, the user's approximate inverse.
  Solver(OperatorPtr A, Matrix P, OperatorPtr M, Options options, std::string prefix = "");
  /// From now on for another matrix of the same size and dtype. Where it has the pattern of the last one, preconditioners keep what
  /// depends on that alone. For a solver made for a matrix, with no other P. Collective.
  void update(Matrix A);
  /// x holds the initial guess. Collective. Does not throw for a solve that fails to converge.
  SolveInfo solve(Vector const& b, Vector& x);
  /// Every option in force and where it came from.
  std::vector<EffectiveOption> const& explain() const { return record_; }
  std::string view() const;
  Operator const& op() const { return *A_; }
  /// Called with each norm that the host learns. If it `needs_iterate`, x holds the iterate then (not of gmres: that of the last
  /// restart; nor with ksp_asynchronous, which looks late).
  void set_watcher(krylov::Watcher watcher, bool needs_iterate = false) {
    watcher_ = std::move(watcher);
    watcher_needs_iterate_ = needs_iterate;
  }
  /// To be the M of other solvers, which then share its set-up.
  precond::PreconditionerPtr const& preconditioner() const;
  Inspection const& inspection() const { return inspection_; }
  std::vector<std::string> const& notes() const { return notes_; }
  std::string const& method_name() const { return method_name_; }
  std::string preconditioner_name() const { return preconditioner()->describe(); }
  double setup_seconds() const { return setup_seconds_; }
  /// Whether the last update() kept anything.
  bool reused() const { return reused_; }

 private:
  void set_up(bool same_pattern);
  bool P_is_A() const { return P_ && A_->matrix() && A_->matrix()->is_same(P_); }
  precond::PreconditionerPtr make_preconditioner(Configuration const& config, Matrix const& A, std::string const& fallback) const;
  std::string chosen_preconditioner(Configuration const& config, std::string const& fallback) const;
  SolveInfo solve_columns(Vector const& b, Vector& x, bool zero_guess);
  void explain_failure(SolveInfo& info, krylov::Reason reason) const;

  OperatorPtr A_;
  Matrix P_;
  OperatorPtr M_;
  Options options_;
  std::string prefix_;
  mutable std::vector<EffectiveOption> record_;
  Inspection inspection_;
  std::vector<std::string> notes_;
  std::shared_ptr<krylov::Method> method_;
  std::string method_name_, preconditioner_type_;
  precond::PreconditionerPtr preconditioner_;
  krylov::StopRule rule_;
  std::int64_t max_resumes_ = 0;
  device::Context ctx_;
  std::int64_t check_every_ = 0;  // 0: not asynchronous
  bool graphs_ = true;
  krylov::Watcher watcher_;
  bool watcher_needs_iterate_ = false;
  double setup_seconds_ = 0;
  bool reused_ = false;
};

/// Lets those options that hold for the whole process (reproducible, shared_vectors, memory_cap, forbid_copies,
/// queue_debug, sf_*) rule from now on; a Solver does so too.
void apply_process_options(Options const& options);

/// All options of the library: name, default, meaning; for --help-options.
std::vector<std::pair<std::string, OptionTable const*>> option_tables();

}  // namespace asterism::solve
