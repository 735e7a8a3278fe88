// When a method stops, decided where its scalars are.
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"
#include "asterism/device/tape.hpp"

namespace asterism::krylov {

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

/// A property of a scalar with which a method cannot go on.
enum class Bad : std::uint8_t { not_positive, zero };

namespace kernel {

using device::Number;
using device::Numbers;
using device::Queue;

/// The state of a solve of k columns, on its queue.
struct Verdict {
  std::int64_t* integers;  ///< at Place, then k reasons
  double* numbers;         ///< at NumberPlace, then k first norms, then k targets
  Number* finished;        ///< not zero: all columns have ended
};
/// "Trouble" is what ended a column other than convergence; the first is told.
enum Place : std::int64_t { iteration = 0, trouble = 1, trouble_iteration = 2, reasons = 3 };
enum NumberPlace : std::int64_t { trouble_value = 0, trouble_other = 1, firsts = 2 };
enum Trouble : std::int64_t { none = -1, norm_not_finite = -2, scalar_nan = -3, grew = -4, too_many = -5 };  // from 0 on: the method's own

struct Rule {
  double atol, divtol;
  std::int64_t max_it;
};

/// With the norms of iterate `it`: ends columns, writes the norms into history (a row), and the mask of those that go on. The
/// verdict's arrays come one by one, as a queue resolves them.
void check_norms(Queue&, std::int64_t k, std::int64_t it, Rule rule, Numbers<Number> norms, std::int64_t* integers, double* numbers,
                 Number* finished, double* history, Number* mask);
/// Ends the columns whose value is bad: `site` tells the host what to say.
void check_scalar(Queue&, std::int64_t k, Bad what, Reason reason, std::int64_t site, Numbers<Number> values, std::int64_t* integers,
                  double* numbers, Number* finished, Number* mask);
/// A copy of what the host looks at.
void copy_verdict(Queue&, std::int64_t k, std::int64_t const* integers, double const* numbers, std::int64_t* to_integers,
                  double* to_numbers);

}  // namespace kernel
}  // namespace asterism::krylov
