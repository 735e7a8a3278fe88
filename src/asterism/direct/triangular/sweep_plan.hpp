// What a rank does in a triangular solve, made once: its blocks, its trees, and the messages that it waits for.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/direct/triangular/process_grid.hpp"
#include "asterism/direct/triangular/trees.hpp"

namespace asterism::direct {

/// L x = b, or L^T x = b.
enum class Sweep : std::uint8_t { forward, backward };
/// A part of x for the blocks that need it, or a part of the sum that an unknown waits for.
enum class MessageKind : std::uint8_t { broadcast, reduction };

struct Message {
  MessageKind kind = MessageKind::broadcast;
  std::int32_t node = 0;
  int from = 0, to = 0;
  auto operator<=>(Message const&) const = default;
};

/// A supernode that this rank takes part in.
struct PlannedNode {
  std::int32_t id = 0, width = 0;
  bool diagonal = false;  ///< this rank owns its diagonal block, and its part of x
  bool source = false;    ///< this rank needs its part of x
  bool target = false;    ///< this rank adds to its sum
  bool outside = false;   ///< this rank has work of its own beside the blocks
  TreePlace broadcast, reduction;
  std::int32_t blocks = 0;                         ///< this rank's that add to its sum
  std::int32_t first_using = 0, last_using = 0;    ///< in SweepPlan::using_x: blocks that need its x
  std::int32_t first_adding = 0, last_adding = 0;  ///< in SweepPlan::adding: blocks that add to its sum
  std::int32_t first_run = 0, last_run = 0;        ///< in SweepPlan::runs: of this rank's blocks in its column
};

/// See block_runs(). Forward it needs x of its column, backward x of its blocks' rows.
struct PlannedRun {
  std::int32_t column = 0;           ///< where, in SweepPlan::nodes
  std::int32_t first = 0, last = 0;  ///< in SweepPlan::using_x forward, in SweepPlan::adding backward
};

/// Of each supernode, ranks that add to its sum forward and need its x backward for work of their own, beside blocks of the triangle:
/// such as subtrees that they have whole. Empty: none at all.
using Outside = std::vector<std::vector<int>>;

/// With x of the source and the sum of the target as in Ding et al. (2021): forward, block (I, K) has source K and target I; backward the
/// other way round.
struct SweepPlan {
  Sweep sweep = Sweep::forward;
  std::vector<PlannedNode> nodes;     ///< ascending
  std::vector<std::int32_t> place;    ///< of each supernode in `nodes`; -1: no part in it
  std::vector<std::int32_t> using_x;  ///< indices of this rank's blocks by source, targets in the order in which they are solved
  std::vector<std::int32_t> adding;   ///< by target, sources in the order in which they are solved
  std::vector<PlannedRun> runs;       ///< by column
  std::int64_t arriving = 0;          ///< messages that this rank waits for
  std::int64_t leaving = 0;           ///< messages that it sends
  std::int32_t diagonals = 0;         ///< supernodes that it solves
  /// The list that runs are in.
  std::vector<std::int32_t> const& by_column() const { return sweep == Sweep::forward ? using_x : adding; }
  PlannedNode const& node(std::int32_t id) const { return nodes[std::size_t(place[std::size_t(id)])]; }
};

/// alone: how many supernodes at the beginning are this rank's alone (BlockOwners); `outside` is of those after them, and lists whose such
/// supernodes have blocks there, this rank's too. Cost: time and memory of the order of all blocks.
SweepPlan plan_sweep(BlockPattern const& pattern, ProcessGrid const& grid, int rank, Sweep sweep, Outside const& outside = {},
                     std::int32_t alone = 0);

/// All messages of all ranks, sorted.
std::vector<Message> predicted_messages(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, Outside const& outside = {});

/// The ranks that need x of a supernode, or add to its sum: the owner of its diagonal block first, then onwards from there.
void broadcast_members(BlockPattern const& pattern, BlockOwners const& owners, Sweep sweep, Outside const& outside, std::int32_t node,
                       std::vector<int>& members);
void reduction_members(BlockPattern const& pattern, BlockOwners const& owners, Sweep sweep, Outside const& outside, std::int32_t node,
                       std::vector<int>& members);

}  // namespace asterism::direct
