#include "asterism/comm/forest/star_forest.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/comm/reduction.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::comm;

namespace {

/// A random graph, known to every rank: edges[r] are rank r's leaves.
struct Graph {
  std::vector<std::int64_t> roots, leaf_space;
  std::vector<std::vector<std::int64_t>> leaves;
  std::vector<std::vector<RemoteRoot>> remote;
};

Graph random_graph(unsigned seed, int size) {
  std::mt19937 random(seed);
  Graph g;
  for (int r = 0; r < size; ++r) g.roots.push_back(random() % 4 == 0 ? 0 : std::int64_t(random() % 9));
  for (int r = 0; r < size; ++r) {
    std::vector<std::int64_t> leaves;
    std::vector<RemoteRoot> remote;
    std::int64_t const space = std::int64_t(random() % 15);
    std::vector<std::int64_t> order(static_cast<std::size_t>(space));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int64_t(i);
    std::shuffle(order.begin(), order.end(), random);
    for (auto const leaf : order) {
      int const owner = int(random() % unsigned(size));
      if (g.roots[std::size_t(owner)] == 0 || random() % 5 == 0) continue;  // holes
      leaves.push_back(leaf);
      remote.push_back({owner, std::int64_t(random() % std::uint64_t(g.roots[std::size_t(owner)]))});
    }
    g.leaf_space.push_back(space);
    g.leaves.push_back(leaves);
    g.remote.push_back(remote);
  }
  return g;
}

}  // namespace

TEST(StarForest, BcastAndReduceMatchTheDefinition) {
  auto const& c = world();
  auto const me = std::size_t(c.rank());
  for (unsigned seed = 0; seed < 80; ++seed) {
    auto const g = random_graph(seed, c.size());
    // every transport in turn
    auto transport = TransportChoice(seed % unsigned(transport_choices));
    if (transport == TransportChoice::shm && c.size() > 1 && !c.node()->shares_memory()) transport = TransportChoice::automatic;
    StarForest const sf(c, g.roots[me], g.leaves[me], g.remote[me], g.leaf_space[me], transport);
    for (std::int64_t k : {1, 3}) {
      auto const root_value = [&](std::int64_t r, std::int64_t o, std::int64_t j) { return double(1000 * r + 10 * o + j); };
      std::vector<double> roots(std::size_t(g.roots[me] * k)), leaves(std::size_t(g.leaf_space[me] * k), -1);
      for (std::int64_t o = 0; o < g.roots[me]; ++o)
        for (std::int64_t j = 0; j < k; ++j) roots[std::size_t(o * k + j)] = root_value(c.rank(), o, j);
      auto expected = leaves;
      for (std::size_t e = 0; e < g.leaves[me].size(); ++e)
        for (std::int64_t j = 0; j < k; ++j)
          expected[std::size_t(g.leaves[me][e] * k + j)] = root_value(g.remote[me][e].rank, g.remote[me][e].offset, j);
      sf.bcast(roots.data(), leaves.data(), k);
      ASSERT_EQ(leaves, expected) << "seed " << seed;

      // reduce: sums, and replace takes the highest (rank, leaf)
      for (auto const op : {ReduceOp::sum, ReduceOp::replace, ReduceOp::max}) {
        std::vector<std::int64_t> target(std::size_t(g.roots[me] * k), 5), want = target;
        std::vector<std::int64_t> source(std::size_t(g.leaf_space[me] * k));
        auto const leaf_value = [&](std::int64_t r, std::int64_t l, std::int64_t j) { return 100 * r + 7 * l + j + 1; };
        for (std::int64_t l = 0; l < g.leaf_space[me]; ++l)
          for (std::int64_t j = 0; j < k; ++j) source[std::size_t(l * k + j)] = leaf_value(c.rank(), l, j);
        for (std::size_t r = 0; r < std::size_t(c.size()); ++r) {
          std::vector<std::pair<std::int64_t, std::size_t>> order;
          for (std::size_t e = 0; e < g.leaves[r].size(); ++e) order.emplace_back(g.leaves[r][e], e);
          std::sort(order.begin(), order.end());
          for (auto const& [leaf, e] : order) {
            if (g.remote[r][e].rank != c.rank()) continue;
            for (std::int64_t j = 0; j < k; ++j) {
              auto& w = want[std::size_t(g.remote[r][e].offset * k + j)];
              auto const v = leaf_value(std::int64_t(r), leaf, j);
              w = op == ReduceOp::sum ? w + v : op == ReduceOp::max ? std::max(w, v) : v;
            }
          }
        }
        sf.reduce(source.data(), target.data(), op, k);
        ASSERT_EQ(target, want) << "seed " << seed << " op " << int(op);
      }
    }
    // degree is the reduction of ones
    std::vector<std::int64_t> degree(std::size_t(g.roots[me]), 0);
    for (std::size_t r = 0; r < std::size_t(c.size()); ++r)
      for (auto const& e : g.remote[r])
        if (e.rank == c.rank()) ++degree[std::size_t(e.offset)];
    ASSERT_EQ(sf.degree(), degree);
  }
}

TEST(StarForest, SeveralFlightsAtOnce) {
  auto const& c = world();
  auto const next = (c.rank() + 1) % c.size();
  StarForest const sf(c, 2, std::nullopt, {{next, 1}, {c.rank(), 0}});
  std::vector<double> a{1.0 + c.rank(), 10.0 + c.rank()}, la(2);
  std::vector<std::int64_t> b{100 + c.rank(), 200 + c.rank()}, lb(2);
  auto one = sf.bcast_begin(a.data(), la.data());
  auto two = sf.bcast_begin(b.data(), lb.data());
  two.end();
  one.end();
  EXPECT_EQ(la, (std::vector<double>{10.0 + next, 1.0 + c.rank()}));
  EXPECT_EQ(lb, (std::vector<std::int64_t>{200 + next, 100 + c.rank()}));
  EXPECT_THROW(one.end(), Error);
}

TEST(StarForest, BadInputIsAnErrorOnAllRanks) {
  auto const& c = world();
  int const guilty = c.size() - 1;
  auto const bad = std::int64_t(c.rank() == guilty ? 99 : 0);
  try {
    StarForest(c, 1, std::nullopt, {{0, bad}});
    FAIL() << "no error";
  } catch (Error const& e) {
    EXPECT_NE(std::string(e.what()).find("root 99 of rank 0, which has 1 roots"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("a leaf of rank " + std::to_string(guilty)), std::string::npos) << e.what();
  }
}

TEST(Exchange, ManyRoundsNeverMix) {
  auto const& c = world();
  for (int round = 0; round < 160; ++round) {
    set_discovery(Discovery(round % 4));
    std::mt19937 random(static_cast<unsigned>(round));
    std::vector<std::vector<bool>> sends(std::size_t(c.size()), std::vector<bool>(std::size_t(c.size())));
    for (auto& row : sends)
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = random() % 2;
    std::vector<Parcel> out;
    for (int to = 0; to < c.size(); ++to)
      if (sends[std::size_t(c.rank())][std::size_t(to)]) {
        Parcel p{to, {}};
        std::int64_t const content[2] = {round, c.rank()};
        append<std::int64_t>(p.data, content);
        out.push_back(std::move(p));
      }
    auto const in = exchange(c, std::move(out));
    std::size_t expected = 0;
    for (auto const& row : sends) expected += row[std::size_t(c.rank())];
    ASSERT_EQ(in.size(), expected);
    int last = -1;
    for (auto const& p : in) {
      auto const items = items_of<std::int64_t>(p.data);
      ASSERT_EQ(items[0], round);
      ASSERT_EQ(items[1], p.rank);
      ASSERT_GT(p.rank, last);
      last = p.rank;
    }
  }
  set_discovery(Discovery::automatic);
}

TEST(Exchange, NamesOfTheWaysToFindOut) {
  EXPECT_EQ(discovery_from_name("nbx"), Discovery::nbx);
  EXPECT_THROW(discovery_from_name("ssend"), Error);
}

TEST(Reduction, SeveralResultsInOneMessageOnAnyQueue) {
  auto const& c = world();
  for (auto const& queue : {device::Queue::host(), device::Queue::shuffle(5)}) {
    Reduction r(c, queue, 3);
    device::submit(
        queue, [rank = c.rank()](device::Executor&, std::complex<double>* p) { p[0] = rank, p[1] = 1.0, p[2] = {0.0, 2.0}; },
        device::write<std::complex<double>>(r.partial()));
    r.begin();
    r.end();
    EXPECT_EQ(r.result(0, 1).real(), c.size() * (c.size() - 1) / 2);
    EXPECT_EQ(r.result(1, 1).real(), c.size());
    EXPECT_EQ(r.result(2, 1).value().imag(), 2.0 * c.size());
  }
}

TEST(Agree, TheLowestFailingRankSpeaks) {
  auto const& c = world();
  try {
    agree(c, [&] {
      if (c.rank() >= c.size() / 2) fail(ErrorKind::value, "bad number {}", c.rank());
    });
    FAIL();
  } catch (Error const& e) {
    EXPECT_NE(std::string(e.what()).find("bad number " + std::to_string(c.size() / 2)), std::string::npos);
    EXPECT_EQ(e.kind(), ErrorKind::value);
  }
}

TEST(Layout, OwnersWithEmptyRanks) {
  auto const& c = world();
  Layout const l(c, c.rank() % 2 ? 0 : 3);
  for (std::int64_t g = 0; g < l.global_size(); ++g) {
    int const o = l.owner(g);
    EXPECT_LE(l.offsets()[std::size_t(o)], g);
    EXPECT_GT(l.offsets()[std::size_t(o) + 1], g);
  }
  EXPECT_THROW(l.owner(l.global_size()), Error);
}

TEST(StarForest, FromIndexSetsIsTheOneOfTheirPositions) {
  auto const& c = world();
  auto const me = std::size_t(c.rank());
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto const g = random_graph(seed, c.size());
    auto transport = TransportChoice(seed % unsigned(transport_choices));
    if (transport == TransportChoice::shm && c.size() > 1 && !c.node()->shares_memory()) transport = TransportChoice::automatic;
    StarForest const listed(c, g.roots[me], g.leaves[me], g.remote[me], g.leaf_space[me], transport);
    std::vector<StarForest::EdgeSets> sets;
    for (int r = c.size(); r-- > 0;) {  // in any order of ranks; of each by leaves
      std::map<std::int64_t, std::int64_t> edges;
      for (std::size_t e = 0; e < g.leaves[me].size(); ++e)
        if (g.remote[me][e].rank == r) edges[g.leaves[me][e]] = g.remote[me][e].offset;
      std::vector<IndexSet> leaves, roots;
      std::vector<std::int64_t> leaf_list, root_list;
      for (auto const& [l, o] : edges) {
        leaves.push_back(IndexSet::range(l, 1)), roots.push_back(IndexSet::range(o, 1));
        leaf_list.push_back(l), root_list.push_back(o);
      }
      if (seed % 2) sets.push_back({r, IndexSet::joined(leaves), IndexSet::joined(roots)});
      else sets.push_back({r, IndexSet(leaf_list), IndexSet(root_list)});
    }
    auto const f = StarForest::from_index_sets(c, g.roots[me], sets, g.leaf_space[me], transport);
    EXPECT_EQ(f.leaves(), listed.leaves());
    EXPECT_EQ(f.degree(), listed.degree());
    EXPECT_EQ(f.graph().leaves, listed.graph().leaves);
    EXPECT_EQ(f.root_ranks(), listed.root_ranks());
    EXPECT_EQ(f.leaf_ranks(), listed.leaf_ranks());
    EXPECT_LT(f.repeated_leaf(), 0);
    std::vector<std::int64_t> root(std::size_t(g.roots[me] * 2)), leaf(std::size_t(g.leaf_space[me] * 2));
    for (std::size_t i = 0; i < root.size(); ++i) root[i] = std::int64_t(1000 * me + i);
    for (std::size_t i = 0; i < leaf.size(); ++i) leaf[i] = -std::int64_t(100 * me + i);
    auto leaf2 = leaf, root2 = root;
    listed.bcast(root.data(), leaf.data(), 2), f.bcast(root.data(), leaf2.data(), 2);
    ASSERT_EQ(leaf, leaf2) << "seed " << seed;
    for (auto const op : {ReduceOp::sum, ReduceOp::replace}) {
      listed.reduce(leaf.data(), root.data(), op, 2), f.reduce(leaf.data(), root2.data(), op, 2);
      ASSERT_EQ(root, root2) << "seed " << seed;
    }
  }
}

TEST(StarForest, WrongIndexSetsAreErrorsOnAllRanks) {
  auto const& c = world();
  auto const text = [&](std::int64_t roots, std::vector<StarForest::EdgeSets> const& edges, std::int64_t space) {
    try {
      StarForest::from_index_sets(c, roots, c.rank() == 0 ? edges : std::vector<StarForest::EdgeSets>(), space);
    } catch (Error const& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  auto const range = [](std::int64_t first, std::int64_t n) { return IndexSet::range(first, n); };
  int const last = c.size() - 1;
  EXPECT_NE(text(3, {{last, range(0, 2), range(0, 3)}}, 4).find("2 leaves but 3 roots"), std::string::npos);
  EXPECT_NE(text(3, {{last, range(3, 2), range(0, 2)}}, 4).find("leaf 4 is outside the leaf space [0, 4)"), std::string::npos);
  EXPECT_NE(text(3, {{c.size(), range(0, 1), range(0, 1)}}, 4).find("there are"), std::string::npos);
  EXPECT_NE(text(3, {{last, range(0, 1), range(0, 1)}, {last, range(1, 1), range(1, 1)}}, 4).find("come twice"), std::string::npos);
  EXPECT_NE(text(3, {{last, range(0, 2), range(2, 2)}}, 4).find("which has 3 roots"), std::string::npos);
  EXPECT_EQ(text(3, {{last, range(0, 2), range(1, 2)}}, 4), "");
  // a leaf in two sets is found
  if (c.size() > 1) {
    auto const f = StarForest::from_index_sets(c, 3, {{0, range(0, 2), range(0, 2)}, {1, range(1, 2), range(0, 2)}}, 4);
    EXPECT_EQ(f.repeated_leaf(), 1);
  }
}
