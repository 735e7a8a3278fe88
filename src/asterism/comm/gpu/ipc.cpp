#include "asterism/comm/gpu/ipc.hpp"

#include <array>

#include "asterism/comm/gpu/ipc.kernels.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::comm {

namespace gpu = device::gpu;
using device::Executor;

GpuIpc::~GpuIpc() {
  finish();
  try {
    gpu::OnDevice const here;
    for (auto* const m : mapped_)
      if (m) gpu::api()->unmap_window(m);
    if (window_) gpu::api()->free_window(window_);
  } catch (...) {  // the runtime is gone, at the process's end
  }
}

std::shared_ptr<GpuIpc const> GpuIpc::connected(Communicator const& comm) {
  agree(comm,
        [&] { ASTERISM_REQUIRE(comm.node() && comm.node()->size() == comm.size(), unsupported, "its ranks are on several machines"); });
  std::shared_ptr<GpuIpc> out;
  auto const size = std::size_t(comm.size()), rank = std::size_t(comm.rank());
  std::array<std::byte, gpu::window_name_bytes> name{};
  agree(comm, [&] {
    gpu::OnDevice const here;
    out.reset(new GpuIpc(comm, device::Queue::gpu(), most_slot_bytes));
    gpu::check(gpu::api()->new_window(&out->window_, of_rank * size), "allocating a window for other ranks");
    gpu::check(gpu::api()->name_window(out->window_, name.data()), "naming a window for other ranks");
  });
  auto const names = comm.all_gather_bytes(name);
  agree(comm, [&] {
    gpu::OnDevice const here;
    out->mapped_.assign(size, nullptr);
    for (std::size_t r = 0; r < size; ++r)
      if (r != rank) gpu::check(gpu::api()->map_window(names.data() + r * name.size(), &out->mapped_[r]), "mapping another rank's window");
  });
  return out;
}

/// What that rank has for me.
std::byte* GpuIpc::there(int rank) const {
  return static_cast<std::byte*>(mapped_[std::size_t(rank)]) + std::size_t(comm().rank()) * of_rank;
}

void GpuIpc::put(Executor& executor, int rank, std::byte const* from, std::size_t bytes, std::uint64_t piece) const {
  gpu::copy(there(rank) + slot_at, from, bytes, executor.stream());
  gpu::form_of (&kernel::set_signal)(executor, filled(there(rank)), piece);
}

void GpuIpc::await_filled(Executor& executor, int rank, std::uint64_t piece) const {
  gpu::form_of (&kernel::await_signal)(executor, filled(here(rank)), piece);
}

void GpuIpc::await_emptied(Executor& executor, int rank, std::uint64_t piece) const {
  gpu::form_of (&kernel::await_signal)(executor, emptied(here(rank)), piece);
}

void GpuIpc::tell_emptied(Executor& executor, int rank, std::uint64_t piece) const {
  gpu::form_of (&kernel::set_signal)(executor, emptied(there(rank)), piece);
}

}  // namespace asterism::comm
