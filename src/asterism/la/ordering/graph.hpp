// The pattern of A + A^T without its diagonal.
#pragma once
#include <algorithm>
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

  explicit Graph(Csr const& a) : offsets(std::size_t(a.rows) + 1, 0) {
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const each = [&](auto const& f) {
      for (std::int32_t i = 0; i < a.rows; ++i)
        for (auto p = ptr[std::size_t(i)]; p < ptr[std::size_t(i) + 1]; ++p)
          if (auto const j = col[std::size_t(p)]; j != i) f(i, j), f(j, i);
    };
    each([&](std::int32_t i, std::int32_t) { ++offsets[std::size_t(i) + 1]; });
    for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
    neighbours.resize(std::size_t(offsets.back()));
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
    each([&](std::int32_t i, std::int32_t j) { neighbours[std::size_t(next[std::size_t(i)]++)] = j; });
    std::int64_t at = 0, begin = 0;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      auto const first = neighbours.begin() + begin;
      begin = offsets[i + 1];
      auto const last = neighbours.begin() + begin;
      std::sort(first, last);
      auto const end = std::unique(first, last);
      at = std::copy(first, end, neighbours.begin() + at) - neighbours.begin();
      offsets[i + 1] = at;
    }
    neighbours.resize(std::size_t(at));
  }
};

}  // namespace asterism::la
