// The order of reads and writes by which one process hands messages to another, over an abstract memory.
//
// A chain of places, one for each message. A place has three words: `ready` and `next` are the sender's, `taken` the
// receiver's. The sender names the place of message n + 1 in the place of message n before n is published, so the receiver
// always polls the very place in which the next message will appear, and there is no limit to the messages under way. A
// place whose message was taken is used again: the receiver counts in the one word `credit` up to where it has taken all, and
// marks what it takes in another order in the place. (The sender looks at the credit rarely, so the receiver mostly owns its
// line. Marking every place cost a far receiver a fetch of that line for each message, for which its own next store waited.)
// Words of a place carry the number of their message, so what the place's last use left there says nothing.
//
//   sender:   reserve n: tail = n's place, new tail  ->  fill  ->  n.next  ->  n.ready (the arrival flag; once or in parts)
//   receiver: n.ready -> read -> n.next -> credit or n.taken
//
// Memory has: Place (a handle, {} is none), place(id) and id(place), make_place(), load(place, Word) and load_credit() that
// later reads of the caller cannot overtake (acquire), store(place, Word, value) and store_credit(value) that cannot overtake
// what the caller did before (release). The mailbox runs on shared memory (mailbox.hpp), the model check in
// tests/cpp/comm/protocol_test.cpp on one that it enumerates.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "asterism/base/error.hpp"

namespace asterism::comm::node {

enum class Word : std::uint8_t { ready, next, taken };

inline constexpr int value_bits = 40;
inline constexpr std::uint64_t value_mask = (std::uint64_t(1) << value_bits) - 1;
// never 0, which a fresh place holds
inline std::uint64_t numbered(std::uint64_t number, std::uint64_t value) { return (number % 0xffffff + 1) << value_bits | value; }
inline bool has_number(std::uint64_t word, std::uint64_t number) { return word >> value_bits == number % 0xffffff + 1; }

template <class Memory>
class SendProtocol {
 public:
  using Place = typename Memory::Place;
  struct Sent {
    Place place{};
    std::uint64_t number = 0;
  };
  /// `spare` places more than the one of the first message: the receiver's credits are then looked at rarely and together.
  SendProtocol(Memory& memory, int spare) : memory_(memory), tail_(memory.make_place()) {
    for (int i = 0; i < spare; ++i) spare_.push_back({memory.make_place(), never});
  }
  /// Place of the next message.
  Place tail() const { return tail_; }

  /// The next message's place. Several may be reserved before the first is published. returned(sent): as collect().
  template <class F>
  Sent reserve(F const& returned) {
    if (spare_.empty()) collect(returned);
    if (spare_.empty()) spare_.push_back({memory_.make_place(), never});
    auto const next = spare_.back();
    spare_.pop_back();
    Sent const sent{std::exchange(tail_, next.place), count_++};
    if (next.number != never && numbered(next.number, 0) == numbered(count_, 0))  // numbers come again: what it holds would be believed
      for (auto const word : {Word::ready, Word::next, Word::taken}) memory_.store(tail_, word, 0);
    under_way_.push_back(sent);
    return sent;
  }
  void publish(Sent const& sent, std::uint64_t value) {
    // Links are written only now, with the flag: the receiver polls this line, and would take it away in between. Also those of
    // messages reserved before this one that are published later.
    for (; linked_ <= sent.number; ++linked_) {
      auto const i = under_way_.size() - std::size_t(count_ - linked_);  // what is not linked is not taken
      memory_.store(under_way_[i].place, Word::next,
                    numbered(linked_, memory_.id(i + 1 < under_way_.size() ? under_way_[i + 1].place : tail_)));
    }
    memory_.store(sent.place, Word::ready, numbered(sent.number, value));
  }
  /// Takes back places that the receiver is done with: returned(sent) for each. Of those taken in another order it looks at the
  /// `others` oldest.
  template <class F>
  void collect(F const& returned, std::size_t others = 16) {
    auto const credit = memory_.load_credit();
    std::size_t i = 0, kept = 0;
    for (; i < under_way_.size() && (under_way_[i].number < credit || others-- > 0); ++i) {
      auto const sent = under_way_[i];
      if (sent.number < credit || marked(sent)) {
        spare_.push_back(sent);
        returned(sent);
      } else {
        under_way_[kept++] = sent;
      }
    }
    under_way_.erase(under_way_.begin() + std::ptrdiff_t(kept), under_way_.begin() + std::ptrdiff_t(i));
  }
  /// Whether the receiver is done with a message whose place was not taken back yet.
  bool taken(Sent const& sent) const { return sent.number < memory_.load_credit() || marked(sent); }
  /// Messages reserved and not known to be taken.
  std::size_t under_way() const { return under_way_.size(); }

 private:
  bool marked(Sent const& sent) const { return memory_.load(sent.place, Word::taken) == numbered(sent.number, 0); }
  Memory& memory_;
  static constexpr auto never = ~std::uint64_t(0);
  std::vector<Sent> spare_;      // with the last message that was there
  std::vector<Sent> under_way_;  // ascending
  Place tail_;
  std::uint64_t count_ = 0, linked_ = 0;
};

template <class Memory>
class ReceiveProtocol {
 public:
  using Place = typename Memory::Place;
  explicit ReceiveProtocol(Memory& memory) : memory_(memory) {}
  bool connected() const { return next_ != Place{}; }
  void connect(Place first) { next_ = first; }

  /// The message's place once its publication has begun, else {}.
  Place find(std::uint64_t number) {
    auto place = next_;
    if (number < next_number_) {
      place = passed(number)->second;
    } else {
      while (next_number_ < number) {
        auto const before = next_;
        if (!follow()) return {};
        passed_.emplace_back(next_number_ - 1, before);
      }
      place = next_;
    }
    return has_number(memory_.load(place, Word::ready), number) ? place : Place{};
  }
  std::uint64_t ready(Place place) const { return memory_.load(place, Word::ready) & value_mask; }
  /// Gives its place back to the sender; the message has been found, its data were read.
  void take(std::uint64_t number) {
    auto place = next_;
    if (number == next_number_) {
      bool const followed = follow();  // before the place is given back: its link may then change
      ASTERISM_ASSERT(followed);
    } else {
      auto const at = passed(number);
      place = at->second;
      passed_.erase(at);
    }
    auto const open = passed_.empty() ? next_number_ : passed_.front().first;  // the first that was not taken
    if (open > number) memory_.store_credit(open);
    else memory_.store(place, Word::taken, numbered(number, 0));
  }

 private:
  auto passed(std::uint64_t number) {
    auto const at = std::lower_bound(passed_.begin(), passed_.end(), number, [](auto const& p, auto n) { return p.first < n; });
    ASTERISM_ASSERT(at != passed_.end() && at->first == number);
    return at;
  }
  /// From message next_number_ to the one after it; false if its place is not known yet.
  bool follow() {
    auto const link = memory_.load(next_, Word::next);
    if (!has_number(link, next_number_)) return false;
    next_ = memory_.place(link & value_mask);
    ++next_number_;
    return true;
  }
  Memory& memory_;
  Place next_{};  // of message next_number_
  std::uint64_t next_number_ = 0;
  std::vector<std::pair<std::uint64_t, Place>> passed_;  // earlier ones, not taken yet, ascending
};

}  // namespace asterism::comm::node
