// An iterative method: one per file, written on Vector, Scalar and Operator.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "asterism/base/options.hpp"
#include "asterism/krylov/monitor.hpp"
#include "asterism/la/operator.hpp"

namespace asterism::krylov {

using device::Condition;
using la::Operator;

class Method {
 public:
  virtual ~Method() = default;
  virtual std::string name() const = 0;
  /// Improves x until monitor.stop(). x holds the initial guess. The monitor is given ||b - A x||, or what the recurrence has for it;
  /// the caller computes the residual of the answer.
  virtual void solve(Operator const& A, Operator const& M, Vector const& b, Vector& x, Monitor& monitor) const = 0;
  /// Needs A and M Hermitian positive definite (M only, for minres).
  virtual bool needs_symmetric_matrix() const { return false; }
  /// Can work on (n, k) at once.
  virtual bool blocks_columns() const { return false; }
  /// Never needs a value on the host: all that it decides is a Scalar, a mask or a Condition of the queue.
  virtual bool asynchronous() const { return false; }
  /// From x = 0, the iterate after a given number of steps is a linear function of b.
  virtual bool linear() const { return false; }
  /// M may be another operator in each iteration.
  virtual bool flexible() const { return linear(); }
  /// x is that of the iterate whenever the monitor is asked.
  virtual bool keeps_iterate() const { return true; }
  /// The last norm that the monitor is given is that of b - A x, computed from x.
  virtual bool ends_with_true_residual() const { return false; }
  /// For n unknowns.
  virtual Stagnation stagnation(std::int64_t n) const {
    // in exact arithmetic cg and its kin take n steps, and their residual may stand high for as long
    return {.window = std::max<std::int64_t>(2000, 3 * n)};
  }
};

using MethodFactory = std::function<std::shared_ptr<Method>(Configuration const&)>;

struct MethodEntry {
  MethodFactory make;
  OptionTable const* options;
  std::string about;
};

/// Short recurrences that can break down, or lose their biorthogonality to rounding, and then may converge from a new start.
inline constexpr Stagnation short_recurrences{.window = 200, .starts_again = true};
/// Where a method with a shadow residual starts: r0 = r, or, if starting so was in vain, values of its own. Returns (r0, r).
Scalar choose_shadow(Monitor const& monitor, Vector const& r, Vector& r0);

/// All methods of this room by their -ksp_type.
std::map<std::string, MethodEntry> const& methods();

/// The table of methods: -ksp_type NAME, and NAME_entry() in the method's own file. A new method is added here, and nowhere else.
#define ASTERISM_METHODS(X) \
  X(cg)                     \
  X(pipecg)                 \
  X(tfqmr)                  \
  X(gmres)                  \
  X(fgmres)                 \
  X(bicgstab)               \
  X(minres)                 \
  X(chebyshev)              \
  X(preonly)                \
  X(richardson)             \
  X(bicg)                   \
  X(idr)                    \
  X(cgs)                    \
  X(cr)                     \
  X(gcr)
#define DECLARE(name) MethodEntry name##_entry();
ASTERISM_METHODS(DECLARE)
#undef DECLARE
std::shared_ptr<Method> single_reduction_cg();  // -ksp_cg_single_reduction

}  // namespace asterism::krylov
