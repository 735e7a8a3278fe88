#include "asterism/comm/gpu_messenger.hpp"

#include <unistd.h>

#include <set>

#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::comm {

using device::Access;
using device::Array;
using device::Memory;

void GpuMessenger::enqueue(Array const& in, Array const& out,
                           std::function<void(device::Queue&, std::byte const*, std::byte*)> work) const {
  std::vector<device::Intent> intents{{comm_.lane().buffer().get(), Access::update, true, Memory::host}};
  in.intend(Access::read, intents);
  out.intend(Access::write, intents);
  queue_.enqueue(std::move(intents), [in, out, lane = comm_.lane(), work = std::move(work)](device::Queue& q) {
    work(q, in.as<std::byte>(Memory::gpu), out.as<std::byte>(Memory::gpu));
  });
}

void GpuMessenger::count(Parts const& sends) {
  double bytes = 0;
  for (auto const& s : sends) bytes += double(s.bytes);
  profile::count_message(std::int64_t(sends.size()), bytes);
}

bool ranks_share_a_gpu(Communicator const& comm) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  auto const mine = std::string(host) + " " + device::gpu::identity();
  std::vector<std::int64_t> counts;
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span(mine)), &counts);
  std::set<std::string> names;
  std::size_t at = 0;
  for (auto const n : counts) {
    names.emplace(reinterpret_cast<char const*>(all.data()) + at, std::size_t(n));
    at += std::size_t(n);
  }
  return names.size() < counts.size();
}

/// Each rank sends numbers of its own to all, and to the next.
bool messages_arrive(GpuMessenger const& m) {
  auto const rank = m.comm().rank(), size = m.comm().size();
  bool right = true;
  for (std::size_t const length : {std::size_t(3), std::size_t(100'000)}) {  // a short one, and one of several pieces
    std::size_t const bytes = length * sizeof(std::int64_t);
    auto const number = [](std::size_t i, int from) { return std::int64_t(i) * 7919 + from; };
    Array mine, all, before;
    agree(m.comm(), [&] {
      mine = Array(bytes), all = Array(bytes * std::size_t(size)), before = Array(bytes);
      for (std::size_t i = 0; i < length; ++i) mine.as<std::int64_t>()[i] = number(i, rank);
    });
    // one after the other: a rank that cannot leaves no other waiting for the second
    agree(m.comm(), [&] {
      m.all_gather(mine, all);
      all.settle(Access::read, "check of messages between GPUs");
    });
    agree(m.comm(), [&] {
      m.exchange({{(rank + 1) % size, 0, bytes}}, {{(rank + size - 1) % size, 0, bytes}}, mine, before);
      before.settle(Access::read, "check of messages between GPUs");
      for (std::size_t i = 0; i < length; ++i) {
        for (int r = 0; r < size; ++r) right = right && all.as<std::int64_t>()[std::size_t(r) * length + i] == number(i, r);
        right = right && before.as<std::int64_t>()[i] == number(i, (rank + size - 1) % size);
      }
    });
  }
  return m.comm().min(std::int64_t(right)) == 1;
}

void send_by(std::shared_ptr<GpuMessenger const> messenger, device::Context const& ctx) { ctx.set_peers(std::move(messenger)); }

std::shared_ptr<GpuMessenger const> sent_by(device::Context const& ctx, Communicator const& comm) {
  if (ctx.memory() != Memory::gpu || comm.size() == 1) return nullptr;
  auto found = std::static_pointer_cast<GpuMessenger const>(ctx.peers());
  return found && found->comm() == comm ? found : nullptr;
}

}  // namespace asterism::comm
