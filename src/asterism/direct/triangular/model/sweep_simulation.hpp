// A discrete-event simulation of the message-driven triangular solve: what each rank does when, without numbers.
#pragma once
#include <cstdint>

#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/direct/triangular/model/sweep_machine.hpp"
#include "asterism/direct/triangular/process_grid.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace asterism::direct {

struct SimulatedSweep {
  double seconds = 0;               ///< until the last rank is done
  double compute = 0, sending = 0;  ///< of the rank that is done last; the rest of its time it waits
  std::int64_t messages = 0;        ///< of all ranks
};

/// Each rank does one task at a time, as MessageDrivenSweep does: messages that have arrived first, then a supernode that can be solved,
/// then a run of blocks with x that has come last. A message keeps its sender busy for Link::sending, and arrives a latency later. An error
/// of kind internal for machine.workers above 1. Cost: time of the order of blocks and messages times the logarithm of the ranks.
SimulatedSweep simulate_sweep(BlockPattern const& pattern, ProcessGrid const& grid, Sweep sweep, std::int64_t number,
                              SweepMachine const& machine);

}  // namespace asterism::direct
