// The contract that all methods share: when to stop, what is recorded, and why it ended.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/la/vector.hpp"

namespace asterism::krylov {

using la::Scalar;
using la::Vector;

/// PETSc's names. Positive: converged; negative: diverged.
enum class Reason : std::int8_t {
  iterating = 0,
  converged_rtol = 2,
  converged_atol = 3,
  converged_its = 4,
  converged_happy_breakdown = 5,
  diverged_its = -3,
  diverged_dtol = -4,
  diverged_breakdown = -5,
  diverged_indefinite_pc = -8,
  diverged_nanorinf = -9,
  diverged_indefinite_mat = -10,
  diverged_pc_failed = -11,
  diverged_stagnated = -12,
  diverged_interrupted = -13,
};
std::string_view name_of(Reason r);
inline bool converged(Reason r) { return std::int8_t(r) > 0; }

/// Stop when ||b - A x|| <= max(rtol ||b||, atol), column by column.
struct StopRule {
  double rtol = 1e-5, atol = 0, divtol = 1e5;
  std::int64_t max_it = 10000;
};

/// Called with (iteration, norms of the k columns).
using Watcher = std::function<void(std::int64_t, std::vector<double> const&)>;

class Monitor {
 public:
  /// norms_b: ||b|| of each column.
  Monitor(StopRule rule, std::vector<double> norms_b, comm::Communicator comm, Watcher watcher = {});

  /// With the residual norm(s) of iterate `it` (0 is the initial guess): is there anything left to do?
  /// NaN wins over every other verdict. The same answer on all ranks.
  bool stop(std::int64_t it, Scalar const& residual_norm);
  /// The method cannot go on with the columns where bad(value) holds; true if none is left.
  bool break_down_if(Scalar const& value, bool (*bad)(Scalar::Value), Reason reason, std::string_view why);
  void break_down(Reason reason, std::string_view why);
  /// 1 for the columns that still iterate, 0 for the finished: a mask for select().
  Scalar active() const;

  Reason reason() const;  ///< the worst of all columns
  bool done() const;
  std::string const& why() const { return why_; }
  std::int64_t iterations() const { return iterations_; }
  std::vector<std::vector<double>> const& history() const { return history_; }
  std::vector<double> const& targets() const { return targets_; }
  StopRule const& rule() const { return rule_; }

  /// For a resumed solve: columns whose verified residual misses the target go on from x.
  void resume(std::vector<double> const& true_norms);
  void set_all(Reason reason, std::string_view why);

 private:
  StopRule rule_;
  comm::Communicator comm_;
  Watcher watcher_;
  std::vector<double> targets_, first_;
  std::vector<Reason> reasons_;
  std::vector<std::vector<double>> history_;
  std::int64_t iterations_ = 0, offset_ = 0;
  bool resumed_ = false;
  std::string why_;
};

}  // namespace asterism::krylov
