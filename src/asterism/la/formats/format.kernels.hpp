// What the kernels of all formats share, on the host and on GPUs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "asterism/base/bfloat16.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/formats/format.hpp"

namespace asterism::la::kernel {

using device::Executor;

/// Rows in one SIMD group, in formats that store rows in groups.
template <class T>
inline constexpr std::int32_t group_rows = std::int32_t(64 / sizeof(T));

/// A GPU's threads find their rows by a table of every tile_rows-th (gpu_tiles.hpp).
inline constexpr std::int32_t tile_rows = 32;

/// f(e), with e known to the compiler.
template <class F>
void with_epilogue(Epilogue e, F const& f) {
  switch (e) {
    case Epilogue::assign: return f(std::integral_constant<Epilogue, Epilogue::assign>());
    case Epilogue::residual: return f(std::integral_constant<Epilogue, Epilogue::residual>());
    case Epilogue::smooth: return f(std::integral_constant<Epilogue, Epilogue::smooth>());
    case Epilogue::add: return f(std::integral_constant<Epilogue, Epilogue::add>());
    case Epilogue::subtract: return f(std::integral_constant<Epilogue, Epilogue::subtract>());
    default: return f(std::integral_constant<Epilogue, Epilogue::subtract_scaled>());
  }
}

/// Explicit instantiation of a product for all types of arithmetic T, and V in which values are held.
#define ASTERISM_FOR_STORED(INSTANTIATE)                              \
  INSTANTIATE(float, float)                                           \
  INSTANTIATE(float, ::asterism::Bfloat16)                            \
  INSTANTIATE(double, double)                                         \
  INSTANTIATE(::asterism::Complex<float>, ::asterism::Complex<float>) \
  INSTANTIATE(::asterism::Complex<double>, ::asterism::Complex<double>)

/// Column j of k of one row, whose sum is s.
template <Epilogue E, class T>
ASTERISM_FN void finish(T s, std::int64_t row, std::int64_t k, std::int64_t j, T const* x, T* y, T const* b, T const* w) {
  std::int64_t const at = row * k + j;
  if constexpr (E == Epilogue::assign) y[at] = s;
  else if constexpr (E == Epilogue::residual) y[at] = b[at] - s;
  else if constexpr (E == Epilogue::smooth) y[at] = x[at] + w[row] * (b[at] - s);
  else if constexpr (E == Epilogue::add) y[at] += s;
  else if constexpr (E == Epilogue::subtract) y[at] -= s;
  else y[at] -= w[row] * s;
}

}  // namespace asterism::la::kernel
