// Subtrees of an elimination tree that threads take, each whole.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "asterism/device/parallel.hpp"

namespace asterism::direct::kernel {

inline std::size_t at(std::int32_t i) { return std::size_t(i); }

/// Which supernodes are done in one go by one thread, and which after them.
struct Schedule {
  std::vector<std::pair<std::int32_t, std::int32_t>> subtrees;  // [first, last] in postorder, most work first
  std::vector<std::int32_t> rest;                               // in postorder
};

/// Subtrees with at most so much work; none if most is 0.
inline Schedule schedule(std::span<std::int32_t const> parent, std::vector<double> const& work, double most) {
  auto const count = std::int32_t(parent.size());
  std::vector<double> below(work);  // of the whole subtree
  std::vector<std::int32_t> first(at(count));
  for (std::int32_t s = 0; s < count; ++s) first[at(s)] = s;
  for (std::int32_t s = 0; s < count; ++s)
    if (auto const p = parent[at(s)]; p >= 0) {
      below[at(p)] += below[at(s)];
      first[at(p)] = std::min(first[at(p)], first[at(s)]);
    }
  Schedule out;
  std::vector<char> whole(at(count), false);
  for (auto s = count - 1; s >= 0; --s) {
    auto const p = parent[at(s)];
    if (p >= 0 && whole[at(p)]) {
      whole[at(s)] = true;
    } else if (most > 0 && below[at(s)] <= most) {
      whole[at(s)] = true;
      out.subtrees.emplace_back(first[at(s)], s);
    }
  }
  std::stable_sort(out.subtrees.begin(), out.subtrees.end(),
                   [&](auto const& a, auto const& b) { return below[at(a.second)] > below[at(b.second)]; });
  for (std::int32_t s = 0; s < count; ++s)
    if (!whole[at(s)]) out.rest.push_back(s);
  return out;
}

/// f(k) for k in [0, count), each by one thread, the first ones first. Each thread has its own f, from make().
template <class Make>
void each_task(std::size_t count, Make const& make) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  device::Executor executor;
  device::parallel_ranges(
      executor, count == 0 ? 0 : device::host::team_size(),
      [&](std::int64_t, std::int64_t) {
        auto f = make();
        try {
          for (std::size_t k; !stop && (k = next++) < count;) f(k);
        } catch (...) {
          stop = true;
          throw;
        }
      },
      1);
}

}  // namespace asterism::direct::kernel
