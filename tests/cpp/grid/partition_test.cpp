#include "asterism/grid/partition.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "asterism/grid/grid.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::grid;
using comm::StarForest;
using i64 = std::int64_t;

namespace {

i64 modulo(i64 a, i64 n) { return (a % n + n) % n; }

/// The point of the grid at a place of a box.
Triple point_of(Box const& box, i64 place) {
  auto const s = box.sizes();
  return {box.low[0] + place / (s[1] * s[2]), box.low[1] + place / s[2] % s[1], box.low[2] + place % s[2]};
}
Triple wrapped(Partition const& p, Triple at) {
  for (std::size_t d = 0; d < 3; ++d)
    if (p.periodic()[d]) at[d] = modulo(at[d], p.shape()[d]);
  return at;
}
/// The points behind a rank's own ones, in their order.
std::vector<Triple> ghost_points(Partition const& p, int rank) {
  auto const own = p.owned(rank), around = p.ghosted(rank);
  std::vector<Triple> out(std::size_t(p.ghosts(rank)), Triple{-99, -99, -99});
  for (int a = -1; a <= 1; ++a)
    for (int b = -1; b <= 1; ++b)
      for (int c = -1; c <= 1; ++c) {
        std::array<int, 3> const side{a, b, c};
        if (!a && !b && !c) continue;
        auto const slab = p.slab(rank, side);
        Triple low;
        for (std::size_t d = 0; d < 3; ++d) low[d] = side[d] < 0 ? around.low[d] : side[d] > 0 ? own.high[d] : own.low[d];
        for (i64 i = 0; i < slab.points(); ++i) {
          Triple const at{low[0] + i / (slab.size[1] * slab.size[2]), low[1] + i / slab.size[2] % slab.size[1], low[2] + i % slab.size[2]};
          out[std::size_t(slab.first + i)] = at;
        }
      }
  return out;
}

/// Each leaf gets the value of its point exactly once.
template <class PointOfLeaf, class BoxOfOwner>
void check_edges(Partition const& p, std::vector<StarForest::EdgeSets> const& edges, std::vector<bool> const& wanted,
                 PointOfLeaf const& point_of_leaf, BoxOfOwner const& box_of_owner) {
  std::vector<int> times(wanted.size(), 0);
  std::set<int> ranks;
  for (auto const& [rank, leaves, roots] : edges) {
    ASSERT_TRUE(ranks.insert(rank).second);
    ASSERT_EQ(leaves.count(), roots.count());
    for (i64 e = 0; e < leaves.count(); ++e) {
      ++times[std::size_t(leaves[e])];
      auto const own = p.owned(rank), box = box_of_owner(rank);
      auto const from = point_of(box, roots[e]), to = wrapped(p, point_of_leaf(leaves[e]));
      ASSERT_EQ(from, to);
      for (std::size_t d = 0; d < 3; ++d) ASSERT_TRUE(from[d] >= own.low[d] && from[d] < own.high[d]);
    }
  }
  for (std::size_t l = 0; l < wanted.size(); ++l) ASSERT_EQ(times[l], int(wanted[l])) << "leaf " << l;
}

}  // namespace

TEST(Partition, EdgesFillEachGhostPointOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    int const dimensions = 1 + int(random() % 3), ranks = 1 + int(random() % 9);
    Triple n{1, 1, 1};
    std::array<bool, 3> periodic{};
    for (auto d = std::size_t(3 - dimensions); d < 3; ++d) n[d] = 1 + i64(random() % 9), periodic[d] = random() % 2;
    auto const boxes = Partition::choose_boxes(n, dimensions, periodic, ranks);
    Partition const all_ranks(n, boxes, periodic, i64(random() % 4), random() % 2 ? Stencil::box : Stencil::star);
    i64 const few = random() % 2 ? ranks : 1 + i64(random() % std::uint32_t(ranks));
    auto const p = all_ranks.on_fewer(few);
    ASSERT_EQ(p.ranks(), ranks);
    i64 with_points = 0;
    for (int r = 0; r < ranks; ++r) with_points += p.owned(r).points() > 0 ? 1 : 0;
    ASSERT_LE(with_points, few);
    i64 first = 0;
    for (int r = 0; r < ranks; ++r) {
      auto const own = p.owned(r), around = p.ghosted(r);
      for (i64 i = 0; i < own.points(); ++i) ASSERT_EQ(p.number(point_of(own, i)), first + i);
      first += own.points();
      auto const ghosts = ghost_points(p, r);
      std::vector<bool> all(ghosts.size(), true), local(std::size_t(around.points())), inside = local;
      for (auto const& g : ghosts) {
        auto const s = around.sizes();
        local[std::size_t(((g[0] - around.low[0]) * s[1] + g[1] - around.low[1]) * s[2] + g[2] - around.low[2])] = true;
      }
      inside = local;
      for (i64 i = 0; i < own.points(); ++i) {
        auto const g = point_of(own, i);
        auto const s = around.sizes();
        inside[std::size_t(((g[0] - around.low[0]) * s[1] + g[1] - around.low[1]) * s[2] + g[2] - around.low[2])] = true;
      }
      auto const owned = [&](int rank) { return p.owned(rank); };
      check_edges(p, p.to_ghosts(r), all, [&](i64 l) { return ghosts[std::size_t(l)]; }, owned);
      check_edges(p, p.within_local(r), local, [&](i64 l) { return point_of(around, l); }, [&](int rank) { return p.ghosted(rank); });
      check_edges(p, p.to_local(r), inside, [&](i64 l) { return point_of(around, l); }, owned);
      check_edges(
          p, p.to_box(around), std::vector<bool>(std::size_t(around.points()), true), [&](i64 l) { return point_of(around, l); }, owned);
    }
    ASSERT_EQ(first, n[0] * n[1] * n[2]);
  }
}

TEST(Partition, AHundredThousandRanksNeedMemoryForTheirNeighboursOnly) {
  // 10^5 ranks with 256^3 points each; nothing may be listed: not points, not ranks
  constexpr int ranks = 100000;
  for (auto const stencil : {Stencil::star, Stencil::box}) {
    Triple const n{256 * 40, 256 * 50, 256 * 50};
    std::array<bool, 3> const periodic{true, false, true};
    auto const boxes = Partition::choose_boxes(n, 3, periodic, ranks);
    ASSERT_EQ(boxes, (std::array<int, 3>{40, 50, 50}));
    Partition const p(n, boxes, periodic, 2, stencil);
    std::mt19937 random(1);
    for (int sample = 0; sample < 200; ++sample) {
      int const me = sample == 0 ? 0 : sample == 1 ? ranks - 1 : int(random() % ranks);
      auto const edges = p.to_ghosts(me);
      std::size_t const most = stencil == Stencil::star ? 6 : 26;
      ASSERT_LE(edges.size(), most);
      ASSERT_GE(edges.size(), stencil == Stencil::star ? 5u : 17u);
      i64 ghosts = 0;
      std::size_t bytes = 0;
      for (auto const& [rank, leaves, roots] : edges) {
        ghosts += leaves.count();
        bytes += sizeof(StarForest::EdgeSets) + leaves.memory_bytes() + roots.memory_bytes();
        // the neighbour finds the same edges from its side: what I read of it are points that it owns, beside mine
        i64 const e = i64(random() % std::uint64_t(leaves.count()));
        auto const at = point_of(p.owned(rank), roots[e]);
        auto const mine = p.owned(me);
        for (std::size_t d = 0; d < 3; ++d) {
          i64 apart = std::max({mine.low[d] - at[d], at[d] - mine.high[d] + 1, i64(0)});
          if (periodic[d]) apart = std::min({apart, modulo(mine.low[d] - at[d], n[d]), modulo(at[d] - mine.high[d] + 1, n[d])});
          ASSERT_LE(apart, 2);
        }
        ASSERT_EQ(p.layout(comm::Communicator()).global_size(), n[0] * n[1] * n[2]);
      }
      ASSERT_EQ(ghosts, p.ghosts(me));
      ASSERT_GT(ghosts, 600000);
      ASSERT_LE(bytes, most * 512);
    }
  }
}

TEST(Grid, TheLayoutIsTheOneOfTheBoxes) {
  auto const& c = world();
  Grid const g(c, {5, 4, 7}, 1, Stencil::box, {false, true, false}, {});
  comm::Layout const counted(c, g.owned().points());
  EXPECT_TRUE(g.layout().fits(counted));
  EXPECT_TRUE(counted.fits(g.layout()));
  EXPECT_EQ(g.layout().offsets(), counted.offsets());
  for (i64 i = 0; i < counted.global_size(); ++i) ASSERT_EQ(g.layout().owner(i), counted.owner(i));
  EXPECT_FALSE(g.layout().fits(comm::Layout(c, g.owned().points() + (c.rank() == c.size() - 1))));
  auto const numbers = g.numbers();
  auto const around = g.ghosted();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(numbers[i], g.partition().number(wrapped(g.partition(), point_of(around, i64(i)))));
}

TEST(Grid, GhostsBehindAVectorAreFilledInPlace) {
  auto const& c = world();
  for (auto const stencil : {Stencil::star, Stencil::box})
    for (bool const periodic : {false, true})
      for (i64 const width : {1, 2})
        for (i64 const k : {1, 3}) {
          Grid const g(c, {6, 5, 4}, width, stencil, {periodic, false, periodic}, {});
          auto const& p = g.partition();
          la::Vector v(g.space(), Dtype::float64, k);
          ASSERT_TRUE(v.has_ghosts());
          ASSERT_EQ(i64(v.ghosts().bytes()), 8 * k * p.ghosts(c.rank()));
          auto const own = v.host<double>();
          for (i64 i = 0; i < g.owned().points() * k; ++i) own[std::size_t(i)] = double(g.layout().begin() * k + i);
          g.space().ghost_forest().bcast_begin(v.queue(), v.dtype(), k, v.data(), v.ghosts()).end();
          auto const* const all = v.local().as<double>();
          auto const ghosts = ghost_points(p, c.rank());
          for (std::size_t i = 0; i < ghosts.size(); ++i)
            for (i64 j = 0; j < k; ++j)
              ASSERT_EQ(all[(g.owned().points() + i64(i)) * k + j], double(p.number(wrapped(p, ghosts[i])) * k + j));
          EXPECT_TRUE(v.like().has_ghosts());
        }
}
