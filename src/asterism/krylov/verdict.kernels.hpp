// When a method stops, decided where its scalars are.
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"
#include "asterism/device/tape.hpp"

namespace asterism::krylov {

/// PETSc's names. Positive: converged; negative: diverged.
enum class Reason : std::int8_t {
  iterating = 0,
  start_again = 1,  ///< the method cannot go on from its vectors; its caller may start it again from x
  converged_rtol = 2,
  converged_atol = 3,
  converged_rounding = 12,  ///< no tolerance was given: the residual is at rounding level (not one of PETSc's)
  diverged_its = -3,
  diverged_dtol = -4,
  diverged_breakdown = -5,
  diverged_indefinite_pc = -8,
  diverged_nanorinf = -9,
  diverged_indefinite_mat = -10,
  diverged_pc_failed = -11,
  diverged_stagnated = -12,
  diverged_interrupted = -13,
  diverged_time_limit = -14,  ///< not one of PETSc's
};

/// A property of a scalar with which a method cannot go on.
enum class Bad : std::uint8_t { not_positive, zero };

namespace kernel {

using device::Executor;
using device::Number;
using device::Numbers;

/// The state of a solve of k columns, on its queue.
struct Verdict {
  std::int64_t* integers;  ///< at Place, then k reasons, then the iterations of k marks
  double* numbers;         ///< at NumberPlace, then for each column: first norm, target, mark, norm of the saved iterate
  Number* finished;        ///< not zero: all columns have ended
};
/// "Trouble" is what ended a column other than convergence; the first is told.
enum Place : std::int64_t { iteration = 0, trouble = 1, trouble_iteration = 2, trouble_column = 3, reasons = 4 };
enum NumberPlace : std::int64_t { trouble_value = 0, trouble_other = 1, firsts = 2 };
enum Trouble : std::int64_t {
  none = -1,
  norm_not_finite = -2,
  scalar_nan = -3,
  grew = -4,
  too_many = -5,
  stalled = -6
};  // from 0 on: the method's own

ASTERISM_FN constexpr std::int64_t verdict_integers(std::int64_t k) { return reasons + 2 * k; }
ASTERISM_FN constexpr std::int64_t verdict_numbers(std::int64_t k) { return firsts + 4 * k; }

struct Rule {
  double divtol;
  std::int64_t max_it;
  /// A column stalls when its norm has not fallen by a tenth (its mark) for so many iterations, and for as many as it took to get
  /// there since the `start`. 0: never. A steady one also only if at its rate of late it would miss max_it by far.
  std::int64_t window, start;
  bool steady;
  bool starts_again;  ///< norms that are not finite or grew by divtol are no end: the method is started again
  /// Of a solve within another: the target is at least so much of the norm it starts with, which only the queue knows.
  double relative = 0;
  bool saves;  ///< whether x is to be saved where its norm is half of the one saved before
};

/// What check_norms finds, (k) each.
struct Found {
  Number *mask,   ///< 1 for columns that go on
      *save,      ///< 1 for columns whose x is to be saved
      *stalling;  ///< (1) not zero now and then while the norm of a column does not fall
};
/// While a column makes no progress, `stalling` is set every so many iterations.
inline constexpr std::int64_t stalling_every = 50;

/// With the norms of iterate `it`: ends columns and writes the norms into history (a row). The verdict's arrays come one by one, as a
/// queue resolves them; found: as in Found, one behind the other.
void check_norms(Executor&, std::int64_t k, std::int64_t it, Rule rule, Numbers<Number> norms, std::int64_t* integers, double* numbers,
                 Number* finished, double* history, Number* found);
/// Ends the columns whose value is bad: `site` tells the host what to say.
void check_scalar(Executor&, std::int64_t k, Bad what, Reason reason, std::int64_t site, Numbers<Number> values, std::int64_t* integers,
                  double* numbers, Number* finished, Number* mask);
/// A copy of what the host looks at.
void copy_verdict(Executor&, std::int64_t k, std::int64_t const* integers, double const* numbers, std::int64_t* to_integers,
                  double* to_numbers);

}  // namespace kernel
}  // namespace asterism::krylov
