// Permutations as lists of numbers.
#pragma once
#include <cstddef>
#include <vector>

namespace asterism::direct {

/// all[order[k]] for each k.
template <class I>
std::vector<I> in_order(std::vector<I> const& all, std::vector<I> const& order) {
  std::vector<I> out;
  out.reserve(order.size());
  for (auto const k : order) out.push_back(all[std::size_t(k)]);
  return out;
}

/// Whether the number of exchanges of a permutation is odd.
template <class I>
bool is_odd(std::vector<I> const& p) {
  std::vector<char> seen(p.size(), false);
  bool odd = false;
  for (std::size_t i = 0; i < p.size(); ++i)
    for (auto j = i; !seen[j]; j = std::size_t(p[j])) {
      seen[j] = true;
      if (std::size_t(p[j]) != i) odd = !odd;
    }
  return odd;
}

}  // namespace asterism::direct
