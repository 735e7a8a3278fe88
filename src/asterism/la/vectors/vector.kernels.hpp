#pragma once
#include <complex>
#include <cstdint>

#include "asterism/device/parallel.hpp"
#include "asterism/device/tape.hpp"

// Kernels of vector.hpp. n rows, k columns, row-major; coefficients have k values.
namespace asterism::la::kernel {

using device::Executor;
using device::Numbers;
using Sum = Complex<double>;  // local sums are formed in double precision

template <class T>
void fill(Executor&, std::int64_t n, std::int64_t k, Numbers<T> a, T* y);
/// Zeros in runs of rows: first, count, first, count, ...
template <class T>
void clear_runs(Executor&, std::int64_t runs, std::int64_t k, std::int64_t const* of, T* y);
template <class T>
void scale(Executor&, std::int64_t n, std::int64_t k, Numbers<T> a, T* y);
template <class T>
void axpy(Executor&, std::int64_t n, std::int64_t k, Numbers<T> a, T const* x, T* y);
template <class T>
void axpby(Executor&, std::int64_t n, std::int64_t k, Numbers<T> a, T const* x, Numbers<T> b, T* y);
template <class T>
void multiply(Executor&, std::int64_t n, std::int64_t k, T const* d, T const* x, T* y);
/// y = conj(x); they may be one.
template <class T>
void conjugate(Executor&, std::int64_t n, T const* x, T* y);
template <class T>
void multiply_add(Executor&, std::int64_t n, std::int64_t k, Numbers<T> a, T const* d, T const* x, T* y);
template <class T>
void dot(Executor&, std::int64_t n, std::int64_t k, T const* x, T const* y, Sum* out, std::int64_t offset);
/// Sums of squares that neither overflow nor underflow, for norm(): out[j] = {of entries of ordinary size, of large ones scaled by
/// 2^-600}, out[k + j].re of small ones scaled by 2^600.
template <class T>
void squares(Executor&, std::int64_t n, std::int64_t k, T const* x, Sum* out);
template <class T>
void update_and_norm2(Executor&, std::int64_t n, std::int64_t k, Numbers<T> alpha, T const* p, T const* q, T* x, T* r, Sum* out);
template <class T>
void multiply_and_dot(Executor&, std::int64_t n, std::int64_t k, T const* d, T const* r, T* z, Sum* out);
template <class T>
void multi_dot(Executor&, std::int64_t n, std::int64_t m, std::int64_t stride, T const* v, T const* w, Sum* out);
template <class T>
void multi_axpy(Executor&, std::int64_t n, std::int64_t m, std::int64_t stride, T const* a, T const* v, T* w);
template <class T>
void chebyshev_step(Executor&, std::int64_t n, std::int64_t k, double a, double b, T const* w, T const* r, T* d, T* x);
/// A look at all entries: the largest finite |re| or |im| of each column, how many entries are not finite, and the row of the first of
/// them. On the host.
template <class T>
std::int64_t look_at_entries(Executor&, std::int64_t n, std::int64_t k, T const* x, double* largest, std::int64_t* first_not_finite);
/// Whether each entry is finite and not zero. On the host, by the caller's thread.
template <class T>
bool are_finite_and_not_zero(std::int64_t n, T const* x);
template <class T>
void hashed(Executor&, std::int64_t n, std::int64_t k, std::int64_t first_row, std::uint64_t seed, T* x);
/// y = x in the columns whose mask is not zero
template <class T>
void copy_where(Executor&, std::int64_t n, std::int64_t k, Numbers<T> mask, T const* x, T* y);
template <class S, class T>
void convert(Executor&, std::int64_t n, S const* x, T* y);
// vectors of two precisions
/// y = x + b y
template <class S, class T>
void mixed_aypx(Executor&, std::int64_t n, std::int64_t k, Numbers<T> b, S const* x, T* y);
/// update_and_norm2(), and s = r.
template <class S, class T>
void mixed_update_and_norm2(Executor&, std::int64_t n, std::int64_t k, Numbers<T> alpha, T const* p, T const* q, T* x, T* r, S* s,
                            Sum* out);

}  // namespace asterism::la::kernel
