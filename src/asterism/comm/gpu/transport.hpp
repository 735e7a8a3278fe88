// The transport of sums and halos between the GPUs of ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/comm/gpu/messenger.hpp"

namespace asterism::comm {

/// -gpu_transport: the first of NCCL and IPC that can be used, else MPI; or one of them. NVSHMEM, whose start fails in many ways and cannot
/// be undone, only where it is asked for.
enum class GpuTransport : std::uint8_t { automatic, nccl, ipc, nvshmem, mpi };
void set_gpu_transport(std::string_view name);
std::vector<std::string> gpu_transport_names();

struct GpuTransportUse {
  std::shared_ptr<GpuMessenger const> messenger;  ///< nullptr: MPI
  std::string why;                                ///< for people
};
/// Collective, with a GPU open on each rank; found out once for a communicator and a choice, and proven by messages. An error on all ranks
/// where one was chosen that cannot be used.
GpuTransportUse const& gpu_transport(Communicator const& comm);
/// The same of that choice, the same on all ranks, without the error.
GpuTransportUse const& gpu_transport(Communicator const& comm, GpuTransport choice);
/// Whether some queue may send so. The same on all ranks.
bool has_gpu_messenger(Communicator const& comm);

}  // namespace asterism::comm
