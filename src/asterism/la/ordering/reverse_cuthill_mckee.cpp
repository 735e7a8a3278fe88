#include <algorithm>
#include <utility>

#include "asterism/base/progress.hpp"
#include "asterism/la/ordering/graph.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::la {
namespace {

/// Vertices by their distance from one, neighbours of a vertex by ascending degree.
class Breadth {
 public:
  Breadth(Graph const& g, Progress& progress) : g_(g), progress_(progress), seen_(std::size_t(g.size()), 0) {}
  /// Appends the component of `start` to `order`. The number of levels.
  std::int32_t from(std::int32_t start, std::vector<std::int32_t>& order) {
    ++stamp_;
    auto at = order.size(), end = at + 1;
    order.push_back(start);
    seen_[std::size_t(start)] = stamp_;
    std::int32_t levels = 0;
    for (; at < order.size(); ++levels) {
      last_level_ = at;
      for (; at < end; ++at) {
        progress_.at(double(at));
        auto const first = order.size();
        for (auto const j : g_.of(order[at]))
          if (std::exchange(seen_[std::size_t(j)], stamp_) != stamp_) order.push_back(j);
        std::sort(order.begin() + std::int64_t(first), order.end(),
                  [&](std::int32_t a, std::int32_t b) { return std::pair(g_.degree(a), a) < std::pair(g_.degree(b), b); });
      }
      end = order.size();
    }
    return levels;
  }
  std::size_t last_level() const { return last_level_; }

 private:
  Graph const& g_;
  Progress& progress_;
  std::vector<std::int32_t> seen_;
  std::int32_t stamp_ = 0;
  std::size_t last_level_ = 0;  // where it begins in order
};

}  // namespace

std::vector<std::int32_t> reverse_cuthill_mckee(Graph const& g) {
  Progress progress("reverse Cuthill-McKee ordering", 0);  // nobody knows how often a component is searched
  Breadth breadth(g, progress);
  std::vector<char> placed(std::size_t(g.size()), 0);
  std::vector<std::int32_t> order;
  order.reserve(placed.size());
  for (std::int32_t seed = 0; seed < g.size(); ++seed) {
    if (placed[std::size_t(seed)]) continue;
    auto const first = order.size();
    auto start = seed;
    for (std::int32_t levels = 0;;) {  // as long as the farthest vertex of least degree is farther from its farthest
      auto const now = breadth.from(start, order);
      if (now <= levels) break;
      levels = now;
      auto const far =
          *std::min_element(order.begin() + std::int64_t(breadth.last_level()), order.end(),
                            [&](std::int32_t u, std::int32_t v) { return std::pair(g.degree(u), u) < std::pair(g.degree(v), v); });
      order.resize(first);
      if (far == start) {
        breadth.from(start, order);
        break;
      }
      start = far;
    }
    for (auto at = first; at < order.size(); ++at) placed[std::size_t(order[at])] = 1;
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace asterism::la
