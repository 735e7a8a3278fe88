#pragma once
#include <cstdint>
#include <span>

namespace asterism::precond::kernel {

struct Inversion {
  double condition = 1;  ///< |A|_1 |A^-1|_1 of A scaled by rows and columns, without what was left out
  int left_out = 0;      ///< directions in which A is zero up to rounding, and its inverse set to zero
};

/// Vectors that a matrix would map to zero but for the rounding of its entries.
template <class T>
struct NullVectors {
  std::span<T const> values;  ///< (n, columns) row-major; none: nothing is known
  int columns = 0;
  std::span<std::int32_t const> parts = {};  ///< of each row: the first row that is coupled to it, maybe by others
  double scale = 0;                          ///< of the terms that the entries are sums of
  double tolerance = 1e-9;                   ///< what the matrix may map them to, beside that scale
};

/// A dense row-major n x n matrix becomes its inverse. It is scaled first, so that neither the size of entries nor that of whole rows
/// decides what is zero: that is what elimination leaves below n times the rounding of the scaled matrix, which is `noise` times that of
/// its largest entries. Null vectors that it maps to less than the tolerance are left out in each of its parts, however much
/// they are rounded; none of them is known unless they are given. For double and Complex<double>.
template <class T>
Inversion invert(int n, T* a, double noise = 1, NullVectors<T> const& null = {});

}  // namespace asterism::precond::kernel
