#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "asterism/base/error.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/direct/triangular/block_runs.hpp"
#include "asterism/direct/triangular/message_driven_sweep.hpp"
#include "asterism/direct/triangular/process_grid.hpp"
#include "asterism/direct/triangular/seal.hpp"
#include "asterism/direct/triangular/triangular_solver.hpp"
#include "direct/grids.hpp"
#include "direct/random_triangle.hpp"
#include "harness/repeats.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::direct;
using namespace direct_tests;
using asterism::test::repeats;

namespace {

/// All ranks in one process; messages are late, and come in any order.
template <class T>
class Simulation {
 public:
  Simulation(RandomTriangle const& problem, ProcessGrid const& grid, Sweep sweep, unsigned seed) : problem_(problem), random_(seed) {
    for (int r = 0; r < grid.size(); ++r) {
      plans.push_back(std::make_shared<SweepPlan const>(plan_sweep(*problem.pattern, grid, r, sweep)));
      sweeps_.push_back(std::make_unique<MessageDrivenSweep>(
          problem.triangle<T>(grid, r), plans.back(), [this, r](Envelope const& to, std::span<std::byte const> data) {
            log.push_back({to.kind, to.node, r, to.rank});
            flying_.push_back({to.rank, {to.kind, to.node, r}, std::vector<std::byte>(data.begin(), data.end())});
          }));
    }
  }

  std::vector<T> solve(std::vector<T> const& b, std::int64_t columns) {
    auto const& starts = problem_.pattern->nodes().starts;
    std::vector<std::vector<T>> own(sweeps_.size());
    auto const each = [&](auto const& f) {
      for (std::size_t r = 0; r < sweeps_.size(); ++r) {
        std::int64_t at = 0;
        for (auto const& node : plans[r]->nodes)
          if (node.diagonal)
            for (std::int64_t i = starts[std::size_t(node.id)] * columns; i < starts[std::size_t(node.id) + 1] * columns; ++i)
              f(r, at++, i);
      }
    };
    each([&](std::size_t r, std::int64_t, std::int64_t i) { own[r].push_back(b[std::size_t(i)]); });
    for (std::size_t r = 0; r < sweeps_.size(); ++r) sweeps_[r]->begin(columns, std::as_writable_bytes(std::span(own[r])));
    int idle = 0;
    while (!std::all_of(sweeps_.begin(), sweeps_.end(), [](auto& s) { return s->done(); })) {
      bool moved = false;
      if (!flying_.empty() && random_() % 2) {
        auto const i = random_() % flying_.size();
        auto const m = flying_[i];
        flying_.erase(flying_.begin() + std::ptrdiff_t(i));
        auto const before = log.size();
        sweeps_[std::size_t(m.to)]->receive(m.from, m.data);
        // x goes on to others before it is used here
        if (m.from.kind == MessageKind::broadcast) {
          auto const& tree = plans[std::size_t(m.to)]->node(m.from.node).broadcast;
          for (int c = 0; c < tree.child_count(); ++c) {
            EXPECT_LT(before + std::size_t(c), log.size());
            EXPECT_EQ(log[before + std::size_t(c)], (Message{MessageKind::broadcast, m.from.node, m.to, tree.children[std::size_t(c)]}));
          }
        }
        moved = true;
      } else if (random_() % 3) {
        moved = sweeps_[random_() % sweeps_.size()]->work();
      }
      idle = moved ? 0 : idle + 1;
      if (idle > 100000) {
        ADD_FAILURE() << "nothing moves; rank 0 awaits " << sweeps_[0]->awaited();
        break;
      }
    }
    EXPECT_TRUE(flying_.empty());
    std::vector<T> x(b.size());
    each([&](std::size_t r, std::int64_t at, std::int64_t i) { x[std::size_t(i)] = own[r][std::size_t(at)]; });
    return x;
  }

  std::vector<Message> log;
  std::vector<std::shared_ptr<SweepPlan const>> plans;

 private:
  struct Flying {
    int to;
    Envelope from;
    std::vector<std::byte> data;
  };
  RandomTriangle const& problem_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<MessageDrivenSweep>> sweeps_;
  std::vector<Flying> flying_;
};

constexpr Sweep sweeps[] = {Sweep::forward, Sweep::backward};

template <class T>
class TriangularOf : public ::testing::Test {};
using Types = ::testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(TriangularOf, Types);

}  // namespace

TYPED_TEST(TriangularOf, MessagesThatComeInAnyOrderGiveTheSolution) {
  using T = TypeParam;
  auto const tolerance = 50 * epsilon_of(dtype_v<T>);
  unsigned seed = 0;
  for (auto const& grid : grids_up_to(8))
    for (auto const sweep : sweeps)
      for (int const supernodes : {0, 1, 2, 7, 23})
        for (std::int64_t const columns : {1, 3}) {
          ++seed;
          RandomTriangle const problem(seed, supernodes, 1 + int(seed % 6), seed % 4 ? 0.3 : 0.02);
          auto const b = right_hand_side<T>(problem.n, columns);
          Simulation<T> run(problem, grid, sweep, seed);
          auto const x = run.solve(b, columns);
          EXPECT_LE(problem.error(sweep, columns, x, b), tolerance) << grid.describe() << " " << supernodes;
          auto predicted = predicted_messages(*problem.pattern, grid, sweep);
          std::sort(run.log.begin(), run.log.end());
          EXPECT_EQ(run.log, predicted);
        }
}

TYPED_TEST(TriangularOf, TheOrderOfMessagesDoesNotChangeABit) {
  using T = TypeParam;
  for (unsigned seed = 1; seed < 40; ++seed) {
    RandomTriangle const problem(seed, 17, 5, 0.4);
    auto const grids = grids_up_to(8);
    auto const& grid = grids[seed % grids.size()];
    auto const sweep = sweeps[seed % 2];
    auto const b = right_hand_side<T>(problem.n, 2);
    auto const x = Simulation<T>(problem, grid, sweep, seed).solve(b, 2);
    EXPECT_LE(problem.error(sweep, 2, x, b), 50 * epsilon_of(dtype_v<T>));
    for (unsigned again = 1; again < 5; ++again) {
      auto const y = Simulation<T>(problem, grid, sweep, seed + 1000 * again).solve(b, 2);
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(T)), 0);
    }
  }
}

/// A sweep on one rank with so many threads.
template <class T>
std::vector<T> solve_with_threads(RandomTriangle const& problem, Sweep sweep, std::vector<T> x, std::int64_t columns, int threads) {
  auto const plan = std::make_shared<SweepPlan const>(plan_sweep(*problem.pattern, {}, 0, sweep));
  MessageDrivenSweep run(problem.triangle<T>({}, 0), plan, [](auto const&, auto) {});
  for (int again = 0; again < 3; ++again) {  // what one solve leaves must not matter to the next
    auto const b = x;
    run.begin(columns, std::as_writable_bytes(std::span(x)), {}, threads > 1);
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back([&run] { run.assist(); });
    while (!run.done())
      if (!run.work()) run.wait_for_others();
    run.stop();
    others.clear();
    if (again < 2) x = b;
  }
  return x;
}

TYPED_TEST(TriangularOf, ThreadsThatAssistDoNotChangeABit) {
  using T = TypeParam;
  for (unsigned seed = 1; int(seed) <= repeats(24); ++seed) {
    // narrow supernodes and wide ones, whose panels have several runs
    RandomTriangle const problem(seed, seed % 2 ? 150 : 25, seed % 2 ? 4 : 60, 0.1);
    auto const sweep = sweeps[seed % 4 / 2];
    std::int64_t const columns = seed % 3 ? 1 : 8;
    auto const b = right_hand_side<T>(problem.n, columns);
    auto const x = solve_with_threads<T>(problem, sweep, b, columns, 1);
    EXPECT_LE(problem.error(sweep, columns, x, b), 50 * epsilon_of(dtype_v<T>));
    for (int const threads : {2, 5}) {
      auto const y = solve_with_threads<T>(problem, sweep, b, columns, threads);
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(T)), 0) << seed << " with " << threads << " threads";
    }
  }
}

TEST(Threads, LeaveAtAStopThatComesBeforeTheEnd) {
  RandomTriangle const problem(5, 60, 3, 0.8);
  ProcessGrid const grid{2, 1};
  auto const plan = std::make_shared<SweepPlan const>(plan_sweep(*problem.pattern, grid, 1, Sweep::forward));
  MessageDrivenSweep sweep(problem.triangle<double>(grid, 1), plan, [](auto const&, auto) {});
  std::vector<double> x(std::size_t(sweep.owned()));
  sweep.begin(1, std::as_writable_bytes(std::span(x)), {}, true);
  std::jthread const other([&sweep] { sweep.assist(); });
  while (!sweep.needs_message()) sweep.work();  // those of rank 0 never come
  EXPECT_FALSE(sweep.done());
  sweep.stop();
}

TEST(Runs, OfBlocksAreThoseOfOneRankInAColumnAndShort) {
  for (unsigned seed = 1; int(seed) <= repeats(9); ++seed) {
    RandomTriangle const problem(seed, 40, seed % 2 ? 200 : 5, 0.3);
    auto const& pattern = *problem.pattern;
    for (auto const& grid : grids_up_to(6)) {
      auto const run_of = block_runs(pattern, grid);
      std::map<std::int32_t, std::pair<std::int64_t, int>> size;  // entries and blocks
      std::map<std::int32_t, std::set<std::pair<std::int32_t, int>>> where;
      for (std::int32_t i = 0; i < pattern.blocks(); ++i) {
        auto const& b = pattern.block(i);
        auto const entries = std::int64_t(b.count) * pattern.nodes().width(b.column);
        auto const r = run_of[std::size_t(i)];
        size[r].first += entries;
        ++size[r].second;
        where[r].insert({b.column, grid.owner(b.row, b.column)});
      }
      for (auto const& [r, s] : size) {
        EXPECT_TRUE(s.first <= 8192 || s.second == 1) << s.first;
        EXPECT_EQ(where[r].size(), 1u);
      }
    }
  }
}

TEST(Trees, AreBinaryAndNoDeeperThanTheLogarithm) {
  for (int p = 1; p <= 70; ++p) {
    std::vector<int> members;
    for (int i = 0; i < p; ++i) members.push_back(100 + 3 * i);
    std::vector<TreePlace> places;
    for (int i = 0; i < p; ++i) places.push_back(place_in_tree(members, std::size_t(i)));
    EXPECT_EQ(places[0].parent, -1);
    int children = 0;
    for (int i = 0; i < p; ++i) {
      children += places[std::size_t(i)].child_count();
      for (int const c : places[std::size_t(i)].children)
        if (c >= 0) {
          EXPECT_EQ(places[std::size_t((c - 100) / 3)].parent, members[std::size_t(i)]);
        }
      int depth = 0;
      for (int at = i; places[std::size_t(at)].parent >= 0; at = (places[std::size_t(at)].parent - 100) / 3) ++depth;
      EXPECT_LE(depth, int(std::ceil(std::log2(double(p)))));
    }
    EXPECT_EQ(children, p - 1);
  }
}

TEST(Messages, APx1GridHasNoReductionsAndA1xPGridNoBroadcasts) {
  RandomTriangle const problem(3, 40, 4, 0.2);
  for (int p = 2; p <= 8; ++p)
    for (auto const sweep : sweeps) {
      auto const count = [&](ProcessGrid const& grid, MessageKind kind) {
        auto const all = predicted_messages(*problem.pattern, grid, sweep);
        return std::count_if(all.begin(), all.end(), [&](Message const& m) { return m.kind == kind; });
      };
      bool const forward = sweep == Sweep::forward;
      EXPECT_EQ(count({p, 1}, forward ? MessageKind::reduction : MessageKind::broadcast), 0);
      EXPECT_GT(count({p, 1}, forward ? MessageKind::broadcast : MessageKind::reduction), 0);
      EXPECT_EQ(count({1, p}, forward ? MessageKind::broadcast : MessageKind::reduction), 0);
      EXPECT_GT(count({1, p}, forward ? MessageKind::reduction : MessageKind::broadcast), 0);
    }
}

TEST(Messages, OfTwoSupernodesByHand) {
  // [x    ]   one block below the diagonal; the process grid puts the two supernodes on different ranks
  // [x x  ]
  auto nodes = std::make_shared<Supernodes>();
  nodes->starts = {0, 1, 2};
  nodes->parent = {1, -1};
  nodes->row_offsets = {0, 1, 1};
  nodes->row_indices = {1};
  BlockPattern const pattern(nodes);
  using M = std::vector<Message>;
  EXPECT_EQ(predicted_messages(pattern, {2, 1}, Sweep::forward), (M{{MessageKind::broadcast, 0, 0, 1}}));
  EXPECT_EQ(predicted_messages(pattern, {1, 2}, Sweep::forward), (M{{MessageKind::reduction, 1, 0, 1}}));
  EXPECT_EQ(predicted_messages(pattern, {2, 1}, Sweep::backward), (M{{MessageKind::reduction, 0, 1, 0}}));
  // block (1, 0) is rank 2's; the diagonal ones are 0's and 3's
  EXPECT_EQ(predicted_messages(pattern, {2, 2}, Sweep::forward), (M{{MessageKind::broadcast, 0, 0, 2}, {MessageKind::reduction, 1, 2, 3}}));
  EXPECT_EQ(pattern.levels(), (std::vector<std::int32_t>{0, 1}));
}

TEST(Messages, ThatNobodyAwaitsAreErrorsThatNameThem) {
  RandomTriangle const problem(5, 6, 3, 0.8);
  ProcessGrid const grid{2, 1};
  auto const plan = std::make_shared<SweepPlan const>(plan_sweep(*problem.pattern, grid, 1, Sweep::forward));
  MessageDrivenSweep sweep(problem.triangle<double>(grid, 1), plan, [](auto const&, auto) {});
  std::vector<double> x(std::size_t(sweep.owned()));
  sweep.begin(1, std::as_writable_bytes(std::span(x)));
  std::vector<double> const data(std::size_t(problem.pattern->nodes().width(0)));
  auto const bytes = std::as_bytes(std::span(data));
  auto const text = [&](Envelope const& e, std::span<std::byte const> what) -> std::string {
    try {
      sweep.receive(e, what);
      return "";
    } catch (Error const& error) {
      return error.what();
    }
  };
  EXPECT_EQ(text({MessageKind::reduction, 0, 0}, bytes), "the sum of supernode 0 from rank 0 came, which this rank does not await.");
  EXPECT_EQ(text({MessageKind::broadcast, 99, 0}, bytes), "x of supernode 99 from rank 0 came, which this rank does not await.");
  EXPECT_NE(text({MessageKind::broadcast, 0, 0}, bytes.first(4)).find("has 4 bytes"), std::string::npos);
  EXPECT_EQ(text({MessageKind::broadcast, 0, 0}, bytes), "");
  EXPECT_EQ(text({MessageKind::broadcast, 0, 0}, bytes), "x of supernode 0 from rank 0 came twice in one triangular solve.");
  EXPECT_NE(sweep.awaited().find("x of supernode 2 from rank 0"), std::string::npos);
}

TEST(Seals, FindEveryFlippedBitAndALostMessage) {
  std::vector<double> const x{1.5, -2, 1e300};
  std::vector<std::byte> sealed;
  seal(std::as_bytes(std::span(x)), 7, sealed);
  EXPECT_EQ(broken_seal(sealed, 7), "");
  EXPECT_EQ(broken_seal(sealed, 6), "is lost: solve 6 found the one of solve 7");
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    auto broken = sealed;
    broken[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_NE(broken_seal(broken, 7), "");
  }
  EXPECT_NE(broken_seal(std::span(sealed).first(9), 7), "");
}

TEST(Grids, AreReadFromTexts) {
  auto const is = [](std::string const& text, int ranks, int rows, int columns) {
    auto const g = process_grid(text, ranks);
    return g.rows == rows && g.columns == columns;
  };
  EXPECT_TRUE(is("2x3", 6, 2, 3));
  EXPECT_TRUE(is("Px1", 5, 5, 1));
  EXPECT_TRUE(is("1xP", 5, 1, 5));
  EXPECT_TRUE(is("square", 12, 4, 3));
  EXPECT_TRUE(is("square", 1, 1, 1));
  for (auto const* text : {"2x2", "0x5", "x", "", "5", "-1x-5", "2.5x2", "Px2", "99999999999999x1"})
    EXPECT_THROW(process_grid(text, 5), Error) << text;
}

TEST(Panels, WithAZeroOnTheDiagonalAreErrors) {
  RandomTriangle const problem(5, 3, 3, 0.8);
  LocalTriangle triangle(problem.pattern, {}, 0, Dtype::float64);
  std::vector<double> const panel(100, 0.0);
  EXPECT_THROW(triangle.take(0, panel.data(), problem.pattern->nodes().width(0) + problem.pattern->nodes().below(0), false), Error);
}

// ---- with real messages

TYPED_TEST(TriangularOf, RanksSolveWithLAndItsTranspose) {
  using T = TypeParam;
  auto const& comm = world();
  for (auto const& grid : grids_up_to(comm.size())) {
    if (grid.size() != comm.size()) continue;
    for (auto const transport : {comm::TransportChoice::automatic, comm::TransportChoice::p2p})
      for (bool const checksums : {false, true})
        for (int const supernodes : {0, 1, 30}) {
          RandomTriangle const problem(unsigned(11 + supernodes), supernodes, 6, 0.2);
          auto const triangle = problem.triangle<T>(grid, comm.rank());
          TriangularSolver solver(comm, {triangle, triangle}, {.checksums = checksums, .transport = transport});
          solver.log_messages(true);
          for (std::int64_t const columns : {1, 8, 19}) {
            // no barrier between these: a rank may be in the next one
            for (auto const sweep : sweeps)
              for (std::size_t t = 0; t < 2; ++t) {
                auto const b = right_hand_side<T>(problem.n, columns);
                std::vector<T> own;
                for (auto const row : solver.owned_rows())
                  own.insert(own.end(), b.begin() + row * columns, b.begin() + (row + 1) * columns);
                auto const sent = solver.log().size();
                solver.solve(t, sweep, columns, std::as_writable_bytes(std::span(own)));
                EXPECT_EQ(std::int64_t(solver.log().size() - sent), solver.plan(sweep).leaving * ((columns + 7) / 8));
                std::vector<std::byte> const all = comm.all_gather_bytes(std::as_bytes(std::span(own)));
                std::vector<T> x(b.size());
                auto const* from = reinterpret_cast<T const*>(all.data());
                for (int r = 0; r < comm.size(); ++r)
                  for (std::int32_t k = 0; k < problem.pattern->count(); ++k)
                    if (grid.owner(k, k) == r)
                      for (std::int64_t i = problem.nodes->starts[std::size_t(k)] * columns;
                           i < problem.nodes->starts[std::size_t(k) + 1] * columns; ++i)
                        x[std::size_t(i)] = *from++;
                EXPECT_LE(problem.error(sweep, columns, x, b), 50 * epsilon_of(dtype_v<T>));
              }
          }
        }
  }
}

TEST(Ranks, WithThreadsHaveTheBitsOfOneThread) {
  auto const& comm = world();
  RandomTriangle const problem(4, 60, 20, 0.3);  // large enough for threads
  auto const grid = process_grid("square", comm.size());
  TriangularSolver solver(comm, {problem.triangle<double>(grid, comm.rank())});
  auto const b = right_hand_side<double>(problem.n, 8);
  auto const before = device::host::team_size();
  std::vector<double> first;
  for (int const threads : {1, 2, 3}) {
    device::host::set_team_size(threads);
    for (int i = 0; i < 5; ++i) {
      std::vector<double> own;
      for (auto const row : solver.owned_rows()) own.insert(own.end(), b.begin() + row * 8, b.begin() + (row + 1) * 8);
      solver.solve(0, Sweep::forward, 8, std::as_writable_bytes(std::span(own)));
      solver.solve(0, Sweep::backward, 8, std::as_writable_bytes(std::span(own)));
      if (first.empty()) first = own;
      EXPECT_EQ(own, first) << threads;
    }
  }
  device::host::set_team_size(before);
}

TEST(Ranks, AHundredSolvesWithOneSetOfTreesGiveTheSameBits) {
  auto const& comm = world();
  RandomTriangle const problem(21, 60, 5, 0.15);
  auto const grid = process_grid("square", comm.size());
  TriangularSolver solver(comm, {problem.triangle<double>(grid, comm.rank())}, {.checksums = true});
  auto const b = right_hand_side<double>(problem.n, 1);
  std::vector<double> first;
  for (int i = 0; i < 100; ++i) {
    std::vector<double> own;
    for (auto const row : solver.owned_rows()) own.push_back(b[std::size_t(row)]);
    solver.solve(0, Sweep::forward, 1, std::as_writable_bytes(std::span(own)));
    solver.solve(0, Sweep::backward, 1, std::as_writable_bytes(std::span(own)));
    if (i == 0) first = own;
    EXPECT_EQ(own, first);
  }
}

TEST(Ranks, AWrongShapeOnOneRankIsAnErrorOnAllAndTheNextSolveIsRight) {
  auto const& comm = world();
  RandomTriangle const problem(21, 20, 5, 0.3);
  for (auto const* const layout : {"Px1", "1xP", "square"})
    for (bool const checksums : {false, true}) {
      TriangularSolver solver(comm, {problem.triangle<double>(process_grid(layout, comm.size()), comm.rank())}, {.checksums = checksums});
      auto const owned = std::size_t(solver.owned());
      std::vector<double> before(owned, 1.0), after = before, wrong(owned + (comm.rank() == comm.size() - 1 ? 1 : 0), 1.0);
      auto const solve = [&](std::vector<double>& x) { solver.solve(0, Sweep::forward, 1, std::as_writable_bytes(std::span(x))); };
      solve(before);
      for (int turn = 0; turn < 2; ++turn) EXPECT_THROW(solve(wrong), Error);
      solve(after);
      EXPECT_EQ(before, after) << layout;
    }
}
