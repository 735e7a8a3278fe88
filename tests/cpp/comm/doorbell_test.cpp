// Every interleaving of one rank that rings another's doorbell (comm/node/arena.hpp) and one that goes to sleep
// (comm/communicator/wait.cpp), one memory access at a time, on a machine whose stores wait in a buffer (x86's, TSO). A wake-up that is
// lost is a sleep without end.
#include <gtest/gtest.h>

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

/// Doorbell::ring() after the store of what is waited for, `messages` times, or only after the first and the last one, as of a message in
/// pieces; and Wait::sleep() until all have come.
struct Machine {
  int data = 0, word = 0, sleepers = 0;  // memory
  int buffered = 0;                      // the ringer's store that waits; 0: none
  int ringer = 0, rung = 0;              // where it is, and how many messages it has sent
  int sleeper = 0, heard = 0;
  bool asleep = false;
  auto key() const { return std::tuple(data, word, sleepers, buffered, ringer, rung, sleeper, heard, asleep); }
};

struct Explorer {
  Faults faults;
  int messages;
  bool pieces;
  std::set<decltype(Machine().key())> seen;
  long states = 0;
  bool lost = false;

  enum { store, fence, look, change, wake, done };
  enum { first_look, announce, second_look, wait, awake, through };

  bool silent(int piece) const {
    if (piece == messages - 1) return faults.last_is_silent;
    return pieces && piece > 0;
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
    if (m.ringer == done && ++m.rung < messages) m.ringer = store;
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
      case first_look: m.sleeper = m.data == messages ? through : announce; return true;
      case announce:  // the word is read, then `sleepers` is raised; other accesses between the two change nothing that matters here
        if (!faults.word_read_late) m.heard = m.word;
        ++m.sleepers;
        m.sleeper = faults.no_second_look ? wait : second_look;
        return true;
      case second_look:
        if (m.data == messages) {
          --m.sleepers;
          m.sleeper = through;
          return true;
        }
        m.sleeper = wait;
        return true;
      case wait:  // futex_wait: the kernel compares and puts to sleep at once
        if (faults.word_read_late) m.heard = m.word;
        if (m.word == m.heard) m.asleep = true;
        m.sleeper = awake;
        return true;
      case awake:
        m.heard = m.word;
        m.sleeper = second_look;
        return true;
      default: return false;
    }
  }
  void from(Machine const& m) {
    if (lost || !seen.insert(m.key()).second) return;
    ++states;
    bool any = false;
    for (auto step : {&Explorer::ring, &Explorer::drain, &Explorer::sleep}) {
      auto next = m;
      if (!(this->*step)(next)) continue;
      any = true;
      from(next);
    }
    if (!any && m.sleeper != through) lost = true;
  }
};

bool loses_a_wake_up(Faults faults, int messages, bool pieces = false) {
  Explorer e{faults, messages, pieces, {}};
  e.from({});
  EXPECT_GT(e.states, 10);
  return e.lost;
}

TEST(Doorbell, NoWakeUpIsLost) {
  for (int messages : {1, 2, 3, 5})
    for (bool pieces : {false, true}) EXPECT_FALSE(loses_a_wake_up({}, messages, pieces)) << messages;
}

TEST(Doorbell, PlantedFaultsAreFound) {
  EXPECT_TRUE(loses_a_wake_up({.no_fence = true}, 1));
  EXPECT_TRUE(loses_a_wake_up({.no_second_look = true}, 1));
  EXPECT_TRUE(loses_a_wake_up({.word_read_late = true}, 1));
  EXPECT_TRUE(loses_a_wake_up({.word_not_changed = true}, 1));
  EXPECT_TRUE(loses_a_wake_up({.last_is_silent = true}, 3, true));
}

}  // namespace
