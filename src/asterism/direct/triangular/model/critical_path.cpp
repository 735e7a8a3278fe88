#include "asterism/direct/triangular/model/critical_path.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "asterism/direct/triangular/block_runs.hpp"

namespace asterism::direct {
namespace {

/// What a rank does with x of one supernode, as Ding et al. (2021) part the work.
struct ModelNode {
  int rank = 0;
  std::int32_t level = 0;
  double tasks = 0;  ///< a run of blocks is one, each of its blocks an equal part of it
  std::int64_t entries = 0;
};

/// By rank and level, those of one level in the order of the sweep; and how many levels there are.
std::pair<std::vector<ModelNode>, std::int32_t> nodes_by_rank(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep) {
  auto const n = pattern.count();
  bool const forward = sweep == Sweep::forward;
  std::vector<ModelNode> nodes;
  std::vector<std::int32_t> level(std::size_t(n), 0), slot(std::size_t(grid.size()), -1);
  std::int32_t levels = 0;
  auto const run_of = block_runs(pattern, grid);
  std::vector<double> blocks_of(run_of.empty() ? 0 : std::size_t(run_of.back()) + 1, 0);
  for (auto const r : run_of) ++blocks_of[std::size_t(r)];
  for (std::int32_t step = 0; step < n; ++step) {
    auto const s = forward ? step : n - 1 - step;
    auto const w = std::int64_t(pattern.nodes().width(s));
    auto const root = grid.owner(s, s);
    auto const own = level[std::size_t(s)];
    auto const first = nodes.size();
    slot[std::size_t(root)] = std::int32_t(first);
    nodes.push_back({root, own, 1, w * (w + 1) / 2});
    auto const use = [&](std::int32_t index) {
      auto const& b = pattern.block(index);
      auto const rank = grid.owner(b.row, b.column);
      auto& at = slot[std::size_t(rank)];
      if (at < 0) {
        at = std::int32_t(nodes.size());
        nodes.push_back({rank, own + 1, 0, 0});
      }
      auto& node = nodes[std::size_t(at)];
      node.tasks += 1 / blocks_of[std::size_t(run_of[std::size_t(index)])];
      node.entries += std::int64_t(b.count) * pattern.nodes().width(b.column);
      auto const target = forward ? b.row : b.column;
      auto& next = level[std::size_t(target)];
      next = std::max(next, node.level + int(rank != grid.owner(target, target)));
    };
    if (forward)
      for (auto b = pattern.of_column(s).first; b < pattern.of_column(s).last; ++b) use(b);
    else
      for (auto const b : pattern.of_row(s)) use(b);
    for (auto i = first; i < nodes.size(); ++i) {
      slot[std::size_t(nodes[i].rank)] = -1;
      levels = std::max(levels, nodes[i].level + 1);
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](auto const& a, auto const& b) { return std::tie(a.rank, a.level) < std::tie(b.rank, b.level); });
  return {std::move(nodes), levels};
}

/// f(supernode, ranks of its tree): those that get its x, then those that add to its sum.
template <class F>
void each_tree(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, F const& f) {
  std::vector<int> members;
  for (std::int32_t s = 0; s < pattern.count(); ++s) {
    broadcast_members(pattern, {grid}, sweep, {}, s, members);
    f(MessageKind::broadcast, s, members);
    reduction_members(pattern, {grid}, sweep, {}, s, members);
    f(MessageKind::reduction, s, members);
  }
}

CriticalPath modelled(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number, SweepMachine const& machine,
                      bool tuned) {
  auto const [nodes, levels] = nodes_by_rank(pattern, grid, sweep);
  std::vector<CriticalPath> of(std::size_t(grid.size()));
  auto const usual = bandwidth_of_block(machine, double(pattern.count()) / grid.size());
  for (std::size_t i = 0; i < nodes.size();) {
    auto const begin = i;
    auto const& head = nodes[begin];
    std::int64_t entries = 0;
    double tasks = 0;
    for (; i < nodes.size() && std::int64_t(i - begin) < machine.workers; ++i) {
      if (std::tie(nodes[i].rank, nodes[i].level) != std::tie(head.rank, head.level)) break;
      entries += nodes[i].entries;
      tasks += nodes[i].tasks;
    }
    auto const count = double(i - begin);
    auto const rate =
        i - begin == std::size_t(machine.workers) ? machine.bandwidth : count * (tuned ? bandwidth_of_block(machine, count) : usual);
    auto& path = of[std::size_t(head.rank)];
    path.compute += double(entries * number) / rate + machine.task_seconds * tasks / count;
    path.nodes += std::int64_t(i - begin);
  }
  each_tree(pattern, grid, sweep, [&](MessageKind, std::int32_t s, std::vector<int> const& members) {
    if (members.size() < 2) return;
    auto const root = members[0];
    bool const away = std::any_of(members.begin(), members.end(), [&](int m) { return &machine.link(root, m) == &machine.far; });
    auto const& link = away ? machine.far : machine.near;
    auto const count = messages_not_overlapped(std::int64_t(members.size()) - 1);
    auto& path = of[std::size_t(root)];
    path.messages += count;
    path.communication += link.latency + double(count) * link.sending(number * pattern.nodes().width(s));
  });
  auto const worst = std::max_element(of.begin(), of.end(), [](auto const& a, auto const& b) { return a.seconds() < b.seconds(); });
  worst->rank = int(worst - of.begin());
  worst->levels = levels;
  return *worst;
}

}  // namespace

std::int64_t messages_not_overlapped(std::int64_t n) { return n > 2 ? std::int64_t(std::bit_width(std::uint64_t(n - 1))) : n; }

double bandwidth_of_block(SweepMachine const& machine, double nodes) {
  return std::clamp(machine.bandwidth / nodes, machine.least_bandwidth, machine.most_bandwidth);
}

CriticalPath critical_path(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number,
                           SweepMachine const& machine) {
  auto const path = modelled(pattern, grid, sweep, number, machine, true);
  if (machine.workers == 1) return path;
  auto const alone = modelled(pattern, ProcessGrid{}, sweep, number, machine, true);
  return alone.seconds() > path.seconds() * grid.size() ? modelled(pattern, grid, sweep, number, machine, false) : path;
}

SweepTraffic sweep_traffic(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number) {
  SweepTraffic out;
  each_tree(pattern, grid, sweep, [&](MessageKind kind, std::int32_t s, std::vector<int> const& members) {
    auto const n = std::int64_t(members.size()) - 1;
    (kind == MessageKind::broadcast ? out.broadcasts : out.reductions) += n;
    out.bytes += n * number * pattern.nodes().width(s);
  });
  return out;
}

}  // namespace asterism::direct
