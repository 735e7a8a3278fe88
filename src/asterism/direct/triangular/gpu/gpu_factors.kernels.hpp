// What is done to a right-hand side before, between and after the sweeps of a solve on a GPU.
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::direct::kernel {
using device::Executor;

/// to[i] = from[order[i]] scale[order[i]], rows of k numbers; conjugated if `conjugated`.
template <class T>
void gather_scaled(Executor&, std::int64_t n, std::int64_t k, bool conjugated, std::int32_t const* order, double const* scale,
                   T const* from, T* to);
/// to[order[i]] = from[i] scale[order[i]], likewise.
template <class T>
void scatter_scaled(Executor&, std::int64_t n, std::int64_t k, bool conjugated, std::int32_t const* order, double const* scale,
                    T const* from, T* to);
/// x = conj(x), n numbers.
template <class T>
void conjugate(Executor&, std::int64_t n, T* x);
/// x = conj(D^-1 x), rows of k numbers; D as BlockDiagonal has it.
template <class T>
void divide_and_conjugate(Executor&, std::int64_t n, std::int64_t k, T const* diagonal, T const* lower, T* x);

}  // namespace asterism::direct::kernel
