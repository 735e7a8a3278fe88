// D of L D L^H: blocks of one and two on the diagonal.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/direct/serial_factors.hpp"

namespace asterism::direct::kernel {

/// Column k of D: diagonal[k] on the diagonal, lower[k] below it, 0 where k does not begin a block of two.
template <class T>
struct BlockDiagonal {
  std::int64_t size;
  T const *diagonal, *lower;
};

/// Y = X D, of m rows; column-major, with ldx and ldy numbers from one column to the next. Y may be X.
template <class T>
void multiply_columns(BlockDiagonal<T> const& d, std::int64_t m, T const* X, std::int64_t ldx, T* Y, std::int64_t ldy);
/// X = X D^-1.
template <class T>
void divide_columns(BlockDiagonal<T> const& d, std::int64_t m, T* X, std::int64_t ldx);
/// x = D^-1 x; rows of k numbers.
template <class T>
void divide_rows(BlockDiagonal<T> const& d, std::int64_t k, T* x);
template <class T>
Determinant determinant_of(BlockDiagonal<T> const& d);
/// The eigenvalues of D, in any order.
template <class T>
std::vector<double> eigenvalues_of(BlockDiagonal<T> const& d);
/// Drops all but the `count` values nearest to zero.
void keep_least(std::vector<double>& values, std::size_t count);

}  // namespace asterism::direct::kernel
