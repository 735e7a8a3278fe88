// Preconditioners: operators z = M r that approximate the inverse of a matrix.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "asterism/base/options.hpp"
#include "asterism/la/matrix.hpp"
#include "asterism/precond/direct/factor_facts.hpp"

namespace asterism::precond {

using la::Layout;
using la::Matrix;
using la::Operator;
using la::Scalar;
using la::Space;
using la::Vector;

class Preconditioner : public Operator {
 public:
  explicit Preconditioner(Operator const& A) : space_(A.range()), dtype_(A.dtype()) {}
  Space const& range() const override { return space_; }
  Space const& domain() const override { return space_; }
  Dtype dtype() const override { return dtype_; }
  /// Several lines for people: what the set-up made.
  virtual std::string report() const { return describe(); }
  virtual std::size_t memory_bytes() const { return 0; }
  /// Of a direct method; null of others. The same on all ranks.
  virtual DirectFactors const* factors() const { return nullptr; }
  /// A solve up to rounding.
  bool direct() const { return factors() != nullptr; }
  /// Of a direct method whose pivots are chosen among few rows: makes factors with better ones of the same matrix. False if there are none.
  /// Collective.
  virtual bool pivot_more(Matrix const&) { return false; }
  /// That applications will come from that queue: what a GPU needs is made ahead, and notes() tell if it cannot be. After an update too.
  /// Collective.
  virtual void prepare(device::Queue const&) {}
  /// What a user should know of the set-up. The same on all ranks.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Rows and entries of each level of a multigrid method.
  virtual std::vector<std::pair<std::int64_t, std::int64_t>> levels() const { return {}; }
  /// Hermitian as an operator when A is: what cg and minres need.
  virtual bool symmetric() const { return true; }
  /// Another operator at each application, as an inner solve that stops at a tolerance is.
  virtual bool varies() const { return false; }
  /// The second phase of a set-up, that of the values. A has the pattern of the matrix that this was made from. What depends on the pattern
  /// alone is kept. False: what was kept does not fit these values, and this is to be made from scratch. Collective.
  virtual bool update(Matrix const& A) = 0;
  /// Whether the last update that succeeded ran the first phase too, to keep it from then on. Each rank's own.
  virtual bool updated_from_scratch() const { return false; }
  /// Whether A was found Hermitian: M^H is M then, if it is symmetric().
  virtual void set_hermitian(bool yes) { self_adjoint_ = yes && symmetric(); }
  /// By apply_adjoint(), unless it is overridden.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override;

 protected:
  /// y = M^H x. The default is apply() where M is its own adjoint, and an error else.
  virtual void apply_adjoint(Vector const& x, Vector& y) const;
  Space space_;
  Dtype dtype_;
  bool self_adjoint_ = false;
};

using PreconditionerPtr = std::shared_ptr<Preconditioner>;
using OperatorPtr = std::shared_ptr<Operator const>;

/// What a preconditioner is made from: its options, and a way to make nested ones by their name.
struct Nest {
  Configuration config;
  /// Reads pc_type (with the given default) under `config`'s prefix and sets it up on A.
  std::function<PreconditionerPtr(Configuration const& config, Matrix const& A, std::string const& fallback)> make_inner;
  /// Reads ksp_type and pc_type (with the given default) under `config`'s prefix, and makes a solver with A of them.
  std::function<PreconditionerPtr(Configuration const& config, OperatorPtr const& A, std::string const& fallback)> make_solver;
  bool hermitian = false;  ///< A was found to be so: M^H need not be kept ready
  bool symmetric = true;   ///< the method needs a preconditioner that is so for a Hermitian A
  bool projects = false;   ///< the solver projects a null space of A out of b and x
};

using PreconditionerFactory = std::function<PreconditionerPtr(Nest const&, Matrix const&)>;
using MatrixFreeFactory = std::function<PreconditionerPtr(Nest const&, OperatorPtr const&)>;

struct PreconditionerEntry {
  PreconditionerFactory make;
  OptionTable const* options;
  std::string about;
  bool by_ranks = false;                    ///< made of each rank's own rows, so that answers depend on where these begin
  MatrixFreeFactory make_matrix_free = {};  ///< for operators without entries, of those that need none
};

/// All preconditioners of this room by their -pc_type.
std::map<std::string, PreconditionerEntry> const& preconditioners();

/// A user's approximate inverse. Whether it is symmetric is the user's word.
class Users final : public Preconditioner {
 public:
  explicit Users(std::shared_ptr<Operator const> M) : Preconditioner(*M), M_(std::move(M)) {}
  void apply(Vector const& x, Vector& y) const override { M_->apply(x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override { M_->apply_transpose(x, y, conjugate); }
  std::string describe() const override { return M_->describe(); }
  bool update(Matrix const&) override { return true; }

 private:
  std::shared_ptr<Operator const> M_;
};

/// None at all: z = r.
PreconditionerPtr none(Operator const& A);
/// Division by the diagonal, which A must tell.
PreconditionerPtr jacobi(Operator const& A);

/// Sets of vectors to work in, for each queue and number of columns. A call has one to itself; several threads may call at once.
template <class Set>
class Scratch {
  struct Entry {
    device::Queue queue;
    std::int64_t columns;
    Set set;
  };
  struct Free {
    std::mutex mutex;
    std::vector<std::unique_ptr<Entry>> entries;  // the one that came back last is taken first
  };

 public:
  class Lease {
   public:
    Lease(Free& free, std::unique_ptr<Entry> entry) : free_(free), entry_(std::move(entry)) {}
    ~Lease() {
      std::lock_guard const lock(free_.mutex);
      free_.entries.push_back(std::move(entry_));
    }
    Lease(Lease const&) = delete;
    Lease& operator=(Lease const&) = delete;
    Set& operator*() const { return entry_->set; }
    Set* operator->() const { return &entry_->set; }

   private:
    Free& free_;
    std::unique_ptr<Entry> entry_;
  };

  template <class Make>
  Lease lease(Vector const& like, Make const& make) {
    {
      std::lock_guard const lock(free_->mutex);
      auto& all = free_->entries;
      for (auto e = all.rbegin(); e != all.rend(); ++e)
        if ((*e)->queue == like.queue() && (*e)->columns == like.columns()) {
          auto found = std::move(*e);
          all.erase(std::next(e).base());
          return Lease(*free_, std::move(found));
        }
    }
    return Lease(*free_, std::make_unique<Entry>(Entry{like.queue(), like.columns(), make()}));
  }

 private:
  std::unique_ptr<Free> free_ = std::make_unique<Free>();
};

/// Runs an inner preconditioner of one precision for a solver of another.
class Cast final : public Preconditioner {
 public:
  /// made_from: the dtype of the matrix, or operator, that `inner` was made from.
  Cast(Operator const& A, PreconditionerPtr inner, Dtype made_from) : Preconditioner(A), inner_(std::move(inner)), made_from_(made_from) {}
  void apply(Vector const& x, Vector& y) const override;
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override;
  Operator const* in_its_precision() const override { return inner_.get(); }
  std::string describe() const override;
  std::string report() const override;
  std::size_t memory_bytes() const override { return inner_->memory_bytes(); }
  std::vector<std::pair<std::int64_t, std::int64_t>> levels() const override { return inner_->levels(); }
  bool symmetric() const override { return inner_->symmetric(); }
  bool varies() const override { return inner_->varies(); }
  DirectFactors const* factors() const override { return inner_->factors(); }
  void set_hermitian(bool yes) override { inner_->set_hermitian(yes); }
  void prepare(device::Queue const& queue) override { inner_->prepare(queue); }
  std::vector<std::string> notes() const override { return inner_->notes(); }
  bool update(Matrix const& A) override { return inner_->update(A.converted(made_from_)); }
  bool updated_from_scratch() const override { return inner_->updated_from_scratch(); }
  bool pivot_more(Matrix const& A) override { return inner_->pivot_more(A.converted(made_from_)); }

 private:
  template <class F>
  void in_precision(Vector const& x, F const& low) const;
  PreconditionerPtr inner_;
  Dtype made_from_;
  mutable Scratch<std::pair<Vector, Vector>> work_;
};

/// d = 1 / d; a zero is an error with its row on every rank. For its advice: whether the operator has entries, and the prefix of the
/// options. Collective.
void invert_entries(Vector& d, char const* name, bool has_entries, std::string const& prefix = "");

/// The table of preconditioners: -pc_type, and FUNCTION_entry() in the preconditioner's own file.
#define ASTERISM_PRECONDITIONERS(X) \
  X("none", none)                   \
  X("jacobi", jacobi)               \
  X("chebyshev", chebyshev)         \
  X("sor", sor)                     \
  X("ilu", ilu)                     \
  X("ilut", ilut)                   \
  X("icc", icc)                     \
  X("bjacobi", block_jacobi)        \
  X("asm", additive_schwarz)        \
  X("lu", lu)                       \
  X("cholesky", cholesky)           \
  X("amg", amg)                     \
  X("gmg", geometric_multigrid)     \
  X("ksp", inner_solver)
#define DECLARE(name, function) PreconditionerEntry function##_entry();
ASTERISM_PRECONDITIONERS(DECLARE)
#undef DECLARE

}  // namespace asterism::precond
