// Messages between the GPUs of ranks by NVIDIA's NCCL, or AMD's RCCL.
#pragma once
#include <memory>

#include "asterism/comm/gpu/messenger.hpp"

namespace asterism::comm {

/// A call of the library for each message or group of messages, in the queue's stream.
class Nccl final : public GpuMessenger {
 public:
  /// Collective, with a GPU open on each rank; an error on all ranks where the library is not there or two ranks share a GPU, which it
  /// refuses.
  static std::shared_ptr<Nccl const> connected(Communicator const& comm);
  std::string_view name() const override { return "NCCL"; }
  void all_gather(device::Array const& in, device::Array const& out) const override;
  void exchange(Parts sends, Parts receives, device::Array const& in, device::Array const& out) const override;

 private:
  using GpuMessenger::GpuMessenger;
  void* handle_ = nullptr;  // kept: the library may be gone when communicators are
};

}  // namespace asterism::comm
