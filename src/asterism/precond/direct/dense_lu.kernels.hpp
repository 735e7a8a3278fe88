#pragma once
#include <functional>

#include "asterism/base/complex.hpp"

namespace asterism::precond::kernel {

/// P A = L U of a column-major n x n matrix in place, rows exchanged as LAPACK's getrf does; pivots as there. Returns -1, or the first step
/// whose pivot is exactly zero: what comes after it is not done. between(k) is called by this thread after each block, when k columns are
/// done; it may throw.
template <class T>
int factorise(int n, T* a, int* pivots, std::function<void(int)> const& between);

}  // namespace asterism::precond::kernel
