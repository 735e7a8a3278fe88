// Lists of nodes that get shorter.
#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <vector>

#include "asterism/device/parallel.hpp"

namespace asterism::precond::amg {

/// Leaves in `nodes` those with keep(v), in their order.
template <class F>
void keep_where(std::vector<std::int32_t>& nodes, F const& keep) {
  struct Kept {
    std::int64_t begin, count;
  };
  std::vector<Kept> parts;
  std::mutex mutex;
  device::Executor executor;
  device::parallel_ranges(executor, std::int64_t(nodes.size()), [&, list = nodes.data()](std::int64_t begin, std::int64_t end) {
    std::int64_t at = begin;
    for (std::int64_t u = begin; u < end; ++u) {
      std::int32_t const v = list[u];
      list[at] = v;
      at += keep(v);
    }
    std::lock_guard const lock(mutex);
    parts.push_back({begin, at - begin});
  });
  std::sort(parts.begin(), parts.end(), [](Kept const& a, Kept const& b) { return a.begin < b.begin; });
  std::int64_t size = 0;
  for (auto const& part : parts) {
    if (part.begin > size) std::copy_n(nodes.begin() + part.begin, part.count, nodes.begin() + size);
    size += part.count;
  }
  nodes.resize(std::size_t(size));
}

/// Own nodes with f(v).
template <class F>
std::vector<std::int32_t> nodes_where(std::int32_t n, F const& f) {
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(n));
  std::iota(nodes.begin(), nodes.end(), 0);
  keep_where(nodes, f);
  return nodes;
}

}  // namespace asterism::precond::amg
