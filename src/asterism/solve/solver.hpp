// The solver that users meet: a method and a preconditioner, chosen and nested by options.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "asterism/base/options.hpp"
#include "asterism/device/host/in_use.hpp"
#include "asterism/device/host/memory.hpp"
#include "asterism/direct/multifrontal/factors.hpp"
#include "asterism/krylov/method.hpp"
#include "asterism/precond/preconditioner.hpp"
#include "asterism/solve/null_space.hpp"
#include "asterism/solve/refinement.hpp"
#include "asterism/solve/scaling.hpp"

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
  std::vector<double> backward_error;  ///< componentwise, of each column (refinement.hpp); empty unless a direct method solved
  std::int64_t resumes = 0;            ///< times the verified residual missed the target and the method went on
  double setup_seconds = 0, solve_seconds = 0;
  std::size_t memory_bytes = 0;  ///< matrix, preconditioner on this rank
  std::int64_t host_waits = 0;
  std::string method, preconditioner;  ///< with which it was solved
  std::vector<std::string> notes;      ///< what was found and done about it
};

/// What one solve is told instead of the options: -ksp_rtol, -ksp_atol and -ksp_max_it.
struct OwnRule {
  std::optional<double> rtol, atol;
  std::optional<std::int64_t> max_it;
};

/// Rows whose largest entry is less than that of all by this factor are small.
constexpr double small_row = 1e4;

/// What a look at the matrix found.
struct Inspection {
  bool hermitian = false, positive_diagonal = false, negative_diagonal = false;
  double asymmetry = 0;       ///< |x^H A y - (y^H A x)^*| / (||y|| ||A x||) for hashed x, y; x over the largest entries of the rows
  double least_diagonal = 0;  ///< the least |a_ii|
  std::int64_t zero_diagonals = 0, entries = 0;
  /// The largest entry of each of my rows, where that is less than 1e-4 of the largest of all in half of the rows; else none.
  std::shared_ptr<std::vector<double> const> row_sizes;
  /// Shares of rows whose diagonal entry is as large as all others together, and half as large; 1 where that is not asked for.
  double dominant = 1, half_dominant = 1;
  double size = 1;  ///< of an operator without entries: the largest entry of its product with a vector of entries in (-1, 1)
};
/// Dominance is counted where a direct solve may come first, of at most so many rows, and of matrices that are not Hermitian.
constexpr std::int64_t rows_for_direct_first = 30000;
/// Of an operator without entries: only its size, and whether it is Hermitian. unscaled, largest: the matrix that was scaled to A, in which
/// rows may have vanished, and its largest entry; 0: it is looked for. Collective.
Inspection inspect(Operator const& A, Matrix const* unscaled = nullptr, double largest = 0);

/// A preconditioner that auto tries, with options that hold where the user gave none.
struct AutomaticAttempt {
  std::string type;
  std::vector<std::pair<std::string, std::string>> options;
  double flop_limit = 0;     ///< of a factorisation: with more it is not tried; 0: any
  bool briefly = false;      ///< few iterations say whether it is any good
  std::string text() const;  ///< as a line of options, without the limit
};
/// What -ksp_type auto and -pc_type auto take of a matrix, before anything is set up. Where a preconditioner cannot be set up, is unstable,
/// or gets nowhere, the next one follows.
struct AutomaticChoice {
  std::string method;
  std::vector<AutomaticAttempt> attempts;
};
AutomaticChoice automatic_choice(Inspection const& found, std::int64_t rows);

class Solver {
 public:
  /// Checks the matrix and the options and sets up the preconditioner. Collective.
  Solver(Matrix A, Options options, std::string prefix = "") : Solver(std::make_shared<Matrix>(A), A, nullptr, options, prefix) {}
  /// A may be a user's operator. Preconditioners are set up on P; without P there is none, but for M, the user's approximate inverse.
  /// null_space: (n, k), vectors that A maps to zero, projected out; those that are found else.
  Solver(OperatorPtr A, Matrix P, OperatorPtr M, Options options, std::string prefix = "", Vector null_space = {});
  /// From now on for another matrix of the same size and dtype. Where it has the pattern of the last one, preconditioners keep what
  /// depends on that alone. For a solver made for a matrix, with no other P. Collective.
  void update(Matrix A);
  /// x holds the initial guess. The watcher is called with each norm that the host learns; if it `needs_iterate`, x holds the iterate
  /// then (not of gmres: that of the last restart; nor with ksp_asynchronous, which looks late). Collective. Does not throw for a solve
  /// that fails to converge. Several threads may call: one solves at a time.
  /// zero_guess: x is known to be zero here; if it is on all ranks, it is not read. own: the same on all ranks, or it is an error.
  SolveInfo solve(Vector const& b, Vector& x, krylov::Watcher const& watcher = {}, bool needs_iterate = false, bool zero_guess = false,
                  OwnRule const& own = {});
  /// The same for A^T x = b, or A^H x = b if `conjugate`, from the same set-up: by the method with A^H and the adjoint of the
  /// preconditioner. An error if one of the two has no adjoint.
  SolveInfo solve_transpose(Vector const& b, Vector& x, bool conjugate, krylov::Watcher const& watcher = {}, bool needs_iterate = false,
                            OwnRule const& own = {});
  /// Every option in force and where it came from.
  std::vector<EffectiveOption> const& explain() const { return record_; }
  std::string view() const;
  Operator const& op() const { return *given_A_; }
  /// An error if the last update failed.
  precond::PreconditionerPtr const& preconditioner() const;
  /// The preconditioner for A as it was given: to be the M of other solvers, which then share its set-up.
  OperatorPtr approximate_inverse() const { return scaled(preconditioner(), scale_); }
  Inspection const& inspection() const { return inspection_; }
  std::vector<std::string> const& notes() const { return notes_; }
  std::string const& method_name() const { return method_name_; }
  /// Of a direct preconditioner for A as it was given, the same on all ranks; nothing of others. Collective.
  std::optional<precond::FactorFacts> factor_facts() const;
  /// L and U of a sparse direct method: of A as it was given, with its scale in row_scale. Whole on every rank. An error of other methods.
  /// Collective.
  direct::ExplicitFactors explicit_factors() const;
  std::string preconditioner_name() const { return preconditioner()->describe(); }
  double setup_seconds() const { return setup_seconds_; }
  /// Whether the last update() ran only the second phase of the preconditioner's set-up, that of the values.
  bool reused() const { return reused_; }

 private:
  void compare_ranks() const;
  void check_operators() const;
  void check_options() const;
  void update_in_turn(Matrix A);
  // the set-up, in these steps
  void set_up(bool same_pattern);
  void read_options(OptionReader& r);
  void choose_queue(OptionReader& r);
  void look_at_system();
  void choose_method(Configuration const& config);
  void use_method(Configuration const& config, std::string const& type);
  void choose_preconditioner(Configuration const& config, bool same_pattern, std::vector<EffectiveOption> const& record_before);
  void warn_of_unread_options() const;
  void warn_of_other_bits() const;

  /// On several ranks threads have no common order to wait for each other in.
  device::host::InUse::Turn take_turn(char const* what) const;
  void use_gpu(std::string const& device);
  void scale_system(MatrixScale const& by);
  /// As it was found; unseen, as the method takes it to be.
  bool A_is_hermitian() const { return looks_ ? inspection_.hermitian : method_->needs_symmetric_matrix(); }
  bool P_is_A() const { return given_P_ && given_A_->matrix() && given_A_->matrix()->is_same(given_P_); }
  precond::PreconditionerPtr make_inner_solver(Configuration const& config, OperatorPtr const& A, std::string const& fallback) const;
  precond::PreconditionerPtr make_matrix_free(Configuration const& config, OperatorPtr const& A, std::string const& fallback) const;
  precond::Nest nest(Configuration const& config) const;
  precond::PreconditionerPtr make_preconditioner(Configuration const& config, Matrix const& A, std::string const& fallback) const;
  // auto tries one preconditioner after the other: automatic.cpp
  precond::PreconditionerPtr automatic_preconditioner(Configuration const& config);
  precond::PreconditionerPtr make_attempt(Configuration const& config, AutomaticAttempt const& attempt);
  precond::PreconditionerPtr automatic_without_entries(Configuration const& config);
  double left_by_cycle(precond::Preconditioner const& M) const;
  void tell_attempt(AutomaticAttempt const& attempt);
  bool updates(precond::Preconditioner& old, bool by_itself);
  /// Whether another preconditioner may do what this one could not.
  bool lets_go_on(Error const& e) const;
  /// What attempts and advice are chosen from.
  Inspection const& seen() const { return P_ && looks_ ? of_P_ : inspection_; }
  void prepare_preconditioner();
  bool has_stronger() const;
  std::string take_stronger(std::string const& why);
  bool take_cheap_factors(std::string const& why);
  std::string wrong_small_rows(Vector const& b, Vector const& x, Vector const& residual) const;
  void look_beside_null_space();
  /// Another method where auto chose one that needs a symmetric preconditioner; an error where the user did.
  void fit_method(Configuration const& config);
  bool seems_stable(precond::Preconditioner const& M) const;
  std::string chosen_preconditioner(Configuration const& config, std::string const& fallback) const;
  struct Watch {
    krylov::Watcher const& watcher;
    bool needs_iterate;
    bool adjoint = false;  ///< A^H x = b
    bool zero_guess = false;
    OwnRule own = {};
  };
  krylov::StopRule rule_with(OwnRule const& own) const;
  SolveInfo solve_in_turn(Vector const& b, Vector& x, Watch const& watch);
  bool takes_columns_together() const;
  SolveInfo solve_by_columns(Vector const& b, Vector& x, la::Entries const& of_b, la::Entries const& of_x, Watch const& watch);
  SolveInfo solve_at_once(Vector const& b, Vector& x, la::Entries const& of_b, la::Entries const& of_x, Watch const& watch);
  SolveInfo goes_on(SolveInfo all, Vector const& b, Vector& x, la::Entries const& of_b, Watch const& watch);
  struct Attempted {
    SolveInfo info;
    std::vector<double> targets;  ///< for ||b - A x||, of each column
    bool interrupted;             ///< by the user, or the end of the time
    bool out_of_iterations;
    std::string small_rows;  ///< that x is wrong there, though it has converged (small_rows.cpp)
  };
  void tell_small_rows(Attempted& now);
  bool solves_small_rows(Attempted const& now, SolveInfo& all, Vector const& b, Vector& x, la::Entries const& of_b, Watch const& watch);
  using InUse = std::tuple<precond::PreconditionerPtr, std::string, std::vector<AutomaticAttempt>, std::size_t, std::string,
                           std::shared_ptr<krylov::Method>, std::string, std::vector<std::string>, std::vector<EffectiveOption>>;
  InUse in_use() const;
  void use(InUse const& before);
  Attempted attempt_at_once(Vector const& b, Vector& x, la::Entries const& of_b, la::Entries const& of_x, Watch const& watch,
                            std::int64_t max_it);
  /// Whether an answer is to be refined to rounding level: A is solved directly.
  bool solves_directly() const;
  /// By factors that have an adjoint of their own.
  bool solves_by_lu() const;
  bool applies_once() const;  ///< the preconditioner, whatever it leaves
  void refine(Operator const& A, Operator const& M, bool adjoint, Vector const& b, Vector& x, SolveInfo& info) const;
  void conclude_directly(krylov::Monitor& monitor, std::vector<double> const& norms, SolveInfo const& info) const;
  Vector projected_rhs(Vector const& b, std::vector<std::string>& notes) const;
  bool ended(krylov::Monitor& monitor, std::vector<double> const& true_norms, Vector const& x, std::vector<double>& before,
             SolveInfo& info) const;
  /// What to try when a solve ended so: nothing that is in use already.
  /// residual: the largest of the columns, relative to b.
  std::string advice(krylov::Reason reason, double residual) const;
  std::string other_preconditioner() const;
  bool at_rounding_level(double residual, double norm_b, Vector const& x) const;

  // as given, and as they are worked with (scaling.hpp)
  OperatorPtr given_A_, A_;
  Matrix given_P_, P_;
  OperatorPtr M_;
  Vector given_null_space_;
  MatrixScale scale_;
  double largest_A_ = 1;  // entry, of A_
  NullSpace null_space_;
  mutable std::optional<Magnitudes> magnitudes_;  // of A_, once there was a direct solve
  Options options_;
  std::string prefix_;
  mutable std::vector<EffectiveOption> record_;
  Inspection inspection_, of_P_;  // of A, and of what the preconditioner is made from
  bool made_for_hermitian_ = false;
  bool small_rows_told_ = false;  // to the log
  std::vector<std::string> notes_;
  std::shared_ptr<krylov::Method> method_;
  std::string wanted_method_, method_name_, preconditioner_type_;
  precond::PreconditionerPtr preconditioner_;
  std::vector<AutomaticAttempt> attempts_;  // of pc auto, else none
  std::size_t attempt_ = 0;                 // the one in use
  bool looked_for_cheap_factors_ = false;   // before their turn
  std::string why_attempt_;                 // not the one before it
  std::string no_factors_;                  // what a direct attempt found wrong with the values
  std::size_t record_without_preconditioner_ = 0;
  krylov::StopRule rule_;
  std::int64_t max_resumes_ = 0;
  bool keeps_best_ = true;
  bool looks_ = true;     // at the matrix, before anything is done with it
  std::string projects_;  // -ksp_null_space
  device::Queue queue_;
  std::int64_t check_every_ = 0;  // 0: not asynchronous
  bool graphs_ = true;
  std::shared_ptr<device::host::InUse> in_use_ = std::make_shared<device::host::InUse>();
  double setup_seconds_ = 0;
  bool reused_ = false;
};

/// All options of the library: name, default, meaning; for --help-options.
std::vector<std::pair<std::string, OptionTable const*>> option_tables();

}  // namespace asterism::solve
