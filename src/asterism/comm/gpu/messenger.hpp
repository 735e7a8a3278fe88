// Who carries messages between the GPUs of a group's ranks in the order of streams, so that no host waits for them.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/array.hpp"

namespace asterism::comm {

/// Has a queue of its own on the GPU; the ledgers order it with those that make and use what is sent. All of it is collective, in the order
/// of the program.
class GpuMessenger {
 public:
  GpuMessenger(Communicator comm, device::Queue queue) : comm_(std::move(comm)), queue_(std::move(queue)) {}
  virtual ~GpuMessenger() = default;
  GpuMessenger(GpuMessenger const&) = delete;
  GpuMessenger& operator=(GpuMessenger const&) = delete;

  /// A piece of an array, for a rank or from it.
  struct Part {
    int rank;
    std::size_t first, bytes;
  };
  using Parts = std::vector<Part>;
  /// From parts counted in rows of so many bytes.
  static Parts in_bytes(Parts parts, std::size_t row) {
    for (auto& p : parts) p.first *= row, p.bytes *= row;
    return parts;
  }
  Communicator const& comm() const { return comm_; }
  virtual std::string_view name() const = 0;
  /// Each rank's `in`, by rank, in `out`.
  virtual void all_gather(device::Array const& in, device::Array const& out) const = 0;
  /// At most one piece for each rank, not for oneself, and one from it.
  virtual void exchange(Parts sends, Parts receives, device::Array const& in, device::Array const& out) const = 0;
  /// Waits; an error of messages is thrown here, once. Whoever used what they should have brought asks: other queues do not know of it.
  void check() const { queue_.wait("messages between GPUs"); }

 protected:
  /// As a task of the queue: work(queue, in's address, out's).
  void enqueue(device::Array const& in, device::Array const& out,
               std::function<void(device::Executor&, std::byte const*, std::byte*)> work) const;
  /// For the profile.
  static void count(Parts const& sends);
  /// Waits for what is under way, before what it uses goes.
  void finish() const noexcept { queue_.finish(); }

 private:
  Communicator comm_;
  device::Queue queue_;
};

/// Collective, with a GPU open on each rank.
bool ranks_share_a_gpu(Communicator const& comm);
/// Whether messages arrive as they were sent: numbers of each rank's own, to all and, few and many, to the next. Collective.
bool messages_arrive(GpuMessenger const& messenger);

/// From now on sums and halos of that group's vectors on this queue are sent so; all its ranks' queues are on GPUs.
void send_by(std::shared_ptr<GpuMessenger const> messenger, device::Queue const& queue);
/// nullptr: not so.
std::shared_ptr<GpuMessenger const> sent_by(device::Queue const& queue, Communicator const& comm);

}  // namespace asterism::comm
