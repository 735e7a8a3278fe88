#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "asterism/base/error.hpp"
#include "asterism/direct/triangular/factor_pattern.hpp"
#include "asterism/direct/triangular/message_driven_sweep.hpp"
#include "asterism/direct/triangular/model/critical_path.hpp"
#include "asterism/direct/triangular/model/sweep_simulation.hpp"
#include "direct/grids.hpp"

using namespace asterism;
using namespace asterism::direct;

namespace {

constexpr Sweep sweeps[] = {Sweep::forward, Sweep::backward};

/// Supernodes of those widths; rows[s]: the rows below supernode s.
std::shared_ptr<Supernodes const> supernodes(std::vector<std::int32_t> const& widths, std::vector<std::vector<std::int32_t>> const& rows) {
  auto nodes = std::make_shared<Supernodes>();
  nodes->starts = {0};
  nodes->row_offsets = {0};
  for (std::size_t s = 0; s < widths.size(); ++s) {
    nodes->starts.push_back(nodes->starts.back() + widths[s]);
    nodes->parent.push_back(-1);
    if (s < rows.size()) nodes->row_indices.insert(nodes->row_indices.end(), rows[s].begin(), rows[s].end());
    nodes->row_offsets.push_back(std::int64_t(nodes->row_indices.size()));
  }
  return nodes;
}

std::shared_ptr<Supernodes const> random_supernodes(unsigned seed, int count, int most_width, double density) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> widths;
  for (int s = 0; s < count; ++s) widths.push_back(1 + std::int32_t(random() % unsigned(most_width)));
  std::vector<std::vector<std::int32_t>> rows;
  std::int32_t n = 0, end = 0;
  for (auto const w : widths) n += w;
  for (auto const w : widths) {
    end += w;
    rows.emplace_back();
    for (auto i = end; i < n; ++i)
      if (double(random() % 1000) < 1000 * density) rows.back().push_back(i);
  }
  return supernodes(widths, rows);
}

/// A number of 8 bytes takes a second; so does a message of 2, and 3 take 3.
SweepMachine by_hand() {
  SweepMachine m;
  m.bandwidth = 8;
  m.task_seconds = 0.5;
  m.near = {10, {{16, 16}, {32, 8}}};
  return m;
}

}  // namespace

TEST(Links, RoundASizeUpToTheNextOneThatWasMeasured) {
  Link const link{1e-6, {{64, 64e6}, {128, 100e6}, {1024, 1e9}}};
  EXPECT_DOUBLE_EQ(link.sending(8), 8 / 64e6);
  EXPECT_DOUBLE_EQ(link.sending(64), 1e-6);
  EXPECT_DOUBLE_EQ(link.sending(65), 65 / 100e6);
  EXPECT_DOUBLE_EQ(link.sending(1024), 1024 / 1e9);
  EXPECT_DOUBLE_EQ(link.sending(1 << 20), (1 << 20) / 1e9);
  EXPECT_EQ(Link{}.sending(100), 0);
}

TEST(Algorithm2, CountsMessagesThatDoNotOverlap) {
  std::map<std::int64_t, std::int64_t> const of{{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4}, {11, 4}, {16, 4}, {17, 5}};
  for (auto const& [n, expected] : of) EXPECT_EQ(messages_not_overlapped(n), expected) << n;
  // one supernode whose x goes to five ranks
  std::vector<std::int32_t> all{1, 2, 3, 4, 5};
  BlockPattern const pattern(supernodes({1, 1, 1, 1, 1, 1}, {all}));
  auto machine = by_hand();
  machine.near = {10, {{8, 4}}};
  auto const path = critical_path(pattern, {6, 1}, Sweep::forward, 8, machine);
  EXPECT_EQ(path.rank, 0);
  EXPECT_EQ(path.messages, 3);
  EXPECT_DOUBLE_EQ(path.communication, 10 + 3 * 2);
}

TEST(Algorithm2, AndTheSimulationOfTwoSupernodesByHand) {
  // widths 2 and 3; the block between them has 2 of 3 rows: 3 + 4 + 6 entries, in three tasks
  BlockPattern const pattern(supernodes({2, 3}, {{2, 4}}));
  auto const machine = by_hand();
  struct Case {
    ProcessGrid grid;
    Sweep sweep;
    int rank;
    std::int32_t levels;
    std::int64_t nodes, messages;
    double compute, communication, simulated;
  };
  for (auto const& c : {
           Case{{1, 1}, Sweep::forward, 0, 1, 2, 0, 14.5, 0, 14.5},
           Case{{1, 1}, Sweep::backward, 0, 1, 2, 0, 14.5, 0, 14.5},
           // 3.5 to solve, 1 to send; 10 later 4.5 to multiply and 6.5 to solve
           Case{{2, 1}, Sweep::forward, 0, 2, 1, 1, 3.5, 11, 25.5},
           // 3.5 to solve, 4.5 to multiply, 3 to send the sum; 10 later 6.5 to solve
           Case{{1, 2}, Sweep::forward, 1, 2, 1, 1, 6.5, 13, 27.5},
           Case{{2, 1}, Sweep::backward, 0, 2, 1, 1, 3.5, 11, 25.5},
           Case{{1, 2}, Sweep::backward, 1, 2, 1, 1, 6.5, 13, 27.5},
           // on three ranks: 3.5 + 1 + 10, 4.5 + 3 + 10, 6.5
           Case{{2, 2}, Sweep::forward, 3, 3, 1, 1, 6.5, 13, 38.5},
       }) {
    auto const path = critical_path(pattern, c.grid, c.sweep, 8, machine);
    auto const text = c.grid.describe() + (c.sweep == Sweep::forward ? " forward" : " backward");
    EXPECT_EQ(path.rank, c.rank) << text;
    EXPECT_EQ(path.levels, c.levels) << text;
    EXPECT_EQ(path.nodes, c.nodes) << text;
    EXPECT_EQ(path.messages, c.messages) << text;
    EXPECT_DOUBLE_EQ(path.compute, c.compute) << text;
    EXPECT_DOUBLE_EQ(path.communication, c.communication) << text;
    EXPECT_DOUBLE_EQ(simulate_sweep(pattern, c.grid, c.sweep, 8, machine).seconds, c.simulated) << text;
  }
}

TEST(Algorithm2, KnowsNodes) {
  BlockPattern const pattern(supernodes({2, 3}, {{2, 4}}));
  auto machine = by_hand();
  machine.far = {100, {{8, 1}}};
  machine.ranks_per_node = 2;
  EXPECT_DOUBLE_EQ(critical_path(pattern, {2, 1}, Sweep::forward, 8, machine).communication, 11);
  machine.ranks_per_node = 1;
  EXPECT_DOUBLE_EQ(critical_path(pattern, {2, 1}, Sweep::forward, 8, machine).communication, 116);
  EXPECT_DOUBLE_EQ(simulate_sweep(pattern, {2, 1}, Sweep::forward, 8, machine).seconds, 3.5 + 116 + 11);
}

TEST(Algorithm2, BandwidthOfABlockOfThreadsIsThatOfTheFormula) {
  SweepMachine v100;
  v100.bandwidth = 828e9;
  v100.workers = 160;
  v100.least_bandwidth = 1.3e9;
  v100.most_bandwidth = 5.2e9;
  // the text has 4.0 for DG on 12 GPUs, and 1.3 for Li on 2
  EXPECT_NEAR(bandwidth_of_block(v100, 2000.0 / 12) / 1e9, 4.97, 0.005);
  EXPECT_NEAR(bandwidth_of_block(v100, 362.0 / 2) / 1e9, 4.57, 0.005);
  EXPECT_EQ(bandwidth_of_block(v100, 362.0 / 6), 5.2e9);
  EXPECT_EQ(bandwidth_of_block(v100, 2000.0 / 2), 1.3e9);
}

TEST(Algorithm2, CountersBeginAtZeroAfterAFullWaveOfBlocks) {
  // three supernodes of 24 bytes: two at 48 bytes a second, then one at 24
  BlockPattern const pattern(supernodes({2, 2, 2}, {}));
  SweepMachine gpu;
  gpu.bandwidth = 48;
  gpu.workers = 2;
  gpu.least_bandwidth = 8;
  gpu.most_bandwidth = 24;
  auto const path = critical_path(pattern, {1, 1}, Sweep::forward, 8, gpu);
  EXPECT_DOUBLE_EQ(path.compute, 2);
  EXPECT_EQ(path.nodes, 3);
  EXPECT_EQ(path.levels, 1);
  EXPECT_THROW(simulate_sweep(pattern, {1, 1}, Sweep::forward, 8, gpu), Error);
}

TEST(Algorithm2, ModelsAgainWhereTheSpeedUpIsAboveTheNumberOfRanks) {
  SweepMachine gpu;
  gpu.bandwidth = 48;
  gpu.workers = 2;
  gpu.least_bandwidth = 1;
  gpu.most_bandwidth = 4;
  std::vector<std::int32_t> widths(47, 1);
  // 24 and 23 supernodes of 8 bytes: 12 waves; 11 waves and a block at 4 bytes a second
  BlockPattern const even(supernodes(widths, {}));
  EXPECT_DOUBLE_EQ(critical_path(even, {2, 1}, Sweep::forward, 8, gpu).compute, 11 * 16 / 48.0 + 8 / 4.0);
  widths.back() = 4;  // alone it is in no full wave: 23 waves, and 80 bytes at 4 a second
  BlockPattern const uneven(supernodes(widths, {}));
  EXPECT_DOUBLE_EQ(critical_path(uneven, {1, 1}, Sweep::forward, 8, gpu).compute, 23 * 16 / 48.0 + 80 / 4.0);
  EXPECT_DOUBLE_EQ(critical_path(uneven, {2, 1}, Sweep::forward, 8, gpu).compute, 11 * 16 / 48.0 + 8 / (48 / 23.5));
}

TEST(Algorithm2, AndTheSimulationAgreeWhereNothingIsWaitedFor) {
  auto const machine = by_hand();
  for (unsigned seed = 1; seed < 20; ++seed)
    for (auto const sweep : sweeps) {
      BlockPattern const any(random_supernodes(seed, 30, 6, 0.2));
      auto const path = critical_path(any, {1, 1}, sweep, 8, machine);
      EXPECT_NEAR(simulate_sweep(any, {1, 1}, sweep, 8, machine).seconds, path.seconds(), 1e-12 * path.seconds());
      EXPECT_EQ(path.nodes, 30);
      EXPECT_EQ(path.levels, 1);
      BlockPattern const diagonal(random_supernodes(seed, 30, 6, 0));
      for (auto const& grid : grids_up_to(8))
        EXPECT_NEAR(simulate_sweep(diagonal, grid, sweep, 8, machine).seconds, critical_path(diagonal, grid, sweep, 8, machine).seconds(),
                    1e-12);
    }
}

TEST(Algorithm2, IsALowerBoundWhereMessagesAreFree) {
  SweepMachine machine = by_hand();
  machine.near = {};
  unsigned seed = 0;
  for (auto const& grid : grids_up_to(8))
    for (auto const sweep : sweeps)
      for (int const count : {1, 2, 9, 40}) {
        BlockPattern const pattern(random_supernodes(++seed, count, 5, 0.3));
        auto const path = critical_path(pattern, grid, sweep, 8, machine);
        EXPECT_GE(simulate_sweep(pattern, grid, sweep, 8, machine).seconds, path.seconds() * (1 - 1e-12)) << grid.describe();
        auto const dag = pattern.levels();
        EXPECT_LE(path.levels, 2 * *std::max_element(dag.begin(), dag.end()) + 1);
      }
}

TEST(Simulation, SendsTheMessagesThatArePredicted) {
  auto const machine = by_hand();
  unsigned seed = 0;
  for (auto const& grid : grids_up_to(8))
    for (auto const sweep : sweeps)
      for (int const count : {0, 1, 2, 9, 40}) {
        BlockPattern const pattern(random_supernodes(++seed, count, 5, 0.3));
        auto const all = predicted_messages(pattern, grid, sweep);
        auto const traffic = sweep_traffic(pattern, grid, sweep, 16);
        auto const simulated = simulate_sweep(pattern, grid, sweep, 8, machine);
        EXPECT_EQ(simulated.messages, std::int64_t(all.size()));
        EXPECT_EQ(traffic.messages(), std::int64_t(all.size()));
        EXPECT_EQ(traffic.broadcasts, std::count_if(all.begin(), all.end(), [](auto& m) { return m.kind == MessageKind::broadcast; }));
        std::int64_t bytes = 0;
        double serial = 0;  // one task or message after the other
        for (auto const& m : all) {
          bytes += 16 * pattern.nodes().width(m.node);
          serial += machine.near.latency + machine.near.sending(8 * pattern.nodes().width(m.node));
        }
        EXPECT_EQ(traffic.bytes, bytes);
        serial += critical_path(pattern, {1, 1}, sweep, 8, machine).seconds();
        EXPECT_LE(simulated.seconds, serial * (1 + 1e-12));
        EXPECT_LE(simulated.compute + simulated.sending, simulated.seconds * (1 + 1e-12));
      }
}

TEST(Simulation, HasTheDependencesOfTheSolve) {
  // where messages alone take time, a second each, both end after the longest chain of messages
  SweepMachine machine;
  machine.bandwidth = std::numeric_limits<double>::infinity();
  machine.near = {1, {}};
  struct Flying {
    int to;
    Envelope from;
    std::vector<std::byte> data;
  };
  unsigned seed = 0;
  for (auto const& grid : grids_up_to(8))
    for (auto const sweep : sweeps) {
      auto const pattern = std::make_shared<BlockPattern const>(random_supernodes(++seed, 25, 4, 0.15));
      std::vector<Flying> now, next;
      std::vector<std::unique_ptr<MessageDrivenSweep>> ranks;
      std::vector<std::vector<double>> x;
      for (int r = 0; r < grid.size(); ++r) {
        auto triangle = std::make_shared<LocalTriangle>(pattern, grid, r, Dtype::float64);
        for (std::int32_t k = 0; k < pattern->count(); ++k) {
          auto const rows = std::size_t(pattern->nodes().width(k) + pattern->nodes().below(k));
          triangle->take(k, std::vector<double>(rows * std::size_t(pattern->nodes().width(k))).data(), std::int64_t(rows), true);
        }
        ranks.push_back(std::make_unique<MessageDrivenSweep>(
            triangle, std::make_shared<SweepPlan const>(plan_sweep(*pattern, grid, r, sweep)),
            [&next, r](Envelope const& to, std::span<std::byte const> data) {
              next.push_back({to.rank, {to.kind, to.node, r}, std::vector<std::byte>(data.begin(), data.end())});
            }));
        x.emplace_back(std::size_t(ranks.back()->owned()));
      }
      for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r]->begin(1, std::as_writable_bytes(std::span(x[r])));
      int seconds = 0;
      for (;; ++seconds) {
        for (auto const& m : now) ranks[std::size_t(m.to)]->receive(m.from, m.data);
        for (auto& rank : ranks)
          while (rank->work()) {
          }
        now = std::exchange(next, {});
        if (now.empty()) break;
      }
      EXPECT_TRUE(std::all_of(ranks.begin(), ranks.end(), [](auto& rank) { return rank->done(); }));
      EXPECT_EQ(simulate_sweep(*pattern, grid, sweep, 8, machine).seconds, seconds) << grid.describe();
    }
}

TEST(Supernodes, ThatAreCutHaveTheSameEntries) {
  auto const entries = [](Supernodes const& nodes) {
    std::set<std::pair<std::int32_t, std::int32_t>> out;
    for (std::int32_t s = 0; s < nodes.count(); ++s)
      for (auto j = nodes.starts[std::size_t(s)]; j < nodes.starts[std::size_t(s) + 1]; ++j) {
        for (auto i = j; i < nodes.starts[std::size_t(s) + 1]; ++i) out.insert({i, j});
        for (auto const i : nodes.rows(s)) out.insert({i, j});
      }
    return out;
  };
  for (std::int32_t const widest : {1, 2, 3, 5, 100, std::numeric_limits<std::int32_t>::max()}) {
    auto whole = *random_supernodes(7, 20, 11, 0.2);
    for (std::int32_t s = 0; s + 1 < whole.count(); ++s) whole.parent[std::size_t(s)] = s + 1;
    auto const cut = cut_supernodes(whole, widest);
    EXPECT_EQ(entries(cut), entries(whole));
    for (std::int32_t s = 0; s < cut.count(); ++s) {
      EXPECT_LE(cut.width(s), widest);
      EXPECT_EQ(cut.parent[std::size_t(s)], s + 1 < cut.count() ? s + 1 : -1);
    }
    EXPECT_EQ(cut_supernodes(Supernodes{{0}, {}, {0}, {}}, widest).count(), 0);
  }
  EXPECT_THROW(cut_supernodes(*random_supernodes(7, 2, 3, 0.2), 0), Error);
}
