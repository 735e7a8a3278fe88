// The arithmetic of triangular solves with dense panels. Right-hand sides are row-major, k numbers a row; panels are column-major, with
// `leading` numbers from one column to the next.
#pragma once
#include <cstdint>

namespace asterism::direct::kernel {

/// y[rows[r]] += sum_j B[r, j] x[j]; B is m x w. rows may be null: 0, 1, ...
template <class T>
void multiply(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, std::int32_t const* rows, T const* x, T* y);

/// y[j] += sum_r B[r, j] x[rows[r]].
template <class T>
void multiply_transposed(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, std::int32_t const* rows,
                         T const* x, T* y);

/// Triangles of a w x w block. unit: the diagonal counts as 1.
enum class Triangle : std::uint8_t { lower, upper };
/// x = T^-1 x, or T^-T x. x has w rows. work: w k numbers.
template <class T>
void solve_triangle(Triangle triangle, bool transposed, bool unit, std::int32_t w, std::int64_t k, T const* t, std::int64_t leading, T* x,
                    T* work);

}  // namespace asterism::direct::kernel
