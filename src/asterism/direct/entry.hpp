// Entries of a sparse matrix, in any order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

template <class T>
struct Entry {
  std::int32_t row, column;
  T value;
};

/// n x n; columns ascend. Each place has one entry at most. O(entries log(entries of a row)).
template <class T>
la::Csr csr_of(std::int32_t n, std::vector<Entry<T>> const& entries) {
  la::Csr out(dtype_v<T>, n, n, std::int64_t(entries.size()));
  auto const offsets = out.row_offsets();
  std::fill(offsets.begin(), offsets.end(), 0);
  for (auto const& e : entries) ++offsets[std::size_t(e.row) + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
  std::vector<Entry<T>> by_row(entries.size());
  for (auto const& e : entries) by_row[std::size_t(next[std::size_t(e.row)]++)] = e;
  for (std::size_t i = 0; i < std::size_t(n); ++i)
    std::sort(by_row.begin() + offsets[i], by_row.begin() + offsets[i + 1],
              [](auto const& a, auto const& b) { return a.column < b.column; });
  for (std::size_t e = 0; e < by_row.size(); ++e) {
    out.column_indices()[e] = by_row[e].column;
    out.entries<T>()[e] = by_row[e].value;
  }
  return out;
}

}  // namespace asterism::direct
