// Every interleaving of a sender that lends arrays and a receiver that releases them by credits.
#include "asterism/comm/channels/credits.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "interleavings.hpp"

using namespace asterism::comm::channels;
using namespace interleavings;

namespace {

enum class Planted { nothing, credit_counted_twice, released_before_reading, never_flushed };

// Words: a message's arrival each, a credit each (in its order, 0: not there yet), and the two arrays that are lent in turn.
constexpr std::size_t arrivals = 0, credits = 8, arrays = 24;
constexpr std::uint64_t filled = 100;

std::uint64_t encoded(Credit const& c) {
  std::uint64_t word = 1 + (c.below << 1);  // at most 15 messages
  for (std::uint32_t i = 0; i < c.count; ++i) word |= std::uint64_t(1) << (8 + c.others[i]);
  return word;
}
Credit decoded(std::uint64_t word) {
  Credit c{(word & 0xff) >> 1, 0, {}};
  for (std::uint64_t n = 0; n < 16; ++n)
    if (word >> (8 + n) & 1) c.others[c.count++] = n;
  return c;
}

struct Line {
  View& view;
  Planted planted;
  std::size_t count = 0;
  void send(Credit c) {
    if (planted == Planted::credit_counted_twice && c.below > 0) ++c.below;
    view.store_shared(credits + count++, encoded(c));
  }
};

/// Message n lends array n % 2. The sender fills an array again when it was returned; the receiver reads one just before its release.
/// order: of the releases. at_once: the receiver tells each; else in twos, and when it finds nothing.
Result lend(std::vector<int> order, bool at_once, Planted planted) {
  int const messages = int(order.size());
  auto const sends = [=](State& s, int rank) {
    View view(s, rank);
    Unreleased<int> unreleased;
    std::multiset<int> returned;
    std::size_t taken = 0;
    auto const wait_for = [&](int n) {
      while (!unreleased.released(std::uint64_t(n))) {
        view.mark();
        auto const word = view.load_shared(credits + taken);
        if (word == 0) view.block();
        ++taken;
        unreleased.take(decoded(word), [&](int m) { returned.insert(m); });
      }
    };
    for (int n = 0; n < messages; ++n) {
      if (n >= 2) wait_for(n - 2);
      view.store_shared(arrays + std::size_t(n % 2), filled + std::uint64_t(n));
      auto const number = unreleased.send(n);
      if (number != std::uint64_t(n)) s.wrong = "another number";
      view.store_shared(arrivals + std::size_t(n), 1);
    }
    for (int n = 0; n < messages; ++n) wait_for(n);
    for (int n = 0; n < messages; ++n)
      if (returned.count(n) != 1) s.wrong = "array " + std::to_string(n) + " was returned " + std::to_string(returned.count(n)) + " times";
  };
  auto const receives = [=](State& s, int rank) {
    View view(s, rank);
    Line line{view, planted};
    Releases<Line> releases(line, 2);
    int found = 0;
    for (int const n : order) {
      while (found <= n) {
        if (view.load_shared(arrivals + std::size_t(found)) == 0) {
          if (planted != Planted::never_flushed) releases.flush();
          view.mark();
          if (view.load_shared(arrivals + std::size_t(found)) == 0) view.block();
        }
        ++found;
      }
      if (planted == Planted::released_before_reading) releases.release(std::uint64_t(n), at_once);
      auto const value = view.load_shared(arrays + std::size_t(n % 2));
      if (value != filled + std::uint64_t(n)) s.wrong = "array " + std::to_string(n) + " was read as " + std::to_string(value);
      if (planted != Planted::released_before_reading) releases.release(std::uint64_t(n), at_once);
    }
    if (planted != Planted::never_flushed) releases.flush();
  };
  return explore({sends, receives});
}

}  // namespace

TEST(Credits, EveryInterleavingOfLendingAndReleasing) {
  for (bool const at_once : {true, false})
    for (auto const& order : {std::vector{0, 1, 2, 3, 4, 5}, {1, 0, 3, 2, 5, 4}, {1, 0, 2, 3, 4}, {0, 2, 1, 3}}) {
      auto const r = lend(order, at_once, Planted::nothing);
      EXPECT_EQ(r.wrong, "") << at_once << " " << order[0] << order[1];
      EXPECT_GT(r.states, 50u);
    }
}

TEST(Credits, TheModelFindsWhatIsPlanted) {
  std::vector const order{0, 1, 2, 3};
  EXPECT_NE(lend(order, true, Planted::credit_counted_twice).wrong, "");
  EXPECT_NE(lend(order, true, Planted::released_before_reading).wrong, "");
  EXPECT_EQ(lend({0, 1, 2}, false, Planted::never_flushed).wrong, "some ranks wait for ever");
}

// Many at once: more above the first that is open than one credit can name.
TEST(Credits, AnyOrderOfReleasesIsToldWhole) {
  struct Kept {
    std::vector<Credit> credits;
    void send(Credit const& c) { credits.push_back(c); }
  } line;
  Releases<Kept> releases(line, 1000);
  Unreleased<int> unreleased;
  std::vector<int> returned(40, 0);
  for (int i = 0; i < 40; ++i) unreleased.send(i);
  auto const take = [&] {
    for (auto const& c : line.credits) unreleased.take(c, [&](int m) { ++returned[std::size_t(m)]; });
    line.credits.clear();
  };
  for (int i = 39; i > 0; --i) {
    releases.release(std::uint64_t(i), false);
    if (i == 20) releases.flush(), take();
  }
  releases.flush();
  take();
  EXPECT_EQ(returned[0], 0);
  EXPECT_FALSE(unreleased.released(0));
  EXPECT_TRUE(unreleased.released(39));
  releases.release(0, true);
  take();
  EXPECT_EQ(returned, std::vector<int>(40, 1));
  EXPECT_TRUE(unreleased.empty());
}

// A message the other way carries the credit of what was released in order; then no credit of its own is sent. Others need one.
TEST(Credits, AMessageTheOtherWayCarriesThoseInOrder) {
  struct Line {
    std::vector<Credit> sent;
    void send(Credit const& c) { sent.push_back(c); }
  } line;
  Releases<Line> releases(line, 8);
  Unreleased<int> sender;
  for (int i = 0; i < 6; ++i) sender.send(i);
  releases.release(0, false);
  releases.release(1, false);
  EXPECT_EQ(releases.carried(), 2u);
  releases.flush();
  EXPECT_TRUE(line.sent.empty());
  releases.release(4, false);
  EXPECT_EQ(releases.carried(), 2u);
  releases.flush();
  ASSERT_EQ(line.sent.size(), 1u);
  std::vector<int> back;
  auto const released = [&](int m) { back.push_back(m); };
  sender.take({2, 0, {}}, released);
  EXPECT_EQ(sender.first(), 2u);
  sender.take(line.sent[0], released);
  EXPECT_EQ(back, (std::vector<int>{0, 1, 4}));
  EXPECT_FALSE(sender.released(2));
}
