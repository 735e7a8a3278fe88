#include "asterism/comm/gpu/window.hpp"

#include <algorithm>

#include "asterism/device/gpu/gpu.hpp"

namespace asterism::comm {

namespace gpu = device::gpu;
using device::Array;
using device::Executor;

GpuWindows::GpuWindows(Communicator const& comm, device::Queue queue, std::size_t slot_bytes)
    : GpuMessenger(comm, std::move(queue)), slot_bytes_(slot_bytes), counts_(static_cast<std::size_t>(comm.size())) {}

void GpuWindows::transfer(Executor& executor, Parts const& sends, Parts const& receives, std::byte const* in, std::byte* out) const {
  auto const slot = slot_bytes_;
  auto const pieces = [slot](Part const& p) { return (p.bytes + slot - 1) / slot; };
  std::size_t rounds = 0;
  for (auto const* const parts : {&sends, &receives})
    for (auto const& p : *parts) rounds = std::max(rounds, pieces(p));
  auto const length = [slot](Part const& p, std::size_t piece) { return std::min(slot, p.bytes - piece * slot); };
  for (std::size_t piece = 0; piece < rounds; ++piece) {
    for (auto const& p : sends) {
      if (piece >= pieces(p)) continue;
      auto& sent = counts_[std::size_t(p.rank)].sent;
      if (sent > 0) await_emptied(executor, p.rank, sent);
      put(executor, p.rank, in + p.first + piece * slot, length(p, piece), ++sent);
    }
    for (auto const& p : receives) {
      if (piece >= pieces(p)) continue;
      auto const number = ++counts_[std::size_t(p.rank)].received;
      await_filled(executor, p.rank, number);
      gpu::copy(out + p.first + piece * slot, slot_from(p.rank), length(p, piece), executor.stream());
      tell_emptied(executor, p.rank, number);
    }
  }
}

void GpuWindows::all_gather(Array const& in, Array const& out) const {
  enqueue(in, out, [this, bytes = in.bytes()](Executor& executor, std::byte const* from, std::byte* to) {
    Parts sends, receives;
    for (int r = 0; r < comm().size(); ++r) {
      auto const at = std::size_t(r) * bytes;
      if (r == comm().rank()) gpu::copy(to + at, from, bytes, executor.stream());
      else sends.push_back({r, 0, bytes}), receives.push_back({r, at, bytes});
    }
    transfer(executor, sends, receives, from, to);
  });
}

void GpuWindows::exchange(Parts sends, Parts receives, Array const& in, Array const& out) const {
  if (sends.empty() && receives.empty()) return;
  count(sends);
  enqueue(in, out,
          [this, sends = std::move(sends), receives = std::move(receives)](Executor& executor, std::byte const* from, std::byte* to) {
            transfer(executor, sends, receives, from, to);
          });
}

}  // namespace asterism::comm
