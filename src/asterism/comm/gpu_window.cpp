#include "asterism/comm/gpu_window.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "asterism/comm/gpu_window.kernels.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::comm {

namespace gpu = device::gpu;
using device::Array;
using device::Context;
using device::Queue;

namespace {

constexpr std::size_t slot_bytes = std::size_t(256) << 10;  // no GPU was asked yet what is best
constexpr std::size_t flag_bytes = 128;                     // each in a line of its own

/// A window: for each rank its slot, then its two flags.
constexpr std::size_t of_rank = slot_bytes + 2 * flag_bytes;

}  // namespace

GpuWindows::GpuWindows(Communicator const& comm, Context queue)
    : GpuMessenger(comm, std::move(queue)), pairs_(static_cast<std::size_t>(comm.size())) {}

GpuWindows::~GpuWindows() {
  finish();
  try {
    gpu::OnDevice const here;
    for (auto* const m : mapped_)
      if (m) gpu::api()->unmap_window(m);
    if (window_) gpu::api()->free_window(window_);
  } catch (...) {  // the runtime is gone, at the process's end
  }
}

std::shared_ptr<GpuWindows const> GpuWindows::connected(Communicator const& comm) {
  agree(comm,
        [&] { ASTERISM_REQUIRE(comm.node() && comm.node()->size() == comm.size(), unsupported, "its ranks are on several machines"); });
  std::shared_ptr<GpuWindows> out;
  auto const size = std::size_t(comm.size()), rank = std::size_t(comm.rank());
  std::array<std::byte, gpu::window_name_bytes> name{};
  agree(comm, [&] {
    gpu::OnDevice const here;
    out.reset(new GpuWindows(comm, Context::gpu()));
    gpu::check(gpu::api()->new_window(&out->window_, of_rank * size), "allocating a window for other ranks");
    gpu::check(gpu::api()->name_window(out->window_, name.data()), "naming a window for other ranks");
  });
  auto const names = comm.all_gather_bytes(name);
  agree(comm, [&] {
    gpu::OnDevice const here;
    out->mapped_.assign(size, nullptr);
    for (std::size_t r = 0; r < size; ++r) {
      if (r == rank) continue;
      gpu::check(gpu::api()->map_window(names.data() + r * name.size(), &out->mapped_[r]), "mapping another rank's window");
      auto* const mine = static_cast<std::byte*>(out->window_) + r * of_rank;
      auto* const theirs = static_cast<std::byte*>(out->mapped_[r]) + rank * of_rank;
      auto const flag = [](std::byte* of, std::size_t n) { return reinterpret_cast<std::uint64_t*>(of + slot_bytes + n * flag_bytes); };
      out->pairs_[r] = {theirs, mine, flag(theirs, 0), flag(mine, 0), flag(theirs, 1), flag(mine, 1)};
    }
  });
  return out;
}

void GpuWindows::transfer(Queue& q, Parts const& sends, Parts const& receives, std::byte const* in, std::byte* out) const {
  auto const pieces = [](Part const& p) { return (p.bytes + slot_bytes - 1) / slot_bytes; };
  std::size_t rounds = 0;
  for (auto const* const parts : {&sends, &receives})
    for (auto const& p : *parts) rounds = std::max(rounds, pieces(p));
  auto* const set = gpu::form_of(&kernel::set_signal);
  auto* const await = gpu::form_of(&kernel::await_signal);
  auto const length = [](Part const& p, std::size_t piece) { return std::min(slot_bytes, p.bytes - piece * slot_bytes); };
  for (std::size_t piece = 0; piece < rounds; ++piece) {
    for (auto const& p : sends) {
      if (piece >= pieces(p)) continue;
      auto& pair = pairs_[std::size_t(p.rank)];
      if (pair.sent > 0) await(q, pair.emptied_here, pair.sent);
      gpu::copy(pair.slot_there, in + p.first + piece * slot_bytes, length(p, piece), q.stream());
      set(q, pair.filled_there, ++pair.sent);
    }
    for (auto const& p : receives) {
      if (piece >= pieces(p)) continue;
      auto& pair = pairs_[std::size_t(p.rank)];
      await(q, pair.filled_here, ++pair.received);
      gpu::copy(out + p.first + piece * slot_bytes, pair.slot_here, length(p, piece), q.stream());
      set(q, pair.emptied_there, pair.received);
    }
  }
}

void GpuWindows::all_gather(Array const& in, Array const& out) const {
  enqueue(in, out, [this, bytes = in.bytes()](Queue& q, std::byte const* from, std::byte* to) {
    Parts sends, receives;
    for (int r = 0; r < comm().size(); ++r) {
      auto const at = std::size_t(r) * bytes;
      if (r == comm().rank()) gpu::copy(to + at, from, bytes, q.stream());
      else sends.push_back({r, 0, bytes}), receives.push_back({r, at, bytes});
    }
    transfer(q, sends, receives, from, to);
  });
}

void GpuWindows::exchange(Parts sends, Parts receives, Array const& in, Array const& out) const {
  if (sends.empty() && receives.empty()) return;
  count(sends);
  enqueue(in, out, [this, sends = std::move(sends), receives = std::move(receives)](Queue& q, std::byte const* from, std::byte* to) {
    transfer(q, sends, receives, from, to);
  });
}

}  // namespace asterism::comm
