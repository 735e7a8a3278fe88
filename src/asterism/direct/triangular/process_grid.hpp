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

/// Whose blocks are whose. The first `alone` supernodes are this rank's alone, as subtrees of an elimination tree are: their columns are
/// whole here, and other ranks have other ones, which they count for themselves. A grid has the blocks after them.
struct BlockOwners {
  ProcessGrid grid;
  int rank = 0;
  std::int32_t alone = 0;
  int owner(std::int32_t i, std::int32_t j) const { return j < alone ? rank : grid.owner(i - alone, j - alone); }
};

/// From "2x3"; "Px1", "1xP" for so many ranks; "square": the most nearly square one, with more rows than columns. An error of kind option
/// where it is none of these or has another number of ranks.
ProcessGrid process_grid(std::string_view text, int ranks);

}  // namespace asterism::direct
