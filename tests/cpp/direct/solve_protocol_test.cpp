// Every interleaving of the kernels SOLVE and WAIT (solve_protocol.hpp) for three supernodes, on one to three GPUs with few resident
// blocks.
#include "asterism/direct/triangular/gpu/solve_protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "asterism/direct/triangular/process_grid.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"
#include "comm/interleavings.hpp"

using namespace asterism::direct;
using namespace interleavings;

namespace {

enum class Planted {
  nothing,
  other_order,          // tickets are no order of the solve
  wait_needs_a_place,   // WAIT's threads begin when a block of SOLVE has ended
  counts_in_two_steps,  // counters are read and written, not taken off at once
  helpers_first,        // those who take a share of products have tickets before who brings x
};

/// What a block takes: a supernode, or a share of the products with its x.
struct Ticket {
  std::size_t place;         // in the plan
  std::int32_t first, last;  // its products, of those of that supernode
  bool leads;                // solves or awaits x, and tells the helpers behind it
  std::int32_t helpers;
};

/// One direction on all GPUs: where its words are.
struct Model {
  std::shared_ptr<BlockPattern const> pattern;
  ProcessGrid grid;
  std::vector<SweepPlan> plans;
  int resident;
  Planted planted;
  struct Gpu {
    std::vector<Ticket> order;
    std::vector<std::size_t> lead;                                              // of each place, the ticket
    std::size_t begun, next_source, ended, left, sum_there, x_there, messages;  // words
  };
  std::vector<Gpu> gpus;
  std::size_t words = 0;
  // of a message's flag: kind, supernode, sender and receiver
  std::map<std::tuple<int, std::int32_t, int, int>, std::size_t> flags;

  /// most: products of a ticket.
  Model(std::vector<std::vector<std::int32_t>> const& below, ProcessGrid g, Sweep sweep, int resident_blocks, std::int32_t most, Planted p)
      : grid(g), resident(resident_blocks), planted(p) {
    auto nodes = std::make_shared<Supernodes>();
    nodes->starts = {0};
    nodes->row_offsets = {0};
    for (std::size_t s = 0; s < below.size(); ++s) {  // of width 1
      nodes->starts.push_back(std::int32_t(s) + 1);
      nodes->parent.push_back(-1);
      nodes->row_indices.insert(nodes->row_indices.end(), below[s].begin(), below[s].end());
      nodes->row_offsets.push_back(std::int64_t(nodes->row_indices.size()));
    }
    pattern = std::make_shared<BlockPattern const>(nodes);
    auto const some = [&](std::size_t count) { return std::exchange(words, words + count); };
    for (int r = 0; r < grid.size(); ++r) {
      plans.push_back(plan_sweep(*pattern, grid, r, sweep));
      Gpu gpu;
      auto const n = plans.back().nodes.size();
      gpu.lead.resize(n);
      for (std::size_t i = 0; i < n; ++i) {
        auto const at = (sweep == Sweep::backward) != (planted == Planted::other_order) ? n - 1 - i : i;
        auto const& node = plans.back().nodes[at];
        if (!node.diagonal && !node.source) continue;
        std::int32_t const uses = node.last_using - node.first_using, shares = std::max(1, (uses + most - 1) / most);
        gpu.lead[at] = gpu.order.size();
        for (std::int32_t share = 0; share < shares; ++share)
          gpu.order.push_back({at, share * most, std::min(uses, (share + 1) * most), share == 0, shares - 1});
        if (planted == Planted::helpers_first) std::swap(gpu.order[gpu.lead[at]], gpu.order.back());
      }
      gpu.begun = some(1), gpu.next_source = some(1), gpu.ended = some(1), gpu.left = some(n), gpu.sum_there = some(n),
      gpu.x_there = some(gpu.order.size());
      gpus.push_back(gpu);
    }
    for (auto const& m : predicted_messages(*pattern, grid, sweep)) flags.emplace(std::tuple(int(m.kind), m.node, m.from, m.to), some(1));
  }
  /// Contributions to a sum that have come are counted up, from 0.
  std::uint64_t contributions(int gpu, std::size_t place) const {
    auto const& node = plans[std::size_t(gpu)].nodes[place];
    return std::uint64_t(node.blocks) + std::uint64_t(node.reduction.child_count());
  }
};

/// What SOLVE's blocks and WAIT's threads of a GPU have in common.
struct Part : View {
  Model const& model;
  int gpu;
  Part(Model const& m, int g, State& s, int program) : View(s, program), model(m), gpu(g) {}
  SweepPlan const& plan() const { return model.plans[std::size_t(gpu)]; }
  Model::Gpu const& words() const { return model.gpus[std::size_t(gpu)]; }
  PlannedNode const& node(std::size_t place) const { return plan().nodes[place]; }
  void await(std::size_t word) {
    mark();
    if (load_shared(word) == 0) block();
  }
  bool take_off(std::int32_t target) {
    auto const word = words().left + std::size_t(target), all = model.contributions(gpu, std::size_t(target));
    std::uint64_t before;
    if (model.planted == Planted::counts_in_two_steps) {
      before = load_shared(word);
      store_shared(word, before + 1);
    } else {
      before = add_shared(word, 1);
    }
    return before + 1 == all;
  }
  void add_up(std::int32_t) {}
  void hand_on(std::int32_t target) {
    auto const& n = node(std::size_t(target));
    if (n.reduction.parent >= 0) send(MessageKind::reduction, n.id, n.reduction.parent);
    else store_shared(words().sum_there + std::size_t(target), 1);
  }
  void send(MessageKind kind, std::int32_t id, int to) { store_shared(model.flags.at({int(kind), id, gpu, to}), 1); }
};

struct SolveBlock : Part {
  using Part::Part;
  std::int32_t completed = -1;
  std::int32_t take() { return std::int32_t(add_shared(words().next_source, 1)); }
  Ticket const& ticket(std::int32_t s) const { return words().order[std::size_t(s)]; }
  PlannedNode const& here(std::int32_t s) const { return node(ticket(s).place); }
  bool own(std::int32_t s) const { return ticket(s).leads && here(s).diagonal; }
  bool await_sum(std::int32_t s) {
    if (model.contributions(gpu, ticket(s).place) > 0) await(words().sum_there + ticket(s).place);
    return true;
  }
  bool await_x(std::int32_t s) {
    await(words().x_there + std::size_t(s));
    return true;
  }
  void solve(std::int32_t) {}
  void forward(std::int32_t s) {
    if (!ticket(s).leads) return;
    for (int const child : here(s).broadcast.children)
      if (child >= 0) send(MessageKind::broadcast, here(s).id, child);
    for (std::size_t other = 0; other < words().order.size(); ++other)
      if (words().order[other].place == ticket(s).place && !words().order[other].leads) store_shared(words().x_there + other, 1);
  }
  void multiply(std::int32_t) {}
  std::int32_t blocks(std::int32_t s) const { return ticket(s).last - ticket(s).first; }
  std::int32_t at_once() const { return 1; }
  std::int32_t take_off(std::int32_t s, std::int32_t first) {
    auto const& b = model.pattern->block(plan().using_x[std::size_t(here(s).first_using + ticket(s).first + first)]);
    completed = plan().place[std::size_t(plan().sweep == Sweep::backward ? b.column : b.row)];
    return Part::take_off(completed);
  }
  std::int32_t complete(std::int32_t) const { return completed; }
};

struct WaitThread : Part {
  struct Message {
    std::size_t flag;
    MessageKind kind;
    std::int32_t place;
    bool taken = false;
  };
  std::vector<Message> messages;
  using Part::Part;
  std::int32_t count() const { return std::int32_t(messages.size()); }
  bool awaits(std::int32_t i) const { return !messages[std::size_t(i)].taken; }
  bool came(std::int32_t i) {
    if (i == 0 || fresh) mark();
    fresh = false;
    return load_shared(messages[std::size_t(i)].flag) != 0;
  }
  void arrived(std::int32_t i) {
    auto& m = messages[std::size_t(i)];
    m.taken = true;
    if (m.kind == MessageKind::broadcast) store_shared(words().x_there + words().lead[std::size_t(m.place)], 1);
    else contributed(*this, m.place);
    fresh = true;
  }
  bool pause(bool any) {
    if (!any) block();
    fresh = true;
    return true;
  }
  bool fresh = true;  // the next look begins anew
};

/// On each GPU as many places for SOLVE's blocks as are resident, and a thread of WAIT for x and one for sums, where messages come.
std::string wrong(std::vector<std::vector<std::int32_t>> const& below, ProcessGrid grid, Sweep sweep, int resident,
                  Planted planted = Planted::nothing, std::size_t* states = nullptr, std::int32_t most = 9) {
  Model const model(below, grid, sweep, resident, most, planted);
  std::vector<Program> programs;
  for (int g = 0; g < grid.size(); ++g) {
    for (int place = 0; place < resident; ++place)
      programs.push_back([&model, g](State& s, int program) {
        SolveBlock block(model, g, s, program);
        while (block.add_shared(block.words().begun, 1) < block.words().order.size()) {
          solve_next(block);
          if (model.planted == Planted::wait_needs_a_place) block.store_shared(block.words().ended, 1);
        }
      });
    for (auto const kind : {MessageKind::broadcast, MessageKind::reduction}) {
      std::vector<WaitThread::Message> messages;
      for (auto const& [key, flag] : model.flags)
        if (std::get<0>(key) == int(kind) && std::get<3>(key) == g)
          messages.push_back({flag, kind, model.plans[std::size_t(g)].place[std::size_t(std::get<1>(key))]});
      if (messages.empty()) continue;
      programs.push_back([&model, g, messages](State& s, int program) {
        WaitThread thread(model, g, s, program);
        thread.messages = messages;
        if (model.planted == Planted::wait_needs_a_place) thread.await(thread.words().ended);
        wait_for_messages(thread);
      });
    }
  }
  auto const result = explore(programs, model.words);
  if (states) *states += result.states;
  return result.wrong;
}

std::vector<std::vector<std::int32_t>> const chain{{1}, {2}, {}}, fork{{2}, {2}, {}}, dense{{1, 2}, {2}, {}};

TEST(SolveProtocol, EveryInterleavingEndsHoweverFewBlocksAreResident) {
  std::size_t states = 0;
  for (auto const& below : {chain, fork, dense})
    for (auto const sweep : {Sweep::forward, Sweep::backward}) {
      for (int const resident : {1, 2}) EXPECT_EQ(wrong(below, {1, 1}, sweep, resident, Planted::nothing, &states), "");
      for (auto const grid : {ProcessGrid{2, 1}, ProcessGrid{1, 2}}) EXPECT_EQ(wrong(below, grid, sweep, 1, Planted::nothing, &states), "");
    }
  EXPECT_EQ(wrong(chain, {1, 1}, Sweep::forward, 3, Planted::nothing, &states), "");
  EXPECT_EQ(wrong(chain, {2, 1}, Sweep::forward, 2, Planted::nothing, &states), "");
  RecordProperty("states", int(states));
  EXPECT_GT(states, 5000u);
}

TEST(SolveProtocol, EveryInterleavingOfThreeGpus) {
  std::size_t states = 0;
  for (auto const grid : {ProcessGrid{3, 1}, ProcessGrid{1, 3}})
    EXPECT_EQ(wrong(dense, grid, Sweep::forward, 1, Planted::nothing, &states), "");
  RecordProperty("states", int(states));
}

TEST(SolveProtocol, EveryInterleavingWithSharesOfProducts) {
  std::size_t states = 0;
  for (auto const sweep : {Sweep::forward, Sweep::backward}) {
    for (int const resident : {1, 2}) EXPECT_EQ(wrong(dense, {1, 1}, sweep, resident, Planted::nothing, &states, 1), "");
    EXPECT_EQ(wrong(dense, {1, 2}, sweep, 1, Planted::nothing, &states, 1), "");
    EXPECT_EQ(wrong(dense, {2, 1}, sweep, 1, Planted::nothing, &states, 1), "");
  }
  RecordProperty("states", int(states));
}

TEST(SolveProtocol, TheModelFindsWhatIsPlanted) {
  auto const for_ever = "some ranks wait for ever";
  EXPECT_EQ(wrong(chain, {1, 1}, Sweep::forward, 1, Planted::other_order), for_ever);
  EXPECT_EQ(wrong(chain, {1, 1}, Sweep::forward, 3, Planted::other_order), "");  // all blocks are there
  EXPECT_EQ(wrong(chain, {2, 1}, Sweep::forward, 1, Planted::wait_needs_a_place), for_ever);
  EXPECT_EQ(wrong(fork, {1, 1}, Sweep::forward, 2, Planted::counts_in_two_steps), for_ever);
  EXPECT_EQ(wrong(dense, {1, 1}, Sweep::forward, 1, Planted::helpers_first, nullptr, 1), for_ever);
  EXPECT_EQ(wrong(dense, {1, 1}, Sweep::forward, 3, Planted::helpers_first, nullptr, 1), "");
}

/// Ding et al. (2021), Fig. 2: 17 columns, of which 10 wait for a message, and five threads.
TEST(SolveProtocol, ThreadsOfWaitHaveEqualSharesOfTheMessages) {
  int const mask[17] = {0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0};  // 1: no message is needed
  std::vector<int> columns;
  for (int i = 0; i < 17; ++i)
    if (mask[i] == 0) columns.push_back(i);
  ASSERT_EQ(columns.size(), 10u);
  std::vector<int> seen;
  for (int t = 0; t < 5; ++t) {
    auto const share = share_of(10, t, 5);
    EXPECT_EQ(share.last - share.first, 2);
    for (auto i = share.first; i < share.last; ++i) seen.push_back(columns[std::size_t(i)]);
  }
  EXPECT_EQ(seen, columns);
  for (int const messages : {0, 1, 7, 100})
    for (int const threads : {1, 2, 3, 256}) {
      int next = 0;
      for (int t = 0; t < threads; ++t) {
        auto const share = share_of(messages, t, threads);
        EXPECT_EQ(share.first, next);
        EXPECT_LE(share.last - share.first, (messages + threads - 1) / threads);
        next = share.last;
      }
      EXPECT_EQ(next, messages);
    }
}

}  // namespace
