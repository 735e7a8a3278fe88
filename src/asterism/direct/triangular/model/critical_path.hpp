// The time of a distributed triangular solve, predicted from its pattern: Ding et al. (2021), algorithm 2.
#pragma once
#include <cstdint>

#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/direct/triangular/model/sweep_machine.hpp"
#include "asterism/direct/triangular/process_grid.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace asterism::direct {

/// Of the rank with the most time. A node is what a rank does with x of one supernode.
struct CriticalPath {
  int rank = 0;
  std::int32_t levels = 0;                ///< of the nodes of all ranks, where an edge within a rank costs none
  std::int64_t nodes = 0;                 ///< of that rank
  std::int64_t messages = 0;              ///< that it sends and that do not overlap
  double compute = 0, communication = 0;  ///< seconds
  double seconds() const { return compute + communication; }
};

/// Messages of all ranks.
struct SweepTraffic {
  std::int64_t broadcasts = 0, reductions = 0, bytes = 0;
  std::int64_t messages() const { return broadcasts + reductions; }
};

/// A rank's time is the sum over levels of the bytes of its nodes over the bandwidth that so many of them reach, and over the supernodes
/// that it solves of a latency and the messages of both trees that do not overlap: n up to 2, else ceil(log2 n). It has no time in which a
/// rank waits for others. Corrected: counters begin at 0 after a full wave of blocks (l. 15), the logarithm is rounded up (l. 31, 37), and
/// where the speed-up is above the number of ranks the bandwidth of few blocks is NOT raised (l. 44, as the text says).
/// number: bytes of a number. Cost: time and memory of the order of the blocks, and of supernodes times grid.rows + grid.columns.
CriticalPath critical_path(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number,
                           SweepMachine const& machine);

SweepTraffic sweep_traffic(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number);

/// Of n messages that go down a tree from one rank.
std::int64_t messages_not_overlapped(std::int64_t n);
/// Of one of `nodes` blocks of threads at a time (l. 5 to 7).
double bandwidth_of_block(SweepMachine const& machine, double nodes);

}  // namespace asterism::direct
