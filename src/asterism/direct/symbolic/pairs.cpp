#include "asterism/direct/symbolic/pairs.hpp"

#include <algorithm>

#include "asterism/direct/at.hpp"
#include "asterism/direct/symbolic/preparation.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

/// Row i has what add(i) appends, ascending.
template <class F>
la::Csr pattern_of(Dtype dtype, std::int32_t n, F const& add) {
  Ints columns;
  std::vector<std::int64_t> offsets{0};
  for (std::int32_t i = 0; i < n; ++i) {
    auto const begin = std::ptrdiff_t(columns.size());
    add(i, columns);
    std::sort(columns.begin() + begin, columns.end());
    offsets.push_back(std::int64_t(columns.size()));
  }
  la::Csr out(dtype, n, n, std::int64_t(columns.size()));
  std::copy(offsets.begin(), offsets.end(), out.row_offsets().begin());
  std::copy(columns.begin(), columns.end(), out.column_indices().begin());
  return out;
}

}  // namespace

Ints partners(la::Csr const& scaled, la::Matching const& found) {
  constexpr double small = 0.1;  // as the threshold of pivots
  auto const n = at(scaled.rows);
  std::vector<double> diagonal(n, 0), matched(n, 0);
  auto const& next = found.column_of_row;
  each_size(scaled, [&](std::int32_t i, std::int32_t j, double size) {
    if (i == j) diagonal[at(i)] = size;
    if (next[at(i)] == j) matched[at(i)] = size;
  });
  Ints out(n), cycle;
  for (std::size_t i = 0; i < n; ++i) out[i] = std::int32_t(i);
  std::vector<char> seen(n, false);
  for (std::size_t first = 0; first < n; ++first) {
    cycle.clear();
    for (auto i = std::int32_t(first); !seen[at(i)]; i = next[at(i)]) seen[at(i)] = true, cycle.push_back(i);
    // of an odd one the row with the largest entry on the diagonal is alone
    if (cycle.size() % 2 == 1) {
      auto const alone = std::max_element(cycle.begin(), cycle.end(), [&](auto a, auto b) { return diagonal[at(a)] < diagonal[at(b)]; });
      std::rotate(cycle.begin(), alone, cycle.end());
    }
    for (auto k = cycle.size() % 2; k + 1 < cycle.size(); k += 2) {
      auto const i = cycle[k], j = cycle[k + 1];
      if (std::min(diagonal[at(i)], diagonal[at(j)]) < small * matched[at(i)]) out[at(i)] = j, out[at(j)] = i;
    }
  }
  return out;
}

PairedPattern::PairedPattern(la::Csr const& a, std::span<std::int32_t const> partner) {
  Ints node(at(a.rows));
  for (std::int32_t i = 0; i < a.rows; ++i) {
    auto const j = partner[at(i)];
    if (j < i) continue;
    first.push_back(std::int32_t(members.size()));
    node[at(i)] = node[at(j)] = std::int32_t(first.size()) - 1;
    members.push_back(i);
    if (j != i) members.push_back(j);
  }
  auto const nodes = std::int32_t(first.size());
  first.push_back(std::int32_t(members.size()));
  Ints mark(at(nodes), -1);
  auto const of = [&](std::int32_t k) { return std::span(members).subspan(at(first[at(k)]), at(first[at(k) + 1] - first[at(k)])); };
  compressed = pattern_of(a.dtype, nodes, [&](std::int32_t k, Ints& columns) {
    for (auto const i : of(k))
      for (auto p = a.row_offsets()[at(i)]; p < a.row_offsets()[at(i) + 1]; ++p)
        if (auto const l = node[at(a.column_indices()[at(p)])]; mark[at(l)] != k) mark[at(l)] = k, columns.push_back(l);
  });
  alike = pattern_of(a.dtype, a.rows, [&](std::int32_t i, Ints& columns) {
    auto const k = node[at(i)];
    for (auto p = compressed.row_offsets()[at(k)]; p < compressed.row_offsets()[at(k) + 1]; ++p)
      for (auto const j : of(compressed.column_indices()[at(p)])) columns.push_back(j);
  });
}

Ints PairedPattern::expanded(std::span<std::int32_t const> order) const {
  Ints out;
  for (auto const k : order) out.insert(out.end(), members.begin() + first[at(k)], members.begin() + first[at(k) + 1]);
  return out;
}

}  // namespace asterism::direct
