// The supernodes of sparse factors.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace asterism::direct {

/// Columns next to each other that have one pattern below their diagonal block: columns [starts[s], starts[s + 1]) of the permuted
/// matrix, and rows(s), all of which are below. Children come before their parent.
struct Supernodes {
  std::vector<std::int32_t> starts;       ///< count + 1
  std::vector<std::int32_t> parent;       ///< -1: none
  std::vector<std::int64_t> row_offsets;  ///< count + 1
  std::vector<std::int32_t> row_indices;  ///< ascending, of the permuted matrix
  std::int32_t count() const { return std::int32_t(parent.size()); }
  std::int32_t width(std::int32_t s) const { return starts[std::size_t(s) + 1] - starts[std::size_t(s)]; }
  std::int32_t below(std::int32_t s) const { return std::int32_t(row_offsets[std::size_t(s) + 1] - row_offsets[std::size_t(s)]); }
  std::span<std::int32_t const> rows(std::int32_t s) const {
    return std::span(row_indices).subspan(std::size_t(row_offsets[std::size_t(s)]), std::size_t(below(s)));
  }
};

/// Supernodes wider than that become several, of nearly equal width. joined: of each column, whether it stays with the column before; then
/// one column more is in a part. Empty: none does.
Supernodes cut_supernodes(Supernodes const& nodes, std::int32_t widest, std::span<char const> joined = {});

}  // namespace asterism::direct
