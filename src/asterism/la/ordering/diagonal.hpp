// How large the entries of the diagonal are beside the others.
#pragma once
#include <cstdint>
#include <span>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// An entry of the diagonal below this times the largest of its row, and of its column, is of little use as a pivot.
inline constexpr double weak_diagonal = 1e-3;

/// Rows whose entry on the diagonal is zero, and those where it is at most `weak_diagonal` times the largest of its row and of its column.
struct Diagonal {
  std::int64_t zeros = 0, weak = 0;
};
/// Scales: of the rows and columns, or none. column_of_row: the entry of each row that stands for the diagonal's; none: the diagonal.
Diagonal look_at_diagonal(Csr const& a, std::span<double const> row_scale = {}, std::span<double const> column_scale = {},
                          std::span<std::int32_t const> column_of_row = {});

}  // namespace asterism::la
