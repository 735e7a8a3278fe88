// Vectors that a matrix maps to nearly zero, as users give them: checked, since wrong ones cost iterations and say nothing.
#pragma once
#include <span>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::la {

/// The six (three in 2-D) rigid-body modes of nodes at the given coordinates, (nodes, d) row-major, as
/// (nodes * d, modes) row-major: translations, then rotations.
std::vector<double> rigid_body_modes(std::span<double const> coordinates, std::int64_t dimension);

/// B becomes A's near-null space. NaN is an error that names the row; a warning says if A does not map B to nearly zero. Collective. Cost:
/// as two products with B.
void attach_near_null_space(Matrix& A, Vector B);

/// The rigid-body modes of my nodes, (my nodes, d) row-major, become A's near-null space, and d its block size. NaN and other numbers of
/// nodes are errors; a warning says if the nodes are not in the order of A's rows. Collective. Cost: as a few products.
void attach_coordinates(Matrix& A, std::span<double const> coordinates, std::int64_t dimension);

}  // namespace asterism::la
