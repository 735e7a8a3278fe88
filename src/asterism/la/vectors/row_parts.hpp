// Sums over parts of the rows of vectors, all parts at once.
#pragma once
#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

/// Some of the rows, in disjoint parts.
struct RowParts {
  std::int64_t count = 0;  ///< of all ranks
  Array of;                ///< int32 of each of my rows: its part, or -1
};

/// x^H y over the rows of each part, as many wide as there are parts; of several x of one column, in one message.
std::vector<Scalar> part_dots(RowParts const& parts, std::span<Vector const> xs, Vector const& y);
/// y += a x with a number of each part's own. Other rows stay.
void part_axpy(RowParts const& parts, Scalar const& a, Vector const& x, Vector& y);

}  // namespace asterism::la
