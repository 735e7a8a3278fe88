// The arithmetic of a block-cyclic factorisation: of a diagonal block, of the panel below it, and of what that does to other columns.
// All blocks are column-major. Of LU a panel comes twice: L's part, and U's transposed.
#pragma once
#include <cstdint>

#include "asterism/direct/front.kernels.hpp"

namespace asterism::direct::kernel {

/// P D = L U of a w x w block (LU), L unit; or D = L L^H in the lower triangle. order[i]: the row that comes to place i. Pivots of LU that
/// are at most pivoting.tiny are replaced.
template <class T>
Eliminated factor_diagonal(bool cholesky, std::int32_t w, T* d, std::int32_t* order, Pivoting const& pivoting);

/// lower (m x w) becomes lower U^-1, and upper becomes upper P^T L^-T; of Cholesky lower becomes lower L^-H. Returns the largest entry of
/// upper.
template <class T>
double solve_panel(bool cholesky, std::int64_t m, std::int32_t w, T const* d, std::int32_t const* order, T* lower, T* upper);

/// C[rows[i], columns[j]] -= sum_p A[i, p] B[j, p], with B conjugated if asked; C has `ldc` numbers from one column to the next.
template <class T>
struct Product {
  std::int64_t m, n, k;
  T const* A;
  std::int64_t lda;
  T const* B;
  std::int64_t ldb;
  bool conjugated;
  std::int32_t const *rows, *columns;
  T* C;
  std::int64_t ldc;
};
template <class T>
void subtract_at(Product<T> const& p);

/// to[rows[i], columns[j]] += from[i, j].
template <class T>
void add_block(std::int64_t m, std::int64_t n, T const* from, std::int64_t from_next, std::int32_t const* rows, std::int32_t const* columns,
               T* to, std::int64_t to_next);

/// The lower triangle becomes U's transposed of a packed L U.
template <class T>
void transpose_upper(std::int32_t w, T const* packed, T* to);

}  // namespace asterism::direct::kernel
