// What the set-up of a level asks each row of its matrix, in one pass.
#pragma once
#include "asterism/la/products/rows.hpp"

namespace asterism::precond::amg {

template <class T>
struct RowFacts {
  // of my rows
  la::Buffer<T> diagonal;         ///< 0 where none is stored
  la::Buffer<real_t<T>> squares;  ///< sum of |a_ij|^2
  // of all ranks
  std::int64_t longest_row = 0;  ///< entries
  double row_sum = 0;            ///< largest sum of magnitudes over that of the diagonal: no eigenvalue of D^-1 A is beyond it
  double largest_diagonal = 0;   ///< magnitude
  double least_coupling = 0;     ///< least |a_ij|^2 / |a_ii|, j other than i; 0 if a row has no diagonal
  /// Whether SPAI-0 is known to be a good smoother. In nearly all rows what has the diagonal's sign is a small part of the rest, as in an
  /// M-matrix, for which it was made. And no row's weight is far below Jacobi's: a dominant diagonal makes it half of that or more, but bad
  /// scaling has no limit, and the errors of few rows that are not smoothed cost many iterations.
  bool suits_spai0 = false;
  /// Whether nearly all rows have large couplings of the diagonal's sign, and sum up to nearly zero: as those of bilinear elements that are
  /// stretched, whose entries do not say which couplings are strong.
  bool mixes_signs = false;
};

/// Collective.
template <class T>
RowFacts<T> look_at_rows(la::Rows<T> const& A, la::Layout const& layout, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
