// The arithmetic of a supernodal triangular solve, beside that of its panels. Right-hand sides are row-major, k numbers a row; blocks are
// column-major.
#pragma once
#include <cstdint>

namespace asterism::direct::kernel {

/// x = D^-1 P (x - sum), or P^T D^-T (x - sum), D lower triangular; row i of P v is row order[i] of v, or v's own if
/// there is no order.
template <class T>
void solve_diagonal(std::int32_t w, std::int32_t k, T const* d, std::int32_t const* order, T const* sum, T* x, bool transposed);

template <class T>
void add(std::int64_t n, T const* a, T* y);

/// y[rows[r], :] += a[r, :].
template <class T>
void add_rows(std::int32_t count, std::int32_t const* rows, std::int64_t k, T const* a, T* y);

/// y[r, :] = x[rows[r], :].
template <class T>
void gather_rows(std::int32_t count, std::int32_t const* rows, std::int64_t k, T const* x, T* y);

}  // namespace asterism::direct::kernel
