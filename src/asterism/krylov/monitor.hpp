// The contract that all methods share: when to stop, what is recorded, and why it ended.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/device/condition.hpp"
#include "asterism/krylov/verdict.kernels.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::krylov {

using la::Scalar;
using la::Vector;

std::string_view name_of(Reason r);
inline bool converged(Reason r) { return std::int8_t(r) >= std::int8_t(Reason::converged_rtol); }
/// By the user, or by a time limit.
inline bool interrupted(Reason r) { return r == Reason::diverged_interrupted || r == Reason::diverged_time_limit; }

/// Stop when ||b - A x|| <= max(rtol ||b||, atol), column by column.
struct StopRule {
  double rtol = 1e-5, atol = 0, divtol = 1e5;
  std::int64_t max_it = 10000;
};

/// When a method is taken to make no progress, and what is done then.
struct Stagnation {
  /// Iterations in which the residual norm does not fall by a tenth. 0: never.
  std::int64_t window = 0;
  /// Its norm falls, if at all, at the rate at which it fell: such a method may be slow, as long as it will arrive before max_it.
  bool steady = false;
  /// A new start from x may converge where the method no longer does: short recurrences that have lost their biorthogonality.
  bool starts_again = false;
};

/// What is asked of one column.
struct Target {
  double norm_b = 0;
  double tolerance = 0;  ///< max(rtol norm_b, atol)
  double unit = 1;       ///< norms are told in it: the system may have been scaled
};

/// Called with (iteration, norms of the k columns).
using Watcher = std::function<void(std::int64_t, std::vector<double> const&)>;

/// Where and how a method's progress is judged: on the queue that does its work.
struct Judgement {
  device::Queue queue;
  /// The host looks only every so many iterations, at what was known so many before; 0: after each.
  std::int64_t check_every = 0;
  /// Every so many iterations x is saved if its residual has halved.
  std::int64_t save_every = 20;
  /// Who watches wants x: methods that carry it in another form bring it up to date before stop().
  bool needs_iterate = false;
  /// x is zero on all ranks.
  bool zero_guess = false;
  /// Iterations on a GPU are launched as graphs.
  bool graphs = true;
  /// A solve within another, from x = 0: its tolerance is of the residual that it starts with, and nobody is told how it ended.
  bool nested = false;
  /// The host never looks, and so waits for nothing: all max_it iterations are submitted, and what comes after convergence is skipped.
  bool unobserved = false;
};

/// The checks are work of the queue. Where the host looks after each, a check waits for its result. Else, what is submitted
/// once all columns have ended is skipped (device/condition.hpp) until the host hears of it: the same iterates, bit by bit.
class Monitor {
 public:
  /// x: where the method has its iterate; it holds the initial guess.
  Monitor(StopRule rule, std::vector<Target> targets, Vector x, Judgement judgement, Watcher watcher = {});
  ~Monitor();
  Monitor(Monitor const&) = delete;
  Monitor& operator=(Monitor const&) = delete;

  // for methods

  /// x is known to be zero where the method starts.
  bool from_zero() const { return judgement_.zero_guess && !resumed_; }
  /// The host knows that all columns still iterate.
  bool all_iterate() const;
  /// r = b - A x, where a method starts: b itself if x is known to be zero.
  void initial_residual(la::Operator const& A, Vector const& b, Vector const& x, Vector& r) const;
  /// With the residual norm(s) of iterate `it` (0 is the initial guess): is there anything left to do, as far as the host knows?
  /// NaN wins over every other verdict. The same answer on all ranks.
  bool stop(std::int64_t it, Scalar const& residual_norm);
  /// The method cannot go on with the columns whose value is `bad`; true if the host knows that none is left.
  bool break_down_if(Scalar const& value, Bad bad, Reason reason, std::string_view why);
  void break_down(Reason reason, std::string_view why);
  bool needs_iterate() const { return judgement_.needs_iterate; }
  /// 1 for the columns that still iterate, 0 for the finished: a mask for select().
  Scalar active() const { return mask_; }
  /// Not zero every 50 iterations in which the norm of a column does not fall.
  Scalar stalling() const { return stalling_; }
  /// New starts since the last one that helped: the next should not repeat what the last one did.
  std::int64_t vain_starts() const { return vain_starts_; }

  // for who calls the method

  /// The method's: before it is called.
  void set_stagnation(Stagnation const& stagnation, bool keeps_iterate);
  Reason reason(std::int64_t j) const { return reasons_[std::size_t(j)]; }
  Reason reason() const;  ///< the worst of all columns
  bool done() const;
  /// What ended the first column that ended otherwise than by converging, as a reason and in words.
  Reason trouble() const { return trouble_; }
  std::string const& why() const { return why_; }
  std::int64_t iterations() const { return iterations_; }
  std::vector<std::vector<double>> const& history() const { return history_; }
  /// What stop() was given last; none where the host does not look each time.
  std::vector<double> last_norms() const;
  std::vector<Target> const& targets() const { return targets_; }
  StopRule const& rule() const { return rule_; }
  std::int64_t columns() const { return std::int64_t(targets_.size()); }

  /// Given the true norms of x: columns for which an iterate with a smaller norm was saved have it back. True if any has.
  bool restore_best(std::vector<double> const& true_norms);
  /// The verdict on columns that were verified: their reasons, and what is told of the first that failed.
  void conclude(std::vector<Reason> const& reasons, std::vector<double> const& true_norms, std::string_view why);
  /// For a method that starts again from x, whose norms these are: with the columns that `go_on`.
  void start_again(std::vector<char> const& go_on, std::vector<double> const& true_norms, bool in_vain);
  void set_all(Reason reason, std::string_view why);

 private:
  bool asynchronous() const { return judgement_.check_every > 0; }
  void look(device::Array const& integers, device::Array const& numbers);  ///< what a check found becomes the host's knowledge
  void look_back(std::int64_t it);
  void save_iterate(Scalar const& save);
  void take_rows(std::int64_t last);
  void set_reasons();
  void ask_for_interrupts(std::int64_t it);
  std::string described_trouble(std::int64_t const* integers, double const* numbers) const;
  double reachable(Target const& t, double tolerance) const;
  kernel::Rule rule_of_checks(std::int64_t it) const;

  StopRule rule_;
  std::vector<Target> targets_;
  Vector x_, saved_;  // saved_: the iterates with the least norms so far, once there are any
  Judgement judgement_;
  Watcher watcher_;
  Stagnation stagnation_;
  bool keeps_iterate_ = false;
  // the queue's: see verdict.kernels.hpp
  device::Array integers_, numbers_, finished_;
  Scalar mask_ = 1.0, stalling_ = 0.0;
  std::unique_ptr<device::Condition> unfinished_;
  // norms of iterations whose page the host has not read; of page p: ((p - 1) check_every, p check_every]
  std::map<std::int64_t, device::Array> pages_;
  struct Snapshot {
    std::int64_t it = 0;
    device::Array integers, numbers;
  };
  std::optional<Snapshot> snapshot_;
  std::vector<std::string> sites_;  // what breakdowns are called
  // the host's
  std::vector<Reason> reasons_;
  std::vector<std::vector<double>> history_;
  std::int64_t iterations_ = 0, offset_ = 0, rows_taken_ = 0, vain_starts_ = 0;
  bool resumed_ = false;
  Reason trouble_ = Reason::iterating;
  std::string why_;
};

}  // namespace asterism::krylov
