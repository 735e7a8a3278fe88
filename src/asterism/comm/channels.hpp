// Messages that come when they come, for work that is driven by them: put with signal, poll what arrived, release.
//
// The layer beside the bulk operations of star forests: who sends to whom is known beforehand, when is not. Between ranks of
// one machine a message is written into memory that the receiver polls (node/mailbox.hpp: data, release, arrival flag, and
// the receiver's release is the credit with which its place is used again); between machines it is an MPI_Isend into one of
// the receives that are always posted. Messages of one sender arrive in its order. After the one-sided puts of Ding et al. (2021).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/transport/choice.hpp"

namespace asterism::comm {

class Channels {
 public:
  /// to: the ranks that I may send to, myself not among them. max_bytes: of one message, the same on all ranks. Collective.
  Channels(Communicator const& comm, std::span<int const> to, std::int64_t max_bytes, TransportChoice transport = default_transport());
  Channels(Channels&&) noexcept;
  Channels& operator=(Channels&&) noexcept;
  /// Everything that was put has been taken by then. Not collective; waits, and says so, for what MPI has not sent yet.
  ~Channels();

  /// For reports.
  std::string const& name() const;
  void set_name(std::string name);
  /// Ranks that may send to me, ascending.
  std::span<int const> sources() const;
  /// Copies the data and signals. Never waits. Cost: one cache line between ranks of one machine (up to 24 bytes).
  void put(int rank, std::span<std::byte const> data);

  struct Arrival {
    int rank = -1;
    std::span<std::byte const> data;  ///< until release()
    std::uint64_t key = 0;
  };
  /// A message that has arrived, in turn among the senders; nothing if there is none.
  std::optional<Arrival> poll();
  /// The same, but waits.
  Arrival wait();
  /// The sender may use the place again.
  void release(Arrival const& arrival);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::comm
