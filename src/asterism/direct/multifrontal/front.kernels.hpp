// Dense partial factorisations: of a front, its fully summed rows and columns are eliminated.
#pragma once
#include <cstdint>

namespace asterism::direct::kernel {

/// A square matrix of `size` rows in up to three column-major parts. The first `summed` rows and columns are complete, so that they may be
/// eliminated; the others get more from other fronts.
template <class T>
struct Front {
  std::int32_t size = 0, summed = 0;
  T* panel = nullptr;                                ///< size x summed; the lower triangle for Hermitian kinds
  T* right = nullptr;                                ///< (size - summed) x summed, of LU: what is right of the summed block, transposed
  T* update = nullptr;                               ///< (size - summed) x (size - summed)
  std::int32_t *rows = nullptr, *columns = nullptr;  ///< numbers of the first `summed`, exchanged with them; of Hermitian kinds alike
  bool complete = false;                             ///< not of Cholesky: all summed columns are eliminated, by pivots among the summed
                                                     ///< rows, however large what is below them is
};

struct Pivoting {
  double threshold = 0.1;  ///< a pivot is at least so large beside what is in its column
  double tiny = 0;         ///< in a front that is complete or has no other rows, a pivot of at most this is replaced
  double replacement = 1;
};

struct Eliminated {
  std::int32_t pivots = 0;  ///< they are first among the summed ones; the others were too small
  std::int64_t replaced = 0, two_by_two = 0, negative = 0;
  std::int32_t not_positive = -1;  ///< of Cholesky: the first column whose pivot is not
  double largest = 0;              ///< entry of U, or of D
};

/// P A Q = L U by threshold partial pivoting among the summed rows (Duff and Reid 1983). L is unit lower triangular in the panel, below
/// U's summed block; `right` becomes U's transposed; `update` the Schur complement. A column without a good pivot is left to be tried
/// again, and to the parent at last. Panels are tried by getrf first, and done column by column where a check afterwards fails (Hogg and
/// Scott 2013).
template <class T>
Eliminated factor_lu(Front<T> const& front, Pivoting const& pivoting);

/// A = L L^H.
template <class T>
Eliminated factor_cholesky(Front<T> const& front);

/// P A P^T = L D L^H, D with blocks of one and two (Bunch and Kaufman 1977; thresholds of Duff and Reid 1983). L is unit lower triangular;
/// D's diagonal goes to diagonal[k], the entry below it to lower[k], 0 where k does not begin a block of two. A front that is complete
/// takes pivots that are large enough beside all rows first.
template <class T>
Eliminated factor_hermitian(Front<T> const& front, Pivoting const& pivoting, T* diagonal, T* lower);

}  // namespace asterism::direct::kernel
