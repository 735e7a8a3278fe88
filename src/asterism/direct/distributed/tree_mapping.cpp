#include "asterism/direct/distributed/tree_mapping.hpp"

#include <algorithm>
#include <limits>

namespace asterism::direct {
namespace {

constexpr double share_busy = 0.7;  // of the time in which a rank computes, at the top

struct Dealt {
  std::vector<int> rank;  // of each subtree
  double most = 0;        // work of a rank
};

/// Subtrees by falling weight, each to the rank that has least.
Dealt deal(std::vector<double> const& weights, int ranks) {
  Dealt out;
  std::vector<double> load(std::size_t(ranks), 0);
  for (double const w : weights) {
    auto const least = std::min_element(load.begin(), load.end());
    *least += w;
    out.most = std::max(out.most, *least);
    out.rank.push_back(int(least - load.begin()));
  }
  return out;
}

}  // namespace

std::vector<int> map_tree(Supernodes const& nodes, std::span<double const> work, int ranks) {
  auto const count = std::size_t(nodes.count());
  std::vector<double> below(count, 0);
  std::vector<std::vector<std::int32_t>> children(count);
  std::vector<std::int32_t> roots;
  for (std::size_t s = 0; s < count; ++s) {
    below[s] += work[s] + 1;
    if (auto const p = nodes.parent[s]; p >= 0) {
      below[std::size_t(p)] += below[s];
      children[std::size_t(p)].push_back(std::int32_t(s));
    } else {
      roots.push_back(std::int32_t(s));
    }
  }
  auto const heavier = [&](std::int32_t a, std::int32_t b) {
    auto const x = below[std::size_t(a)], y = below[std::size_t(b)];
    return x != y ? x > y : a < b;
  };
  std::vector<int> best(count, -1);
  double least = std::numeric_limits<double>::infinity(), top = 0, all = 0;
  for (auto const r : roots) all += below[std::size_t(r)];
  std::sort(roots.begin(), roots.end(), heavier);
  for (int step = 0; step < 50 + 20 * ranks && !roots.empty(); ++step) {
    std::vector<double> weights;
    for (auto const r : roots) weights.push_back(below[std::size_t(r)]);
    auto const dealt = deal(weights, ranks);
    if (double const time = top / (share_busy * ranks) + dealt.most; time < least * (1 - 1e-9)) {
      least = time;
      std::fill(best.begin(), best.end(), -1);
      for (std::size_t i = 0; i < roots.size(); ++i) best[std::size_t(roots[i])] = dealt.rank[i];
    }
    auto const heaviest = roots.front();
    if (below[std::size_t(heaviest)] < all / (64.0 * ranks)) break;
    roots.erase(roots.begin());
    top += work[std::size_t(heaviest)] + 1;
    for (auto const c : children[std::size_t(heaviest)]) roots.insert(std::upper_bound(roots.begin(), roots.end(), c, heavier), c);
  }
  for (std::size_t s = count; s-- > 0;)
    if (auto const p = nodes.parent[s]; p >= 0 && best[std::size_t(p)] >= 0) best[s] = best[std::size_t(p)];
  return best;
}

}  // namespace asterism::direct
