// Which rank owns a block of a matrix that is distributed block-cyclically in two dimensions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace asterism::direct {

/// rows x columns processes; ranks are numbered row by row.
struct ProcessGrid {
  int rows = 1, columns = 1;
  int size() const { return rows * columns; }
  /// Of block (i, j).
  int owner(std::int32_t i, std::int32_t j) const { return (i % rows) * columns + j % columns; }
  std::string describe() const;
};

/// From "2x3"; "Px1", "1xP" for so many ranks; "square": the most nearly square one, with more rows than columns. An error of kind option
/// where it is none of these or has another number of ranks.
ProcessGrid process_grid(std::string_view text, int ranks);

}  // namespace asterism::direct
