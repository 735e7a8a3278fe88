// Messages that come when they come, for work that is driven by them: put with signal, poll what arrived, release.
//
// The layer beside the bulk operations of star forests: who sends to whom is known beforehand, when is not. A channel leads from one
// rank to another and has a largest size; several between the same ranks differ by a label. Those of a pair of ranks share one stream,
// so a poll costs the same for one channel as for thousands. Within a machine the stream is a mailbox (node/mailbox.hpp); between
// machines it is envelopes of 64 bytes in receives that are always posted, with longer payload in a message of its own. Releasing a
// message is the credit that gives the sender its place, its block or its lent array back, on both. After the one-sided puts of Ding et
// al. (2021).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/transport/choice.hpp"

namespace asterism::comm {

struct Channel {
  int rank = 0;                ///< at the other end
  std::int64_t max_bytes = 0;  ///< of one message
  int label = 0;               ///< 0 or more; tells channels between the same two ranks apart
};

/// Messages of a channel arrive in their order, and so do those of a sender but for what land_in() sets aside. Not thread-safe: tasks of
/// queues may use it (all members but the constructor) if they name order_token() as an update; by MPI, and by tasks of threads, that
/// needs MPI_THREAD_MULTIPLE. After ranks have recovered from an error all that sends and receives is a CommError: make new channels.
class Channels {
 public:
  /// out: where this rank may send to. Time and memory of the order of a rank's own channels. Collective.
  Channels(Communicator const& comm, std::span<Channel const> out, TransportChoice transport = default_transport());
  Channels(Channels&&) noexcept;
  Channels& operator=(Channels&&) noexcept;
  /// Everything that was put has been taken by then, and lent arrays were returned. Not collective; waits, and says so, for what MPI has
  /// not sent yet.
  ~Channels();

  /// For reports.
  std::string const& name() const;
  void set_name(std::string name);
  /// By (rank, label).
  std::span<Channel const> out() const;
  std::span<Channel const> in() const;
  /// Tasks that use these channels name it as an update: the communicator's, so that a task that waits for a message keeps its place
  /// among collective calls too.
  device::Array const& order_token() const;

  /// Copies the data and signals. Never waits: a receiver that falls behind costs memory of this rank. Cost: one cache line between ranks
  /// of one machine (up to 24 bytes).
  void put(int rank, std::span<std::byte const> data, int label = 0);
  using Ticket = std::uint64_t;
  /// The same without a copy, where that pays: the data must stay as they are until they are returned.
  Ticket lend(int rank, std::span<std::byte const> data, int label = 0);
  /// Whether the receiver has released what was lent.
  bool returned(Ticket ticket);
  bool all_returned();
  /// Messages of a channel that are not known to be released. Looks at all of that rank.
  std::int64_t under_way(int rank, int label = 0);

  /// From now on messages of that channel are delivered in this array, of at least max_bytes: one at a time, the next one after the
  /// release of the one before. Until then it is set aside, and other channels go on. An empty array ends that. What was delivered
  /// keeps the array that it is in until its release. May wait for a message that is on its way into the array before.
  void land_in(int rank, std::span<std::byte> array, int label = 0);

  struct Arrival {
    int rank = -1;
    int label = 0;
    std::span<std::byte const> data;  ///< until release()
    std::uint64_t key = 0;
    bool landed = false;  ///< in the array of land_in()
  };
  /// A message that has arrived, in turn among the senders; nothing if there is none.
  std::optional<Arrival> poll();
  /// The same, but waits; throws what another rank that fails reports.
  Arrival wait();
  /// In any order. The sender may use the place, or the array that it has lent, again.
  void release(Arrival const& arrival);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::comm
