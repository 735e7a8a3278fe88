// Messages from one process to another through the sender's arena, in order, without MPI and without limit.
//
// The protocol is that of protocol.hpp. A message of up to 24 bytes is one cache line that moves once; a longer one lies in
// a block beside it. In a steady state a few places and blocks go round, whose memory stays in the caches.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "asterism/comm/node/arena.hpp"
#include "asterism/comm/node/block_writer.hpp"
#include "asterism/comm/node/protocol.hpp"

namespace asterism::comm::node {

/// Where the values of a message are.
enum class Place : std::uint8_t {
  message,  ///< in its block, one behind the other
  block,    ///< in the sender's arena, one behind the other
  array,    ///< at their places in an array of the sender's arena
  process,  ///< in memory of the sender that is not shared, one behind the other; the message holds its address
};

/// Who may do what with lent values: whoever changes `lent` first, the receiver to read them or the sender to have them back.
enum class Hold : std::uint8_t { lent, reading, revoked };

struct Message {
  static constexpr std::int64_t small_size = 24;
  alignas(128) std::atomic<std::uint64_t> ready;  ///< bytes that can be read
  std::atomic<std::uint64_t> next;                ///< offset / 64 of the next message's place
  std::uint64_t bytes;                            ///< of the whole message
  std::uint64_t data;                             ///< offset of the block they are in, 0: in `small`
  Place place;
  std::atomic<Hold> hold;  ///< of values that are lent
  std::uint32_t channel;   ///< for the caller: which of several that share the mailbox
  alignas(8) std::byte small[small_size];
  // the second line hardly changes
  alignas(64) std::atomic<std::uint64_t> taken;  ///< by the receiver, out of order
  std::uint64_t copy;                            ///< of what was revoked: offset of its block
  std::uint64_t credit;                          ///< offset of the chain's
};

static_assert(sizeof(Message) == 128);

namespace detail {
inline std::uint64_t load(Message const& m, Word w) {
  return (w == Word::ready ? m.ready : w == Word::next ? m.next : m.taken).load(std::memory_order_acquire);
}
inline void store(Message& m, Word w, std::uint64_t value) {
  (w == Word::ready ? m.ready : w == Word::next ? m.next : m.taken).store(value, std::memory_order_release);
}
}  // namespace detail

/// The sending end. Not thread-safe.
class Outbox {
 public:
  /// receiver: rung when there is something for it.
  explicit Outbox(Arena& arena, Doorbell* receiver = nullptr);
  /// Gives the blocks of taken messages back. The places, some 128 bytes each, stay: the receiver may look at one once more.
  ~Outbox();
  Outbox(Outbox const&) = delete;
  /// Offset of the first message's place.
  std::uint64_t head() const { return head_; }

  /// A message's place and the block that its data lie in.
  struct Slot {
    Message* message = nullptr;
    std::uint64_t offset = 0, block = 0;
    std::int64_t capacity = 0;
    std::uint64_t returned = 0;       ///< number + 1 of the last message that was taken back from here
    std::int64_t* counter = nullptr;  ///< the caller's, one less when the message is taken back
  };
  struct Memory {
    using Place = Slot*;
    Outbox& box;
    Place make_place() { return box.make_slot(); }
    static std::uint64_t id(Place p) { return p->offset / 64; }
    static std::uint64_t load(Place p, Word w) { return detail::load(*p->message, w); }
    static void store(Place p, Word w, std::uint64_t value) { detail::store(*p->message, w, value); }
    std::uint64_t load_credit() const { return box.credit_->load(std::memory_order_acquire); }
  };
  using Sent = SendProtocol<Memory>::Sent;

  /// The next message's place. Never waits. Several may be reserved before the first is published.
  Sent reserve() {
    return protocol_.reserve([this](Sent const& s) { returned(s); });
  }
  /// Where its data goes; publish() them afterwards.
  std::byte* room(Sent const& sent, std::int64_t bytes);
  /// Copies into that room.
  void write(std::byte* to, std::byte const* from, std::int64_t bytes) {
    if (bytes >= BlockWriter::from) return writer_.copy(to, from, bytes);
    if (bytes > 0) std::memcpy(to, from, std::size_t(bytes));
  }
  BlockWriter& writer() { return writer_; }
  BlockWriter const& writer() const { return writer_; }
  /// The first `bytes` bytes may be read. `ring`: a receiver that sleeps is woken; what comes last must do so.
  void publish(Sent const& sent, std::int64_t bytes, bool ring = true) {
    protocol_.publish(sent, std::uint64_t(bytes));
    if (ring && receiver_) receiver_->ring();
  }
  /// Copies the data and publishes them.
  void put(Sent const& sent, std::uint32_t channel, std::byte const* data, std::int64_t bytes);
  /// Instead of data: the receiver reads them where they lie, which must stay as it is until taken(), or until it is revoked.
  void lend(Sent const& sent, Place place, std::byte const* array, std::int64_t bytes);
  /// Puts a copy in their place if nobody is reading them: fill(where it goes). False if somebody is.
  template <class F>
  bool revoke(Sent const& sent, F const& fill) {
    auto& m = *sent.place->message;
    if (m.hold.load(std::memory_order_acquire) != Hold::lent) return false;
    auto const block = make_block(std::int64_t(m.bytes));
    fill(arena_.at(block.offset));
    m.copy = block.offset;
    auto expected = Hold::lent;
    if (!m.hold.compare_exchange_strong(expected, Hold::revoked, std::memory_order_acq_rel)) {
      blocks_.push_back(block);
      return false;
    }
    sent.place->block = block.offset;
    sent.place->capacity = block.capacity;
    return true;
  }
  bool taken(Sent const& sent) const { return sent.place->returned > sent.number || protocol_.taken(sent); }
  /// Takes back places that the receiver is done with. `others`: as in the protocol.
  void collect(std::size_t others = 16) {
    protocol_.collect([this](Sent const& s) { returned(s); }, others);
  }
  /// Messages and bytes not known to be taken, as of the last collect().
  std::size_t under_way() const { return protocol_.under_way(); }
  std::int64_t bytes_under_way() const { return bytes_under_way_; }

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::int64_t capacity = 0;
  };
  Slot* make_slot();
  Block make_block(std::int64_t bytes);
  void returned(Sent const& sent);
  Arena& arena_;
  Doorbell* receiver_;
  std::uint64_t credit_at_;
  std::atomic<std::uint64_t> const* credit_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Block> blocks_;  // free ones; the one that came back last is used first, it is in the cache
  Memory memory_{*this};
  SendProtocol<Memory> protocol_;
  BlockWriter writer_;
  std::uint64_t head_ = 0;
  std::int64_t bytes_under_way_ = 0;
};

/// The receiving end. Not thread-safe.
class Inbox {
 public:
  /// `head`: where the sender writes its head() when it has one; not 0 then.
  Inbox(std::shared_ptr<Mapping const> sender, std::atomic<std::uint64_t> const* head)
      : sender_(std::move(sender)), head_(head), memory_{*sender_}, protocol_(memory_) {}
  /// The sender's head() is known.
  Inbox(std::shared_ptr<Mapping const> sender, std::uint64_t head) : Inbox(std::move(sender), nullptr) { connect(head); }
  Inbox(Inbox const&) = delete;
  /// The number of the next message. To be called in the order in which the sender reserves.
  std::uint64_t expect() { return expected_++; }
  /// The message if its publication has begun, else nullptr.
  Message* find(std::uint64_t number) {
    if (!protocol_.connected()) {
      auto const at = head_->load(std::memory_order_acquire);
      if (at == 0) return nullptr;
      connect(at);
    }
    return protocol_.find(number);
  }
  std::int64_t ready(Message& m) const { return std::int64_t(protocol_.ready(&m)); }
  std::byte const* data(Message const& m) const { return m.data ? sender_->at(m.data) : m.small; }
  /// Of lent values, before they are read: where a copy of them lies if they were revoked, else nullptr.
  std::byte const* claim(Message& m) const {
    auto expected = Hold::lent;
    return m.hold.compare_exchange_strong(expected, Hold::reading, std::memory_order_acq_rel) ? nullptr : sender_->at(m.copy);
  }
  /// Of a message in the sender's process: bytes first ... first + n - 1. Throws a CommError if the system refuses.
  void read(Message const& m, std::int64_t first, std::int64_t n, std::byte* to) const;
  /// Gives its place back to the sender; the message has been found.
  void take(std::uint64_t number) {
    protocol_.take(number);
    sender_->head().bell.ring();  // it may wait for the credit
  }

 private:
  struct Memory {
    using Place = Message*;
    Mapping const& sender;
    std::atomic<std::uint64_t>* credit = nullptr;
    Place place(std::uint64_t id) const { return reinterpret_cast<Message*>(sender.at(id * 64)); }
    static std::uint64_t load(Place p, Word w) { return detail::load(*p, w); }
    static void store(Place p, Word w, std::uint64_t value) { detail::store(*p, w, value); }
    void store_credit(std::uint64_t value) const { credit->store(value, std::memory_order_release); }
  };
  void connect(std::uint64_t head) {
    auto* const first = memory_.place(head / 64);
    memory_.credit = reinterpret_cast<std::atomic<std::uint64_t>*>(sender_->at(first->credit));
    protocol_.connect(first);
  }
  std::shared_ptr<Mapping const> sender_;
  std::atomic<std::uint64_t> const* head_;
  Memory memory_;
  ReceiveProtocol<Memory> protocol_;
  std::uint64_t expected_ = 0;
};

}  // namespace asterism::comm::node
