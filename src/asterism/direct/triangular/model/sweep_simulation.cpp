#include "asterism/direct/triangular/model/sweep_simulation.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/direct/triangular/block_runs.hpp"

namespace asterism::direct {
namespace {

/// Ranks of the trees of all supernodes, one tree behind the other; children of place p are 2 p + 1 and 2 p + 2.
class Trees {
 public:
  template <class Find>
  Trees(std::int32_t count, Find const& find) {
    std::vector<int> members;
    for (std::int32_t s = 0; s < count; ++s) {
      find(s, members);
      ranks_.insert(ranks_.end(), members.begin(), members.end());
      first_.push_back(std::int64_t(ranks_.size()));
    }
  }
  std::int64_t size() const { return first_.back(); }
  std::int64_t first(std::int32_t s) const { return first_[std::size_t(s)]; }
  std::int64_t end(std::int32_t s) const { return first_[std::size_t(s) + 1]; }
  int rank(std::int64_t at) const { return ranks_[std::size_t(at)]; }
  std::int64_t child(std::int32_t s, std::int64_t at, int c) const {
    auto const place = first(s) + 2 * (at - first(s)) + 1 + c;
    return place < end(s) ? place : -1;
  }
  std::int64_t parent(std::int32_t s, std::int64_t at) const { return first(s) + (at - first(s) - 1) / 2; }

 private:
  std::vector<std::int64_t> first_{0};
  std::vector<int> ranks_;
};

struct Event {
  double time;
  std::int64_t order;  // of sending
  MessageKind kind;
  std::int32_t node;
  std::int64_t at;  // place in its tree
  bool operator>(Event const& other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
};

struct SimulatedRank {
  double clock = 0, compute = 0, sending = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> inbox;
  std::vector<std::int32_t> complete, runs, first;  // sums that are, runs of blocks whose x is there, sums without contributions
  bool works() const { return !complete.empty() || !runs.empty() || !first.empty(); }
  double next() const {
    if (works()) return clock;
    return inbox.empty() ? std::numeric_limits<double>::infinity() : std::max(clock, inbox.top().time);
  }
};

class Simulation {
 public:
  Simulation(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number, SweepMachine const& machine)
      : pattern_(pattern),
        forward_(sweep == Sweep::forward),
        number_(number),
        machine_(machine),
        broadcasts_(pattern.count(), [&](std::int32_t s, auto& out) { broadcast_members(pattern, {grid}, sweep, {}, s, out); }),
        reductions_(pattern.count(), [&](std::int32_t s, auto& out) { reduction_members(pattern, {grid}, sweep, {}, s, out); }),
        ranks_(std::size_t(grid.size())),
        user_(std::size_t(pattern.blocks())),
        target_(std::size_t(pattern.blocks())),
        left_(std::size_t(reductions_.size()), 0),
        run_of_(block_runs(pattern, grid)),
        runs_(run_of_.empty() ? 0 : std::size_t(run_of_.back()) + 1) {
    find_places(grid, broadcasts_, user_, true);
    find_places(grid, reductions_, target_, false);
    for (std::int32_t s = 0; s < pattern.count(); ++s)
      for (auto at = reductions_.first(s); at < reductions_.end(s); ++at)
        for (int c = 0; c < 2; ++c) left_[std::size_t(at)] += reductions_.child(s, at, c) >= 0;
    for (std::int32_t b = 0; b < pattern.blocks(); ++b) {
      auto& run = runs_[std::size_t(run_of_[std::size_t(b)])];
      run.blocks.push_back(b);
      run.entries += std::int64_t(pattern.block(b).count) * pattern.nodes().width(pattern.block(b).column);
      if (forward_ || run.blocks.size() == 1) ++left_[std::size_t(target_[std::size_t(b)])];
    }
    list_blocks();
  }

  SimulatedSweep run() {
    for (auto& run : runs_) run.missing = std::int32_t(run.blocks.size());
    auto const n = pattern_.count();
    for (std::int32_t step = 0; step < n; ++step) {
      auto const s = forward_ ? n - 1 - step : step;
      if (auto const at = reductions_.first(s); left_[std::size_t(at)] == 0) ranks_[std::size_t(reductions_.rank(at))].first.push_back(s);
    }
    for (int r = 0; r < int(ranks_.size()); ++r) plan(r);
    while (!turns_.empty()) {
      auto const [time, r] = turns_.top();
      turns_.pop();
      auto& rank = ranks_[std::size_t(r)];
      if (time != rank.next()) continue;  // it had another turn meanwhile
      rank.clock = time;
      act(rank);
      plan(r);
    }
    SimulatedSweep out;
    for (auto const& rank : ranks_)
      if (rank.clock >= out.seconds) out = {rank.clock, rank.compute, rank.sending, 0};
    out.messages = sent_;
    return out;
  }

 private:
  /// Of each block's owner in the tree of the block's source or target.
  void find_places(ProcessGrid const& grid, Trees const& trees, std::vector<std::int64_t>& places, bool of_source) {
    std::vector<std::int64_t> place(std::size_t(grid.size()), -1);
    for (std::int32_t s = 0; s < pattern_.count(); ++s) {
      for (auto at = trees.first(s); at < trees.end(s); ++at) place[std::size_t(trees.rank(at))] = at;
      each_block(s, of_source == forward_, [&](std::int32_t b) {
        places[std::size_t(b)] = place[std::size_t(grid.owner(pattern_.block(b).row, pattern_.block(b).column))];
      });
    }
  }
  /// By their owner's place among those that get x, targets in the order in which they are solved.
  void list_blocks() {
    first_block_.assign(std::size_t(broadcasts_.size()) + 1, 0);
    for (auto const at : user_) ++first_block_[std::size_t(at) + 1];
    std::partial_sum(first_block_.begin(), first_block_.end(), first_block_.begin());
    blocks_.resize(user_.size());
    auto next = first_block_;
    auto const n = pattern_.count();
    for (std::int32_t step = 0; step < n; ++step)  // by target
      each_block(forward_ ? step : n - 1 - step, !forward_,
                 [&](std::int32_t b) { blocks_[std::size_t(next[std::size_t(user_[std::size_t(b)])]++)] = b; });
  }
  template <class F>
  void each_block(std::int32_t s, bool of_column, F const& f) const {
    auto const [first, last] = pattern_.of_column(s);
    if (of_column)
      for (auto b = first; b < last; ++b) f(b);
    else
      for (auto const b : pattern_.of_row(s)) f(b);
  }

  void plan(int r) {
    if (auto const t = ranks_[std::size_t(r)].next(); t < std::numeric_limits<double>::infinity()) turns_.emplace(t, r);
  }
  void compute(SimulatedRank& rank, std::int64_t entries) {
    auto const seconds = machine_.task_seconds + double(entries * number_) / machine_.bandwidth;
    rank.clock += seconds;
    rank.compute += seconds;
  }
  void send(MessageKind kind, std::int32_t s, int from, int to, std::int64_t at) {
    auto& rank = ranks_[std::size_t(from)];
    auto const& link = machine_.link(from, to);
    auto const seconds = link.sending(number_ * pattern_.nodes().width(s));
    rank.clock += seconds;
    rank.sending += seconds;
    ranks_[std::size_t(to)].inbox.push({rank.clock + link.latency, sent_++, kind, s, at});
    plan(to);
  }

  void act(SimulatedRank& rank) {
    if (!rank.inbox.empty() && rank.inbox.top().time <= rank.clock) {
      auto const m = rank.inbox.top();
      rank.inbox.pop();
      if (m.kind == MessageKind::broadcast) have_x(rank, m.node, m.at);
      else contribute(m.node, m.at);
    } else if (!rank.complete.empty()) {
      solve(rank, rank.complete);
    } else if (!rank.runs.empty()) {
      auto const& run = runs_[std::size_t(rank.runs.back())];
      rank.runs.pop_back();
      compute(rank, run.entries);
      for (auto const b : run.blocks) {
        contribute(forward_ ? pattern_.block(b).row : pattern_.block(b).column, target_[std::size_t(b)]);
        if (!forward_) break;  // all to one sum
      }
    } else {
      solve(rank, rank.first);
    }
  }

  void solve(SimulatedRank& rank, std::vector<std::int32_t>& from) {
    auto const s = from.back();
    from.pop_back();
    auto const w = std::int64_t(pattern_.nodes().width(s));
    compute(rank, w * (w + 1) / 2);
    have_x(rank, s, broadcasts_.first(s));
  }
  void have_x(SimulatedRank& rank, std::int32_t s, std::int64_t at) {
    for (int c = 0; c < 2; ++c)
      if (auto const to = broadcasts_.child(s, at, c); to >= 0)
        send(MessageKind::broadcast, s, broadcasts_.rank(at), broadcasts_.rank(to), to);
    for (auto i = first_block_[std::size_t(at) + 1]; i-- > first_block_[std::size_t(at)];) {
      auto const b = blocks_[std::size_t(i)];
      auto const r = run_of_[std::size_t(b)];
      auto& run = runs_[std::size_t(r)];
      if (forward_ ? b == run.blocks.front() : --run.missing == 0) rank.runs.push_back(r);
    }
  }
  void contribute(std::int32_t s, std::int64_t at) {
    if (--left_[std::size_t(at)] > 0) return;
    auto const r = reductions_.rank(at);
    if (at == reductions_.first(s)) {
      ranks_[std::size_t(r)].complete.push_back(s);
    } else {
      auto const to = reductions_.parent(s, at);
      send(MessageKind::reduction, s, r, reductions_.rank(to), to);
    }
  }

  BlockPattern const& pattern_;
  bool forward_;
  std::int64_t number_;
  SweepMachine const& machine_;
  Trees broadcasts_, reductions_;
  std::vector<SimulatedRank> ranks_;
  std::vector<std::int64_t> user_, target_;  // of each block: its owner's place among those that get x, and among those that add
  std::vector<std::int64_t> first_block_;
  std::vector<std::int32_t> blocks_, left_;
  struct Run {
    std::vector<std::int32_t> blocks;
    std::int32_t missing = 0;  // supernodes whose x did not come
    std::int64_t entries = 0;
  };
  std::vector<std::int32_t> run_of_;
  std::vector<Run> runs_;
  using Turn = std::pair<double, int>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::int64_t sent_ = 0;
};

}  // namespace

SimulatedSweep simulate_sweep(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number,
                              SweepMachine const& machine) {
  ASTERISM_REQUIRE(machine.workers == 1, internal, "a rank of {} workers is simulated: 1 is.", machine.workers);
  return Simulation(pattern, grid, sweep, number, machine).run();
}

}  // namespace asterism::direct
