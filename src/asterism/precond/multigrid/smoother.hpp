// What a level of multigrid smooths with: some steps x += M (b - A x) before the coarse correction, and their adjoint after it.
#pragma once
#include <memory>
#include <string>

#include "asterism/precond/multigrid/chebyshev_polynomial.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

enum class Side : std::uint8_t { before, after };  ///< of the coarse correction

/// Steps on each side, or the degree of the polynomial.
struct Steps {
  std::int64_t before = 1, after = 1;
  std::int64_t on(Side side) const { return side == Side::before ? before : after; }
  Steps swapped() const { return {after, before}; }
};
/// "x 2", or both numbers where they differ.
std::string text_of(Steps const& s);

class Smoother {
 public:
  /// Vectors like x to work in.
  struct Work {
    Vector r, t, d;
    la::Array of_b;  ///< kept of b from before to after the coarse correction; empty at first
  };
  virtual ~Smoother() = default;
  /// Steps on *x for A x = b; from x = 0, whatever it holds, if `fresh`. Those that are out of place swap x with `other`; w.r and w.d are
  /// scratch, and so is w.t of those that are in place (`other` is w.t else).
  virtual void run(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const = 0;
  /// The same, and then w.r = b - A x.
  virtual void run_and_residual(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w, Side side, bool fresh) const {
    run(A, b, x, other, w, side, fresh);
    A.residual(b, *x, w.r);
  }
  /// Steps after the coarse correction; returns b^H x.
  virtual la::Scalar run_and_dot(Operator const& A, Vector const& b, Vector*& x, Vector*& other, Work& w) const {
    run(A, b, x, other, w, Side::after, false);
    return dot(b, *x);
  }
  /// Whether run_and_residual() is less work than both apart.
  virtual bool gives_residual() const { return false; }
  /// For A^H: its steps before are the adjoint of these ones after, and the other way round.
  virtual std::shared_ptr<Smoother const> adjoint() const = 0;
  /// The same with other numbers of steps.
  virtual std::shared_ptr<Smoother const> with(Steps steps) const = 0;
  /// Whether the steps after are the adjoint of those before where A is Hermitian: cg needs this.
  virtual bool symmetric() const = 0;
  /// Whether an odd number of swaps is made in a cycle from zero, the first step being none; with the residual after it too.
  virtual bool swaps(bool /* residual_after */, bool /* on_gpu */) const { return false; }
  virtual bool needs_d() const { return false; }
  /// Whether it is made of each rank's own rows, so that iterations depend on where these begin.
  virtual bool by_ranks() const { return false; }
  virtual std::size_t memory_bytes() const { return 0; }
  virtual std::string describe() const = 0;
};
using SmootherPtr = std::shared_ptr<Smoother const>;

/// For which operator steps are prepared, if it can do several at once, and how many then.
struct AtOnce {
  OperatorPtr A;
  std::int64_t most = 1;
};
/// x += w .* (b - A x): damped Jacobi, SPAI-0, l1-Jacobi. One product a step; the first one from zero has none.
SmootherPtr weighted_steps(Vector weights, Steps steps, std::string name, AtOnce const& at_once = {});
/// The same for one colour after the other, each with weights that are zero elsewhere: Gauss-Seidel where rows of a colour are not coupled.
/// symmetric: in the reverse order after the coarse correction. about: more to say of it. A product for each colour.
SmootherPtr coloured_steps(std::vector<Vector> weights, Steps steps, bool symmetric, std::string about, AtOnce const& at_once = {});
/// A polynomial in diag(w) A of that degree on each side. p.degree is not read. Up to degree 16 a weighted step for each root: one
/// product a step, the first one from zero has none, and a vector of weights is kept for each root.
SmootherPtr chebyshev_smoother(ChebyshevPolynomial p, Steps degrees, std::string name, AtOnce const& at_once = {});
/// x += damping M (b - A x) by any preconditioner. Two passes a step; the first one from zero has one.
SmootherPtr preconditioned_steps(PreconditionerPtr M, Steps steps, double damping, bool by_ranks);

/// Which rows of a sweep of Gauss-Seidel know of which.
enum class SweepOrder : std::uint8_t {
  colours,  ///< colour by colour, over all ranks: the same on any number of them
  ranks,    ///< each rank its own rows in their order, the others' as they were before the sweep
};
/// Gauss-Seidel in place: forward before, backward after the coarse correction. One pass a step. `ranks` adds the absolute values of the
/// couplings to other ranks to the diagonal, without which it may diverge (Baker, Falgout, Kolev and Yang 2011, section 4). A has its rows.
/// hermitian: the adjoint is the same one. Collective; a zero on the diagonal is an error on every rank.
SmootherPtr gauss_seidel(Matrix const& A, SweepOrder order, Steps steps, bool hermitian);

}  // namespace asterism::precond
