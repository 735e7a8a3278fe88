// The numeric phase of a sparse factorisation, front by front, and solves with the factors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "asterism/device/array.hpp"
#include "asterism/direct/factor_options.hpp"
#include "asterism/direct/multifrontal/front.kernels.hpp"
#include "asterism/direct/symbolic/symbolic.hpp"

namespace asterism::direct {

/// The factors that one front leaves. Pivots are numbered in the order in which they are eliminated.
struct FactoredFront {
  std::int32_t first = 0, pivots = 0, size = 0;  ///< pivots [first, first + pivots); size: with the rows below
  device::Array panel;                           ///< column-major, size x pivots: L, and U's block of the pivots in its upper triangle
  device::Array right;                           ///< of LU: columns.size() x pivots, U's other columns, transposed
  std::vector<std::int32_t> rows, columns;       ///< by pivots' numbers, what is below and what is right; of LU they may differ
  std::int32_t below() const { return size - pivots; }
  std::int32_t beside() const { return std::int32_t(columns.size()); }
};

/// What the fronts under one root leave for rows and columns that are not eliminated here.
struct RootUpdate {
  std::vector<std::int32_t> rows;  ///< ascending
  device::Array square;            ///< column-major; of Hermitian kinds the lower triangle
};

struct NumericFactors {
  FactorKind kind = FactorKind::lu;
  std::int32_t size = 0;                              ///< of B: pivots first, then what is not eliminated
  std::vector<FactoredFront> fronts;                  ///< children before their parents
  std::vector<std::int32_t> row_order, column_order;  ///< of each pivot: its row and column of B
  device::Array diagonal, lower;                      ///< of L D L^H: D and what is below its diagonal
  /// Fronts [first, second] that a solve may take beside those of other pairs, and the fronts that are not in any.
  std::vector<std::pair<std::int32_t, std::int32_t>> subtrees;
  std::vector<std::int32_t> rest;
  /// Of each of those pairs, the numbers beyond them in which their L and U may have entries.
  std::vector<std::vector<std::int32_t>> rows_beyond, columns_beyond;
  std::int64_t entries = 0, delayed = 0, replaced = 0, two_by_two = 0, negative = 0;
  std::int32_t not_positive = -1;  ///< of Cholesky: a column of B; then there are no factors
  double largest = 0;
  std::int32_t largest_front = 0;
  std::vector<RootUpdate> updates;
};

namespace kernel {

/// Of B in the order of the supernodes. Hermitian kinds read its upper triangle only. bt: its transpose, of LU. told: now and then, from
/// the calling thread, with the share of the work that is done; it may throw. B may have rows and columns beyond the supernodes': they are
/// not eliminated, and entries between them are not read. Roots that have some below pivot among their own rows alone. Of LU where B's
/// pattern is not symmetric, rows of L and columns of U within a front that are all zero are not kept.
template <class T>
NumericFactors factor(FactorKind kind, Symbolic const& symbolic, la::Csr const& b, la::Csr const& bt, Pivoting const& pivoting,
                      std::function<void(double)> const& told);

/// x, in the order of the pivots, row-major with k numbers a row, becomes the solution of B x = b, or of B^T x = b.
template <class T>
void solve(NumericFactors const& factors, bool transposed, std::int64_t k, T* x);

/// The parts of that. x has a row for each row of B. Down: x = L^-1 x, or U^-T x if of_u; numbers beyond the
/// pivots get what is subtracted from them. Up: x = U^-1 x if of_u, or L^-T x; numbers beyond the pivots are known.
template <class T>
void solve_down(NumericFactors const& factors, bool of_u, std::int64_t k, T* x);
/// Between them, of L D L^H: x = D^-1 x, numbers of pivots alone.
template <class T>
void solve_pivots(NumericFactors const& factors, std::int64_t k, T* x);
template <class T>
void solve_up(NumericFactors const& factors, bool of_u, std::int64_t k, T* x);

}  // namespace kernel
}  // namespace asterism::direct
