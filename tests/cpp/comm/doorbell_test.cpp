// Every interleaving of one rank that rings another's doorbell (comm/node/arena.hpp) and one that goes to sleep
// (comm/communicator/wait.cpp), one memory access at a time, on a machine whose stores wait in a buffer (x86's, TSO). A wake-up that is
// lost is a sleep without end.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace {

/// What may be planted.
struct Faults {
  bool no_fence = false;          // ring() looks at `sleepers` while its store still waits
  bool no_second_look = false;    // the sleeper does not look again after it has announced itself
  bool word_read_late = false;    // it reads the bell's word after that look instead of before
  bool word_not_changed = false;  // ring() wakes without changing the word
  bool last_is_silent = false;    // the last piece of a message does not ring
};

/// What is sent and how: messages of so many pieces, of which the first and the last ring; and how often somebody else rings.
struct Case {
  int messages = 1, pieces = 1, strangers = 0;
};

/// Doorbell::ring() after the store of what is waited for. On the other side one Wait for each message: it takes what is there, piece by
/// piece, and sleeps as Wait::sleep() does.
struct Machine {
  int data = 0, word = 0, sleepers = 0;  // memory
  int buffered = 0;                      // the ringer's store that waits; 0: none
  int ringer = 0, rung = 0;              // where it is, and how many pieces it has sent
  int stranger = 0, strangers = 0;       // the same of one who rings without having anything
  int sleeper = 0, heard = 0, taken = 0;
  bool announced = false, asleep = false;
  auto key() const {
    return std::tuple(data, word, sleepers, buffered, ringer, rung, stranger, strangers, sleeper, heard, taken, announced, asleep);
  }
};

struct Explorer {
  Faults faults;
  Case what;
  std::set<decltype(Machine().key())> seen;
  bool lost = false;

  enum { store, fence, look, change, wake, done };
  enum { see, sleep_or_announce, awake, through };

  int all() const { return what.messages * what.pieces; }
  bool silent(int piece) const {
    bool const last = (piece + 1) % what.pieces == 0;
    return last ? faults.last_is_silent : piece % what.pieces != 0;
  }
  bool ring(Machine& m) const {  // one step of it; false: none is possible
    switch (m.ringer) {
      case store:
        if (m.buffered) return false;
        m.buffered = m.rung + 1;
        m.ringer = silent(m.rung) ? done : faults.no_fence ? look : fence;
        break;
      case fence:
        if (m.buffered) return false;
        m.ringer = look;
        return true;
      case look: m.ringer = m.sleepers ? change : done; break;
      case change:  // a locked instruction: the buffer is empty before it
        if (m.buffered) return false;
        m.word += !faults.word_not_changed;
        m.ringer = wake;
        break;
      case wake:
        m.asleep = false;
        m.ringer = done;
        break;
      default: return false;
    }
    if (m.ringer == done && ++m.rung < all()) m.ringer = store;
    return true;
  }
  bool ring_for_nothing(Machine& m) const {
    if (m.strangers == what.strangers) return false;
    if (m.stranger == 0 && m.sleepers) {
      ++m.word;
      m.stranger = 1;
      return true;
    }
    if (m.stranger == 1) m.asleep = false;
    m.stranger = 0;
    ++m.strangers;
    return true;
  }
  bool drain(Machine& m) const {
    if (!m.buffered) return false;
    m.data = m.buffered;
    m.buffered = 0;
    return true;
  }
  bool sleep(Machine& m) const {
    if (m.asleep) return false;
    switch (m.sleeper) {
      case see: {
        int const end = (m.taken / what.pieces + 1) * what.pieces;  // of the message
        if (m.data == m.taken) {
          m.sleeper = sleep_or_announce;
          return true;
        }
        m.taken = std::min(m.data, end);
        if (m.taken == end) {  // its Wait is gone, the next one has not been announced
          m.sleepers -= m.announced;
          m.announced = false;
        }
        if (m.taken == all()) m.sleeper = through;
        return true;
      }
      case sleep_or_announce:
        if (!m.announced) {  // the word is read, then `sleepers` is raised; other accesses between the two change nothing that matters here
          m.heard = m.word;
          ++m.sleepers;
          m.announced = true;
          if (!faults.no_second_look) m.sleeper = see;
          return true;
        }
        if (faults.word_read_late) m.heard = m.word;
        if (m.word == m.heard) m.asleep = true;  // futex_wait: the kernel compares and puts to sleep at once
        m.sleeper = awake;
        return true;
      case awake:
        m.heard = m.word;
        m.sleeper = see;
        return true;
      default: return false;
    }
  }
  void from(Machine const& m) {
    if (lost || !seen.insert(m.key()).second) return;
    bool any = false;
    for (auto step : {&Explorer::ring, &Explorer::ring_for_nothing, &Explorer::drain, &Explorer::sleep}) {
      auto next = m;
      if (!(this->*step)(next)) continue;
      any = true;
      from(next);
    }
    if (!any && m.sleeper != through) lost = true;
  }
};

bool loses_a_wake_up(Faults faults, Case what) {
  Explorer e{faults, what, {}};
  e.from({});
  EXPECT_GT(e.seen.size(), 10u);
  return e.lost;
}

TEST(Doorbell, NoWakeUpIsLost) {
  for (int messages : {1, 2, 3})
    for (int pieces : {1, 2, 3, 5})
      for (int strangers : {0, 1, 2}) EXPECT_FALSE(loses_a_wake_up({}, {messages, pieces, strangers})) << messages << " of " << pieces;
}

TEST(Doorbell, PlantedFaultsAreFound) {
  for (int strangers : {0, 1}) {
    EXPECT_TRUE(loses_a_wake_up({.no_fence = true}, {1, 1, strangers}));
    EXPECT_TRUE(loses_a_wake_up({.no_second_look = true}, {1, 1, strangers}));
    EXPECT_TRUE(loses_a_wake_up({.word_read_late = true}, {1, 1, strangers}));
    EXPECT_TRUE(loses_a_wake_up({.word_not_changed = true}, {1, 1, strangers}));
    EXPECT_TRUE(loses_a_wake_up({.last_is_silent = true}, {1, 3, strangers}));
    EXPECT_TRUE(loses_a_wake_up({.last_is_silent = true}, {2, 3, strangers}));
  }
}

}  // namespace
