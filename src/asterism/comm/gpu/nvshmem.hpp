// Messages between the GPUs of ranks by NVIDIA's NVSHMEM, also between machines.
#pragma once
#include <memory>
#include <vector>

#include "asterism/comm/gpu/window.hpp"

namespace asterism::comm {

/// Windows of its symmetric memory; each put with its signal, each wait and each credit is a call of the library in the queue's stream.
/// Zhang et al. (2022), section 5.4. A process is started in it once, with the ranks of the first group that asks: later groups are of the
/// same ranks, in any order.
class Nvshmem final : public GpuWindows {
 public:
  /// Collective, with a GPU open on each rank; an error on all ranks where the library is not there, two ranks share a GPU, or it was
  /// started for other ranks.
  static std::shared_ptr<Nvshmem const> connected(Communicator const& comm);
  ~Nvshmem() override;
  std::string_view name() const override { return "NVSHMEM"; }

 private:
  using GpuWindows::GpuWindows;
  void put(device::Executor& executor, int rank, std::byte const* from, std::size_t bytes, std::uint64_t piece) const override;
  void await_filled(device::Executor& executor, int rank, std::uint64_t piece) const override;
  void await_emptied(device::Executor& executor, int rank, std::uint64_t piece) const override;
  std::byte const* slot_from(int rank) const override;
  void tell_emptied(device::Executor& executor, int rank, std::uint64_t piece) const override;

  /// What the window has for each process: the slot in, then one out, for what the other's memory is not reached by.
  std::size_t of_process() const { return slot_at + 2 * slot_bytes(); }
  std::byte* with(int process) const;

  struct Window;
  Window* window_ = nullptr;  // one of the process's
  struct Peer {
    int process;  // its number in the library
    bool mapped;  // its memory has addresses here
  };
  std::vector<Peer> peers_;  // by rank
};

}  // namespace asterism::comm
