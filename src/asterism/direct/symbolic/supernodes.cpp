#include "asterism/direct/symbolic/supernodes.hpp"

#include "asterism/base/error.hpp"

namespace asterism::direct {

Supernodes cut_supernodes(Supernodes const& nodes, std::int32_t widest, std::span<char const> joined) {
  ASTERISM_REQUIRE(widest >= 1, option, "supernodes of at most {} columns: at least 1 is needed.", widest);
  Supernodes out;
  out.starts = {0};
  out.row_offsets = {0};
  std::vector<std::int32_t> first_part;  // of each supernode; and how many there are
  for (std::int32_t s = 0; s < nodes.count(); ++s) {
    first_part.push_back(out.count());
    auto const begin = nodes.starts[std::size_t(s)], end = nodes.starts[std::size_t(s) + 1];
    auto const parts = std::int32_t((std::int64_t(end - begin) + widest - 1) / widest);
    for (std::int32_t p = 1; p <= parts; ++p) {
      auto last = begin + std::int32_t(std::int64_t(end - begin) * p / parts);
      if (last < end && !joined.empty() && joined[std::size_t(last)]) ++last;
      if (last == out.starts.back()) continue;
      out.starts.push_back(last);
      for (auto i = last; i < end; ++i) out.row_indices.push_back(i);
      auto const below = nodes.rows(s);
      out.row_indices.insert(out.row_indices.end(), below.begin(), below.end());
      out.row_offsets.push_back(std::int64_t(out.row_indices.size()));
      out.parent.push_back(last < end ? out.count() + 1 : -1);
    }
  }
  for (std::int32_t s = 0; s < nodes.count(); ++s) {
    auto const next = s + 1 < nodes.count() ? first_part[std::size_t(s) + 1] : out.count();
    if (auto const p = nodes.parent[std::size_t(s)]; p >= 0) out.parent[std::size_t(next) - 1] = first_part[std::size_t(p)];
  }
  return out;
}

}  // namespace asterism::direct
