// The one multigrid cycle, for algebraic and geometric levels: it asks operators for products, residuals and weighted steps.
#pragma once
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "asterism/precond/multigrid/smoother.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

/// A level with its way to the next coarser one; the last has a solver instead, or its smoother alone.
struct GridLevel {
  OperatorPtr A;
  OperatorPtr P, R;  ///< prolongation from, restriction to the next level
  SmootherPtr smoother;
  OperatorPtr solver;      ///< on the last level
  OperatorPtr first = {};  ///< prolongation of the next level's solution in full multigrid; nullptr: P
  bool paired = true;      ///< R is a multiple of P^H
};

/// How often, and how, the next level is visited.
enum class CycleType : std::uint8_t {
  v,     ///< once
  w,     ///< twice
  f,     ///< once by an F, then once by a V cycle
  k,     ///< by two steps of a Krylov method with this cycle as its preconditioner: Notay (2008), algorithm 3.2
  full,  ///< full multigrid: from the coarsest level up, each starts from the solution of the next one and makes a V cycle. Brandt (1977)
};
/// "v", "w", "f", "k" or "full".
CycleType cycle_type(std::string_view name);

class Cycle {
 public:
  Cycle() = default;
  /// hermitian: all A are, so that K cycles take steps of cg instead of gcr, and an adjoint needs no products with A^H.
  Cycle(std::vector<GridLevel> levels, CycleType type, bool hermitian = false)
      : levels_(std::move(levels)), type_(type), hermitian_(hermitian) {}
  /// x = approximate inverse times b, from x = 0.
  void apply(Vector const& b, Vector& x) const;
  /// The same; returns b^H x.
  Scalar apply_and_dot(Vector const& b, Vector& x) const;
  /// A cycle that starts from x, or from zero if `fresh`, and then r = b - A x. Full multigrid starts from zero alone.
  void improve(Vector const& b, Vector& x, Vector& r, bool fresh) const;
  /// Whether that is less work than apply() and a residual.
  bool improves(bool fresh) const {
    return !levels_.empty() && levels_[0].smoother && levels_[0].smoother->gives_residual() && (fresh || type_ != CycleType::full);
  }
  /// The cycle for A^H, whose application is the adjoint of this one's. K cycles and full multigrid have none.
  Cycle adjoint() const;
  /// Hermitian where A is: V and W cycles whose smoothers are adjoints of each other.
  bool symmetric() const;
  /// Another operator for each b.
  bool varies() const { return type_ == CycleType::k && levels_between() > 0; }
  /// From now on each level has events of its own for what is done there: MGSmooth Level 0 and so on.
  void time_levels();
  std::vector<GridLevel> const& levels() const { return levels_; }

 private:
  struct Work {
    Vector b, x;                   // of the coarse equation
    Smoother::Work s;              // r is the residual too
    Vector rest, more, Ax, Amore;  // of second visits; the last two of K cycles
  };
  /// Those that a second visit makes a difference to: all but the first, and a last one with a solver.
  std::size_t levels_between() const { return levels_.empty() ? 0 : levels_.size() - 1 - (levels_.back().solver ? 1 : 0); }
  std::vector<Work> new_work(Vector const& like) const;
  void run(std::size_t level, CycleType type, std::vector<Work>& work, Vector const& b, Vector& x, bool fresh = true, Vector* r = nullptr,
           Scalar* dot = nullptr) const;
  void run_full(std::vector<Work>& work, Vector const& b, Vector& x, Vector* r = nullptr) const;
  void correct(std::size_t level, CycleType type, std::vector<Work>& work) const;
  void two_krylov_steps(std::size_t level, std::vector<Work>& work) const;
  enum Part : std::uint8_t { smoothing, both, residuals, restriction, interpolation, solving, parts };
  template <class F>
  void timed(std::size_t level, Part part, F const& what) const;
  std::vector<GridLevel> levels_;
  std::vector<std::array<int, parts>> events_;  // of each level, if they are timed
  CycleType type_ = CycleType::v;
  bool hermitian_ = false;
  bool v_before_f_ = false;  // of the adjoint of an F cycle
  mutable Scratch<std::vector<Work>> work_;
};

}  // namespace asterism::precond
