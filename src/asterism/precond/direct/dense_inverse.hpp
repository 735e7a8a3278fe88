// The inverse of a small distributed matrix, held as a dense matrix: each rank has its rows of it.
#pragma once
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

/// What is known of the matrix of a coarse level.
struct CoarseOrigin {
  /// Rows of the matrix that it was made of by products R A P; 0: it is the given one. Terms of the products may be ten times what is left
  /// of them, and the roundings of the finest rows add up like steps of a random walk.
  std::int64_t finest_rows = 0;
  /// Vectors that the finest matrix maps to zero up to rounding, on this level: (my rows, columns) row-major, double or Complex<double>.
  device::Array null_vectors;
  std::int64_t null_columns = 0;
  std::vector<std::int32_t> parts = {};  ///< of each global row, if there are null vectors: the first row that is coupled to it
  double largest_diagonal = 0;           ///< of the finest matrix
  double null_tolerance = 1e-9;          ///< what null vectors may be mapped to, beside that
};

/// For coarse levels: at most some thousand rows. The rows are gathered on all ranks and inverted by LAPACK in double precision; apply()
/// gathers the right-hand side and multiplies with my rows. Where one rank has all rows, it alone does all that, without a message.
/// Directions in which the matrix is zero up to rounding (constants, in a pure Neumann problem) are left out, not divided by.
class DenseInverse final : public Preconditioner {
 public:
  /// target: the precision of the vectors. The inverse is kept in it too, unless as_needed says that it may be double where the matrix is
  /// so ill-conditioned that the inverse rounded to float32 is another matrix's.
  DenseInverse(Matrix const& A, Dtype target, bool as_needed, CoarseOrigin const& origin = {});
  void apply(Vector const& x, Vector& y) const override;
  /// A sum over all ranks of vectors of all rows, unless one rank has them.
  void apply_adjoint(Vector const& x, Vector& y) const override;
  std::string describe() const override;
  /// A level and its inverse are made together.
  bool update(Matrix const&) override { return false; }
  std::size_t memory_bytes() const override { return rows_.bytes(); }
  /// What the inverse is kept in.
  Dtype stored() const { return stored_; }
  /// Of the matrix, scaled by rows and columns, without the directions that are left out.
  double condition() const { return condition_; }
  /// "dense inverse", and what is unusual about it.
  std::string storage() const;

 private:
  bool on_one_rank_ = false;  // all rows: the others have nothing to do
  device::Array rows_;        // my rows of the inverse, row-major
  Dtype stored_;
  double condition_ = 1;
  int left_out_ = 0;
};

}  // namespace asterism::precond
