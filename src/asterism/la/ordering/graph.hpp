// The pattern of A + A^T without its diagonal.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

struct Graph {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> neighbours;  ///< ascending, each once
  std::int32_t size() const { return std::int32_t(offsets.size()) - 1; }
  std::span<std::int32_t const> of(std::int32_t i) const {
    return std::span(neighbours).subspan(std::size_t(offsets[std::size_t(i)]), std::size_t(degree(i)));
  }
  std::int64_t degree(std::int32_t i) const { return offsets[std::size_t(i) + 1] - offsets[std::size_t(i)]; }

  /// O(entries). Rows of A may be in any order.
  explicit Graph(Csr const& a);
};

}  // namespace asterism::la
