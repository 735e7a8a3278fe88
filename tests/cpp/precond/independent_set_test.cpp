// Independent sets of nodes, by their definition, and the aggregates around them.
#include "asterism/precond/amg/coarsening/independent_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "asterism/device/host/team.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::precond::amg;
using std::int64_t;

namespace {

/// Couplings of both directions, some nodes without any; of the third kind a band, in which most nodes are far from other ranks.
Dense couplings(int64_t n, unsigned kind) {
  auto a = sparse_positive(n, false, kind);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i != j && (i % 7 == 0 || j % 7 == 0 || (kind == 3 && std::abs(i - j) > 3))) a(i, j) = 0;
  return a;
}

/// One node after the other, each that may be.
std::vector<int32_t> set_by_definition(Dense const& a, std::vector<bool> const& active, int64_t block) {
  auto const n = int64_t(active.size());
  std::vector<int64_t> order(active.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return place_in_order(i, block) < place_in_order(j, block); });
  auto const coupled = [&](int64_t i, int64_t j) { return i == j || a(i, j) != Value(0); };
  std::vector<int32_t> set(active.size(), 0);
  for (auto const v : order) {
    bool free = active[std::size_t(v)];
    for (int64_t c = 0; c < n && free; ++c)
      if (coupled(v, c) && active[std::size_t(c)])
        for (int64_t w = 0; w < n; ++w) free = free && !(coupled(c, w) && set[std::size_t(w)] == 1);
    set[std::size_t(v)] = free;
  }
  return set;
}

/// f(the graph of the couplings above a threshold, whatever can be cancelled) on one process, and on all.
template <class F>
void on_one_and_all(Dense const& a, double threshold, F const& f) {
  for (auto const& comm : {comm::Communicator(), world()}) {
    Progress progress("aggregates", 1);
    comm::Cancellation cancel(comm, progress);
    auto const layout = la::Layout::even(comm, a.rows());
    auto const rows = la::rows_of<double>(to_sparse(a, layout, layout, Dtype::float64));
    f(threshold < 0 ? pattern_graph(rows, layout) : strong_couplings(rows, layout, 1, threshold, cancel), cancel);
  }
}

}  // namespace

TEST(IndependentSet, IsThatOfItsOrder) {
  int const threads = device::host::team_size();
  for (int64_t const n : {1, 2, 30, 200, 500})
    for (unsigned const kind : {1u, 2u, 3u})
      for (int64_t const block : {int64_t(8), int64_t(50), nodes_of_block})
        for (bool const all : {true, false}) {
          auto const a = couplings(n, kind);
          std::vector<bool> is_active(static_cast<std::size_t>(n));
          for (int64_t i = 0; i < n; ++i) is_active[std::size_t(i)] = all || (i * i + kind) % 3 != 0;
          auto const wanted = set_by_definition(a, is_active, block);
          for (int const team : {1, 3}) {
            device::host::set_team_size(team);
            on_one_and_all(a, 0, [&](NodeGraph const& graph, comm::Cancellation& cancel) {
              la::Buffer<std::uint8_t> active(graph.map.size());
              for (int32_t l = 0; l < graph.map.size(); ++l) active[l] = is_active[std::size_t(graph.map.global(l))];
              la::Buffer<int32_t> T(graph.map.size());
              independent_set(graph, true, active, T, 0, cancel, block);
              for (int32_t l = 0; l < graph.map.size(); ++l)
                ASSERT_EQ(T[l], wanted[std::size_t(graph.map.global(l))])
                    << n << " kind " << kind << " block " << block << " node " << graph.map.global(l);
            });
          }
        }
  device::host::set_team_size(threads);
}

/// The aggregates of a graph that is taken for symmetric or not: the same on one process and on all, of all nodes with neighbours.
void expect_aggregates(Dense const& a, double threshold, bool symmetric) {
  std::vector<int64_t> wanted;
  on_one_and_all(a, threshold, [&](NodeGraph graph, comm::Cancellation& cancel) {
    graph.symmetric = symmetric;
    auto const found = aggregate(graph, {}, cancel);
    if (wanted.empty()) wanted.assign(found.of_node.begin(), found.of_node.end());
    for (int32_t l = 0; l < graph.map.size(); ++l) ASSERT_EQ(found.of_node[l], wanted[std::size_t(graph.map.global(l))]) << "node " << l;
    for (int32_t v = 0; v < graph.count; ++v)
      if (auto const of = found.of_node[v + graph.map.below]; graph.neighbours(v) > 0) {
        ASSERT_TRUE(of >= 0 && of < found.coarse.global_size()) << "node " << v;
      }
  });
}

TEST(Aggregates, AreTheSameOnAnyRanks) {
  for (int64_t const n : {1, 2, 30, 200, 700})
    for (unsigned const kind : {1u, 2u, 3u})
      for (bool const symmetric : {false, true}) expect_aggregates(couplings(n, kind), kind == 2 ? -1 : 0.05, symmetric);
}

TEST(Aggregates, AreTheSameWhereCouplingsAreOfOneDirection) {
  // as rounding makes them beside a threshold
  for (int64_t const n : {2, 3, 40, 300})
    for (unsigned const seed : {1u, 2u, 3u, 4u}) {
      auto a = sparse_positive(n, false, seed);
      std::mt19937 random(seed);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          if (i != j && random() % 3 == 0) a(i, j) = 0;
      bool one_way = false;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) one_way = one_way || (a(i, j) == Value(0)) != (a(j, i) == Value(0));
      on_one_and_all(a, 0, [&](NodeGraph const& graph, comm::Cancellation&) { EXPECT_EQ(neighbours_are_mutual(graph), !one_way); });
      expect_aggregates(a, 0, true);
    }
}
