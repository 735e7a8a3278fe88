// The arithmetic of triangular solves with dense panels. Right-hand sides are row-major, k numbers a row; panels are column-major, with
// `leading` numbers from one column to the next.
#pragma once
#include <cstdint>

namespace asterism::direct::kernel {

/// y = B x; B is m x w.
template <class T>
void multiply(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, T const* x, T* y);

/// y = B^T x.
template <class T>
void multiply_transposed(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, T const* x, T* y);

/// The columns of L, or the rows of U, of some pivots: a triangle, and what is below or right of it.
template <class T>
struct FrontPanel {
  std::int32_t first, pivots, below;  ///< unknowns [first, first + pivots), and how many others
  T const* panel;                     ///< `leading` x pivots: L, with U's triangle above its diagonal
  std::int64_t leading;               ///< pivots + below of L at least
  T const* right;                     ///< of U: below x pivots, transposed
  std::int32_t const* list;           ///< the other unknowns
};

/// Of right-hand sides that are solved at once.
constexpr std::int64_t most_columns = 8;

/// The part of a front in T x = b, with T = L, or U, or transposed. unit: the diagonal counts as 1. work: (pivots + below) min(k, 8)
/// numbers.
template <class T>
void solve_front(FrontPanel<T> const& front, bool of_u, bool transposed, bool unit, std::int64_t k, T* x, T* work);

}  // namespace asterism::direct::kernel
