// Every interleaving of the mailbox protocol between two or three ranks with two places, one memory access at a time.
#include "asterism/comm/node/protocol.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

using namespace asterism::comm::node;

namespace {

/// What a rank is stopped by after one access, and where it would wait.
struct Stepped {};
struct Blocked {};

/// The shared words, and for each rank how far it is. A rank is a deterministic program, so what it has read determines it:
/// its next step is found by running it again on what it read before.
struct State {
  static constexpr int places = 6;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(places * 4, 0);    // ready, next, taken, data of each place
  std::vector<std::uint64_t> credits = std::vector<std::uint64_t>(places + 1, 0);  // by the first place of the chain
  struct Rank {
    std::size_t accesses = 0;
    std::vector<std::uint64_t> reads;
    bool done = false;
  };
  std::vector<Rank> ranks;
  std::string wrong;
  std::string key() const {
    std::string k;
    auto const add = [&](std::uint64_t v) { k.append(reinterpret_cast<char const*>(&v), sizeof v); };
    for (auto const w : words) add(w);
    for (auto const c : credits) add(c);
    for (auto const& r : ranks) {
      add(r.accesses);
      add(r.done);
      for (auto const v : r.reads) add(v);
    }
    return k;
  }
};

/// One rank's view: replays what it did, then does one access more and stops.
struct Memory {
  using Place = int;  // 1, 2, ...; 0 is none
  State& state;
  int rank;
  int first_place = 0, limit = 0;  // the places that it may make as a sender
  bool forgets_numbers = false;    // planted: words without the number of their message
  std::size_t access = 0, read = 0;
  std::size_t mark_access = 0, mark_read = 0;
  int made = 0;
  int taken_from = 0;  // first place of the chain whose credit it writes as a receiver

  State::Rank& me() { return state.ranks[std::size_t(rank)]; }
  std::uint64_t& word(Place p, int w) { return state.words[std::size_t((p - 1) * 4 + w)]; }
  static std::uint64_t id(Place p) { return std::uint64_t(p); }
  static Place place(std::uint64_t id) { return int(id); }
  Place make_place() {
    if (made == limit) block();
    return first_place + made++;
  }
  std::uint64_t load_shared(std::uint64_t const& from) {
    if (access++ < me().accesses) return me().reads[read++];
    me().reads.push_back(from);
    ++me().accesses;
    throw Stepped{};
  }
  void store_shared(std::uint64_t& to, std::uint64_t value) {
    if (access++ < me().accesses) return;
    to = value;
    ++me().accesses;
    throw Stepped{};
  }
  std::uint64_t load_word(Place p, int w) { return load_shared(word(p, w)); }
  void store_word(Place p, int w, std::uint64_t value) { store_shared(word(p, w), value); }
  std::uint64_t load_credit() { return load_shared(state.credits[std::size_t(first_place)]); }
  void store_credit(std::uint64_t value) { store_shared(state.credits[std::size_t(taken_from)], value); }
  std::uint64_t load(Place p, Word w) { return load_word(p, int(w)); }
  void store(Place p, Word w, std::uint64_t value) {
    store_word(p, int(w), forgets_numbers && w != Word::taken ? numbered(0, value & value_mask) : value);
  }
  /// From here on the rank only looks whether it can go on.
  void mark() { mark_access = access, mark_read = read; }
  /// It cannot: it will look again.
  void block() {
    me().accesses = mark_access;
    me().reads.resize(mark_read);
    throw Blocked{};
  }
};

using Program = std::function<void(State&, int rank)>;

struct Result {
  std::size_t states = 0;
  std::string wrong;
};

/// All states that the programs can reach, and whether from each of them the end can be reached.
Result explore(std::vector<Program> const& programs) {
  State start;
  start.ranks.resize(programs.size());
  std::unordered_map<std::string, int> seen{{start.key(), 0}};
  std::vector<State> all{start};
  std::vector<std::vector<int>> before(1);
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (int r = 0; r < int(programs.size()); ++r) {
      if (all[s].ranks[std::size_t(r)].done) continue;
      State next = all[s];
      try {
        programs[std::size_t(r)](next, r);
        next.ranks[std::size_t(r)].done = true;
      } catch (Stepped) {
      } catch (Blocked) {
      } catch (std::exception const& e) {
        next.wrong = e.what();
      }
      if (!next.wrong.empty()) return {all.size(), next.wrong};
      auto const [at, fresh] = seen.try_emplace(next.key(), int(all.size()));
      if (fresh) {
        all.push_back(std::move(next));
        before.emplace_back();
      }
      before[std::size_t(at->second)].push_back(int(s));
    }
  }
  std::vector<int> reached;
  std::vector<char> can_end(all.size(), 0);
  for (std::size_t s = 0; s < all.size(); ++s)
    if (std::all_of(all[s].ranks.begin(), all[s].ranks.end(), [](auto const& r) { return r.done; })) {
      can_end[s] = 1;
      reached.push_back(int(s));
    }
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (auto const b : before[std::size_t(reached[i])])
      if (!can_end[std::size_t(b)]) can_end[std::size_t(b)] = 1, reached.push_back(b);
  if (std::find(can_end.begin(), can_end.end(), 0) != can_end.end()) return {all.size(), "some ranks wait for ever"};
  return {all.size(), ""};
}

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
