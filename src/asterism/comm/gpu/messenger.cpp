#include "asterism/comm/gpu/messenger.hpp"

#include <unistd.h>

#include <set>

#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::comm {

using device::Access;
using device::Array;
using device::Memory;

void GpuMessenger::enqueue(Array const& in, Array const& out,
                           std::function<void(device::Executor&, std::byte const*, std::byte*)> work) const {
  std::vector<device::Intent> intents{{comm_.order_token().buffer().get(), Access::update, true, Memory::host}};
  in.intend(Access::read, intents);
  out.intend(Access::write, intents);
  queue_.enqueue(std::move(intents), [in, out, order_token = comm_.order_token(), work = std::move(work)](device::Executor& executor) {
    work(executor, in.as<std::byte>(Memory::gpu), out.as<std::byte>(Memory::gpu));
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

bool messages_arrive(GpuMessenger const& m) {
  auto const rank = m.comm().rank(), size = m.comm().size(), before = (rank + size - 1) % size;
  constexpr std::size_t few = 3, many = 100'000;  // few for all: as sums are
  auto const number = [](std::size_t i, int from) { return std::int64_t(i) * 7919 + from; };
  Array mine, all, of_before;
  agree(m.comm(), [&] {
    mine = Array(many * sizeof(std::int64_t)), all = Array(few * sizeof(std::int64_t) * std::size_t(size)), of_before = Array(mine.bytes());
    for (std::size_t i = 0; i < many; ++i) mine.as<std::int64_t>()[i] = number(i, rank);
  });
  bool right = true;
  // one after the other: where all fail nobody waits for the next
  agree(m.comm(), [&] {
    m.all_gather(mine.view(0, few * sizeof(std::int64_t)), all);
    all.settle(Access::read, "check of messages between GPUs");
    for (int r = 0; r < size; ++r)
      for (std::size_t i = 0; i < few; ++i) right = right && all.as<std::int64_t>()[std::size_t(r) * few + i] == number(i, r);
  });
  for (auto const length : {few, many})
    agree(m.comm(), [&] {
      auto const bytes = length * sizeof(std::int64_t);
      m.exchange({{(rank + 1) % size, 0, bytes}}, {{before, 0, bytes}}, mine, of_before);
      of_before.settle(Access::read, "check of messages between GPUs");
      for (std::size_t i = 0; i < length; ++i) right = right && of_before.as<std::int64_t>()[i] == number(i, before);
    });
  return m.comm().min(std::int64_t(right)) == 1;
}

void send_by(std::shared_ptr<GpuMessenger const> messenger, device::Queue const& queue) { queue.set_peers(std::move(messenger)); }

std::shared_ptr<GpuMessenger const> sent_by(device::Queue const& queue, Communicator const& comm) {
  if (queue.memory() != Memory::gpu || comm.size() == 1) return nullptr;
  auto found = std::static_pointer_cast<GpuMessenger const>(queue.peers());
  return found && found->comm() == comm ? found : nullptr;
}

}  // namespace asterism::comm
