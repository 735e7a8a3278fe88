// Timing loops over star forests, for `asterism bench`.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/grid/grid.hpp"

namespace asterism::apps {

/// Seconds of one way: a broadcast of k float64 per root and a reduction back, `repeats` times, on all ranks together. Collective.
/// shared: the arrays lie in memory that neighbours read in place.
double forest_pingpong(comm::StarForest const& forest, std::int64_t k, comm::ReduceOp op, bool shared, int repeats);
/// Seconds of a broadcast of k float64 per root, of `repeats` behind each other. renew: the roots are written before each, in that
/// time. Collective.
double forest_exchange(comm::StarForest const& forest, std::int64_t k, comm::ReduceOp op, bool renew, int repeats);
/// The same of a star forest on a queue: submitted one after the other, then waited for. Collective.
double queued_pingpong(comm::QueuedForest const& forest, device::Queue const& queue, std::int64_t k, comm::ReduceOp op, int repeats);
double queued_exchange(comm::QueuedForest const& forest, device::Queue const& queue, std::int64_t k, comm::ReduceOp op, int repeats);
/// A ping-pong by MPI_Send and MPI_Recv between ranks 0 and 1.
double raw_pingpong(comm::Communicator const& comm, std::int64_t bytes, int repeats);
/// Seconds of one construction. Collective.
double forest_setup(comm::Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
                    std::vector<comm::RemoteRoot> const& remote, int repeats);

/// Seconds of one ghost exchange of float64 on a grid that is not periodic and whose boxes are at least as wide as its ghost
/// points; the points that neighbours get are written between the exchanges. shared: as above. Collective.
double grid_halo(grid::Grid const& grid, bool shared, int repeats);
/// Seconds of the slowest rank for a ghost exchange, for about as long a computation, and for the exchange begun before and ended
/// after the computation. Collective.
struct Overlap {
  double exchange = 0, work = 0, both = 0;
};
Overlap grid_overlap(grid::Grid const& grid, int repeats);
/// A ghost exchange by MPI alone: subarray types, or packed buffers. Fills the ghost points as the grid's own exchange does; checked.
double raw_halo(grid::Grid const& grid, bool packed, int repeats);

}  // namespace asterism::apps
