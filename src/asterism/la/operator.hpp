// What methods see of a matrix, a preconditioner, a solver or a user's function.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

class Matrix;

/// An error where both are one vector: a result must not overwrite what it is made of. The names are for the message.
void require_distinct(char const* what, char const* name, Vector const& given, char const* result_name, Vector const& result);

/// x + scale w .* (b - A x)
struct Step {
  Vector w;
  double scale = 1;
};

/// Such steps, one after the other, as an operator has prepared them.
class StepSequence {
 public:
  virtual ~StepSequence() = default;
  /// All steps from *x, or from zero whatever *x holds, if `fresh`. *x may be swapped with *other, which is scratch. Then r = b - A x, if
  /// there is an r. of_b: what is kept of b for further calls with it; empty at first.
  virtual void run(Vector const& b, Vector*& x, Vector*& other, bool fresh, Vector* r, Array& of_b) const = 0;
  /// Whether run() swaps an odd number of times, with vectors on a GPU or not; the same on all ranks.
  virtual bool swaps(bool fresh, bool residual, bool on_gpu) const = 0;
  virtual std::string describe() const = 0;
};

/// How a coarser operator is to be made.
struct CoarseRule {
  enum class By : std::uint8_t {
    either,    ///< discretised again where the operator knows how, else by the product
    again,     ///< discretised again
    galerkin,  ///< by Galerkin's product R A P
  };
  By by = By::either;
  std::int64_t rows_per_rank = 0;  ///< with fewer, on average, it is given to fewer ranks; 0: it is not
  bool paired = true;              ///< R must be a multiple of P^H
};

/// Maps vectors of domain() to vectors of range(). All but apply() is optional. What can be made from the rest has a default here; the
/// error of what cannot names the operator.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual Space const& range() const = 0;
  virtual Space const& domain() const = 0;
  virtual Dtype dtype() const = 0;
  /// y = A x. x and y are different vectors.
  virtual void apply(Vector const& x, Vector& y) const = 0;
  /// y = A^T x, or A^H x. x and y are different vectors.
  virtual void apply_transpose(Vector const& x, Vector& y, bool conjugate) const;
  /// y += A x. x and y are different vectors.
  virtual void apply_add(Vector const& x, Vector& y) const;
  /// r = b - A x. r is another vector than b and x.
  virtual void residual(Vector const& b, Vector const& x, Vector& r) const;
  /// y = x + w .* (b - A x): one weighted step. y is another vector than b, x and w.
  virtual void smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const;
  /// The same; returns b^H y. Those who can do it in one pass override it.
  virtual Scalar smooth_and_dot(Vector const& b, Vector const& x, Vector const& w, Vector& y) const;
  /// Several steps, if the operator can prepare them: at most `at_once` of them, the residual included, in one pass over memory and for
  /// one exchange of messages. Collective.
  virtual std::shared_ptr<StepSequence const> steps(std::vector<Step> const&, std::int64_t) const { return nullptr; }
  /// Of a square operator.
  virtual Vector diagonal() const;
  /// A bound of the largest |eigenvalue| of D^-1 A, with D the diagonal, if one is known.
  virtual std::optional<double> eigenvalue_bound() const { return std::nullopt; }
  /// y = A x; returns x^H y. Those who can do it in one pass override it.
  virtual Scalar apply_and_dot(Vector const& x, Vector& y) const;
  /// Of an approximate inverse M of A: x += M (b - A x), where x is 0 if `fresh` whatever it holds, and then r = b - A x. False where that
  /// takes as many passes over memory as apply() and a residual; nothing was done then. The same on all ranks. Collective.
  virtual bool improve(Operator const& /* A */, Vector const& /* b */, Vector& /* x */, Vector& /* r */, bool /* fresh */) const {
    return false;
  }
  /// A smaller operator for what varies slowly, and the way to it and back, if the operator knows one: a level of geometric multigrid.
  /// An error where it can be made, but not by that rule. Collective.
  struct Coarse {
    std::shared_ptr<Operator const> A;     ///< on the coarse space
    std::shared_ptr<Operator const> P, R;  ///< prolongation from there; restriction
    /// Makes an interpolation of higher order, for full multigrid; empty: none is known. Collective.
    std::function<std::shared_ptr<Operator const>()> higher = {};
    bool paired = true;  ///< R is a multiple of P^H
  };
  virtual std::optional<Coarse> coarse(CoarseRule const&) const { return std::nullopt; }
  /// Whether coarse() may know one. The same on all ranks.
  virtual bool coarsens() const { return false; }
  /// Rows in groups that are not coupled among themselves, if the operator knows some: one at the rows of each group, zero elsewhere.
  virtual std::vector<Vector> colours() const { return {}; }
  /// Of an operator that works in another precision and converts what it reads and gives: the one without conversions.
  virtual Operator const* in_its_precision() const { return nullptr; }
  /// The same in another dtype, if the operator knows it. Collective.
  virtual std::shared_ptr<Operator const> converted_to(Dtype) const { return nullptr; }
  /// Whether several columns cost as much as each by itself, and copies besides: solvers take one after the other then.
  virtual bool takes_columns_apart() const { return false; }
  /// y = x always: methods may leave it out.
  virtual bool is_identity() const { return false; }
  /// The assembled matrix, where there is one.
  virtual Matrix const* matrix() const { return nullptr; }
  /// The entries, of an operator that finds them by fewer products than columns; ones on the diagonal of padding. Collective.
  virtual std::shared_ptr<Matrix const> assembled() const { return nullptr; }
  /// One line for people.
  virtual std::string describe() const = 0;
};

}  // namespace asterism::la
