// Messages from one process to another through the sender's arena, in order, without MPI and without limit.
//
// A chain of messages. Each names the place of the next one before it is itself published, so the receiver always polls
// the very line in which the next message appears: a message of up to 32 bytes is one cache line that moves once. The
// sender takes back the places that the receiver has marked as taken, so in a steady state a few places go round and their
// memory stays in the caches. A message can be published in parts while the sender still fills it.
//
//   sender:   [free place as tail] -> reserve: tail = m, link m -> new tail -> fill, publish (once or in parts)
//   receiver: poll m.ready -> read data -> follow m.next -> m.taken = its number (the credit)
//
// Sender and receiver number the messages alike, each from its own program order.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "asterism/comm/node/arena.hpp"

namespace asterism::comm::node {

struct Message {
  static constexpr std::int64_t small_size = 32;
  // words hold the message's number (24 bits of it) above 40 bits, so that a word of the place's last use says nothing
  alignas(64) std::atomic<std::uint64_t> ready;  ///< by the sender: bytes that can be read
  std::atomic<std::uint64_t> next;               ///< by the sender, before ready: place of the next message
  std::uint64_t bytes;                           ///< of the whole message
  std::uint64_t data;                            ///< offset of the block they are in, 0: in `small`
  std::byte small[small_size];
  alignas(64) std::atomic<std::uint64_t> taken;  ///< by the receiver: number + 1
};

/// The sending end. Not thread-safe.
class Outbox {
 public:
  explicit Outbox(Arena& arena);
  /// Offset of the first message.
  std::uint64_t head() const { return head_; }

  struct Block {
    std::uint64_t offset = 0;
    std::int64_t capacity = 0;
  };
  struct Place {
    Message* message = nullptr;
    std::uint64_t offset = 0, number = 0;
    Block block;
  };
  /// The next message's place. Never waits. Several may be reserved before the first is published.
  Place* reserve();
  /// Where its data goes; publish() them afterwards.
  std::byte* room(Place& place, std::int64_t bytes);
  /// The first `bytes` bytes may be read.
  void publish(Place const& place, std::int64_t bytes);
  /// Takes back places that the receiver is done with.
  void collect();
  /// Messages reserved and not known to be taken, as of the last collect().
  std::size_t under_way() const { return sent_.size(); }
  std::int64_t bytes_under_way() const { return bytes_under_way_; }

 private:
  Place* make_place();
  Arena& arena_;
  std::vector<std::unique_ptr<Place>> all_;
  std::vector<Place*> spare_, sent_;
  std::vector<Block> blocks_;  // free ones; the one that came back last is used first, it is in the cache
  Place* tail_ = nullptr;
  std::uint64_t head_ = 0, count_ = 0;
  std::int64_t bytes_under_way_ = 0;
};

/// The receiving end. Not thread-safe.
class Inbox {
 public:
  /// `head`: where the sender writes its head() when it has one; not 0 then.
  Inbox(std::shared_ptr<Mapping const> sender, std::atomic<std::uint64_t> const* head) : sender_(std::move(sender)), head_(head) {}
  /// The number of the next message. To be called in the order in which the sender reserves.
  std::uint64_t expect() { return expected_++; }
  /// The message if its publication has begun, else nullptr.
  Message* find(std::uint64_t number);
  static std::int64_t ready(Message const& m);
  std::byte const* data(Message const& m) const { return m.data ? sender_->at(m.data) : m.small; }
  /// Gives its place back to the sender; the message has been found.
  void take(std::uint64_t number);

 private:
  bool follow();
  std::shared_ptr<Mapping const> sender_;
  std::atomic<std::uint64_t> const* head_;
  Message* next_ = nullptr;  // place of message next_number_
  std::uint64_t next_number_ = 0, expected_ = 0;
  std::vector<std::pair<std::uint64_t, Message*>> passed_;  // earlier ones, not taken yet
};

}  // namespace asterism::comm::node
