// Messages between the GPUs of ranks on one machine by memory that the others have mapped (CUDA IPC).
#pragma once
#include <memory>
#include <vector>

#include "asterism/comm/gpu/window.hpp"

namespace asterism::comm {

/// Copies into mapped windows; flags are set and waited for by kernels of one thread. Ranks may share a GPU, whose time is dealt to their
/// kernels in turns then.
class GpuIpc final : public GpuWindows {
 public:
  /// Collective; an error on all ranks where a window cannot be mapped. The group's ranks are on one machine.
  static std::shared_ptr<GpuIpc const> connected(Communicator const& comm);
  ~GpuIpc() override;
  std::string_view name() const override { return "windows of GPU memory (IPC)"; }

 private:
  using GpuWindows::GpuWindows;
  void put(device::Executor& executor, int rank, std::byte const* from, std::size_t bytes, std::uint64_t piece) const override;
  void await_filled(device::Executor& executor, int rank, std::uint64_t piece) const override;
  void await_emptied(device::Executor& executor, int rank, std::uint64_t piece) const override;
  std::byte const* slot_from(int rank) const override { return here(rank) + slot_at; }
  void tell_emptied(device::Executor& executor, int rank, std::uint64_t piece) const override;

  static constexpr std::size_t of_rank = slot_at + most_slot_bytes;
  std::byte* here(int rank) const { return static_cast<std::byte*>(window_) + std::size_t(rank) * of_rank; }
  std::byte* there(int rank) const;

  void* window_ = nullptr;
  std::vector<void*> mapped_;  // of the other ranks
};

}  // namespace asterism::comm
