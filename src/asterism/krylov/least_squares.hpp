// Least squares: min ||b - A x||^2 + damp^2 ||x||^2 for A of any shape.
#pragma once
#include <functional>

#include "asterism/la/operator.hpp"

namespace asterism::krylov {

/// Stops when x is accurate for A and b with relative errors atol and btol, when cond(A) seems to exceed conlim, or after max_it.
struct LeastSquaresRule {
  double damp = 0, atol = 1e-6, btol = 1e-6, conlim = 1e8;
  std::int64_t max_it = 0;  ///< 0: as many as the smaller dimension
};

struct LeastSquaresInfo {
  /// 0: x = 0 solves it; 1: A x = b to the tolerances; 2: the least-squares solution to atol; 3: conlim; 4 to 6: as 1 to 3, to the
  /// last bit; 7: max_it. (Paige and Saunders' numbers.)
  int stop = 0;
  std::int64_t iterations = 0;
  double residual_norm = 0;                   ///< ||(b - A x; -damp x)||
  double normal_norm = 0;                     ///< ||A^H (b - A x) - damp^2 x||: zero at the solution
  double norm_A = 0, cond_A = 0, norm_x = 0;  ///< estimates of the Frobenius norm and the condition number of (A; damp I)
};

/// LSMR: Fong and Saunders (2011). MINRES on the normal equations, without forming them: both norms fall in every step. From x. Per
/// iteration: A, A^H, 3 messages, 6 rows + 16 columns values moved besides. With damp it is x's distance from where it began that is kept
/// small. Collective. `watch` gets (iteration, residual norm, normal norm).
LeastSquaresInfo lsmr(la::Operator const& A, la::Vector const& b, la::Vector& x, LeastSquaresRule const& rule,
                      std::function<void(std::int64_t, double, double)> const& watch = {});

/// LSQR: Paige and Saunders (1982). CG on the normal equations, without forming them: the residual's norm is the least possible in
/// every step, the normal equations' one goes up and down, so that LSMR often stops earlier. As lsmr, but 4 messages.
LeastSquaresInfo lsqr(la::Operator const& A, la::Vector const& b, la::Vector& x, LeastSquaresRule const& rule,
                      std::function<void(std::int64_t, double, double)> const& watch = {});

}  // namespace asterism::krylov
