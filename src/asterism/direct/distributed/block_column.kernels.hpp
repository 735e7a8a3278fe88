// The arithmetic of a block-cyclic factorisation: of a diagonal block, of the panel below it, and of what that does to other columns.
// All blocks are column-major. Of LU a panel comes twice: L's part, and U's transposed.
#pragma once
#include <cstdint>

#include "asterism/direct/factor_options.hpp"
#include "asterism/direct/multifrontal/front.kernels.hpp"

namespace asterism::direct::kernel {

/// The factors of a diagonal block. order[i]: the row that comes to place i.
template <class T, class Order = std::int32_t>
struct FactoredBlock {
  std::int32_t width;
  T* values;     ///< width x width: L and U of LU, L of the others in its lower triangle
  Order* order;  ///< of Cholesky as it was
  T* pivots;     ///< of L D L^H: the diagonal of D, and what is below it; 2 width numbers
};

/// Of the block B in block.values P B = L U, B = L L^H, or P B P^T = L D L^H; L is unit but of Cholesky. Pivots of LU and of L D L^H that
/// are at most pivoting.tiny are replaced.
template <class T>
Eliminated factor_diagonal(FactorKind kind, FactoredBlock<T> const& block, Pivoting const& pivoting);

/// lower (m x w) becomes lower U^-1, and upper becomes upper P^T L^-T; of Cholesky lower becomes lower L^-H, of L D L^H lower P^T L^-H
/// D^-1. Returns the largest entry of upper.
template <class T>
double solve_panel(FactorKind kind, std::int64_t m, FactoredBlock<T const, std::int32_t const> const& block, T* lower, T* upper);

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

/// to[rows[i], columns[j]] += from[j, i].
template <class T>
void add_transposed_block(std::int64_t m, std::int64_t n, T const* from, std::int64_t from_next, std::int32_t const* rows,
                          std::int32_t const* columns, T* to, std::int64_t to_next);

/// The lower triangle becomes U's transposed of a packed L U.
template <class T>
void transpose_upper(std::int32_t w, T const* packed, T* to);

}  // namespace asterism::direct::kernel
