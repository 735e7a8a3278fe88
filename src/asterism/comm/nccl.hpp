// Messages between the GPUs of ranks by NVIDIA's NCCL (AMD's RCCL): in the order of a stream, no host waits for them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "asterism/comm/communicator.hpp"
#include "asterism/device/array.hpp"

namespace asterism::comm {

/// -use_nccl: where it is there and a checked exchange succeeds, never, or that is an error.
enum class NcclChoice : std::uint8_t { automatic, no, yes };
void set_nccl(NcclChoice choice);

/// A queue of a GPU on which this group's messages are sent; all of it is collective, in the order of the program.
class Nccl {
 public:
  /// A piece of an array, for a rank or from it.
  struct Part {
    int rank;
    std::size_t first, bytes;
  };
  Communicator const& comm() const { return comm_; }
  /// Each rank's `in`, by rank, in `out`.
  void all_gather(device::Array const& in, device::Array const& out) const;
  /// What a rank sends to another is received there in the order of the parts.
  void exchange(std::vector<Part> sends, std::vector<Part> receives, device::Array const& in, device::Array const& out) const;

 private:
  friend struct NcclMaker;
  void enqueue(device::Array const& in, device::Array const& out, std::function<void(void*, std::byte const*, std::byte*)> work) const;
  Communicator comm_;
  void* handle_ = nullptr;
  device::Context queue_;
};

struct NcclUse {
  std::shared_ptr<Nccl const> nccl;  ///< nullptr: not used
  std::string why;                   ///< for people
};
/// Collective, with a GPU open on each rank; found out once for a communicator and a choice. Each rank needs a GPU of its own. An error on
/// all ranks where it was chosen and cannot be used.
NcclUse const& nccl_use(Communicator const& comm);
/// Whether it is used somewhere; the same on all ranks.
bool known_nccl(Communicator const& comm);
/// From now on sums and halos of that group's vectors on this queue are sent so; all its ranks' queues are on GPUs.
void send_by(std::shared_ptr<Nccl const> nccl, device::Context const& ctx);
/// nullptr: not so.
std::shared_ptr<Nccl const> sent_by(device::Context const& ctx, Communicator const& comm);

}  // namespace asterism::comm
