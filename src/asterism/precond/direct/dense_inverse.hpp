// The inverse of a small distributed matrix, held as a dense matrix by every rank.
#pragma once
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

/// For coarse levels: at most some thousand rows. The rows are gathered on all ranks, factored by
/// LAPACK in double precision and inverted; apply() gathers the right-hand side and multiplies with
/// my rows. A singular direction (zero pivot relative to the matrix) is left out, not divided by.
class DenseInverse final : public Preconditioner {
 public:
  /// target: the dtype that apply() works in.
  DenseInverse(Matrix const& A, Dtype target);
  void apply(Vector const& x, Vector& y) const override;
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override;
  std::string describe() const override;
  std::size_t memory_bytes() const override { return rows_.bytes(); }
  double reciprocal_condition() const { return rcond_; }

 private:
  device::Array rows_;  // my rows of the inverse, row-major
  double rcond_ = 1;
};

}  // namespace asterism::precond
