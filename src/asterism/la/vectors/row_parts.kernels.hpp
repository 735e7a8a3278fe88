#pragma once
#include <cstdint>

#include "asterism/la/vectors/vector.kernels.hpp"

// Kernels of row_parts.hpp, for vectors of one column. of: each row's part, or -1.
namespace asterism::la::kernel {

/// out[offset + p] = sum of conj(x) y over the rows of part p, of `parts`.
template <class T>
void part_dot(Executor&, std::int64_t n, std::int64_t parts, std::int32_t const* of, T const* x, T const* y, Sum* out, std::int64_t offset);
/// The same added to 2 ReproducibleSum::words of out for each part.
template <class T>
void reproducible_part_dot(Executor&, std::int64_t n, std::int64_t parts, std::int32_t const* of, T const* x, T const* y,
                           std::int64_t* out);
/// y += a x with the number of each row's part.
template <class T>
void part_axpy(Executor&, std::int64_t n, Numbers<T> a, std::int32_t const* of, T const* x, T* y);

}  // namespace asterism::la::kernel
