#include "asterism/comm/node/mailbox.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "asterism/base/error.hpp"

namespace asterism::comm::node {

Outbox::Outbox(Arena& arena, Doorbell* receiver)
    : arena_(arena),
      receiver_(receiver),
      credit_at_(arena.allocate(128)),
      credit_(new (arena.at(credit_at_)) std::atomic<std::uint64_t>(0)),
      protocol_(memory_, 15) {
  head_ = protocol_.tail()->offset;
}

Outbox::~Outbox() {
  collect();
  for (auto const& b : blocks_) arena_.release(b.offset, b.capacity);
}

Outbox::Slot* Outbox::make_slot() {
  auto s = std::make_unique<Slot>();
  s->offset = arena_.allocate(sizeof(Message));
  s->message = new (arena_.at(s->offset)) Message{};
  s->message->credit = credit_at_;
  slots_.push_back(std::move(s));
  return slots_.back().get();
}

void Outbox::returned(Sent const& sent) {
  auto& slot = *sent.place;
  slot.returned = sent.number + 1;
  bytes_under_way_ -= std::int64_t(slot.message->bytes);
  if (slot.counter) --*std::exchange(slot.counter, nullptr);
  if (slot.capacity) blocks_.push_back({slot.block, std::exchange(slot.capacity, 0)});
}

void Outbox::lend(Sent const& sent, Place place, std::byte const* array, std::int64_t bytes) {
  auto& m = *sent.place->message;
  m.bytes = std::uint64_t(bytes);
  m.place = place;
  m.hold.store(Hold::lent, std::memory_order_relaxed);
  m.data = place == Place::process ? 0 : arena_.offset_of(array);
  auto const address = std::uint64_t(reinterpret_cast<std::uintptr_t>(array));
  if (place == Place::process) std::memcpy(m.small, &address, sizeof address);
  bytes_under_way_ += bytes;
  publish(sent, bytes);
}

Outbox::Block Outbox::make_block(std::int64_t bytes) {
  collect();
  auto const fit = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](Block const& b) { return b.capacity >= bytes; });
  Block block;
  if (fit != blocks_.rend()) {
    block = *fit;
    blocks_.erase(std::next(fit).base());
  } else {
    if (!blocks_.empty()) {  // too short: it was for messages of another kind
      arena_.release(blocks_.front().offset, blocks_.front().capacity);
      blocks_.erase(blocks_.begin());
    }
    block = {arena_.allocate(bytes), bytes};
  }
  return block;
}

std::byte* Outbox::room(Sent const& sent, std::int64_t bytes) {
  auto& m = *sent.place->message;
  m.bytes = std::uint64_t(bytes);
  m.place = Place::message;
  ASTERISM_REQUIRE(m.bytes <= value_mask, memory, "a message of {} bytes is too long for shared memory.", bytes);
  bytes_under_way_ += bytes;
  if (bytes <= Message::small_size) {
    m.data = 0;
    return m.small;
  }
  auto const block = make_block(bytes);
  sent.place->block = block.offset;
  sent.place->capacity = block.capacity;
  m.data = block.offset;
  return arena_.at(block.offset);
}

void Outbox::put(Sent const& sent, std::uint32_t channel, std::byte const* data, std::int64_t bytes) {
  auto* const to = room(sent, bytes);
  sent.place->message->channel = channel;
  write(to, data, bytes);
  publish(sent, bytes);
}

void Inbox::read(Message const& m, std::int64_t first, std::int64_t n, std::byte* to) const {
  std::uint64_t address;
  std::memcpy(&address, m.small, sizeof address);
  if (!sender_->read_private(address + std::uint64_t(first), to, n))
    fail(ErrorKind::comm, "the system refused to read {} bytes of another process's memory: {}. Use -sf_transport p2p.", n,
         std::strerror(errno));
}

}  // namespace asterism::comm::node
