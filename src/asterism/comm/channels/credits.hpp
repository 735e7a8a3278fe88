// Which messages of a sender the receiver has released, as the receiver tells by messages of its own: the credits of channels by MPI.
//
// (Within a machine the mailbox's credit word says the same, node/protocol.hpp.) Messages are numbered in the order in which they are
// sent. A credit says: all below a number are released, and these few above it. Credits arrive in their order; every interleaving of
// them is tested in tests/cpp/comm/credits_test.cpp. A message the other way may carry the first half of a credit and overtake others,
// which then say nothing new.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace asterism::comm::channels {

struct Credit {
  static constexpr int most_others = 6;
  std::uint64_t below = 0;  ///< all messages before this one
  std::uint32_t count = 0;  ///< of the others
  std::uint64_t others[most_others] = {};
};

/// The receiver's end. Line: send(Credit const&).
template <class Line>
class Releases {
 public:
  /// Credits are told by themselves when `batch` have come together.
  Releases(Line& line, int batch) : line_(line), batch_(batch) {}
  /// In any order, each once. at_once: the sender may wait for this one.
  void release(std::uint64_t number, bool at_once) {
    if (number == below_) {
      for (++below_; !above_.empty() && above_.front() == below_; ++below_) above_.erase(above_.begin());
    } else {
      above_.insert(std::lower_bound(above_.begin(), above_.end(), number), number);
      untold_above_.push_back(number);
    }
    if (++untold_ >= batch_ || at_once) flush();
  }
  /// All before this number are released: for a message to the sender, which then takes the place of a credit.
  std::uint64_t carried() {
    if (untold_above_.empty()) untold_ = 0;
    return below_;
  }
  /// Tells what was not told.
  void flush() {
    if (untold_ == 0) return;
    untold_ = 0;
    auto const numbers = std::exchange(untold_above_, {});
    Credit c{below_, 0, {}};
    for (auto const n : numbers) {
      if (n < below_) continue;
      if (c.count == Credit::most_others) {
        line_.send(c);
        c.count = 0;
      }
      c.others[c.count++] = n;
    }
    line_.send(c);
  }

 private:
  Line& line_;
  int batch_, untold_ = 0;
  std::uint64_t below_ = 0;
  std::vector<std::uint64_t> above_, untold_above_;  // above_ ascending
};

/// The sender's end.
template <class Message>
class Unreleased {
 public:
  /// The number of the next message.
  std::uint64_t send(Message m) {
    open_.push_back({std::move(m), false});
    return first_ + open_.size() - 1;
  }
  /// released(message) for each that was not known to be.
  template <class F>
  void take(Credit const& c, F const& released) {
    auto const mark = [&](Open& o) {
      if (!std::exchange(o.released, true)) released(o.message);
    };
    for (std::uint32_t i = 0; i < c.count; ++i)
      if (c.others[i] >= first_) mark(open_[std::size_t(c.others[i] - first_)]);
    for (; !open_.empty() && (first_ < c.below || open_.front().released); ++first_) {
      mark(open_.front());
      open_.pop_front();
    }
  }
  /// The first that is not known to be released.
  std::uint64_t first() const { return first_; }
  bool released(std::uint64_t number) const { return number < first_ || open_[std::size_t(number - first_)].released; }
  bool empty() const { return open_.empty(); }

 private:
  struct Open {
    Message message;
    bool released;
  };
  std::deque<Open> open_;  // the first is not released
  std::uint64_t first_ = 0;
};

}  // namespace asterism::comm::channels
