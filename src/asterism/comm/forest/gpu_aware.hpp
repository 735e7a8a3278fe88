// Whether MPI takes addresses of a GPU's memory.
#pragma once
#include <cstdint>
#include <string>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

/// -use_gpu_aware_mpi: what MPI says of itself, no, or yes whatever it says.
enum class GpuAware : std::uint8_t { automatic, no, yes };
void set_gpu_aware(GpuAware choice);

struct GpuAwareness {
  bool used = false;
  std::string why;  ///< for people
};
/// Collective, with the GPU open; found out once for a communicator and a choice. MPI that says that it can (or of which the user does)
/// must also have carried messages between the GPU's memories of neighbouring ranks; where the user said so and it fails, a CommError on
/// all ranks.
GpuAwareness const& gpu_awareness(Communicator const& comm);
/// The same on all ranks: nullptr where that was not asked yet.
GpuAwareness const* known_gpu_awareness(Communicator const& comm);

}  // namespace asterism::comm
