// Vectors that a matrix maps to nearly zero: made of coordinates, or as users give them. Those are checked, since wrong ones cost
// iterations and say nothing.
#pragma once
#include <span>

#include "asterism/la/matrix.hpp"

namespace asterism::la {

/// What rounding leaves of A z for z in A's null space, in epsilons. In each row, beside the row's size.
constexpr double null_rounding_of_rows = 100;
/// In z^H A z: the rows' parts differ in sign and nearly cancel, but for what sums of many equal terms are biased by. A small multiple of
/// the identity leaves more.
constexpr double null_rounding_of_sum(double entries_of_a_row) { return 8 + entries_of_a_row / 16; }

/// The six (three in 2-D) rigid-body modes of a space with coordinates, whose nodes have as many unknowns as dimensions: translations,
/// then rotations.
Vector rigid_body_modes(Space const& space, Dtype dtype);

/// What is known of the vectors that operators of this space map to nearly zero: those that were given; else the rigid-body modes, if
/// there are coordinates and nodes have as many unknowns as dimensions (2 or 3); else a vector without entries. Columns of extreme sizes
/// are scaled by powers of two. Collective.
Vector near_null_space_of(Space const& space, Dtype dtype);

/// B becomes A's near-null space. NaN is an error that names the row, and so is a column of zeros; a warning says if A does not map B to
/// nearly zero. Collective. Cost: as two products with B.
void attach_near_null_space(Matrix& A, Vector B);

/// The coordinates of my nodes, (my nodes, d) row-major, become those of A's space, d its block size, and a near-null space that was given
/// before is forgotten. NaN and other numbers of nodes are errors; a warning says if the nodes are not in the order of A's rows.
/// Collective. Cost: as a few products.
void attach_coordinates(Matrix& A, std::span<double const> coordinates, std::int64_t dimension);

}  // namespace asterism::la
