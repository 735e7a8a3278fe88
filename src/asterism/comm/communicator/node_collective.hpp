// Small collective calls of a communicator whose ranks all share memory: messages between each two through their mailboxes, no MPI.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

class NodeCollective {
 public:
  /// Whether the ranks share memory and are few enough that a message between each two is quick.
  static bool serves(Communicator const& comm);
  /// Receives what all other ranks send in this call, or what the rank `only` sends.
  explicit NodeCollective(Communicator const& comm, int only = -1);
  /// Never waits. In the order of the ranks, to all others or from `only` to all others.
  void send(int rank, std::span<std::byte const> data) { send(rank, {}, data); }
  /// One behind the other.
  void send(int rank, std::span<std::byte const> head, std::span<std::byte const> data);
  void send_to_all(std::span<std::byte const> data);
  /// f(rank, bytes) for what each other rank sent, in their order; aligned to 8, and there during the call only. Waits.
  template <class F>
  void receive(F const& f) {
    for (auto const& e : expected_) {
      auto const data = arrived(e);
      struct Taken {
        NodeCollective& call;
        Expected const& message;
        ~Taken() { call.take(message); }
      } const taken{*this, e};
      f(e.rank, data);
    }
  }

 private:
  struct Expected {
    int rank;
    std::uint64_t number;
  };
  std::span<std::byte const> arrived(Expected const& e);
  void take(Expected const& e);
  Communicator comm_;
  std::vector<Expected> expected_;
};

}  // namespace asterism::comm
