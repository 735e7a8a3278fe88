// Iterative refinement of what a direct method solved, until the componentwise backward error is at rounding level.
#pragma once
#include <memory>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::solve {

/// |A|, with what backward errors need of it.
struct Magnitudes {
  la::Matrix entries;                  ///< |a_ij|
  la::Vector row_scale, column_scale;  ///< r and c, with which the rows and columns of r |A| c have sums of about one
  la::Vector row_sums, column_sums;    ///< |A| c and |A|^T r
  double rounding_level = 0;           ///< what rounding in A x makes of the backward error at most
};
/// Cost: the memory of the entries of A. Collective.
Magnitudes magnitudes_of(la::Matrix const& A);

struct Refined {
  std::vector<double> backward_error;  ///< of each column
  int steps = 0;
};

class Refinement {
 public:
  /// Of A x = b, or of the adjoint system. A is the operator of that.
  Refinement(la::Operator const& A, Magnitudes const& size, bool adjoint) : A_(A), size_(size), adjoint_(adjoint) {}
  /// x <- x + M (b - A x) while that halves the largest backward error of a column, as LAPACK's gerfs does; each column keeps its best x.
  /// Collective.
  Refined refine(la::Operator const& M, la::Vector const& b, la::Vector& x, int max_steps) const;
  /// The least e for which x solves (A + F) x = b + f exactly with |F| <= e |A| and |f| <= e |b| (Oettli and Prager 1964). Rows where
  /// |A| |x| + |b| is nearly zero are compared with norms (Arioli, Demmel and Duff 1989),
  /// of the matrix and the unknowns as they are equilibrated. r becomes b - A x. Collective.
  std::vector<double> backward_error(la::Vector const& b, la::Vector const& x, la::Vector& r) const;

 private:
  la::Operator const& A_;
  Magnitudes const& size_;
  bool adjoint_;
};

}  // namespace asterism::solve
