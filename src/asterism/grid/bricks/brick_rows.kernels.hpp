// Transfers between domains of bricks by whole rows of eight points, for the usual bricks: the fast forms of brick_transfer.kernels.hpp.
#pragma once
#include "asterism/grid/bricks/brick_transfer.kernels.hpp"

namespace asterism::grid::kernel {

/// As interpolate_bricks(), of bricks with eight points along the last axis whose axes come in pairs; false if there is no such form.
template <class T>
bool interpolate_rows(BrickStencils const& s, std::span<int const> numbers, bool adds, T const* around, BrickPlaces<T> const& fine);

/// What restriction sums up first: fine rows, at the coarse points of a brick along the first two axes.
template <class T>
struct FineRows {
  std::int64_t all, none;            ///< numbers of neighbours of a brick, and those that fewer dimensions leave out
  std::int64_t planes, first_plane;  ///< coarse planes of a brick; the first fine plane of the first one
  real_t<T> const *x, *y;            ///< weights of fine planes and rows, of each coarse one
};

/// The sum of these rows of bricks, one behind the other, or nothing if there is no such form. It takes the bricks `numbers` from number
/// `first` to before `last`, which may be one beside them, and writes coarse plane c and row d to rows + (4 c + d) length.
template <class T>
using SumRows = void (*)(FineRows<T> const& f, BrickPlaces<T> const& fine, int const* numbers, std::int64_t count, std::int64_t first,
                         std::int64_t last, T* rows, std::int64_t length);
template <class T>
SumRows<T> sum_rows_of(BrickStencils const& s);

}  // namespace asterism::grid::kernel
