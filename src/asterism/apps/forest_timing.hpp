// Timing loops over star forests, for `asterism bench`.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "asterism/comm/star_forest.hpp"

namespace asterism::apps {

/// Seconds of one way: a broadcast of k float64 per root and a reduction back, `repeats` times, on all ranks together. Collective.
double forest_pingpong(comm::StarForest const& forest, std::int64_t k, comm::ReduceOp op, int repeats);
/// The same by MPI_Send and MPI_Recv between ranks 0 and 1.
double raw_pingpong(comm::Communicator const& comm, std::int64_t bytes, int repeats);
/// Seconds of one construction. Collective.
double forest_setup(comm::Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
                    std::vector<comm::RemoteRoot> const& remote, int repeats);

}  // namespace asterism::apps
