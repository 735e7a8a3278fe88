// Messages between the GPUs of ranks on one machine by windows of memory that the others have mapped (CUDA IPC).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/comm/gpu_messenger.hpp"

namespace asterism::comm {

/// Each rank has a window with a slot and two flags for each other one. A message goes in pieces of a slot's length: the sender's stream
/// waits until the receiver has emptied the slot, copies into it and sets the flag that says so; the receiver's waits for that, copies out,
/// and sets the other flag, in the sender's window. Of all messages of a call first all first pieces are sent, then received, then the
/// second ones, so that nobody waits for somebody who waits. The streams wait by a kernel of one thread. Ranks may share a GPU, whose time
/// is dealt to their kernels in turns then. Paper ii (figures 6 to 8, there by NVSHMEM).
class GpuWindows final : public GpuMessenger {
 public:
  /// Collective; an error on all ranks where a window cannot be mapped. The group's ranks are on one machine.
  static std::shared_ptr<GpuWindows const> connected(Communicator const& comm);
  ~GpuWindows() override;
  std::string_view name() const override { return "windows of GPU memory (IPC)"; }
  void all_gather(device::Array const& in, device::Array const& out) const override;
  void exchange(Parts sends, Parts receives, device::Array const& in, device::Array const& out) const override;

 private:
  struct Pair {  // with another rank
    std::byte *slot_there = nullptr, *slot_here = nullptr;
    std::uint64_t *filled_there = nullptr, *filled_here = nullptr;    // the number of the last piece in the slot
    std::uint64_t *emptied_there = nullptr, *emptied_here = nullptr;  // that was taken out of it
    // the tasks', which are in order
    std::uint64_t sent = 0, received = 0;
  };
  GpuWindows(Communicator const& comm, device::Context queue);
  void transfer(device::Queue& q, Parts const& sends, Parts const& receives, std::byte const* in, std::byte* out) const;

  void* window_ = nullptr;
  std::vector<void*> mapped_;
  mutable std::vector<Pair> pairs_;  // by rank
};

}  // namespace asterism::comm
