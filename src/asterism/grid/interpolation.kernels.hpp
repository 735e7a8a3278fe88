// The kernels of multilinear interpolation (interpolation.hpp).
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::grid::kernel {

using device::Executor;

/// Own fine points [low, low + n) and the coarse points around them [coarse_low, coarse_low + m), in each direction.
struct Refinement {
  std::int64_t low[3], n[3], coarse_low[3], m[3];
  bool coarsened[3];
  std::int64_t shift[3];  ///< coarse point c is fine point 2 c + shift
};

/// fine = P coarse, or fine += P coarse.
template <class T>
void interpolate(Executor&, Refinement r, bool adds, std::int64_t k, T const* coarse, T* fine);
/// coarse = P^T fine.
template <class T>
void restrict_to(Executor&, Refinement r, std::int64_t k, T const* fine, T* coarse);

}  // namespace asterism::grid::kernel
