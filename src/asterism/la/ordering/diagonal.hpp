// How large the entries of the diagonal are beside the others.
#pragma once
#include <cstdint>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// An entry of the diagonal below this times the largest of its row, and of its column, is of little use as a pivot.
inline constexpr double weak_diagonal = 1e-3;

/// Rows whose entry on the diagonal is zero, and those where it is at most `weak_diagonal` times the largest of its row and of its column.
struct Diagonal {
  std::int64_t zeros = 0, weak = 0;
};
Diagonal look_at_diagonal(Csr const& a);

}  // namespace asterism::la
