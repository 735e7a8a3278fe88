#include "asterism/grid/bricks/brick_domain.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include <random>
#include <set>

#include "asterism/grid/bricks/brick_schedule.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::grid;
using i64 = std::int64_t;

namespace {

/// Runs of numbers that the 26 neighbours of a box need, all sides counted; the empty ones of missing directions are none.
std::size_t messages(Triple const& sizes, std::array<bool, 3> const& cut) {
  BrickOrder const order(sizes, cut);
  std::size_t runs = 0;
  for (int side = 0; side < 27; ++side) {
    std::array<int, 3> const s{side / 9 - 1, side / 3 % 3 - 1, side % 3 - 1};
    Box part{{0, 0, 0}, sizes};
    bool is_neighbour = side != 13;
    for (std::size_t d = 0; d < 3; ++d) {
      is_neighbour = is_neighbour && (s[d] == 0 || cut[d]);
      if (s[d] < 0) part.high[d] = 1;
      if (s[d] > 0) part.low[d] = sizes[d] - 1;
    }
    if (is_neighbour) runs += order.runs(part).size();
  }
  return runs;
}

i64 modulo(i64 a, i64 n) { return (a % n + n) % n; }

}  // namespace

TEST(BrickOrder, NumbersAllBricksOnceAndTheInnerOnesFirst) {
  for (Triple const sizes : {Triple{1, 1, 1}, Triple{1, 1, 7}, Triple{2, 3, 1}, Triple{5, 4, 6}, Triple{0, 3, 3}})
    for (int mask = 0; mask < 8; ++mask) {
      std::array<bool, 3> const cut{(mask & 4) != 0, (mask & 2) != 0, (mask & 1) != 0};
      BrickOrder const order(sizes, cut);
      std::set<i64> seen;
      for (i64 a = 0; a < sizes[0]; ++a)
        for (i64 b = 0; b < sizes[1]; ++b)
          for (i64 c = 0; c < sizes[2]; ++c) {
            Triple const at{a, b, c};
            bool inner = true;
            for (std::size_t d = 0; d < 3; ++d) inner = inner && (!cut[d] || (at[d] > 0 && at[d] < sizes[d] - 1));
            auto const n = order.number(at);
            EXPECT_EQ(n < order.inner(), inner);
            EXPECT_TRUE(seen.insert(n).second);
          }
      EXPECT_EQ(i64(seen.size()), order.bricks());
      if (!seen.empty()) {
        EXPECT_EQ(*seen.rbegin() + 1, order.bricks());
      }
    }
}

TEST(BrickOrder, WhatNeighboursNeedAreTheFewestRuns) {
  EXPECT_EQ(messages({5, 5, 5}, {true, true, true}), 42U);
  EXPECT_EQ(messages({8, 3, 4}, {true, true, true}), 42U);
  EXPECT_EQ(messages({1, 5, 6}, {false, true, true}), 9U);
  EXPECT_EQ(messages({1, 1, 6}, {false, false, true}), 2U);
}

// Each brick of a random domain holds the numbers of its points; then a step to a neighbour finds the neighbour's numbers.
TEST(BrickDomain, NeighboursAreThoseOfTheGrid) {
  std::mt19937 random(unsigned(world().size()));
  auto const below = [&](int n) { return int(random() % unsigned(n)); };
  for (int turn = 0; turn < 60; ++turn) {
    auto const d = std::size_t(1 + below(3));
    std::vector<i64> shape;
    std::vector<i64> brick;
    std::vector<bool> periodic;
    for (std::size_t a = 0; a < d; ++a) {
      brick.push_back(1 + below(4));
      periodic.push_back(below(2) == 0);
      i64 const whole = brick[a] * (1 + below(d == 1 ? 12 : 5));
      shape.push_back(periodic[a] ? whole : std::max<i64>(1, whole - below(int(brick[a]))));
    }
    BrickDomain const domain(world(), shape, brick, periodic);
    auto const n = domain.shape(), b = domain.brick();
    auto const own = domain.owned();
    i64 const points = domain.points_of_brick();
    auto const number = [&](Triple const& p) { return double(1 + (p[0] * n[1] + p[1]) * n[2] + p[2]); };
    std::vector<double> lexicographic;
    for (auto i = own.low[0]; i < own.high[0]; ++i)
      for (auto j = own.low[1]; j < own.high[1]; ++j)
        for (auto k = own.low[2]; k < own.high[2]; ++k) lexicographic.push_back(number({i, j, k}));
    la::Vector v(domain.space(), Dtype::float64);
    domain.to_bricks(lexicographic.data(), v.host<double>().data(), sizeof(double));
    std::vector<double> back(lexicographic.size());
    domain.from_bricks(v.host<double>().data(), back.data(), sizeof(double));
    EXPECT_EQ(back, lexicographic);
    if (own.points() > 0) {
      auto const size = own.sizes();
      EXPECT_EQ(v.host<double>()[std::size_t(domain.place({size[0] - 1, size[1] - 1, size[2] - 1}))], lexicographic.back());
    }
    // what kernels see: own bricks, copies, zeros
    std::vector<double> all(std::size_t((domain.bricks() + domain.ghost_bricks() + 1) * points), 0.0);
    std::copy(v.host<double>().begin(), v.host<double>().end(), all.begin());
    if (domain.space().has_local_form()) {
      EXPECT_EQ(domain.space().ghosts(), (domain.ghost_bricks() + 1) * points);
      auto const& forest = domain.space().ghost_forest().forest();
      forest.bcast(all.data(), all.data() + domain.bricks() * points);
    } else {
      EXPECT_EQ(domain.ghost_bricks(), 0);
    }
    int const around = d == 3 ? 27 : d == 2 ? 9 : 3;
    std::vector<int> visits(domain.visits().as<int>(), domain.visits().as<int>() + domain.bricks());
    std::sort(visits.begin(), visits.begin() + domain.inner_bricks());  // each of the inner ones once, then each of the others
    std::sort(visits.begin() + domain.inner_bricks(), visits.end());
    for (i64 id = 0; id < domain.bricks(); ++id) {
      EXPECT_EQ(visits[std::size_t(id)], id);
      Triple first{0, 0, 0};
      for (std::size_t a = 0; a < d; ++a) first[3 - d + a] = domain.origins().as<int>()[id * i64(d) + i64(a)];
      bool only_own = true;
      for (int step = 0; step < around; ++step) {
        int const wide = d == 3 ? step : d == 2 ? step + 9 : step + 12;
        Triple const s{wide / 9 - 1, wide / 3 % 3 - 1, wide % 3 - 1};
        auto const near = domain.neighbours().as<int>()[id * around + step];
        ASSERT_LE(near, domain.bricks() + domain.ghost_bricks());
        only_own = only_own && (near < domain.bricks() || near == domain.bricks() + domain.ghost_bricks());
        if (near < domain.bricks()) {
          EXPECT_EQ(domain.neighbours().as<int>()[i64(near) * around + around - 1 - step], id) << "and back again";
        }
        for (i64 p = 0; p < points; ++p) {
          Triple at{p / (b[1] * b[2]), p / b[2] % b[1], p % b[2]};
          bool there = true;
          for (std::size_t a = 0; a < 3; ++a) {
            at[a] += first[a] + s[a] * b[a];
            if (domain.periodic()[a]) at[a] = modulo(at[a], n[a]);
            there = there && at[a] >= 0 && at[a] < n[a];
          }
          ASSERT_EQ(all[std::size_t(near * points + p)], there ? number(at) : 0.0) << "brick " << id << " step " << step;
        }
      }
      if (id < domain.inner_bricks()) {
        EXPECT_TRUE(only_own);
      }
    }
  }
}

// Work as a schedule orders it, with the parts of a phase in either order: a stage finds what the one before it left around each brick, the
// first one finds the vector that the last one overwrites, and all planes are done once.
TEST(BrickSchedule, EachStageFindsWhatItReads) {
  std::mt19937 random(7U + unsigned(world().size()));
  auto const below = [&](int n) { return int(random() % unsigned(n)); };
  int interleaved = 0;
  for (int turn = 0; turn < 120; ++turn) {
    auto const d = std::size_t(1 + below(3));
    std::vector<i64> shape;
    std::vector<i64> brick;
    std::vector<bool> periodic;
    for (std::size_t a = 0; a < d; ++a) {
      brick.push_back(1 + below(4));
      periodic.push_back(below(2) == 0);
      shape.push_back(brick[a] * (1 + below(d == 1 ? 40 : d == 2 ? 14 : 9)));
    }
    BrickDomain const domain(world(), shape, brick, periodic);
    int const stages = 2 + below(4), threads = 1 + below(3), held = std::max(1, stages - 1 - below(2)), planes = int(domain.brick()[0]);
    // of so large bricks that all is worth it
    BrickSchedule const schedule(domain, stages, threads, i64(1) << 24, 2, 1, held);
    interleaved += schedule.interleaved();
    if (!schedule.interleaved()) continue;
    int const around = d == 3 ? 27 : d == 2 ? 9 : 3;
    i64 const known = domain.bricks() + domain.ghost_bricks();
    for (bool const backward : {false, true}) {
      std::vector<i64> slots(std::size_t(schedule.slot_count() * planes), -1);  // whose they are: a stage of a brick
      std::vector<int> done(std::size_t(known * planes), 0);                    // by the stage that writes the first vector
      auto const owner = [&](int stage, i64 number, int plane) -> i64& {
        return slots[std::size_t(i64(schedule.slots(stage)[number]) * planes + plane)];
      };
      auto const run = [&](std::vector<BrickSchedule::Batch> const& part) {
        for (auto const& batch : part)
          for (i64 n = batch.begin; n < batch.begin + batch.count; ++n) {
            i64 const id = schedule.numbers()[n];
            for (int step = 0; step < around; ++step) {
              i64 const near = domain.neighbours().as<int>()[id * around + step];
              if (near == known) continue;
              int const side = d == 3 ? step / 9 - 1 : 0;
              int const first = side < 0 ? planes - 1 : side > 0 ? 0 : std::max(0, batch.first - 1);
              int const last = side < 0 ? planes : side > 0 ? 1 : std::min(planes, batch.last + 1);
              if ((side < 0 && batch.first > 0) || (side > 0 && batch.last < planes)) continue;
              for (int p = first; p < last; ++p)
                if (batch.stage == 0) ASSERT_EQ(done[std::size_t(near * planes + p)], 0);
                else if (batch.stage <= held) ASSERT_EQ(owner(batch.stage - 1, near, p), (batch.stage - 1) * known + near);
                else ASSERT_EQ(done[std::size_t(near * planes + p)], 1);
            }
            for (int p = batch.first; p < batch.last; ++p)
              if (batch.stage < held) owner(batch.stage, id, p) = batch.stage * known + id;
              else if (batch.stage == held) ++done[std::size_t(id * planes + p)];
          }
      };
      for (auto phase : schedule.phases()) {
        if (backward) std::reverse(phase.begin(), phase.end());
        for (auto const& part : phase) run(part);
      }
      for (i64 id = 0; id < domain.bricks(); ++id)
        for (int p = 0; p < planes; ++p) EXPECT_EQ(done[std::size_t(id * planes + p)], 1);
    }
  }
  EXPECT_GT(world().sum(interleaved), 0);
  if (world().size() > 1) return;
  BrickDomain const domain(world(), {64, 64, 64}, {4, 4, 4}, {false, false, false});
  BrickSchedule const schedule(domain, 4, 2, 512, 2, 1, 3);
  EXPECT_LT(schedule.slot_count(), 2 * domain.bricks()) << "of three stages";
  EXPECT_EQ(BrickSchedule::stages_at_once(domain, 8, 1, 2, 1), 8) << "all of it fits into a cache";
  EXPECT_EQ(BrickSchedule::stages_at_once(domain, 8, i64(1) << 40, 2, 1), 1) << "no column does";
  // columns of few stages have room for many bricks in a cache of at least 256 KB
  EXPECT_GT(BrickSchedule::stages_at_once(BrickDomain(world(), {512, 64, 64}, {4, 4, 4}, {false, false, false}), 8, 512, 16, 1), 1);
}

TEST(BrickDomain, PaddingIsZeroInFilledVectors) {
  BrickDomain const domain(world(), {5, 6, 7}, {4, 4, 4}, {false, false, false});
  la::Vector v(domain.space(), Dtype::float32, 2);
  fill(v, 3.0);
  EXPECT_EQ(dot(v, v).values()[1].real(), 9.0 * 5 * 6 * 7);
  fill_hashed(v, 1);
  i64 zeros = 0;
  for (auto const x : v.host<float>()) zeros += x == 0;
  EXPECT_EQ(zeros, v.local_size() * 2 - domain.owned().points() * 2);
}

TEST(BrickDomain, WrongInputIsAnErrorOnAllRanks) {
  auto const text = [](auto const& make) {
    try {
      make();
    } catch (Error const& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(text([] { BrickDomain(world(), {12}, {8}, {true}); }).find("multiple of the 8 points"), std::string::npos);
  EXPECT_NE(text([] { BrickDomain(world(), {12, 4}, {8}, {true}); }).find("needs as many sizes"), std::string::npos);
  EXPECT_NE(text([] { BrickDomain(world(), {12}, {0}, {false}); }).find("at least 1"), std::string::npos);
  for (std::int64_t const n : {std::int64_t(1) << 40, std::int64_t(1) << 62}) {
    EXPECT_NE(text([n] { BrickDomain(world(), {12}, {n}, {false}); }).find("at most 16777216 in all"), std::string::npos);
    EXPECT_NE(text([n] { BrickDomain(world(), {12, 12}, {n, n}, {false, false}); }).find("at most 16777216 in all"), std::string::npos);
    EXPECT_NE(text([n] { BrickDomain(world(), {16}, {8}, {true}, {n}); }).find("cannot be cut"), std::string::npos);
  }
  EXPECT_NE(text([] { BrickDomain(world(), {16}, {8}, {true}, {world().size() + 1}); }).find("cannot be cut"), std::string::npos);
  if (world().size() > 1) {
    EXPECT_NE(text([] { BrickDomain(world(), {16 + world().rank()}, {8}, {false}); }).find("shape"), std::string::npos);
  }
}
