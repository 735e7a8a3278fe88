#include "asterism/direct/triangular/sweep_plan.hpp"

#include <algorithm>

#include "asterism/direct/triangular/block_runs.hpp"

namespace asterism::direct {
namespace {

/// Of the ranks in process column (or row) `line` those that are marked, from the diagonal's on.
class Members {
 public:
  Members(ProcessGrid const& grid, bool of_column)
      : grid_(grid), of_column_(of_column), marked_(std::size_t(of_column ? grid.rows : grid.columns)) {}
  void begin() { std::fill(marked_.begin(), marked_.end(), false); }
  void mark(std::int32_t index) { marked_[std::size_t(index) % marked_.size()] = true; }
  void end(std::int32_t node, std::vector<int>& out) const {
    out.clear();
    auto const n = std::int32_t(marked_.size());
    out.push_back(grid_.owner(node, node));
    for (std::int32_t step = 1; step < n; ++step) {
      auto const at = (node + step) % n;
      if (marked_[std::size_t(at)]) out.push_back(of_column_ ? grid_.owner(at, node) : grid_.owner(node, at));
    }
  }

 private:
  ProcessGrid const& grid_;
  bool of_column_;
  std::vector<char> marked_;
};

void of_blocks_in_column(BlockPattern const& pattern, BlockOwners const& owners, std::int32_t k, std::vector<int>& out) {
  if (k < owners.alone) return out.assign(1, owners.rank);
  Members members(owners.grid, true);
  auto const [first, last] = pattern.of_column(k);
  for (auto b = first; b < last; ++b) members.mark(pattern.block(b).row - owners.alone);
  members.end(k - owners.alone, out);
}

void of_blocks_in_row(BlockPattern const& pattern, BlockOwners const& owners, Outside const& outside, std::int32_t i,
                      std::vector<int>& out) {
  if (i < owners.alone) return out.assign(1, owners.rank);
  Members members(owners.grid, false);
  for (auto const b : pattern.of_row(i))
    if (auto const column = pattern.block(b).column; column >= owners.alone) members.mark(column - owners.alone);
  members.end(i - owners.alone, out);
  if (outside.empty()) return;
  for (int const r : outside[std::size_t(i - owners.alone)])
    if (std::find(out.begin(), out.end(), r) == out.end()) out.push_back(r);
}

}  // namespace

void broadcast_members(BlockPattern const& pattern, BlockOwners const& owners, Sweep sweep, Outside const& outside, std::int32_t node,
                       std::vector<int>& members) {
  sweep == Sweep::forward ? of_blocks_in_column(pattern, owners, node, members) : of_blocks_in_row(pattern, owners, outside, node, members);
}

void reduction_members(BlockPattern const& pattern, BlockOwners const& owners, Sweep sweep, Outside const& outside, std::int32_t node,
                       std::vector<int>& members) {
  sweep == Sweep::forward ? of_blocks_in_row(pattern, owners, outside, node, members) : of_blocks_in_column(pattern, owners, node, members);
}

SweepPlan plan_sweep(BlockPattern const& pattern, ProcessGrid const& grid, int rank, Sweep sweep, Outside const& outside,
                     std::int32_t alone) {
  BlockOwners const owners{grid, rank, alone};
  SweepPlan plan;
  plan.sweep = sweep;
  auto const n = pattern.count();
  plan.place.assign(std::size_t(n), -1);
  auto const run_of = block_runs(pattern, grid);
  std::vector<int> members;
  auto const my_row = rank / grid.columns, my_column = rank % grid.columns;
  auto const place_among = [&](TreePlace& place) {
    auto const at = std::find(members.begin(), members.end(), rank);
    if (at == members.end()) return false;
    place = place_in_tree(members, std::size_t(at - members.begin()));
    return true;
  };
  for (std::int32_t k = 0; k < n; ++k) {
    // others have no block in its row or column
    auto const at_grid = k - alone;
    bool const own = at_grid < 0;
    bool const in_row = own || at_grid % grid.rows == my_row, in_column = own || at_grid % grid.columns == my_column;
    auto const named = [&](std::vector<int> const& ranks) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); };
    bool const beside = !own && !outside.empty() && named(outside[std::size_t(at_grid)]);
    if (!in_row && !in_column && !beside) continue;
    PlannedNode node;
    node.id = k;
    node.width = pattern.nodes().width(k);
    node.diagonal = owners.owner(k, k) == rank;
    node.outside = beside;
    bool const forward = sweep == Sweep::forward;
    if (forward ? in_column : in_row || beside) {
      broadcast_members(pattern, owners, sweep, outside, k, members);
      node.source = place_among(node.broadcast);
    }
    if (forward ? in_row || beside : in_column) {
      reduction_members(pattern, owners, sweep, outside, k, members);
      node.target = place_among(node.reduction);
    }
    if (!node.source && !node.target) continue;
    auto const ours = [&](std::int32_t b) { return owners.owner(pattern.block(b).row, pattern.block(b).column) == rank; };
    node.first_using = std::int32_t(plan.using_x.size());
    node.first_adding = std::int32_t(plan.adding.size());
    auto const [first, last] = pattern.of_column(k);
    auto& of_column = forward ? plan.using_x : plan.adding;
    auto& of_row = forward ? plan.adding : plan.using_x;
    for (auto b = first; b < last; ++b)
      if (ours(b)) of_column.push_back(b);
    for (auto const b : pattern.of_row(k))
      if (ours(b)) of_row.push_back(b);
    node.last_using = std::int32_t(plan.using_x.size());
    node.last_adding = std::int32_t(plan.adding.size());
    if (!forward) {  // backwards the last one is solved first
      std::reverse(plan.using_x.begin() + node.first_using, plan.using_x.end());
      std::reverse(plan.adding.begin() + node.first_adding, plan.adding.end());
    }
    node.first_run = std::int32_t(plan.runs.size());
    auto const at = std::int32_t(plan.nodes.size());
    for (auto i = forward ? node.first_using : node.first_adding; i < (forward ? node.last_using : node.last_adding); ++i) {
      bool const goes_on = std::int32_t(plan.runs.size()) > node.first_run &&
                           run_of[std::size_t(of_column[std::size_t(i)])] == run_of[std::size_t(of_column[std::size_t(i) - 1])];
      if (!goes_on) plan.runs.push_back({at, i, i});
      plan.runs.back().last = i + 1;
    }
    node.last_run = std::int32_t(plan.runs.size());
    node.blocks = node.last_adding - node.first_adding;
    plan.arriving += int(node.source && node.broadcast.parent >= 0) + (node.target ? node.reduction.child_count() : 0);
    plan.leaving += int(node.target && node.reduction.parent >= 0) + (node.source ? node.broadcast.child_count() : 0);
    plan.diagonals += node.diagonal;
    plan.place[std::size_t(k)] = at;
    plan.nodes.push_back(node);
  }
  return plan;
}

std::vector<Message> predicted_messages(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, Outside const& outside) {
  std::vector<Message> out;
  std::vector<int> members;
  for (std::int32_t k = 0; k < pattern.count(); ++k) {
    broadcast_members(pattern, {grid}, sweep, outside, k, members);
    for (std::size_t i = 1; i < members.size(); ++i) out.push_back({MessageKind::broadcast, k, members[(i - 1) / 2], members[i]});
    reduction_members(pattern, {grid}, sweep, outside, k, members);
    for (std::size_t i = 1; i < members.size(); ++i) out.push_back({MessageKind::reduction, k, members[i], members[(i - 1) / 2]});
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace asterism::direct
