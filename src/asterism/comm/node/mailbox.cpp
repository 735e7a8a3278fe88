#include "asterism/comm/node/mailbox.hpp"

#include <algorithm>
#include <new>

#include "asterism/base/error.hpp"

namespace asterism::comm::node {
namespace {

constexpr int value_bits = 40;
constexpr std::uint64_t value_mask = (std::uint64_t(1) << value_bits) - 1;

// never 0, which a fresh place holds
std::uint64_t tag(std::uint64_t number) { return number % 0xffffff + 1; }
std::uint64_t word(std::uint64_t number, std::uint64_t value) { return tag(number) << value_bits | value; }
bool of(std::uint64_t w, std::uint64_t number) { return w >> value_bits == tag(number); }

}  // namespace

Outbox::Outbox(Arena& arena) : arena_(arena) {
  tail_ = make_place();
  head_ = tail_->offset;
  // some more: the receiver's credits are lines in its cache, and are then looked at rarely and together
  for (int i = 0; i < 7; ++i) spare_.push_back(make_place());
}

Outbox::Place* Outbox::make_place() {
  auto p = std::make_unique<Place>();
  p->offset = arena_.allocate(sizeof(Message));
  p->message = new (arena_.at(p->offset)) Message{};
  all_.push_back(std::move(p));
  return all_.back().get();
}

Outbox::Place* Outbox::reserve() {
  if (spare_.empty()) collect();
  if (spare_.empty()) spare_.push_back(make_place());
  auto* const place = std::exchange(tail_, spare_.back());
  spare_.pop_back();
  place->number = count_++;
  place->message->next.store(word(place->number, tail_->offset / 64), std::memory_order_release);
  sent_.push_back(place);
  return place;
}

std::byte* Outbox::room(Place& place, std::int64_t bytes) {
  auto& m = *place.message;
  m.bytes = std::uint64_t(bytes);
  ASTERISM_REQUIRE(m.bytes <= value_mask, memory, "a message of {} bytes is too long for shared memory.", bytes);
  bytes_under_way_ += bytes;
  if (bytes <= Message::small_size) {
    m.data = 0;
    return m.small;
  }
  collect();
  auto const fit = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](Block const& b) { return b.capacity >= bytes; });
  if (fit != blocks_.rend()) {
    place.block = *fit;
    blocks_.erase(std::next(fit).base());
  } else {
    if (!blocks_.empty()) {  // too short: it was for messages of another kind
      arena_.release(blocks_.front().offset, blocks_.front().capacity);
      blocks_.erase(blocks_.begin());
    }
    place.block = {arena_.allocate(bytes), bytes};
  }
  m.data = place.block.offset;
  return arena_.at(place.block.offset);
}

void Outbox::publish(Place const& place, std::int64_t bytes) {
  place.message->ready.store(word(place.number, std::uint64_t(bytes)), std::memory_order_release);
}

void Outbox::collect() {
  // mostly the oldest are taken first; a receiver that ends its operations in another order is served too
  std::size_t const looked = std::min<std::size_t>(sent_.size(), 16);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < looked; ++i) {
    auto* const p = sent_[i];
    if (p->message->taken.load(std::memory_order_acquire) == p->number + 1) {
      bytes_under_way_ -= std::int64_t(p->message->bytes);
      if (p->block.capacity) blocks_.push_back(std::exchange(p->block, {}));
      spare_.push_back(p);
    } else {
      sent_[kept++] = p;
    }
  }
  if (kept < looked) sent_.erase(sent_.begin() + std::int64_t(kept), sent_.begin() + std::int64_t(looked));
}

std::int64_t Inbox::ready(Message const& m) { return std::int64_t(m.ready.load(std::memory_order_acquire) & value_mask); }

/// From message next_number_ to the one after it; false if its place is not known yet.
bool Inbox::follow() {
  auto const link = next_->next.load(std::memory_order_acquire);
  if (!of(link, next_number_)) return false;
  next_ = reinterpret_cast<Message*>(sender_->at((link & value_mask) * 64));
  ++next_number_;
  return true;
}

Message* Inbox::find(std::uint64_t number) {
  if (!next_) {
    auto const at = head_->load(std::memory_order_acquire);
    if (at == 0) return nullptr;
    next_ = reinterpret_cast<Message*>(sender_->at(at));
  }
  auto* m = next_;
  if (number < next_number_) {
    m = std::find_if(passed_.begin(), passed_.end(), [&](auto const& p) { return p.first == number; })->second;
  } else {
    while (next_number_ < number) {
      auto* const before = next_;
      if (!follow()) return nullptr;
      passed_.emplace_back(next_number_ - 1, before);
    }
    m = next_;
  }
  return of(m->ready.load(std::memory_order_acquire), number) ? m : nullptr;
}

void Inbox::take(std::uint64_t number) {
  auto* m = next_;
  if (number == next_number_) {
    bool const followed = follow();  // before the place is given back: its link may then change
    ASTERISM_ASSERT(followed);
  } else {
    auto const at = std::find_if(passed_.begin(), passed_.end(), [&](auto const& p) { return p.first == number; });
    ASTERISM_ASSERT(at != passed_.end());
    m = at->second;
    passed_.erase(at);
  }
  m->taken.store(number + 1, std::memory_order_release);
}

}  // namespace asterism::comm::node
