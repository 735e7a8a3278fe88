// What a rank knows of the ranks that it sends to and of those that send to it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "asterism/comm/channels/channels.hpp"
#include "asterism/comm/channels/mpi_ends.hpp"
#include "asterism/comm/node/mailbox.hpp"

namespace asterism::comm::channels {

inline constexpr std::uint64_t none = ~std::uint64_t(0);

struct OutChannel {
  Channel what;
  std::int64_t under_way = 0;
};

/// A rank that I send to.
struct Target {
  int rank = 0;
  std::vector<OutChannel> channels;  // by label
  std::unique_ptr<node::Outbox> box;
  std::unique_ptr<MpiSender> line;  // one of the two
};

struct InChannel {
  Channel what;
  std::span<std::byte> landing;
  std::uint64_t holder = none;       // the message that is in it, or on its way there
  int coming = 0;                    // by MPI: messages whose envelope was read, and which were not found yet
  std::deque<std::uint64_t> parked;  // set aside
  bool due = false;                  // one that was set aside is in the list of those that come next
  /// A message that comes now has to stand behind others, or needs an array that is in use.
  bool blocks(std::uint64_t number) const { return due || !parked.empty() || (!landing.empty() && holder != none && holder != number); }
};

/// A message that was found, until its release.
struct Held {
  std::uint64_t number = 0;
  node::Message* message = nullptr;  // within a machine
  std::size_t bytes = 0;
  std::uint32_t channel = 0;
  bool delivered = false;
  bool lent = false;
  Buffer buffer;  // of what came by MPI and not into an array, or lay in the sender's process

  /// Within a machine; delivered.
  Held(std::uint64_t n, node::Message* m) : number(n), message(m), bytes(std::size_t(m->bytes)), channel(m->channel), delivered(true) {}
  /// By MPI; not delivered yet.
  Held(std::uint64_t n, MpiReceiver::Message&& m)
      : number(n), bytes(std::size_t(m.bytes)), channel(m.channel), lent(m.lent), buffer(std::move(m.buffer)) {}
};

/// A rank that sends to me.
struct Source {
  int rank = 0;
  std::vector<InChannel> channels;  // by label
  std::unique_ptr<node::Inbox> box;
  std::unique_ptr<MpiReceiver> line;  // one of the two
  std::uint64_t next = 0;
  std::vector<Held> held;  // by number

  Held* find(std::uint64_t number) {
    if (!held.empty() && held.back().number == number) return &held.back();
    auto const at = std::lower_bound(held.begin(), held.end(), number, [](Held const& h, auto n) { return h.number < n; });
    return at != held.end() && at->number == number ? &*at : nullptr;
  }
};

struct Lent {
  Channels::Ticket ticket = 0;
  Target* target = nullptr;
  node::Outbox::Sent by_box;
  MpiSender::Sent by_mpi;
  bool returned() const { return target->box ? target->box->taken(by_box) : target->line->returned(by_mpi); }
};

template <class End>
End* with_rank(std::vector<End>& ends, int rank) {
  auto const at = std::lower_bound(ends.begin(), ends.end(), rank, [](End const& e, int r) { return e.rank < r; });
  return at != ends.end() && at->rank == rank ? &*at : nullptr;
}

template <class End>
auto* with_label(End& end, int label) {
  auto& all = end.channels;
  if (label >= 0 && std::size_t(label) < all.size() && all[std::size_t(label)].what.label == label) return &all[std::size_t(label)];
  auto const at = std::lower_bound(all.begin(), all.end(), label, [](auto const& c, int l) { return c.what.label < l; });
  return at != all.end() && at->what.label == label ? &*at : nullptr;
}

}  // namespace asterism::comm::channels
