#include "asterism/comm/node/mailbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "asterism/base/error.hpp"

using namespace asterism::comm::node;

namespace {

/// Both ends in one process, over two mappings of the arena as two processes have them.
struct Pair {
  Arena& arena = *Arena::mine();
  std::uint64_t head_at = arena.allocate(64);
  std::atomic<std::uint64_t>* head = new (arena.at(head_at)) std::atomic<std::uint64_t>(0);
  Outbox out{arena};
  std::shared_ptr<Mapping const> mapping = Mapping::open(arena.name());
  Inbox in{mapping, reinterpret_cast<std::atomic<std::uint64_t> const*>(mapping->at(head_at))};
  void connect() { head->store(out.head(), std::memory_order_release); }
  void send(std::string const& text) {
    auto const place = out.reserve();
    std::memcpy(out.room(place, std::int64_t(text.size())), text.data(), text.size());
    out.publish(place, std::int64_t(text.size()));
  }
  std::string text(std::uint64_t number) {
    auto* const m = in.find(number);
    if (!m) return "(nothing)";
    return {reinterpret_cast<char const*>(in.data(*m)), std::size_t(in.ready(*m))};
  }
};

std::string const longer(5000, 'x');

}  // namespace

TEST(Mailbox, MessagesArriveInAnyOrderOfTakingAndNothingBeforeTheyAreSent) {
  Pair p;
  ASSERT_TRUE(p.mapping);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.in.expect(), std::uint64_t(i));
  EXPECT_EQ(p.text(0), "(nothing)");  // the sender has not shown its first place
  p.connect();
  EXPECT_EQ(p.text(0), "(nothing)");
  p.send("first");
  p.send(longer);
  p.send("");
  EXPECT_EQ(p.text(2), "");
  p.in.take(2);
  EXPECT_EQ(p.text(1), longer);
  EXPECT_EQ(p.text(0), "first");
  EXPECT_EQ(p.text(3), "(nothing)");
  EXPECT_EQ(p.out.under_way(), 3u);
  p.in.take(0);
  p.in.take(1);
  p.out.collect();
  EXPECT_EQ(p.out.under_way(), 0u);
  EXPECT_EQ(p.out.bytes_under_way(), 0);
  p.send("again");
  EXPECT_EQ(p.text(3), "again");
}

TEST(Mailbox, PlacesCanBeReservedBeforeTheyAreFilledInAnyOrder) {
  Pair p;
  p.connect();
  Outbox::Sent places[3];
  for (auto& place : places) place = p.out.reserve();
  for (int i : {2, 0, 1}) {
    *p.out.room(places[i], 1) = std::byte('a' + i);
    p.out.publish(places[i], 1);
    EXPECT_EQ(p.text(std::uint64_t(i)), std::string(1, char('a' + i)));
  }
}

TEST(Mailbox, AFewPlacesAndBlocksGoRoundHoweverManyMessages) {
  Pair p;
  p.connect();
  auto const before = p.arena.allocate(64);
  p.arena.release(before, 64);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    p.send(i % 3 ? longer : "short");
    ASSERT_EQ(p.text(i), i % 3 ? longer : "short") << i;
    p.in.take(i);
  }
  EXPECT_LE(p.out.under_way(), 8u);
  EXPECT_EQ(p.arena.allocate(64), before);  // nothing new of that size was needed
}

// What the receiver reads must be what was sent, whatever the delays on both sides; also for the thread sanitizer.
TEST(Mailbox, StressOfRandomSizesPartsAndDelays) {
  Pair p;
  constexpr int rounds = 10'000;
  auto const size_of_round = [](std::uint64_t i) { return std::int64_t(i * 7919 % 11 == 0 ? i % 9000 : i % 60); };
  auto const pause = [](std::mt19937& r) {
    if (r() % 16 == 0) std::this_thread::yield();
    for (unsigned i = r() % 200; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  std::thread sender([&] {
    std::mt19937 r(1);
    p.connect();
    for (std::uint64_t i = 0; i < rounds; ++i) {
      auto const place = p.out.reserve();
      auto const n = size_of_round(i);
      auto* const room = p.out.room(place, n);
      for (std::int64_t at = 0;;) {
        auto const end = std::min(n, at + 1 + std::int64_t(r() % 4000));
        for (; at < end; ++at) room[at] = std::byte(i + std::uint64_t(at));
        p.out.publish(place, at);
        if (at >= n) break;
        pause(r);
      }
      pause(r);
      while (p.out.under_way() > 40) p.out.collect();
    }
  });
  std::mt19937 r(2);
  std::vector<std::uint64_t> open;  // found later messages are taken in any order
  std::uint64_t next = 0;
  std::int64_t wrong = 0, bytes = 0;
  while (next < rounds || !open.empty()) {
    while (open.size() < 5 && next < rounds) open.push_back(next++);
    auto const at = open.begin() + std::int64_t(r() % open.size());
    auto const number = *at;
    open.erase(at);
    Message* m;
    while (!(m = p.in.find(number))) std::this_thread::yield();
    auto const n = std::int64_t(m->bytes);
    wrong += n != size_of_round(number);
    auto const* const data = p.in.data(*m);
    for (std::int64_t got = 0; got < n;) {
      auto const ready = p.in.ready(*m);
      for (; got < ready; ++got) wrong += data[got] != std::byte(number + std::uint64_t(got));
      if (got < n) pause(r);
    }
    bytes += n;
    p.in.take(number);
    pause(r);
  }
  sender.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(bytes, 1'000'000);
}

TEST(Arena, GivesBlocksAgainAndRefusesWhatCannotFit) {
  auto& arena = *Arena::mine();
  auto const a = arena.allocate(10 << 20);
  std::memset(arena.at(a), 7, 10 << 20);
  arena.release(a, 10 << 20);
  EXPECT_EQ(arena.allocate(9 << 20), a);      // the same size class
  EXPECT_EQ(arena.at(a)[100], std::byte(0));  // its pages went back to the system
  EXPECT_THROW(arena.allocate(std::int64_t(1) << 37), asterism::Error);
  auto name = arena.name();
  ++name.token;
  EXPECT_EQ(Mapping::open(name), nullptr);  // another process has this number now
  ++name.boot;
  EXPECT_EQ(Mapping::open(name), nullptr);
}

// Lent values: the receiver reads what was there when they were lent, though the sender changes them as soon as it may.
TEST(Mailbox, StressOfLendingAndRevoking) {
  Pair p;
  constexpr int rounds = 10'000;
  constexpr std::int64_t n = 512;
  auto const at = p.arena.allocate(n * 8);
  auto* const array = reinterpret_cast<std::uint64_t*>(p.arena.at(at));
  int revoked = 0;
  std::thread sender([&] {
    std::mt19937 r(1);
    p.connect();
    for (std::uint64_t i = 0; i < rounds; ++i) {
      for (std::uint64_t j = 0; j < n; ++j) array[j] = i + j;
      auto const place = p.out.reserve();
      p.out.lend(place, Place::block, reinterpret_cast<std::byte const*>(array), n * 8);
      for (unsigned patience = r() % 3000;; --patience) {
        if (p.out.taken(place)) break;
        if (patience == 0 && p.out.revoke(place, [&](std::byte* to) { std::memcpy(to, array, n * 8); })) {
          ++revoked;
          break;
        }
      }
    }
  });
  std::mt19937 r(2);
  std::int64_t wrong = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (unsigned d = r() % 20 == 0 ? r() % 20000 : 0; d > 0; --d) std::atomic_signal_fence(std::memory_order_seq_cst);
    Message* m;
    while (!(m = p.in.find(i))) std::this_thread::yield();
    auto const* const copy = p.in.claim(*m);
    auto const* const values = copy ? copy : p.in.data(*m);
    for (std::uint64_t j = 0; j < n; ++j) {
      std::uint64_t v;
      std::memcpy(&v, values + j * 8, 8);
      wrong += v != i + j;
    }
    p.in.take(i);
  }
  sender.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(revoked, 0);
  for (int i = 0; i < rounds && p.out.under_way() > 0; ++i) p.out.collect();  // some at a time
  EXPECT_EQ(p.out.under_way(), 0u);
}
