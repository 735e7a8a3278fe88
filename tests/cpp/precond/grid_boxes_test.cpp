// Boxes of regular grids, against components found from coordinates.
#include "asterism/precond/amg/coarsening/grid_boxes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::precond::amg;
using std::int64_t;

namespace {

using Steps = std::vector<std::array<int64_t, 3>>;

struct Grid {
  std::array<int64_t, 3> length{1, 1, 1};
  int64_t nodes() const { return length[0] * length[1] * length[2]; }
  std::array<int64_t, 3> at(int64_t i) const { return {i % length[0], i / length[0] % length[1], i / length[0] / length[1]}; }
  /// The node that many steps away; -1: outside.
  int64_t from(int64_t i, std::array<int64_t, 3> const& step) const {
    auto const x = at(i);
    int64_t out = 0;
    for (int d = 2; d >= 0; --d) {
      auto const y = x[std::size_t(d)] + step[std::size_t(d)], n = length[std::size_t(d)];
      if (y < 0 || y >= n) return -1;
      out = out * n + y;
    }
    return out;
  }
  std::vector<int64_t> differences(Steps const& steps) const {
    std::set<int64_t> out;
    for (int64_t i = 0; i < nodes(); ++i)
      for (auto const& s : steps)
        if (auto const j = from(i, s); j > i) out.insert(j - i);
    return {out.begin(), out.end()};
  }
  int64_t box(int64_t i) const {
    auto const x = at(i);
    int64_t out = 0;
    for (int d = 2; d >= 0; --d) {
      auto const n = length[std::size_t(d)], y = x[std::size_t(d)];
      // 3, 3, ..., 3, then nothing, 2 or 2, 2
      out = out * n + (n % 3 == 1 && y >= n - 2 ? n : n % 3 == 1 && y >= n - 4 ? n - 1 : y / 3);
    }
    return out;
  }
};

/// With the opposite ones.
Steps star(int64_t reach) {
  Steps out;
  for (int64_t r = -reach; r <= reach; ++r)
    if (r != 0)
      for (int d = 0; d < 3; ++d) {
        std::array<int64_t, 3> s{0, 0, 0};
        s[std::size_t(d)] = r;
        out.push_back(s);
      }
  return out;
}
Steps box() {
  Steps out;
  for (int64_t z = -1; z <= 1; ++z)
    for (int64_t y = -1; y <= 1; ++y)
      for (int64_t x = -1; x <= 1; ++x)
        if (x != 0 || y != 0 || z != 0) out.push_back({x, y, z});
  return out;
}
/// Edges of cubes that are divided into tetrahedra about one diagonal (Kuhn 1960).
Steps tetrahedra() {
  Steps out;
  for (auto const& s : box())
    if (std::all_of(s.begin(), s.end(), [](auto x) { return x >= 0; }) || std::all_of(s.begin(), s.end(), [](auto x) { return x <= 0; }))
      out.push_back(s);
  return out;
}

/// The couplings of that grid that are kept, each with its opposite: symmetric and positive definite.
Dense couplings(Grid const& g, Steps const& steps, double kept, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Dense a = Dense::identity(g.nodes());
  for (int64_t i = 0; i < g.nodes(); ++i)
    for (auto const& s : steps)
      if (auto const j = g.from(i, s); j > i && uniform(random) < kept) a(i, j) = a(j, i) = -0.1;
  return a;
}

/// The first node of each one's part of its box; -1: the part has one or two nodes, or no couplings.
std::vector<int64_t> parts(Grid const& g, Dense const& a) {
  auto const n = g.nodes();
  std::vector<int64_t> root(std::size_t(n), -2);
  for (int64_t i = 0; i < n; ++i) {
    if (root[std::size_t(i)] != -2) continue;
    std::vector<int64_t> part{i};
    root[std::size_t(i)] = i;
    for (std::size_t k = 0; k < part.size(); ++k)
      for (int64_t j = 0; j < n; ++j)
        if (root[std::size_t(j)] == -2 && a(part[k], j) != Value(0) && g.box(j) == g.box(i)) {
          root[std::size_t(j)] = i;
          part.push_back(j);
        }
    if (part.size() < 3)
      for (auto const j : part) root[std::size_t(j)] = -1;
  }
  return root;
}

/// wanted[global]: the first node of its part; empty: they are no boxes. whole: none may be taken for divided.
void expect_boxes(Dense const& a, std::vector<int64_t> const& wanted, bool whole = false) {
  Progress progress("boxes", 1);
  comm::Cancellation cancel(world(), progress);
  for (auto const& layout : {uneven(world(), a.rows()), la::Layout::even(world(), a.rows())}) {
    auto const rows = la::rows_of<double>(to_sparse(a, layout, layout, Dtype::float64));
    auto const graph = strong_couplings(rows, layout, 1, 0.05, cancel);
    Aggregates out;
    out.of_node = Buffer<int64_t>(graph.map.size(), int64_t(-7));
    auto const lengths = lengths_of_grid(graph);
    auto const found = lengths.empty() ? GridBoxes::none : boxes_of_grid(graph, lengths, out, cancel);
    ASSERT_EQ(found != GridBoxes::none, !wanted.empty());
    ASSERT_TRUE(!whole || found == GridBoxes::whole);
    std::vector<int64_t> roots;  // of whole boxes, whose numbers are told
    for (int64_t i = 0; i < int64_t(wanted.size()); ++i)
      if (wanted[std::size_t(i)] == i) roots.push_back(i);
    for (int32_t l = 0; l < graph.map.size(); ++l) {
      auto const told = out.of_node[l], root = found == GridBoxes::whole ? roots.at(std::size_t(told)) : told;
      ASSERT_EQ(root, wanted.empty() ? -7 : wanted[std::size_t(graph.map.global(l))]) << "node " << graph.map.global(l);
    }
    if (found != GridBoxes::whole) continue;
    ASSERT_EQ(out.coarse.global_size(), int64_t(roots.size()));
    for (auto const& r : roots) ASSERT_EQ(out.coarse.owns(&r - roots.data()), layout.owns(r)) << "aggregate of node " << r;
  }
}

std::vector<Grid> const grids = {{{7, 6, 5}}, {{13, 11, 1}}, {{8, 6, 9}}, {{40, 1, 1}}, {{29, 6, 1}}, {{6, 12, 4}}};

}  // namespace

TEST(GridBoxes, LengthsFollowFromDifferences) {
  for (auto const& g : grids)
    for (auto const& steps : {star(1), star(2), box(), tetrahedra()}) {
      std::vector<int64_t> wanted;
      for (auto const n : g.length)
        if (n > 1) wanted.push_back(n);
      EXPECT_EQ(lengths_of_grid(g.differences(steps), g.nodes()), wanted) << g.length[0] << " " << g.length[1] << " " << g.length[2];
    }
}

TEST(GridBoxes, OtherDifferencesAreOfNoGrid) {
  using Differences = std::vector<int64_t>;
  for (auto const& d : {Differences{}, Differences{2}, Differences{1, 2, 3}, Differences{1, 10}, Differences{1, 25, 40},
                        Differences{1, 2, 4, 7, 11}, Differences{10, 100}, Differences{1, 3, 9}})
    EXPECT_TRUE(lengths_of_grid(d, 1001).empty());
  EXPECT_EQ(lengths_of_grid(Differences{1, 10}, 1000), (Differences{10, 100}));
  EXPECT_EQ(lengths_of_grid(Differences{1, 10, 100}, 1000), (Differences{10, 10, 10}));
}

TEST(GridBoxes, ArePartsThatHangTogether) {
  unsigned seed = 0;
  for (auto const& g : grids)
    for (auto const& steps : {star(1), box()})
      for (double const kept : {1.0, 0.95, 0.85}) {
        auto const a = couplings(g, steps, kept, ++seed);
        auto wanted = parts(g, a);
        int64_t const parts = std::count_if(wanted.begin(), wanted.end(), [i = int64_t(0)](auto r) mutable { return r == i++; });
        int64_t const in_parts = std::count_if(wanted.begin(), wanted.end(), [](auto r) { return r >= 0; });
        int64_t with_couplings = 0, boxes = 1;
        for (int64_t i = 0; i < g.nodes(); ++i) {
          bool any = false;
          for (int64_t j = 0; j < g.nodes(); ++j) any = any || (j != i && a(i, j) != Value(0));
          with_couplings += any;
        }
        for (auto const n : g.length) boxes *= (n + 2) / 3;
        if (2 * with_couplings * boxes < g.nodes() * parts || 4 * in_parts < 3 * with_couplings) wanted.clear();  // they are small
        EXPECT_TRUE(kept < 1 || !wanted.empty());
        expect_boxes(a, wanted, kept == 1 && g.length[1] > 1);
      }
}

// One node is cut off from those before it in its box. It may still hang together with the others by way of those behind it.
TEST(GridBoxes, AreDividedWhereOneNodeIsCutOff) {
  Grid const g{{6, 5, 4}};
  for (int64_t node = 1; node < g.nodes(); ++node) {
    auto a = couplings(g, star(1), 1, 1);
    bool was_cut = false;
    for (int64_t j = 0; j < node; ++j)
      if (g.box(j) == g.box(node) && a(node, j) != Value(0)) {
        a(node, j) = a(j, node) = 0;
        was_cut = true;
      }
    expect_boxes(a, parts(g, a), !was_cut);
  }
}

TEST(GridBoxes, AreNotMadeWhereThePartsAreSmallOrThereIsNoGrid) {
  Grid const g{{9, 8, 7}};
  expect_boxes(couplings(g, {{0, 1, 0}}, 1, 1), {});  // lines in the second dimension
  expect_boxes(couplings(g, star(1), 0.35, 2), {});   // most parts have one or two nodes
  expect_boxes(sparse_positive(300, false, 3), {});
  auto hub = couplings({{400, 1, 1}}, star(1), 1, 3);  // one node is coupled to a third of all
  for (int64_t j = 0; j < 400; j += 3)
    if (j != 150) hub(150, j) = hub(j, 150) = -0.1;
  expect_boxes(hub, {});
}

TEST(GridBoxes, ArePlacedWhereCouplingsAreEven) {
  Progress progress("boxes", 1);
  comm::Cancellation cancel(world(), progress);
  for (auto const& shape : {std::vector<int64_t>{13, 11}, {9, 8, 7}})
    for (int64_t const bs : {1, 2})
      for (double const epsilon : {1.0, 0.4, 0.2, 0.01})
        for (std::size_t weak = 0; weak < shape.size(); ++weak) {
          int64_t n = 1;
          for (auto const length : shape) n *= length;
          Dense a(n * bs, n * bs);
          int64_t step = 1;
          for (std::size_t d = 0; d < shape.size(); step *= shape[d++])
            for (int64_t i = 0; i + step < n; ++i)
              if (i / step % shape[d] + 1 < shape[d])
                for (int64_t c = 0; c < bs; ++c)
                  a(i * bs + c, (i + step) * bs + c) = a((i + step) * bs + c, i * bs + c) = d == weak ? -epsilon : -1;
          for (int64_t i = 0; i < n * bs; ++i) a(i, i) = 6;
          auto const layout = la::Layout::from_offsets(world(), [&] {
            auto offsets = la::Layout::even(world(), n).offsets();
            for (auto& o : offsets) o *= bs;
            return offsets;
          }());
          auto const rows = la::rows_of<double>(to_sparse(a, layout, layout, Dtype::float64));
          auto const graph = strong_couplings(rows, layout, bs, 1e-4, cancel);
          auto const lengths = lengths_of_grid(graph);
          ASSERT_EQ(lengths, shape);
          EXPECT_EQ(couplings_are_even(rows, graph, lengths, bs), epsilon > 0.3) << epsilon << " along " << weak;
        }
}
