// The one multigrid cycle, for algebraic and geometric levels: it asks operators for products, residuals and weighted steps.
#pragma once
#include <memory>
#include <vector>

#include "asterism/precond/multigrid/chebyshev_polynomial.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

enum class SmootherKind : std::uint8_t {
  richardson,  ///< x += w .* (b - A x)
  chebyshev,   ///< first-kind polynomial in diag(w) A on [lo, hi]
};

struct Smoother {
  SmootherKind kind = SmootherKind::richardson;
  std::int64_t steps = 1;          ///< sweeps of richardson
  Vector weights;                  ///< its w: damped inverse diagonal or SPAI-0
  ChebyshevPolynomial polynomial;  ///< of chebyshev
};

/// A level with its way to the next coarser one; the last has a solver instead.
struct GridLevel {
  OperatorPtr A;
  OperatorPtr P, R;  ///< prolongation from, restriction to the next level; R = P^H
  Smoother smoother;
  OperatorPtr solver;  ///< on the last level
};

class Cycle {
 public:
  Cycle() = default;
  Cycle(std::vector<GridLevel> levels, int visits) : levels_(std::move(levels)), visits_(visits) {}
  /// x = approximate inverse times b, from x = 0. Symmetric when A is: the same smoother before and after.
  void apply(Vector const& b, Vector& x) const;
  /// The cycle for A^H, whose application is the adjoint of this one's: the smoothers are the same before and after.
  Cycle adjoint() const;

 private:
  struct Work {
    Vector b, x, t, r, d;
  };
  std::vector<Work> new_work(Vector const& like) const;
  void run(std::size_t level, std::vector<Work>& work, Vector const& b, Vector& x) const;
  std::vector<GridLevel> levels_;
  int visits_ = 1;  // of the next level: 1 is a V, 2 a W cycle
  mutable Scratch<std::vector<Work>> work_;
};

}  // namespace asterism::precond
