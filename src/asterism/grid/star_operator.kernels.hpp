// The kernel of a star of constant coefficients (star_operator.hpp).
#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"
#include "asterism/la/formats/format.kernels.hpp"

namespace asterism::grid::kernel {

using device::Executor;
using la::Epilogue;

/// Neighbours beyond one face of the box: the ghost of the point (i, j) of the face is at first + i * outer + j * inner, the direction of
/// the face left out. first < 0: there are none, and the values are zero.
struct Face {
  std::int64_t first, outer, inner;
};

/// A box of n[0] x n[1] x n[2] points, the last direction the fastest, and the faces (direction, low or high).
struct StarBox {
  std::int64_t n[3];
  Face faces[3][2];
};

/// The points that need ghosts, or those that need none.
enum class Points : std::uint8_t { without_ghosts, with_ghosts };

template <class T>
struct StarCoefficients {
  T centre, sides[3];
};

template <class T>
void star(Executor&, StarBox box, Points points, StarCoefficients<T> a, Epilogue e, std::int64_t k, T const* x, T const* ghosts, T* y,
          T const* b, T const* w);

}  // namespace asterism::grid::kernel
