// The factors that ranks share, in the memory of their GPUs.
#pragma once
#include <memory>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/distributed/gathered_triangles.hpp"
#include "asterism/direct/triangular/gpu/gpu_factors.hpp"

namespace asterism::direct {

/// Their vectors have a rank's subtrees in B's order and then what it solves of the top, as those of solves on the host. Collective; errors
/// as of GpuFactors.
std::shared_ptr<GpuFactors> factors_on_gpus(comm::Communicator const& comm, SharedFactors const& factors);

}  // namespace asterism::direct
