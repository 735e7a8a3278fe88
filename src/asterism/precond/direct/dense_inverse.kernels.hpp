#pragma once

namespace asterism::precond::kernel {

struct Inversion {
  double condition = 1;  ///< |A|_1 |A^-1|_1 of A scaled by rows and columns, without what was left out
  int left_out = 0;      ///< directions in which A is zero up to rounding, and its inverse set to zero
};

/// A dense row-major n x n matrix becomes its inverse. It is scaled first, so that neither the size of entries nor that of whole rows
/// decides what is zero: that is what elimination leaves below n times the rounding of the scaled matrix, which is `noise` times that of
/// its largest entries. For double and Complex<double>.
template <class T>
Inversion invert(int n, T* a, double noise = 1);

}  // namespace asterism::precond::kernel
