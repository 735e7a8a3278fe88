#include "asterism/la/ordering/graph.hpp"

#include <algorithm>
#include <numeric>

namespace asterism::la {
namespace {

/// Rows of a pattern.
struct Lists {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> items;
  std::span<std::int32_t const> of(std::size_t i) const {
    return std::span(items).subspan(std::size_t(offsets[i]), std::size_t(offsets[i + 1] - offsets[i]));
  }
};

/// each(f) calls f(i, j) by ascending i. Lists of the i of each j, ascending.
template <class Each>
Lists by_second(std::size_t n, Each const& each) {
  Lists out{std::vector<std::int64_t>(n + 1, 0), {}};
  each([&](std::size_t, std::size_t j) { ++out.offsets[j + 1]; });
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  out.items.resize(std::size_t(out.offsets.back()));
  std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
  each([&](std::size_t i, std::size_t j) { out.items[std::size_t(next[j]++)] = std::int32_t(i); });
  return out;
}

}  // namespace

Graph::Graph(Csr const& a) {
  auto const n = std::size_t(a.rows);
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  auto const columns = by_second(n, [&](auto const& f) {
    for (std::size_t i = 0; i < n; ++i)
      for (auto p = ptr[i]; p < ptr[i + 1]; ++p)
        if (auto const j = std::size_t(col[std::size_t(p)]); j != i) f(i, j);
  });
  auto const rows = by_second(n, [&](auto const& f) {
    for (std::size_t j = 0; j < n; ++j)
      for (auto const i : columns.of(j)) f(j, std::size_t(i));
  });
  offsets.push_back(0);
  neighbours.reserve(rows.items.size());
  for (std::size_t i = 0; i < n; ++i) {
    auto const r = rows.of(i), c = columns.of(i);
    for (std::size_t p = 0, q = 0; p < r.size() || q < c.size();) {
      auto const j = q == c.size() || (p < r.size() && r[p] <= c[q]) ? r[p] : c[q];
      neighbours.push_back(j);
      while (p < r.size() && r[p] == j) ++p;
      while (q < c.size() && c[q] == j) ++q;
    }
    offsets.push_back(std::int64_t(neighbours.size()));
  }
}

}  // namespace asterism::la
