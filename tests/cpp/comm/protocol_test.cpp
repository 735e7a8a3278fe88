// Every interleaving of the mailbox protocol between two or three ranks with two places, one memory access at a time.
#include "asterism/comm/node/protocol.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "interleavings.hpp"

using namespace asterism::comm::node;
using namespace interleavings;

namespace {

/// Words of places, and the credits of chains behind them.
struct Memory : View {
  static constexpr int places = 6;
  using Place = int;               // 1, 2, ...; 0 is none
  int first_place = 0, limit = 0;  // the places that it may make as a sender
  bool forgets_numbers = false;    // planted: words without the number of their message
  int made = 0;
  int taken_from = 0;  // first place of the chain whose credit it writes as a receiver

  Memory(State& s, int r, int first = 0, int most = 0, bool forgets = false)
      : View(s, r), first_place(first), limit(most), forgets_numbers(forgets) {}
  /// ready, next, taken, data of each place
  static std::size_t word(Place p, int w) { return std::size_t((p - 1) * 4 + w); }
  static std::size_t credit(int first) { return std::size_t(places * 4 + first); }
  static std::uint64_t id(Place p) { return std::uint64_t(p); }
  static Place place(std::uint64_t id) { return int(id); }
  Place make_place() {
    if (made == limit) block();
    return first_place + made++;
  }
  std::uint64_t load_word(Place p, int w) { return load_shared(word(p, w)); }
  void store_word(Place p, int w, std::uint64_t value) { store_shared(word(p, w), value); }
  std::uint64_t load_credit() { return load_shared(credit(first_place)); }
  void store_credit(std::uint64_t value) { store_shared(credit(taken_from), value); }
  std::uint64_t load(Place p, Word w) { return load_word(p, int(w)); }
  void store(Place p, Word w, std::uint64_t value) {
    store_word(p, int(w), forgets_numbers && w != Word::taken ? numbered(0, value & value_mask) : value);
  }
};

enum class Planted { nothing, publishes_first, takes_before_reading, forgets_numbers };

struct Sender {
  Memory memory;
  SendProtocol<Memory> protocol;
  Planted planted;
  Sender(State& s, int rank, int first_place, int places, Planted p)
      : memory{s, rank, first_place, places, p == Planted::forgets_numbers}, protocol(memory, places - 1), planted(p) {}
  void send(std::uint64_t value) {
    protocol.collect([](auto const&) {});
    memory.mark();
    auto const sent = protocol.reserve([](auto const&) {});
    if (planted == Planted::publishes_first) protocol.publish(sent, 1);
    memory.store_word(sent.place, 3, value);
    if (planted != Planted::publishes_first) protocol.publish(sent, 1);
  }
};

struct Receiver {
  Memory memory;
  ReceiveProtocol<Memory> protocol{memory};
  Planted planted;
  Receiver(State& s, int rank, int first_place, Planted p) : memory{s, rank}, planted(p) {
    memory.taken_from = first_place;
    protocol.connect(first_place);
  }
  std::uint64_t receive(std::uint64_t number) {
    memory.mark();
    auto const place = protocol.find(number);
    if (!place) memory.block();
    std::uint64_t value = 0;
    if (planted == Planted::takes_before_reading) protocol.take(number);
    value = memory.load_word(place, 3);
    if (planted != Planted::takes_before_reading) protocol.take(number);
    return value;
  }
};

void expect(State& s, std::uint64_t got, std::uint64_t wanted) {
  if (got != wanted) s.wrong = "message " + std::to_string(wanted) + " was read as " + std::to_string(got);
}

Result two_ranks(int places, std::vector<int> order, Planted planted) {
  int const messages = int(order.size());
  auto const sends = [=](State& s, int rank) {
    Sender out(s, rank, 1, places, planted);
    for (int n = 0; n < messages; ++n) out.send(100 + std::uint64_t(n));
  };
  auto const receives = [=](State& s, int rank) {
    Receiver in(s, rank, 1, planted);
    for (int const n : order) expect(s, in.receive(std::uint64_t(n)), 100 + std::uint64_t(n));
  };
  return explore({sends, receives});
}

}  // namespace

TEST(Protocol, EveryInterleavingOfTwoRanksWithTwoPlaces) {
  auto const r = two_ranks(2, {0, 1, 2, 3, 4, 5, 6, 7}, Planted::nothing);
  EXPECT_EQ(r.wrong, "");
  RecordProperty("states", int(r.states));
  EXPECT_GT(r.states, 200u);
}

TEST(Protocol, EveryInterleavingWithMessagesTakenInAnotherOrder) {
  auto const r = two_ranks(4, {2, 0, 1, 4, 3, 5}, Planted::nothing);
  EXPECT_EQ(r.wrong, "");
  RecordProperty("states", int(r.states));
  EXPECT_GT(r.states, 200u);
}

TEST(Protocol, EveryInterleavingOfThreeRanksThatPassMessagesOn) {
  auto const first = [](State& s, int rank) {
    Sender out(s, rank, 1, 2, Planted::nothing);
    for (int n = 0; n < 3; ++n) out.send(100 + std::uint64_t(n));
  };
  auto const middle = [](State& s, int rank) {
    // one rank, two views that share its history
    struct Both {
      Receiver in;
      Sender out;
    };
    Receiver in(s, rank, 1, Planted::nothing);
    Memory& m = in.memory;
    m.first_place = 3;
    m.limit = 2;
    SendProtocol<Memory> out(m, 1);
    for (int n = 0; n < 3; ++n) {
      auto const value = in.receive(std::uint64_t(n));
      m.mark();
      auto const sent = out.reserve([](auto const&) {});
      m.store_word(sent.place, 3, value + 100);
      out.publish(sent, 1);
    }
  };
  auto const last = [](State& s, int rank) {
    Receiver in(s, rank, 3, Planted::nothing);
    for (int n = 0; n < 3; ++n) expect(s, in.receive(std::uint64_t(n)), 200 + std::uint64_t(n));
  };
  auto const r = explore({first, middle, last});
  EXPECT_EQ(r.wrong, "");
  RecordProperty("states", int(r.states));
  EXPECT_GT(r.states, 1000u);
}

TEST(Protocol, TheModelFindsWhatIsPlanted) {
  EXPECT_NE(two_ranks(2, {0, 1, 2, 3, 4}, Planted::publishes_first).wrong, "");
  EXPECT_NE(two_ranks(3, {0, 1, 2, 3, 4}, Planted::takes_before_reading).wrong, "");
  EXPECT_NE(two_ranks(2, {0, 1, 2, 3, 4}, Planted::forgets_numbers).wrong, "");
  // a receiver that waits for what comes later than the places there are: nobody can go on
  EXPECT_EQ(two_ranks(2, {4, 0, 1, 2, 3}, Planted::nothing).wrong, "some ranks wait for ever");
}

TEST(Protocol, ANumberThatComesAgainIsNoNewMessage) {
  struct Words {
    std::uint64_t word[3] = {};
    std::size_t id = 0;
  };
  struct Plain {  // nobody else looks at this memory
    using Place = Words*;
    std::vector<std::unique_ptr<Words>>& places;
    std::uint64_t& credit;
    Place make_place() {
      places.push_back(std::make_unique<Words>());
      places.back()->id = places.size();
      return places.back().get();
    }
    static std::uint64_t id(Place p) { return p->id; }
    Place place(std::uint64_t id) const { return places[id - 1].get(); }
    static std::uint64_t load(Place p, Word w) { return p->word[int(w)]; }
    static void store(Place p, Word w, std::uint64_t v) { p->word[int(w)] = v; }
    std::uint64_t load_credit() const { return credit; }
    void store_credit(std::uint64_t v) { credit = v; }
  };
  constexpr std::uint64_t turn = 0xffffff, burst = 12;
  std::vector<std::unique_ptr<Words>> places;
  std::uint64_t credit = 0, sent = 0, taken = 0;
  Plain memory{places, credit};
  SendProtocol<Plain> out(memory, 15);
  ReceiveProtocol<Plain> in(memory);
  in.connect(out.tail());
  auto const nothing = [](auto const&) {};
  auto const send = [&] {
    auto const m = out.reserve(nothing);
    out.collect(nothing);
    out.publish(m, 1);
    ++sent;
  };
  auto const take = [&] {
    ASSERT_TRUE(in.find(taken));
    in.take(taken++);
  };
  for (std::uint64_t i = 0; i < burst; ++i) send();
  for (std::uint64_t i = 0; i < burst; ++i) take();
  while (sent < turn) {  // the places that only a burst needs are idle
    out.collect(nothing);
    send();
    take();
  }
  out.collect(nothing);
  for (std::uint64_t i = 0; i < burst; ++i) {
    send();
    ASSERT_FALSE(in.find(sent)) << "message " << sent << " was not published";
  }
  for (std::uint64_t i = 0; i < burst; ++i) take();
}
